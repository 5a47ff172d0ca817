#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a secret may be used for besides the fields of heads, when the user asks for it, in HTTP/1.1 and in HTTP/2: through
mvagent-relay and mvagent-secret, with real TLS, on this host's loopback.

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import base64
import contextlib
import json
import secrets
import select
import sys
import time
import urllib.parse

import http2_peer
import secret_driver
from relay_driver import EVENT_DENIED, EVENT_FAILED, EVENT_MASKED, EVENT_SECRET, EVENT_TOKEN, LIMIT, expect, expect_equal
from secret_driver import HOST, Run, Secure, exchange, head, secret, take_head

KEY = "s3cr3t+with/marks=and&more-of-it"
KEY_PLACE = ("PLACEplace:0123456789" * 2)[:len(KEY)]
ENCODED = urllib.parse.quote(KEY, safe="")


def redirect(server, plain):
    """Each answer leads to where the request has led already, with a little more."""
    while (told := take_head(server, plain)[0]) is not None:
        target = told.split(b" ")[1]
        plain.sendall(b"HTTP/1.1 302 Found\r\nLocation: https://api.test%s&again\r\nContent-Length: %d\r\n\r\n%s" %
                      (target, len(target), target))


def redirect_http2(peer, number, stream):
    target = dict(stream.headers)[b":path"]
    peer.say(number, target, (b"location", b"https://api.test" + target + b"&again"), status="302")


def keys(port, **named):
    other = secret("OTHER", "other-secret-of-another-host", "other-place-of-another-host!"[:28], ("else.test", 443), in_query=True)
    return [secret("QUERY_KEY", KEY, KEY_PLACE, (HOST, port), **named), other]


@contextlib.contextmanager
def http1(**named):
    with Secure(Run.authority.context(), redirect) as server, Run(server.port, secrets=keys(server.port, **named)) as run:
        yield server, run


@contextlib.contextmanager
def http2(**named):
    with http2_peer.Server(redirect_http2) as server, Run(server.port, secrets=keys(server.port, **named)) as run:
        yield server, run
    expect(not server.failures, f"what the server thinks of mvagent-secret: {server.failures}")


def test_query():
    with http1(in_query=True) as (server, run):
        with run.connect() as made:
            for place in (KEY_PLACE, KEY_PLACE.replace(":", "%3A"), KEY_PLACE.replace(":", "%3a")):
                answer = exchange(made, head(first=b"GET /v1/things?n=1&key=%s&m=2 HTTP/1.1" % place.encode()))
                target = b"/v1/things?n=1&key=%s&m=2" % ENCODED.encode()
                expect(server.heads[-1].startswith(b"GET " + target + b" HTTP/1.1\r\n"), f"the server got {server.heads[-1]}")
                expect(b"Location: https://api.test/v1/things?n=1&key=PLACE" in answer and b"&m=2&again" in answer, f"the guest got {answer}")
                expect(KEY[:9].encode() not in answer and ENCODED[:9].encode() not in answer, f"the guest got {answer}")
        expect_equal(run.event(), (EVENT_SECRET, HOST, run.port, 3, 0, "QUERY_KEY"))
        expect_equal(run.event(), (EVENT_MASKED, HOST, run.port, 0, 6, "QUERY_KEY"))


def test_query_of_http2():
    with http2(in_query=True) as (server, run):
        with http2_peer.guest(run) as peer:
            stream = peer.ask(path=f"/v1?key={KEY_PLACE}&m=2")
            expect_equal(server.heads[-1][b":path"], f"/v1?key={ENCODED}&m=2".encode(), "what the server got")
            told = stream.field("location") + stream.body
            expect_equal((stream.status, told.count(b"/v1?key=PLACE")), (302, 2), f"the guest got {told}")
            expect(KEY[:9].encode() not in told and ENCODED[:9].encode() not in told, f"the guest got {told}")
        expect_equal(run.event(), (EVENT_SECRET, HOST, run.port, 1, 0, "QUERY_KEY"))
        expect_equal(run.event(), (EVENT_MASKED, HOST, run.port, 0, 2, "QUERY_KEY"))


NOT_THERE = (("/" + KEY_PLACE + "?a", "first line"), ("/?a#" + KEY_PLACE, "first line"), ("/?a=other-place-of-another-host!", "and goes to another host"))


