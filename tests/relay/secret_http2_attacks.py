#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests and servers that want a secret out of mvagent-secret, or mvagent-secret down, by HTTP/2: through mvagent-relay,
with real TLS, on this host's loopback. What HTTP/1.1 has in secret_driver.py and secret_attacks.py has its twin here.

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import base64
import contextlib
import html
import os
import pathlib
import signal
import sys
import time
import urllib.parse

import secret_driver
from http2_peer import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, PUSH_PROMISE, RST_STREAM,
                        SETTINGS, WINDOW_UPDATE, Server, echo, frame, guest, h2, head_block, hpack, serve)
from relay_driver import CONNECTED, EVENT_DENIED, EVENT_FAILED, expect, expect_equal
from secret_attacks import Raw, resident
from secret_driver import HOST, PLACE, VALUE, Run, secret

USUAL = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", HOST.encode()), (b":path", b"/")]


def stopped(run, peer, stream, part, told=True):
    """The request is not sent; the guest is told, and the user unless he was before; the connection goes on."""
    expect(stream.status == 403 and part.encode() in stream.body, f"{part!r}: {stream.headers} {stream.body} {stream.reset}")
    if told:
        event = run.event()
        expect(event[0] == EVENT_DENIED and part in event[5], f"{part!r} is not in event {event}")
    expect_equal(peer.ask(("x", "y")).status, 200, "the next request of the connection")


def test_placeholder_in_the_wrong_place():
    place = PLACE.encode()
    with serve() as (server, run), guest(run) as peer:
        stopped(run, peer, peer.ask(path="/?key=" + PLACE), "--secret-query API_KEY")
        stopped(run, peer, peer.ask(body=place, method="POST"), "no header")
        stopped(run, peer, peer.ask(("content-length", str(len(place))), body=place, method="POST"), "no header", told=False)
        stopped(run, peer, peer.ask(body=b"x", trailers=[(b"x", place)], method="POST"), "no header", told=False)
        # Cut in two: what has left cannot be called back, but the end of it does not follow.
        number = peer.begin(method="POST", end=False)
        peer.data(number, b"x" * 100 + place[:30])
        time.sleep(0.1)
        peer.data(number, place[30:])
        stopped(run, peer, peer.finish(number), "no header", told=False)
        expect(not any(place in body for body in server.bodies), "the body went to the server")
        said = [value for told in server.heads for value in told.values()] + server.bodies
        expect(not any(VALUE.encode() in text or place in text for text in said), "the secret went to the server")


def test_secret_of_another_host():
    other = secret("OTHER", "other-secret-of-another-host", "other-place-of-another-host!"[:28], ("else.test", 443))
    with serve(echo, other) as (server, run), guest(run) as peer:
        stopped(run, peer, peer.ask(("authorization", b"Bearer " + bytes(other.placeholder))), "and goes to another host")
        stopped(run, peer, peer.ask(("authorization", b"Basic " + base64.b64encode(b"u:" + bytes(other.placeholder)))), "and goes to another host", told=False)
        expect(not any(b"authorization" in told for told in server.heads), "what the server got")


