#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests and servers that want a secret out of mvagent-secret, or mvagent-secret down: through mvagent-relay, with real TLS,
on this host's loopback.

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import base64
import contextlib
import ctypes
import ctypes.util
import html
import os
import shutil
import sys
import time
import urllib.parse

import secret_driver
from relay_driver import CONNECTED, EVENT_FAILED, expect, expect_equal, read_all
from secret_driver import HOST, PLACE, VALUE, Run, exchange, head, secret, serve, stopped, take_head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def fields(head_bytes):
    """The fields of a head, by their names in small letters."""
    lines = (line.split(b":", 1) for line in head_bytes.split(b"\r\n")[1:])
    return {name.lower(): value.strip() for name, value in lines}


def read_chunks(made, data=b""):
    """The contents of a chunked answer, whose head is told first, and what follows its end."""
    while b"\r\n\r\n" not in data:
        data += made.recv(65536)
    first, rest = data.split(b"\r\n\r\n", 1)
    contents = b""
    while True:
        while b"\r\n" not in rest:
            rest += made.recv(65536)
        size, rest = rest.split(b"\r\n", 1)
        size = int(size, 16)
        while len(rest) < size + 2:
            part = made.recv(65536)
            expect(part, f"the answer ends after {contents[-100:]!r}")
            rest += part
        contents, mark, rest = contents + rest[:size], rest[size:size + 2], rest[size + 2:]
        expect_equal(mark, b"\r\n", "the end of a chunk")
        if not size:
            return first, contents, rest


def test_echo_across_chunks():
    """A server that says again what it was told, cut by a border of chunks where the guest wants it."""
    value = VALUE.encode()

    def cut(server, plain):
        told, _ = take_head(server, plain)
        at = int(fields(told)[b"x-cut"])
        said = b"<" + fields(told)[b"x-key"] + b">"
        plain.sendall(CHUNKED + chunk(said[:at]) + chunk(said[at:], b";name=value"))
        time.sleep(0.01)
        plain.sendall(chunk(said[:at]))
        plain.sendall(b"".join(chunk(said[i:i + 1]) for i in range(at, len(said))) + b"0\r\n\r\n")

    for at in range(1, len(value) + 2, 9):
        with serve(cut) as (_, run), run.connect() as made:
            made.sendall(head(b"x-key: " + PLACE.encode(), b"x-cut: %d" % at))
            _, contents, _ = read_chunks(made)
            expect_equal(contents, 2 * (b"<" + PLACE.encode() + b">"), f"what comes back, cut at {at}")


def echoes(make):
    """What the guest gets where a server says make(fields that it got)."""
    def say(server, plain):
        while (told := take_head(server, plain)[0]) is not None:
            said = make(fields(told))
            plain.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(said) + said)

    with serve(say) as (_, run), run.connect() as made:
        return exchange(made, head(b"x-key: " + PLACE.encode()))


def test_echo_of_basic():
    """What was put in inside Basic comes back as it was sent: encoded, and worth as much."""
    for before in range(3):
        user = b"u" * before + b":"

        def say(server, plain):
            told, _ = take_head(server, plain)
            said = b'{"headers": "' + told.replace(b"\r\n", b" ") + b'"}'
            plain.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(said) + said)

        with serve(say) as (server, run), run.connect() as made:
            answer = exchange(made, head(b"Authorization: Basic " + base64.b64encode(user + PLACE.encode())))
            expect(base64.b64encode(user + VALUE.encode()) in server.heads[-1], "the server got the secret")
            told = base64.b64decode(answer.split(b"Basic ", 1)[1].split(b'"')[0].split(b" ")[0])
            expect_equal(len(told), len(user) + len(VALUE), "its length")
            expect(PLACE[14:-2].encode() in told, f"the guest can decode {told!r}")


def test_echo_that_is_cut_short():
    """Messages about wrong keys show so many characters of them, which the guest can move."""
    for shown in (20, 30, 54):
        answer = echoes(lambda told, shown=shown: b"bad key '" + told[b"x-key"][:shown] + b"...', no more")
        expect(VALUE[:shown].encode() not in answer and PLACE[:shown].encode() + b"..." in answer, f"the guest got {answer!r}")