def test_query_is_all():
    """No path, no fragment, no other host's, and nothing that was not asked for."""
    with http1(in_query=True) as (server, run):
        for path, part in NOT_THERE:
            with run.connect() as made:
                answer = exchange(made, head(first=f"GET {path} HTTP/1.1".encode()))
                expect(answer.startswith(b"HTTP/1.1 403") and part.encode() in answer, f"{path}: {answer}")
        expect_equal(server.heads, [])
    with http2(in_query=True) as (server, run), http2_peer.guest(run) as peer:
        for path, part in NOT_THERE:
            stream = peer.ask(path=path)
            expect(stream.status == 403 and part.encode() in stream.body, f"{path}: {stream.headers} {stream.body}")
        expect_equal(server.heads, [])
    with http1() as (server, run), run.connect() as made:
        answer = exchange(made, head(first=f"GET /?a={KEY_PLACE} HTTP/1.1".encode()))
        expect(b"--secret-query QUERY_KEY would put the secret there" in answer, f"{answer}")
        event = run.event()
        expect(event[0] == EVENT_DENIED and "--secret-query QUERY_KEY" in event[5], f"{event}")


REFRESH = "sk-ant-ort01-" + "realREFRESHreal0123456789" * 2
REFRESH_PLACE = "sk-ant-ort01-" + "placePLACEplace9876543210" * 2
PATH = "/v1/oauth/token"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class Issuer:
    """A token endpoint (RFC 6749, 6), and a service beside it that takes the tokens it has given out."""

    def __init__(self):
        self.refresh, self.access, self.seen = REFRESH, None, []

    def new_tokens(self):
        def part(text):
            return base64.urlsafe_b64encode(json.dumps(text).encode()).decode().rstrip("=")

        identity = ".".join((part({"alg": "RS256"}), part({"email": "ada@example.com", "nonce": secrets.token_hex(8)}), secrets.token_urlsafe(64)))
        self.access, self.refresh = "sk-ant-oat01-" + secrets.token_urlsafe(40), "sk-ant-ort01-" + secrets.token_urlsafe(40)
        self.seen += [self.access, self.refresh, identity]
        return {"token_type": "Bearer", "access_token": self.access, "expires_in": 3600, "refresh_token": self.refresh, "id_token": identity}

    def answer(self, method, target, kind, authorization, body):
        """Status, kind and body of the answer."""
        if target == PATH:
            fields = dict(urllib.parse.parse_qsl(body.decode())) if kind.startswith(FORM) else json.loads(body or b"{}")
            if method != "POST" or fields.get("grant_type") != "refresh_token" or fields.get("refresh_token") != self.refresh:
                return 400, JSON, json.dumps({"error": "invalid_token", "error_description": "the refresh_token is not good: "
                                              f"{fields.get('refresh_token')}"}).encode()
            return 200, JSON, json.dumps(self.new_tokens(), indent=1).encode()
        if target == "/echo":
            return 200, "text/plain", f"you said {authorization} and {base64.b64encode(authorization.encode()).decode()}".encode()
        return (200, JSON, b'{"you": "are in"}') if authorization == f"Bearer {self.access}" else (401, JSON, b'{"error": "invalid_token"}')


def fields_of(told):
    lines = (line.split(b":", 1) for line in told.split(b"\r\n")[1:])
    return {name.lower().decode(): value.strip().decode() for name, value in lines}