def test_smuggling():
    """Whatever a server, or one behind it that speaks HTTP/1.1, might understand in another way is not sent at all."""
    base = dict(USUAL)
    heads = {
        "another host (Host)": {**base, b":authority": b"evil.test"},
        "more than one Host": {**base, b"host": b"evil.test"},
        "by https": {**base, b":scheme": b"http"},
        "some take for another": {**base, b"content_length": b"5"},
        "more than 256 fields": {**base, **{b"x-%d" % i: b"y" for i in range(260)}},
        "more than 64 KiB": {**base, **{b"x-%d" % i: b"y" * 1000 for i in range(70)}},
    }
    broken = ({**base, b":path": b"http://evil.test/"}, {**base, b":path": b"/ HTTP/1.1\x20evil"}, {**base, b"x": b"a\r\nx-evil: evil"},
              {**base, b"x": b"a\nb"}, {**base, b"x": b"a\0b"}, {**base, b"x\r\nevil": b"b"}, {**base, b"X-Evil": b"b"},
              {**base, b"x: evil": b"b"}, {**base, b":method": b"CONNECT"}, {**base, b":protocol": b"websocket", b":method": b"CONNECT"},
              {b":method": b"CONNECT", b":authority": HOST.encode()}, {**base, b"connection": b"x-evil"}, {**base, b"transfer-encoding": b"chunked"},
              {**base, b"upgrade": b"h2c"}, {**base, b"te": b"gzip"}, {**base, b"content-length": b"+5"}, {b"x": b"evil", **base}, {**base, b":evil": b"x"},
              {**base, b":status": b"200"}, {**base, b":path": b""}, {**base, b":method": b""}, {**base, b":method": b"GET / HTTP/1.1\r\nevil: x\r\n\r\nGET"},
              {name: value for name, value in base.items() if name != b":authority"}, {name: value for name, value in base.items() if name != b":path"},
              {**base, b":authority": b"u@" + HOST.encode()}, {**base, b":authority": HOST.encode() + b":1"}, {**base, b"keep-alive": b"1"})
    lists = ([*USUAL, (b":path", b"/evil")], [*USUAL, (b"content-length", b"5"), (b"content-length", b"6")], [*USUAL, (b":authority", HOST.encode())])
    with serve() as (server, run):
        with guest(run) as peer:
            for part, fields in heads.items():
                stopped(run, peer, peer.ask(pseudo=list(fields.items())), part)
        for fields in [*(list(head.items()) for head in broken), *lists]:
            with guest(run) as peer:
                before = len(server.heads)
                number = peer.begin(pseudo=fields)
                stream = peer.finish(number)
                expect(stream.status in (0, 403), f"{fields}: {stream.headers}")
                expect(stream.reset is not None or stream.status == 403, f"{fields}: it is not over")
                expect_equal(len(server.heads), before, f"requests to the server by {fields}")
                expect_equal(peer.ask(("x", "y")).status, 200, f"the next request after {fields}")
        expect(all(b"evil" not in repr(told).encode() for told in server.heads), f"heads: {server.heads}")


def test_lengths_that_are_wrong():
    with serve() as (server, run), guest(run) as peer:
        for body in (b"four", b"sixsix"):
            stream = peer.ask(("content-length", "5"), body=body, method="POST")
            expect(stream.reset is not None and not stream.headers, f"{body}: {stream.headers}")
        expect_equal(server.bodies, [], "bodies to the server")
        for name in ("content-length", "host", "transfer-encoding", ":path", "connection", "upgrade"):
            stream = peer.ask(body=b"x", trailers=[(name.encode(), b"1")], method="POST")
            expect(stream.reset is not None or stream.status == 403, f"{name}: {stream.headers}")
        expect_equal(server.bodies, [], "requests to the server")
        expect_equal(peer.ask(("x", "y")).status, 200, "the next one")


def test_a_server_that_overlooks_bodies():
    """After a GET with a body there is no further request in that connection."""
    with serve() as (server, run):
        for method in ("GET", "HEAD", "OPTIONS"):
            with guest(run) as peer:
                expect_equal(peer.ask(method=method, body=b"POST /mine HTTP/1.1\r\n").status, 200)
                peer.wait(lambda: peer.over)
                expect_equal(peer.goaway, 0, "GOAWAY")
        with guest(run) as peer:
            # Frames of the next one that are sent without waiting.
            block = hpack.Encoder()
            first = block.encode([(b":method", b"GET"), *USUAL[1:]])
            second = block.encode([*USUAL, (b"x-key", PLACE.encode())])
            peer.plain.sendall(frame(HEADERS, END_HEADERS, 1, first) + frame(DATA, END_STREAM, 1, b"smuggled") + frame(HEADERS, END_HEADERS | END_STREAM, 3, second))
            with contextlib.suppress(h2.exceptions.ProtocolError):
                peer.wait(lambda: peer.over)
        with guest(run) as peer:
            # An end without a byte is no body.
            expect_equal(peer.ask(body=b"").status, 200)
            expect_equal(peer.ask(("x", "y")).status, 200)
        expect(not any(b"x-key" in told for told in server.heads), "what came behind it")


