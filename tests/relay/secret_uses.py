#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a secret may be used for besides the fields of heads, when the user asks for it, in HTTP/1.1 and in HTTP/2: through
mvagent-relay and mvagent-secret, with real TLS, on this host's loopback.

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import contextlib
import sys
import urllib.parse

import http2_peer
import secret_driver
from relay_driver import EVENT_DENIED, EVENT_MASKED, EVENT_SECRET, expect, expect_equal
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


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