class Way:
    """A guest's way to a server, of either kind of HTTP. @answer(method, target, kind, authorization, body)."""

    def __init__(self, answer, http2, chunked=False, fields=()):
        self.answer, self.http2, self.chunked, self.fields = answer, http2, chunked, fields

    def say_http1(self, server, plain):
        while (told := take_head(server, plain))[0] is not None:
            told, body = told
            fields = fields_of(told)
            while len(body) < int(fields.get("content-length", 0)):
                body += plain.recv(65536)
            server.bodies.append(body)
            method, target, _ = told.split(b"\r\n")[0].decode().split(" ")
            status, kind, said = self.answer(method, target, fields.get("content-type", ""), fields.get("authorization", ""), body)
            more = "".join(f"{name}: {value}\r\n" for name, value in self.fields)
            start = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{more}".encode()
            if not self.chunked:
                plain.sendall(start + b"Content-Length: %d\r\n\r\n" % len(said) + said)
                continue
            plain.sendall(start + b"Transfer-Encoding: chunked\r\n\r\n")
            size = max(7, len(said) // 9)
            pieces = [said[i:i + size] for i in range(0, len(said), size)]
            plain.sendall(b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")

    def say_http2(self, peer, number, stream):
        told = {name.decode(): value.decode() for name, value in stream.headers}
        status, kind, said = self.answer(told[":method"], told[":path"], told.get("content-type", ""), told.get("authorization", ""), stream.body)
        fields = [(name.lower().encode(), value.encode()) for name, value in self.fields]
        peer.headers(number, [(b":status", b"%d" % status), (b"content-type", kind.encode()), *fields] +
                     ([] if self.chunked else [(b"content-length", b"%d" % len(said))]))
        size = max(7, len(said) // 9) if self.chunked else len(said) or 1
        for i in range(0, len(said), size):
            peer.data(number, said[i:i + size])
        peer.data(number, b"", end=True)

    @contextlib.contextmanager
    def open(self, *more, value=REFRESH, place=REFRESH_PLACE):
        server = http2_peer.Server(self.say_http2) if self.http2 else Secure(Run.authority.context(), self.say_http1)
        with server, Run(server.port, secrets=[secret("REFRESH", value, place, (HOST, server.port), endpoint=PATH), *more]) as self.run:
            self.server, self.told = server, []
            yield self
            self.drain()
        if self.http2:
            expect(not server.failures, f"what the server thinks of mvagent-secret: {server.failures}")

    def drain(self):
        """Takes what was told: who tells it waits for that. What mvagent-secret says is in .told."""
        while select.select([self.run.relay.events], [], [], 0)[0]:
            self.run.relay.event()
        while select.select([self.run.events], [], [], 0)[0]:
            self.told.append(self.run.event())

    def event(self, kind):
        """The first of that kind that was told."""
        end = time.monotonic() + LIMIT
        while not (found := [event for event in self.told if event[0] == kind]) and time.monotonic() < end:
            time.sleep(0.01)
            self.drain()
        expect(found, f"no event {kind} in {self.told}")
        return found[0]

    def ask(self, target, body=None, kind=None, authorization=None, method=None, more=()):
        """A request on a connection of its own. Status and body of the answer; 0: it was broken off."""
        self.drain()
        fields = [("content-type", kind)] if kind else []
        fields += [("authorization", authorization)] if authorization else []
        fields += more
        method = method or ("GET" if body is None else "POST")
        if self.http2:
            with http2_peer.guest(self.run) as peer:
                stream = peer.ask(*fields, body=body, method=method, path=target)
                return stream.status if stream.ended else 0, stream.body
        fields += [("content-length", str(len(body)))] if body is not None else []
        with self.run.connect() as made:
            made.sendall(head(*(f"{name}: {value}".encode() for name, value in fields), first=f"{method} {target} HTTP/1.1".encode()) +
                         (body or b""))
            return self.read(made)

    def read(self, made):
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := made.recv(65536)):
                return 0, data
            data += part
        told, rest = data.split(b"\r\n\r\n", 1)
        fields, status = fields_of(told), int(told.split(b" ")[1])
        if "transfer-encoding" in fields:
            try:
                return status, self.read_chunks(made, rest)
            except EOFError:
                return 0, rest
        while len(rest) < int(fields.get("content-length", 0)):
            if not (part := made.recv(65536)):
                return 0, rest
            rest += part
        return status, rest

    def read_chunks(self, made, rest):
        contents = b""
        while True:
            while b"\r\n" not in rest or len(rest.split(b"\r\n", 1)[1]) < int(rest.split(b"\r\n")[0], 16) + 2:
                if not (part := made.recv(65536)):
                    raise EOFError
                rest += part
            size, rest = rest.split(b"\r\n", 1)
            size = int(size, 16)
            contents, rest = contents + rest[:size], rest[size + 2:]
            if not size:
                return contents


def refresh(token, kind):
    fields = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "agent"}
    return (urllib.parse.urlencode(fields) if kind.startswith(FORM) else json.dumps(fields)).encode()


def ways(answer, **named):
    for http2 in (False, True):
        for chunked in (False, True):
            yield Way(answer, http2, chunked, **named)


def count(told, kind):
    return sum(sent + received for told_kind, _, _, sent, received, _ in told if told_kind == kind)


def test_refresh():
    """An agent whose token is over gets a new one, uses it, and gets the next one with the new refresh token."""
    for http2 in (False, True):
        for chunked in (False, True):
            issuer = Issuer()
            with Way(issuer.answer, http2, chunked).open() as way:
                place = REFRESH_PLACE
                # Often enough for a placeholder to begin as a token does.
                for kind in 6 * (FORM, JSON + "; charset=utf-8", FORM):
                    status, said = way.ask(PATH, refresh(place, kind), kind)
                    expect_equal(status, 200, f"{said}")
                    told = json.loads(said)
                    expect_equal((told["expires_in"], told["token_type"]), (3600, "Bearer"), "what is no token")
                    for name, real in (("access_token", issuer.access), ("refresh_token", issuer.refresh), ("id_token", issuer.seen[-1])):
                        expect(told[name] != real and len(told[name]) == len(real), f"{name}: {told[name]} for {real}")
                    expect(told["access_token"].startswith("sk-ant-oat01-") and told["id_token"].count(".") == 2, "their shape")
                    expect_equal(way.ask("/use", authorization="Bearer " + told["access_token"])[0], 200, "the new token is of use")
                    status, said = way.ask("/echo", authorization="Bearer " + told["access_token"])
                    expect(told["access_token"].encode() in said and not any(real[13:].encode() in said for real in issuer.seen), f"the guest got {said}")
                    expect(base64.b64encode(issuer.access.encode())[20:40] not in said, f"the guest got {said}")
                    place = told["refresh_token"]
                end = time.monotonic() + LIMIT
                while count(way.told, EVENT_SECRET) < 54 and time.monotonic() < end:
                    time.sleep(0.01)
                    way.drain()
                time.sleep(0.1)
                way.drain()
                expect({event[5] for event in way.told} == {"REFRESH"} and {event[1] for event in way.told} == {HOST}, f"{way.told}")
                expect_equal([count(way.told, kind) for kind in (EVENT_SECRET, EVENT_MASKED, EVENT_TOKEN)], [54, 36, 54], f"{way.told}")


def test_only_requests_for_tokens():
    """Elsewhere than in the whole of a value of such a request the placeholder is stopped, as ever."""
    wrong = (("/v1/other", refresh(REFRESH_PLACE, FORM), FORM, "POST"), (PATH + "/", refresh(REFRESH_PLACE, FORM), FORM, "POST"),
             (PATH + "?x=y", refresh(REFRESH_PLACE, JSON), JSON, "POST"), ("/v1//oauth/token", refresh(REFRESH_PLACE, JSON), JSON, "POST"),
             (PATH, refresh(REFRESH_PLACE, FORM), FORM, "PUT"), (PATH, refresh(REFRESH_PLACE, FORM), "text/plain", "POST"),
             (PATH, refresh(REFRESH_PLACE, FORM), None, "POST"), (PATH, refresh(REFRESH_PLACE, JSON), "application/json-patch+json", "POST"),
             (PATH, b"redirect_uri=https://evil.test/" + REFRESH_PLACE.encode(), FORM, "POST"),
             (PATH, b"a=x" + REFRESH_PLACE.encode() + b"&b=c", FORM, "POST"), (PATH, REFRESH_PLACE.encode() + b"=b", FORM, "POST"),
             (PATH, b'{"a": "see ' + REFRESH_PLACE.encode() + b'"}', JSON, "POST"), (PATH, b'{"a": "\\"' + REFRESH_PLACE.encode() + b'"}', JSON, "POST"))
    for http2 in (False, True):
        with Way(Issuer().answer, http2).open() as way:
            for target, body, kind, method in wrong:
                status, said = way.ask(target, body, kind, method=method)
                expect(status == 403 and b"no header" in said, f"{method} {target} {kind} {body}: {status} {said}")
            more = [("content-type", JSON)]
            status, said = way.ask(PATH, refresh(REFRESH_PLACE, FORM), FORM, more=more)
            expect_equal(status, 403, "two types of a body")
            status, said = way.ask(PATH, refresh(REFRESH_PLACE, FORM), FORM, more=[("content-encoding", "identity")])
            expect_equal(status, 403, "an encoding")
            status, said = way.ask(PATH, b"x=" + b"y" * 32768 + b"&" + refresh(REFRESH_PLACE, FORM), FORM)
            expect(status == 403, f"a long body: {status} {said}")
            told = way.server.bodies + [REFRESH_PLACE[:0].encode()]
            expect(not any(REFRESH.encode() in body or REFRESH_PLACE.encode() in body for body in told), f"the server got {told}")
    awkward = "real+token/with&marks%of=forms"
    with Way(Issuer().answer, False).open(value=awkward, place="place" * 6) as way:
        status, said = way.ask(PATH, refresh("place" * 6, FORM), FORM)
        expect(status == 403 and b"a character that cannot stand there" in said, f"{said}")


TOKEN = "abcdefghijABCDEFGHIJ0123456789/-"


def test_answers():
    """However a token is written, it does not come in."""
    slashes, escaped = TOKEN.replace("/", "\\/"), "".join(f"\\u{ord(c):04x}" for c in TOKEN)
    replaced = (f'{{"access_token":"{TOKEN}"}}', f'{{"\\u0061ccess_token" \n:\t"{slashes}"}}', f'{{"ACCESS\\u005Ftoken":"{escaped}"}}',
                f'{{"a":[{{"b":{{"refreshToken":"{TOKEN}"}}}}]}}', f'{{"access_token":"{TOKEN}","access_token":"{TOKEN}"}}',
                f'{{"access_token":null,"id_token":"{TOKEN}","error":"invalid_token"}}', f'data: {{"bot_access_token": "{TOKEN}"}}\n\n',
                f'an inch is 1" and {{"access_token":"{TOKEN}"}}', f'{{"error":"x"}} {{"refresh-token":"{TOKEN}"}}', f'["access_token","refresh_token"] {{"id_token":"{TOKEN}"}}')
    for way in ways(lambda method, target, kind, authorization, body: (200, JSON, replaced[int(target[1:])].encode())):
        with way.open():
            for i, text in enumerate(replaced):
                status, said = way.ask(f"/{i}")
                expect(status == 200 and len(said) == len(text), f"{text}: {status} {said}")
                expect(TOKEN.encode() not in said and slashes.encode() not in said and escaped.encode() not in said, f"{text}: {said}")
                if text.startswith("{") and "} {" not in text:
                    told = json.loads(said)
                    expect_equal(list(told), list(json.loads(text)), "what else it says")


def test_answers_that_are_stopped():
    """What cannot be replaced, or not be seen, does not come in."""
    cases = (("access_token=" + TOKEN + "&x=y", FORM), (f"<OAuth><access_token>{TOKEN}</access_token></OAuth>", "application/xml"),
             (json.dumps({"data": json.dumps({"access_token": TOKEN})}), JSON), (f"{{'access_token': '{TOKEN}'}}", "text/plain"),
             (json.dumps(json.dumps({"data": json.dumps({"access_token": TOKEN})})), JSON),
             (f'{{"access_token":["{TOKEN}"]}}', JSON), (f'{{"access_token":{{"token":"{TOKEN}"}}}}', JSON), ('{"access_token":12345678901234567890}', JSON),
             (f'{{"access_token":"{TOKEN}', JSON), ('{"access_token":"short-one"}', JSON), (f'{{"access_token":"{TOKEN * 200}"}}', JSON),
             (f'{{"access_token":"{TOKEN * 300}"}}', JSON), (f'{{"access_token":"\u00e4{TOKEN}"}}', JSON), (f'{{"access_token":"x{REFRESH}"}}', JSON),
             (f'{{"access_token":"{base64.b64encode(REFRESH.encode()).decode()}"}}', JSON))
    for way in ways(lambda method, target, kind, authorization, body: (200, cases[int(target[1:])][1], cases[int(target[1:])][0].encode())):
        with way.open():
            for i, (text, _) in enumerate(cases):
                status, said = way.ask(f"/{i}")
                expect(status in (0, 502) and TOKEN.encode() not in said, f"{text}: {status} {said}")
    for name, value, status in (("Location", f"https://x/#access_token={TOKEN}", 302), ("Content-Encoding", "gzip", 200), ("X-Y", "z", 206),
                                ("Set-Cookie", f"refresh_token={TOKEN}", 200), ("X-Tokens", f'{{"access_token":"{TOKEN}"}}', 200)):
        for way in ways(lambda *_, status=status: (status, "text/plain", b"something"), fields=((name, value),)):
            with way.open():
                got, said = way.ask("/")
                expect(got in (0, 502) and TOKEN.encode() not in said, f"{name}: {got} {said}")
                expect("an answer was stopped" in way.event(EVENT_FAILED)[5], f"{way.told}")


def test_answers_that_pass():
    """Whatever is no token stays as it is."""
    texts = (b'{"error":"invalid_token","error_description":"the refresh_token is over; access_token, id_token"}', b'{"access_token":"","id_token":null}',
             b'{"type":"access_token","types":["id_token","refresh_token"]}', bytes(range(256)) * 300, b"x" * 200000, b'"\\u00', b'{"token_type":"bearer"}')
    for way in ways(lambda method, target, kind, authorization, body: (200, "application/octet-stream", texts[int(target[1:])])):
        with way.open():
            for i, text in enumerate(texts):
                expect_equal(way.ask(f"/{i}"), (200, text), f"text {i}")


def test_more_tokens_than_there_is_room():
    for http2 in (False, True):
        with Way(lambda *_: (200, JSON, json.dumps({"access_token": secrets.token_urlsafe(30)}).encode()), http2).open() as way:
            for i in range(64):
                expect_equal(way.ask("/")[0], 200, f"token {i}")
            status, said = way.ask("/")
            expect(status in (0, 502), f"{status} {said}")
            expect("no room for more of them" in way.event(EVENT_FAILED)[5], f"{way.told}")


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