def test_echoes():
    """What a server says again of what it was told: cut, encoded, as URLs, JSON and HTML have it."""
    value = "s3cr3t/with+marks=and\"more\\/ones==<&>"
    place = ("PLACE" * 8)[:len(value)]
    forms = (lambda text: urllib.parse.quote(text, safe="").encode(), lambda text: text.replace("\\", "\\\\").replace('"', '\\"').encode(),
             lambda text: base64.b64encode(("a" + text).encode()), lambda text: base64.urlsafe_b64encode(("ab" + text).encode()),
             lambda text: html.escape(text).encode(), lambda text: (text[:20] + "...").encode())

    def say(peer, number, stream):
        told = dict(stream.headers)
        said = forms[int(told[b"x-form"])](told[b"x-key"].decode())
        peer.headers(number, [(b":status", b"200"), (b"x-said", said)])
        for i in range(len(said)):
            peer.data(number, said[i:i + 1])
        peer.headers(number, [(b"x-said", said)], end=True)

    with Server(say) as server, Run(server.port, secrets=[secret("API_KEY", value, place, (HOST, server.port))]) as run, guest(run) as peer:
        for number, form in enumerate(forms):
            stream = peer.ask(("x-key", place), ("x-form", str(number)))
            whole = form(value)
            for said in (stream.body, stream.field("x-said"), dict(stream.trailers)[b"x-said"]):
                expect_equal(len(said), len(whole), f"length of form {number}")
                shown = whole[4:-4]
                expect(not any(shown[i:i + 9] in said for i in range(len(shown) - 8)), f"form {number}: the guest got {said!r}")


def test_echo_of_basic():
    with serve() as (server, run), guest(run) as peer:
        for user in (b":", b"u:", b"uu:"):
            stream = peer.ask(("authorization", b"Basic " + base64.b64encode(user + PLACE.encode())))
            expect_equal(server.heads[-1][b"authorization"], b"Basic " + base64.b64encode(user + VALUE.encode()))
            told = stream.body.split(b"Basic ", 1)[1].split(b"|")[0]
            expect(PLACE[14:-2].encode() in base64.b64decode(told), f"the guest can decode {told!r}")


def test_answers_that_are_none():
    """What a client could take for something else than mvagent-secret does does not come to it."""
    def frames(*made):
        return lambda peer, number, stream: peer.plain.sendall(b"".join(make(number, hpack.Encoder()) for make in made))

    def head(*fields, end=False):
        return lambda number, packer: frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), number, packer.encode(fields))

    def data(body, end=True):
        return lambda number, packer: frame(DATA, END_STREAM if end else 0, number, body)

    ok = (b":status", b"200")
    broken = (frames(head((b"x", b"y"), end=True)), frames(head((b":status", b"101"), end=True)), frames(head((b":status", b"2000"), end=True)),
              frames(head((b":status", b"20x"), end=True)), frames(head(ok, ok, end=True)), frames(head((b"x", b"y"), ok, end=True)),
              frames(head(ok, (b"connection", b"close"), end=True)), frames(head(ok, (b"transfer-encoding", b"chunked"), end=True)),
              frames(head(ok, (b"content-length", b"3"), (b"content-length", b"4")), data(b"abcd")), frames(head(ok, (b"content-length", b"3")), data(b"abcd")),
              frames(head(ok, (b"content-length", b"5")), data(b"abcd")), frames(head(ok, (b":path", b"/"), end=True)),
              frames(head((b":status", b"100"), end=True)), frames(head(ok, (b"x", b"a\r\nb: c"), end=True)), frames(head(ok, (b"X", b"y"), end=True)),
              frames(head(ok), head((b"x", b"y"))), frames(head(ok), head(ok, end=True)))
    for number, say in enumerate(broken):
        with serve(say) as (_, run):
            with guest(run) as peer:
                stream = peer.ask()
                expect(stream.reset is not None or stream.status == 502, f"answer {number}: {stream.headers} {stream.body} {stream.ended}")
            event = run.event()
            expect(event[0] == EVENT_FAILED and "an answer was stopped" in event[5], f"answer {number}: {event}")


def test_bad_servers():
    """Nothing is sent to one that is not who it says, and a program that can be told so in HTTP/1.1 is."""
    for named, part in ((dict(name="evil.test"), "hostname mismatch"), (dict(own=True), "self-signed")):
        context = Run.authority.context(**named)
        context.set_alpn_protocols(["h2", "http/1.1"])
        with secret_driver.Secure(context, secret_driver.simple) as server, Run(server.port) as run:
            with run.connect(protocols=["h2", "http/1.1"]) as made:
                expect_equal(made.selected_alpn_protocol(), "http/1.1")
                answer = secret_driver.exchange(made, secret_driver.head(b"x-key: " + PLACE.encode()))
                expect(answer.startswith(b"HTTP/1.1 502") and part.encode() in answer, f"{named}: {answer!r}")
            event = run.event()
            expect(event[0] == EVENT_FAILED and part in event[5], f"{event}")
            with contextlib.suppress(OSError), run.connect(protocols=["h2"]):
                raise AssertionError("a program that speaks HTTP/2 alone was answered")
            expect_equal(server.heads, [])
    # It agrees to HTTP/2 and speaks something else.
    for said in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + VALUE.encode(), frame(SETTINGS) + frame(PING, payload=b"x"), frame(SETTINGS) + b"\xff" * 100):
        context = Run.authority.context()
        context.set_alpn_protocols(["h2"])
        with secret_driver.Secure(context, lambda server, plain, said=said: (plain.recv(100), plain.sendall(said), plain.recv(65536))) as server, Run(server.port) as run:
            with guest(run) as peer:
                stream = peer.ask()
                expect(stream.status in (0, 502) and (stream.reset or stream.status or peer.over), f"{stream.headers} {stream.reset}")
                peer.wait(lambda: peer.over)