def test_echo_in_other_forms():
    """As URLs, JSON, HTML and dumps have it."""
    value = "s3cr3t/with+marks=and\"more\\/ones==<&>"
    place = ("PLACE" * 8)[:len(value)]
    forms = (lambda text: urllib.parse.quote(text, safe="").encode(), lambda text: urllib.parse.quote(text, safe="").lower().encode(),
             lambda text: text.replace("\\", "\\\\").replace('"', '\\"').encode(),
             lambda text: text.replace("\\", "\\\\").replace('"', '\\"').replace("/", "\\/").encode(),
             lambda text: base64.urlsafe_b64encode(("ab" + text).encode()), lambda text: html.escape(text).encode(),
             lambda text: html.escape(text).replace("/", "&#x2F;").replace("=", "&#x3D;").encode(),
             lambda text: text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").encode(),
             lambda text: text.encode().hex().encode(), lambda text: text.encode().hex().upper().encode())

    def say(server, plain):
        while (told := take_head(server, plain)[0]) is not None:
            said = forms[int(fields(told)[b"x-form"])](fields(told)[b"x-key"].decode())
            plain.sendall(OK + b"Content-Length: %d\r\n\r\n<%s>" % (len(said) + 2, said))

    with secret_driver.Secure(Run.authority.context(), say) as server, \
            Run(server.port, secrets=[secret("API_KEY", value, place, (HOST, server.port))]) as run, run.connect() as made:
        for number, form in enumerate(forms):
            answer = exchange(made, head(b"x-key: " + place.encode(), b"x-form: %d" % number)).split(b"\r\n\r\n", 1)[1]
            expect_equal(len(answer), len(form(value)) + 2, f"length of form {number}")
            shown = form(value)[4:-4]
            expect(not any(shown[i:i + 9] in answer for i in range(len(shown) - 8)), f"form {number}: the guest got {answer!r}")


def test_answers_without_bodies():
    """Where one answer ends and the next begins, whatever was asked and however it was answered."""
    def answer(server, plain):
        while (told := take_head(server, plain)[0]) is not None:
            path = told.split(b" ")[1]
            said = {
                b"/head": OK + b"Content-Length: 1000\r\n\r\n", b"/head-chunked": CHUNKED,
                b"/none": b"HTTP/1.1 204 No Content\r\n\r\n", b"/same": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
                b"/early": b"HTTP/1.1 103 Early\r\nx: y\r\n\r\n" + CHUNKED + b"0\r\nx-sum: 1\r\n\r\n",
                b"/length": OK + b"content-length:3\r\n\r\nabc",
            }[path]
            plain.sendall(said)

    order = ("HEAD /head", "HEAD /head-chunked", "GET /none", "GET /same", "GET /early", "GET /length", "HEAD /head", "GET /length")
    with serve(answer) as (_, run), run.connect() as made:
        made.sendall(b"".join(head(first=f"{what} HTTP/1.1".encode()) for what in order))
        wanted = (b"Content-Length: 1000\r\n\r\n" + CHUNKED + b"HTTP/1.1 204 No Content\r\n\r\n"
                  b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\nHTTP/1.1 103 Early\r\nx: y\r\n\r\n" + CHUNKED +
                  b"0\r\nx-sum: 1\r\n\r\n" + OK + b"content-length:3\r\n\r\nabc" + OK + b"Content-Length: 1000\r\n\r\n" + OK +
                  b"content-length:3\r\n\r\nabc")
        wanted = OK + wanted
        data = b""
        while len(data) < len(wanted):
            part = made.recv(65536)
            expect(part, f"it ends after {data!r}")
            data += part
        expect_equal(data, wanted, "the answers")


def test_answers_that_are_none():
    """What a client could take for something else than mvagent-secret does does not come to it."""
    broken = (CHUNKED + b"5 x\r\nhello\r\n0\r\n\r\n", CHUNKED + b"-5\r\nhello\r\n", CHUNKED + b"5\r\nhelloo\r\n0\r\n\r\n",
              CHUNKED + b"ffffffffffffffff\r\nx", OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
              OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", OK + b"Content-Length: 3x\r\n\r\nabc",
              b"HTTP/1.1 101 Switching\r\n\r\nx", b"SSH-2.0-openssh\r\n", b"HTTP/2 200\r\n\r\n")
    for said in broken:
        with serve(lambda server, plain, said=said: (take_head(server, plain), plain.sendall(said), plain.recv(1))) as (_, run):
            with run.connect() as made:
                made.sendall(head())
                data = read_all(made)
            event = run.event()
            expect(event[0] == EVENT_FAILED and "answer" in event[5], f"{said!r}: {event}, {data!r}")