def test_pushes_are_not_taken():
    def push(peer, number, stream):
        block = hpack.Encoder().encode([(b":method", b"GET"), *USUAL[1:]])
        peer.plain.sendall(frame(PUSH_PROMISE, END_HEADERS, number, (2).to_bytes(4, "big") + block))

    with serve(push) as (_, run), guest(run) as peer:
        stream = peer.ask()
        expect(stream.status in (0, 502), f"{stream.headers}")
        expect(set(peer.streams) == {1}, f"streams: {peer.streams}")


@contextlib.contextmanager
def weighed(run, most=4096):
    """mvagent-secret is there afterwards, and hardly larger."""
    before = resident(run.process.pid)
    yield
    grown = resident(run.process.pid) - before
    expect(grown < most, f"{grown} KiB more in memory")
    with guest(run) as peer:
        expect_equal(peer.ask(("x", "y")).status, 200, "another connection")


def flood(run, data, times=200):
    """Sends it without reading anything; until nothing more is taken."""
    with run.connect(protocols=["h2"]) as made:
        made.settimeout(2)
        sent = 0
        with contextlib.suppress(OSError):
            made.sendall(PREFACE + frame(SETTINGS))
            for _ in range(times):
                made.sendall(data(sent) if callable(data) else data)
                sent += 1
        return sent


def warm(run):
    with guest(run) as peer:
        for _ in range(20):
            peer.ask(("x", "y" * 1000), body=b"x" * 50_000, method="POST")


def test_weighed_floods():
    """Frames that ask for answers, and a guest that takes none; and frames that are for nothing."""
    many = {"PING": frame(PING, payload=bytes(8)) * 4000, "SETTINGS": frame(SETTINGS, payload=bytes.fromhex("000300000064")) * 4000,
            "PRIORITY": b"".join(frame(PRIORITY, 0, 2 * i + 1, bytes(5)) for i in range(1, 4000)), "empty DATA": frame(DATA, 0, 1) * 4000,
            "WINDOW_UPDATE": frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4, "big")) * 4000, "unknown": frame(0xee, 0, 0, b"x" * 100) * 1000,
            "SETTINGS of much": frame(SETTINGS, payload=bytes.fromhex("000300000064") * 2000) * 10, "GOAWAY": frame(GOAWAY, payload=bytes(8)) * 2000}
    with serve() as (_, run):
        warm(run)
        with weighed(run):
            for data in many.values():
                flood(run, data, 30)
            flood(run, frame(HEADERS, END_HEADERS, 1, head_block(method="POST")) + frame(DATA, 0, 1) * 4000, 1)


def test_weighed_resets():
    """Streams that are begun and ended at once, without end; also those that end by what is wrong with them."""
    def begin_and_end(_, block=head_block(("authorization", "Bearer " + PLACE)), count=[1]):
        made = b"".join(frame(HEADERS, END_HEADERS | END_STREAM, count[0] + 2 * i, block) + frame(RST_STREAM, 0, count[0] + 2 * i, (8).to_bytes(4, "big")) for i in range(100))
        count[0] += 200
        return made

    def begin_and_err(_, block=head_block(method="POST"), count=[1]):
        made = b"".join(frame(HEADERS, END_HEADERS, count[0] + 2 * i, block) + frame(WINDOW_UPDATE, 0, count[0] + 2 * i, bytes(4)) for i in range(100))
        count[0] += 200
        return made

    with serve(lambda peer, number, stream: None if b"x" not in dict(stream.headers) else echo(peer, number, stream)) as (server, run):
        warm_up = [frame(HEADERS, END_HEADERS | END_STREAM, 1, head_block(("x", "y")))]
        flood(run, warm_up[0], 1)
        with weighed(run):
            sent = 100 * flood(run, begin_and_end, 100)
            expect(sent < 6000, f"{sent} streams were begun and ended before the connection was")
            expect(len(server.heads) < 3000, f"{len(server.heads)} requests reached the server")
            flood(run, begin_and_err, 100)


def test_weighed_heads():
    """Heads without end, and small ones that become large ones."""
    packer = hpack.Encoder()
    usual = packer.encode(USUAL)
    large = packer.encode([(b"x-large", b"y" * 4000)])
    again = packer.encode([(b"x-large", b"y" * 4000)])
    expect(len(again) < 4, "it is packed")
    bomb = frame(HEADERS, END_STREAM, 1, usual + large) + frame(CONTINUATION, END_HEADERS, 1, again * 8000)
    endless = frame(HEADERS, END_STREAM, 1, usual) + frame(CONTINUATION, 0, 1, b"\0\1x\1y" * 100) * 2000
    empty = frame(HEADERS, END_STREAM, 1, usual) + frame(CONTINUATION, 0, 1) * 10000
    with serve() as (server, run):
        warm(run)
        before = len(server.heads)
        with weighed(run):
            begin = time.monotonic()
            for data in (bomb, endless, empty):
                flood(run, data, 1)
            expect(time.monotonic() - begin < 10, "it takes long")
            # The bomb by a guest that listens: it is told, and the table of the connection is as it was.
            with guest(run) as peer:
                peer.h2.encoder.encode = lambda fields: usual + large + again * 8000
                stream = peer.ask()
                expect(stream.status == 403 and b"more than" in stream.body, f"{stream.headers} {stream.body}")
        expect_equal(len(server.heads), before + 1, "requests to the server")


def processor_seconds(pid):
    user, system = (int(field) for field in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def test_heads_that_are_costly():
    """Connections that are full of heads which a few bytes make long do not hold up another for long, or the run's end."""
    def literal(name, value, kept=False):
        more = len(value) - 127
        length = bytes([len(value)]) if more < 0 else bytes([127, more & 127 | 128, more >> 7])
        return (b"\x40" if kept else b"\0") + bytes([len(name)]) + name + length + value

    usual = b"".join(literal(*field) for field in USUAL)
    again = b"\xbe" * 16000  # the field that was kept, so many times
    first = usual + literal(b"x", b"y" * 4063, kept=True)
    heads = PREFACE + frame(SETTINGS)
    for i in range(4):
        heads += frame(HEADERS, END_STREAM, 2 * i + 1, usual if i else first)
        heads += b"".join(frame(CONTINUATION, END_HEADERS if j == 6 else 0, 2 * i + 1, again) for j in range(7))
    with serve() as (_, run), contextlib.ExitStack() as many, guest(run) as peer:
        made = [many.enter_context(run.connect(protocols=["h2"])) for _ in range(24)]
        peer.ask(("x", "y"))
        os.kill(run.process.pid, signal.SIGSTOP)
        try:
            for one in made:
                one.settimeout(0.05)
                with contextlib.suppress(OSError):
                    one.sendall(heads)
            before = processor_seconds(run.process.pid)
            number = peer.begin(("x", "y"))
        finally:
            os.kill(run.process.pid, signal.SIGCONT)
        expect_equal(peer.finish(number).status, 200, "the request beside them")
        taken = processor_seconds(run.process.pid) - before
        expect(taken < 2, f"it took {taken:.1f} s of the processor before a request was answered")


def test_weighed_uploads():
    """100 streams of a body each, for a server that takes nothing."""
    with serve(named={"window": 65535, "reads": False}) as (_, run):
        with weighed(run, 8192):
            with run.connect(protocols=["h2"]) as made:
                made.settimeout(2)
                block = head_block(method="POST")
                sent = 0
                with contextlib.suppress(OSError):
                    made.sendall(PREFACE + frame(SETTINGS) + b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, block) for i in range(100)))
                    for i in range(100):
                        for _ in range(4):
                            made.sendall(frame(DATA, 0, 2 * i + 1, bytes(16384)))
                            sent += 16384
        # Beyond the windows it is an error of the guest's, which ends the connection.


def test_more_streams_than_there_are():
    with serve(lambda peer, number, stream: None if b"wait" in dict(stream.headers)[b":path"] else echo(peer, number, stream)) as (server, run), guest(run) as peer:
        block = head_block(path="/wait")
        peer.plain.sendall(b"".join(frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, block) for i in range(130)))
        end = time.monotonic() + 10
        while len(server.heads) < 100 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)
        expect_equal(len(server.heads), 100, "requests to the server")