class Raw:
    """A TLS client of the guest's with what Python's own does not do: OpenSSL's library, over memory."""

    def __init__(self, made, host):
        self.openssl = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new", "BIO_new", "BIO_s_mem"):
            getattr(self.openssl, name).restype = ctypes.c_void_p
        call = self.openssl
        self.context = ctypes.c_void_p(call.SSL_CTX_new(ctypes.c_void_p(call.TLS_client_method())))
        self.ssl = ctypes.c_void_p(call.SSL_new(self.context))
        memory = ctypes.c_void_p(call.BIO_s_mem())
        self.into, self.out = (ctypes.c_void_p(call.BIO_new(memory)) for _ in range(2))
        call.SSL_set_bio(self.ssl, self.into, self.out)
        call.SSL_ctrl(self.ssl, 55, 0, host.encode())  # SSL_set_tlsext_host_name
        call.SSL_set_connect_state(self.ssl)
        self.made = made

    def left(self):
        """What is to be sent."""
        room = ctypes.create_string_buffer(1 << 20)
        data = b""
        while (count := self.openssl.BIO_read(self.out, room, len(room))) > 0:
            data += room.raw[:count]
        return data

    def shake_hands(self):
        while self.openssl.SSL_do_handshake(self.ssl) != 1:
            if data := self.left():
                self.made.sendall(data)
            data = self.made.recv(65536)
            expect(data, "the connection ended in its handshake")
            self.openssl.BIO_write(self.into, data, len(data))
        self.made.sendall(self.left())

    def key_updates(self, count):
        for _ in range(count):
            expect_equal(self.openssl.SSL_key_update(self.ssl, 1), 1, "SSL_key_update")  # and one is asked for
            expect_equal(self.openssl.SSL_do_handshake(self.ssl), 1, "a new key")
        return self.left()


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_key_updates_without_end():
    """Each asks for an answer, and the guest takes none of them."""
    with serve(lambda server, plain: plain.recv(1)) as (_, run), run.relay.request(HOST, run.port) as made:
        expect_equal(made.recv(1), bytes([CONNECTED]), "status")
        raw = Raw(made, HOST)
        raw.shake_hands()
        before = resident(run.process.pid)
        made.settimeout(3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            for _ in range(80):
                data = raw.key_updates(4000)
                made.sendall(data)
                sent += len(data)
        grown = resident(run.process.pid) - before
        expect(grown < 2048, f"{grown} KiB more in memory after {sent} bytes of key updates")


def test_a_server_that_overlooks_bodies():
    """It takes the body of a GET for the next request, to a neighbour of the host's, and the next one for the body of that."""
    neighbour = []

    def careless(server, plain):
        data = b""
        while part := plain.recv(65536):
            data += part
            while b"\r\n\r\n" in data:
                told, rest = data.split(b"\r\n\r\n", 1)
                if told.startswith(b"POST"):
                    if len(rest) < 100:
                        break
                    neighbour.append((told, rest[:100]))
                    rest = rest[100:]
                data = rest
                plain.sendall(OK + b"Content-Length: 0\r\n\r\n")

    smuggled = b"POST /mine HTTP/1.1\r\nHost: neighbour.test\r\nContent-Length: 100\r\n\r\n"
    with serve(careless) as (_, run), run.connect() as made:
        exchange(made, head(b"Content-Length: %d" % len(smuggled)) + smuggled)
        made.sendall(head(b"Authorization: Bearer " + PLACE.encode(), b"x: " + b"y" * 100))
        data = made.recv(65536)
        expect(VALUE.encode()[:30] not in b"".join(body for _, body in neighbour), f"the neighbour got {neighbour}")
        expect(b"some servers overlook" in data, f"the guest got {data!r}")


def test_more_smuggling():
    with serve() as (server, run):
        stopped(run, head(first=b"CONNECT / HTTP/1.1"), "a tunnel")
        with run.connect() as made:
            # The whole of what Basic has is the secret, as npm's _auth is.
            exchange(made, head(b"Authorization: Basic " + PLACE.encode()))
            expect(b"Basic " + VALUE.encode() in server.heads[-1], f"the server got {server.heads[-1]!r}")
            exchange(made, head(b"Sec-WebSocket-Extensions: permessage-deflate; x", b"A-IM: gzip"))
            told = fields(server.heads[-1])
            expect(b"deflate" not in told[b"sec-websocket-extensions"] and told[b"sec-websocket-extensions"], f"packed: {told}")
            expect_equal(told[b"a-im"], b"", "packed")
    other = secret("OTHER", "other-secret-of-another-host", "other-place-of-another-host!"[:28], ("else.test", 443))
    with serve(secret_driver.simple, other) as (server, run):
        stopped(run, head(b"Authorization: Basic " + bytes(other.placeholder)), "and goes to another host")


def test_more_connections_than_descriptors():
    """Where there is room for few of them the others end, and mvagent-secret goes on; a limit that can be raised is."""
    for limits, most in (("41:", 20), ("41:41", 17)):
        with serve(before=[shutil.which("prlimit"), f"--nofile={limits}"]) as (server, run):
            with contextlib.ExitStack() as many:
                made = 0
                for _ in range(20):
                    with contextlib.suppress(OSError):
                        many.enter_context(run.connect())
                        made += 1
                expect(made == most if most == 20 else 5 <= made <= most, f"{limits}: {made} connections of 20")
            end = time.monotonic() + 10
            while len(os.listdir(f"/proc/{run.process.pid}/fd")) > 16 and time.monotonic() < end:
                time.sleep(0.01)
            expect(len(os.listdir(f"/proc/{run.process.pid}/fd")) <= 16, "descriptors stay")
            with run.connect() as one:
                expect(b"200 OK" in exchange(one, head(b"x-key: " + PLACE.encode())), "a later one")


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