def test_frames_that_are_none():
    """Each ends the connection, and only that one."""
    block = head_block()
    broken = (b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", PREFACE[:10] + b"x" * 20, PREFACE + frame(PING), PREFACE + frame(SETTINGS) + frame(PING, payload=b"x"),
              PREFACE + frame(SETTINGS) + frame(DATA, 0, 0, b"x"), PREFACE + frame(SETTINGS) + frame(DATA, 0, 1, b"x"), PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 2, block),
              PREFACE + frame(SETTINGS) + frame(CONTINUATION, END_HEADERS, 1, block), PREFACE + frame(SETTINGS) + frame(HEADERS, 0, 1, block) + frame(PING, payload=bytes(8)),
              PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff\xff"), PREFACE + frame(SETTINGS) + frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4) + block),
              PREFACE + frame(SETTINGS, 0, 0, b"12345"), PREFACE + frame(SETTINGS) + b"\xff\xff\xff\0\0\0\0\0\1", PREFACE + frame(SETTINGS, ACK, 0, bytes(6)),
              PREFACE + frame(SETTINGS) + frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), PREFACE + frame(SETTINGS) + frame(RST_STREAM, 0, 1, bytes(4)))
    with serve() as (server, run):
        for data in broken:
            with run.connect(protocols=["h2"]) as made:
                made.settimeout(10)
                made.sendall(data)
                got = b""
                with contextlib.suppress(OSError):
                    while part := made.recv(65536):
                        got += part
                expect(b"HTTP/1.1" not in got, f"{data[:80]}: {got}")
        expect_equal(server.heads, [], "requests to the server")
        with guest(run) as peer:
            expect_equal(peer.ask(("x", "y")).status, 200, "another connection")


def test_weighed_key_updates_without_end():
    with serve() as (_, run), run.relay.request(HOST, run.port) as made:
        expect_equal(made.recv(1), bytes([CONNECTED]), "status")
        raw = Raw(made, HOST)
        raw.openssl.SSL_set_alpn_protos(raw.ssl, b"\x02h2", 3)
        raw.shake_hands()
        before = resident(run.process.pid)
        made.settimeout(3)
        with contextlib.suppress(OSError):
            for _ in range(80):
                made.sendall(raw.key_updates(4000))
        grown = resident(run.process.pid) - before
        expect(grown < 2048, f"{grown} KiB more in memory")


def test_hellos_that_change():
    """Protocols are asked for in lists that are broken, or not the ones of before."""
    lists = (b"\x02h2", b"\x02h2\x08http/1.1", b"\x02hx", b"\x08http/1.1\x02h2")
    for protocols in lists:
        with serve() as (server, run), run.relay.request(HOST, run.port) as made:
            expect_equal(made.recv(1), bytes([CONNECTED]), "status")
            raw = Raw(made, HOST)
            raw.openssl.SSL_set_alpn_protos(raw.ssl, protocols, len(protocols))
            made.settimeout(5)
            try:
                raw.shake_hands()
                agreed = True
            except Exception:
                agreed = False
            expect_equal(agreed, b"hx" not in protocols, f"{protocols}")
            expect_equal(server.heads, [])


def test_abandoned():
    """Guests that go in the middle of everything leave nothing behind."""
    with serve() as (_, run):
        block = head_block(method="POST")
        for data in (b"", PREFACE, PREFACE + frame(SETTINGS), PREFACE + frame(SETTINGS) + frame(HEADERS, 0, 1, block),
                     PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, 0, 1, b"half")):
            for _ in range(10):
                made = run.connect(protocols=["h2"])
                made.sendall(data) if data else None
                made.close()
        end = time.monotonic() + 10
        places = [f"/proc/{pid}/fd" for pid in (run.process.pid, run.relay.process.pid)]
        while max(len(os.listdir(place)) for place in places) > 12 and time.monotonic() < end:
            time.sleep(0.05)
        counts = [len(os.listdir(place)) for place in places]
        expect(max(counts) <= 12, f"descriptors that are left: {counts}")


def test_more_connections_than_speak_it():
    """32 speak HTTP/2, and a further one HTTP/1.1."""
    with serve() as (_, run), contextlib.ExitStack() as made:
        agreed = []
        for _ in range(34):
            agreed.append(made.enter_context(run.connect(protocols=["h2", "http/1.1"])).selected_alpn_protocol())
        expect_equal(agreed, ["h2"] * 32 + ["http/1.1"] * 2)


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
