#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mvagent-secret behind mvagent-relay, against real servers with TLS on this host's loopback. This program plays
mvagent-vmm and the guest, whose TLS is Python's own.

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test.
"""

import base64
import contextlib
import ctypes
import os
import pathlib
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import relay_driver
from relay_driver import (CONNECTED, EVENT_DENIED, EVENT_ENDED, EVENT_FAILED, EVENT_MASKED, EVENT_SECRET, Failure, LIMIT, Names, Relay, Server, allow,
                          client_hello, expect, expect_equal, local, read_all)

HOST = "api.test"
VALUE = "sk-ant-api03-" + "realrealREAL0123456789" * 2
PLACE = "sk-ant-api03-" + "PLACEplace9876543210ab" * 2


class HostField(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 254), ("port", ctypes.c_uint16)]


class SecretField(ctypes.Structure):
    """struct secret of vmm/secret/secret.h."""
    _fields_ = [("name", ctypes.c_char * 129), ("length", ctypes.c_size_t), ("value", ctypes.c_char * 4097),
                ("placeholder", ctypes.c_char * 4097), ("in_query", ctypes.c_bool), ("counted_as", ctypes.c_uint),
                ("endpoint_host", ctypes.c_uint), ("endpoint_path", ctypes.c_char * 256), ("host_count", ctypes.c_uint), ("hosts", HostField * 16)]


def secret(name, value, placeholder, *hosts, in_query=False, endpoint=""):
    made = SecretField(name=name.encode(), length=len(value), value=value.encode(), placeholder=placeholder.encode(),
                       in_query=in_query, endpoint_path=endpoint.encode(), host_count=len(hosts))
    for i, (host, port) in enumerate(hosts):
        made.hosts[i].name, made.hosts[i].port = host.encode(), port
    return made


class Authority:
    """A real authority, as a company has one, made by openssl."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
                 "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")

    def run(self, *words):
        subprocess.run(["openssl", *words], cwd=self.place, check=True, capture_output=True)

    def context(self, name=HOST, days="2", own=False, minimum=None):
        """A server's context with a certificate for @name; @own: certified by nobody."""
        stem = f"{name}-{days}-{own}".replace("*", "_")
        if not (self.place / f"{stem}.pem").exists():
            (self.place / "ext").write_text(f"subjectAltName=DNS:{name}\n")
            self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{stem}.key",
                     "-out", "request", "-subj", "/CN=x")
            signer = ["-signkey", f"{stem}.key"] if own else ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
            self.run("x509", "-req", "-in", "request", "-out", f"{stem}.pem", "-days", days, "-extfile", "ext", *signer)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.set_alpn_protocols(["http/1.1"])
        if minimum:
            made.minimum_version, made.maximum_version = minimum, minimum
            made.set_ciphers("ALL:@SECLEVEL=0")
        made.load_cert_chain(self.place / f"{stem}.pem", self.place / f"{stem}.key")
        return made


class Secure(Server):
    """A server that speaks TLS; @serve gets the connection. What it is told is in .heads and .bodies."""

    def __init__(self, context, answer):
        self.heads, self.bodies, self.answer, self.context, self.protocols = [], [], answer, context, []
        super().__init__(self.secure)

    def secure(self, made):
        with contextlib.suppress(OSError), self.context.wrap_socket(made, server_side=True) as plain:
            self.protocols.append(plain.selected_alpn_protocol())
            self.answer(self, plain)


def take_head(server, plain):
    data = b""
    while b"\r\n\r\n" not in data:
        part = plain.recv(65536)
        if not part:
            return None, data
        data += part
    head, rest = data.split(b"\r\n\r\n", 1)
    server.heads.append(head)
    return head, rest


def simple(server, plain):
    """Answers each request (with a Content-Length or without a body) by its own head and body."""
    rest = b""
    while True:
        while b"\r\n\r\n" not in rest:
            part = plain.recv(65536)
            if not part:
                return
            rest += part
        head, rest = rest.split(b"\r\n\r\n", 1)
        server.heads.append(head)
        wanted = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        while len(rest) < wanted:
            rest += plain.recv(65536)
        body, rest = rest[:wanted], rest[wanted:]
        server.bodies.append(body)
        said = head + b"|" + body
        plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said)


class Run:
    """A relay and a mvagent-secret beside it. The server's port is in .port."""

    program = None
    place = None
    authority = None

    def __init__(self, port, *more, secrets=None, lines=(), before=()):
        names = self.names = Names({HOST: ["127.0.0.1"], "other.test": ["127.0.0.1"]})
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ready_read, ready_write = os.pipe()
        secrets = secrets or [secret("API_KEY", VALUE, PLACE, (HOST, port)), *more]
        file = os.memfd_create("secrets")
        os.write(file, len(secrets).to_bytes(4, "little") + b"".join(bytes(made) for made in secrets))
        os.lseek(file, 0, os.SEEK_SET)
        settings = [allow(f"{HOST}:{port}"), allow(f"other.test:{port}"), local(port), names.setting]
        for made in secrets:
            settings.append(("placeholder", made.name.decode(), made.placeholder.decode()))
            settings += [("terminate", made.hosts[i].name.decode(), str(made.hosts[i].port)) for i in range(made.host_count)]
        self.relay = Relay(*settings, *lines, secret_fd=ours.fileno())
        self.events, events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.events.settimeout(LIMIT)
        trust = os.open(self.authority.place / "ca.pem", os.O_RDONLY)
        numbers = {"secrets": file, "trust": trust, "relay": theirs.fileno(), "event": events.fileno(), "ready": ready_write}
        words = [word for name, number in numbers.items() for word in (f"--{name}-fd", str(number))]
        self.process = subprocess.Popen([*before, self.program, *words], pass_fds=tuple(numbers.values()), stderr=subprocess.PIPE, env={})
        ours.close()
        theirs.close()
        events.close()
        os.close(trust)
        os.close(ready_write)
        with os.fdopen(ready_read) as ready:
            self.certificate = ready.read()
        if self.certificate:
            relay_driver.expect_walls(self.events, "mvagent-secret")
        self.left = os.pread(file, 1 << 20, 0)
        os.close(file)
        self.port = port
        self.lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.relay.__exit__(kind)
            error = self.process.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("mvagent-secret does not end") from None
        finally:
            self.events.close()
            self.names.__exit__()
        if kind is None:
            expect_equal((self.process.returncode, error), (0, b""), "mvagent-secret's end")
        elif error:
            print(error.decode(), file=sys.stderr)

    def context(self, protocols=None):
        """The guest's trust: this run's authority and no other."""
        made = ssl.create_default_context(cadata=self.certificate)
        if protocols:
            made.set_alpn_protocols(protocols)
        return made

    def connect(self, host=HOST, protocols=None, server_name=None):
        with self.lock:
            made = self.relay.request(host, self.port)
        expect_equal(made.recv(1), bytes([CONNECTED]), "status")
        return self.context(protocols).wrap_socket(made, server_hostname=server_name or host)

    def event(self):
        kind, port, sent, received, host, sentence, _ = relay_driver.EVENT.unpack(self.events.recv(relay_driver.EVENT.size))
        return kind, relay_driver.text(host), port, sent, received, relay_driver.text(sentence)

    def no_event(self, seconds=0.2):
        if select.select([self.events], [], [], seconds)[0]:
            raise Failure(f"an event: {self.event()}")

    def memory(self):
        """All of the relay's memory that can be read."""
        found = b""
        pid = self.relay.process.pid
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                begin, end = (int(part, 16) for part in line.split()[0].split("-"))
                if end - begin > 1 << 30:  # AddressSanitizer's book-keeping, terabytes of nothing
                    continue
                with contextlib.suppress(OSError, OverflowError, ValueError):
                    memory.seek(begin)
                    found += memory.read(end - begin)
        return found


def head(*fields, first=b"GET / HTTP/1.1", host=HOST):
    return b"\r\n".join([first, b"Host: " + host.encode(), *fields, b"", b""])


def exchange(made, request):
    """One request; its answer with a Content-Length."""
    made.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        part = made.recv(65536)
        if not part:
            return data
        data += part
    length = int(data.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(data.split(b"\r\n\r\n", 1)[1]) < length:
        part = made.recv(65536)
        expect(part, f"the answer ends after {data[-100:]!r}")
        data += part
    return data


@contextlib.contextmanager
def serve(answer=simple, *more, **named):
    with Secure(Run.authority.context(), answer) as server, Run(server.port, *more, **named) as run:
        yield server, run


def test_secret_in_a_header():
    with serve() as (server, run):
        with run.connect() as made:
            for field in (b"Authorization: Bearer %s", b"x-api-key: %s", b"Cookie: a=b; k=%s"):
                answer = exchange(made, head(field % PLACE.encode()))
                expect(field % VALUE.encode() in server.heads[-1], f"the server got {server.heads[-1]!r}")
                # The server has said it all again.
                expect(field % PLACE.encode() in answer and VALUE.encode() not in answer, f"the guest got {answer!r}")
        expect_equal(run.event(), (EVENT_SECRET, HOST, run.port, 3, 0, "API_KEY"))
        expect_equal(run.event(), (EVENT_MASKED, HOST, run.port, 0, 3, "API_KEY"))
        expect_equal(run.relay.event()[0], EVENT_ENDED)
        expect_equal(server.protocols, ["http/1.1"], "protocol with the server")
        expect(VALUE.encode() not in run.left and API_NAME not in run.left, "the file with the secrets is overwritten")


API_NAME = b"API_KEY"


def test_basic():
    with serve() as (server, run), run.connect() as made:
        for user in (b"user:", b"x:", b"", b"longer-user-name:"):
            encoded = base64.b64encode(user + PLACE.encode())
            exchange(made, head(b"Authorization: Basic " + encoded))
            expect(b"Basic " + base64.b64encode(user + VALUE.encode()) in server.heads[-1], f"{server.heads[-1]!r}")
        exchange(made, head(b"Authorization: Basic !!!"))
        expect(b"Basic !!!" in server.heads[-1], "what is no base64 is left alone")


def test_what_relay_and_guest_never_see():
    if os.getuid():
        return
    with serve() as (_, run), run.connect() as made:
        exchange(made, head(b"Authorization: Bearer " + PLACE.encode(), b"x-mark: MARKmark-of-the-request"))
        memory = run.memory()
        expect(len(memory) > 1 << 18, "memory of the relay was read")
        expect(PLACE.encode() in memory, "the relay knows the placeholder")
        expect(VALUE.encode() not in memory, "the secret is in the relay's memory")
        expect(b"MARKmark-of-the-request" not in memory, "plain text is in the relay's memory")
        for name in ("cmdline", "environ"):
            expect(VALUE.encode() not in pathlib.Path(f"/proc/{run.process.pid}/{name}").read_bytes(), name)


def test_jail():
    with serve() as (_, run):
        status = pathlib.Path(f"/proc/{run.process.pid}/status")
        end = time.monotonic() + LIMIT
        while "Seccomp:\t2" not in status.read_text() and time.monotonic() < end:
            time.sleep(0.01)
        text = status.read_text()
        expect("Seccomp:\t2" in text and "NoNewPrivs:\t1" in text and "CapEff:\t0000000000000000" in text, text)
        if os.getuid() == 0:
            expect_equal(os.listdir(f"/proc/{run.process.pid}/root"), [], "files that it sees")


def stopped(run, request, part, told=True):
    """The request is not sent; the guest is told, and the user unless he was before."""
    with run.connect() as made:
        answer = exchange(made, request)
        expect(answer.startswith(b"HTTP/1.1 403"), f"answer {answer!r} to {request[:200]!r}")
        expect(part.encode() in answer, f"{part!r} is not in {answer!r}")
        expect_equal(made.recv(1), b"", "the end")
    if not told:
        run.no_event()
        return
    event = run.event()
    expect(event[0] == EVENT_DENIED and part in event[5], f"{part!r} is not in event {event}")


def test_placeholder_in_the_wrong_place():
    place = PLACE.encode()
    with serve() as (server, run):
        stopped(run, head(first=b"GET /?key=" + place + b" HTTP/1.1"), "--secret-query API_KEY")
        stopped(run, head(first=b"GET /" + place + b" HTTP/1.1"), "first line")
        stopped(run, head(b"Content-Length: %d" % len(place), first=b"POST / HTTP/1.1") + place, "no header")
        stopped(run, head(b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.1") + b"%x\r\n" % len(place) + place, "no header",
                told=False)
        stopped(run, head(place + b": x"), "name of a field")
        expect(not any(place in body for body in server.bodies), "the body went to the server")
        expect(not any(VALUE.encode() in told for told in server.heads + server.bodies), "the secret went to the server")


def test_secret_of_another_host():
    other = secret("OTHER", "other-secret-of-another-host", "other-place-of-another-host!"[:28], ("else.test", 443))
    with serve(simple, other) as (server, run):
        stopped(run, head(b"Authorization: Bearer " + bytes(other.placeholder)), "and goes to another host")
        expect_equal(server.heads, [])


def test_smuggling():
    """Whatever a server might understand in another way is not sent at all."""
    post = b"POST / HTTP/1.1"
    requests = {
        "Transfer-Encoding and": head(b"Content-Length: 5", b"Transfer-Encoding: chunked", first=post) + b"0\r\n\r\n",
        "more than one Content-Length": head(b"Content-Length: 5", b"Content-Length: 5", first=post) + b"hello",
        "Content-Length that is no number": head(b"Content-Length: +5", first=post) + b"hello",
        "Transfer-Encoding other than": head(b"Transfer-Encoding: gzip, chunked", first=post),
        "goes on in the next line": head(b"x: y", b" z"),
        "carriage return that ends no line": head(b"x: a\rb"),
        "without a carriage return": head(b"x: a\nb: c"),
        "control character": head(b"x: a\0b"),
        "no field": head(b"x : a"),
        "more than one Host": head(b"Host: " + HOST.encode()),
        "another host (Host)": head(host="evil.test"),
        "has no Host": b"GET / HTTP/1.1\r\n\r\n",
        "does not ask for a path": head(first=b"GET http://evil.test/ HTTP/1.1"),
        "not of HTTP/1.1": head(first=b"PRI * HTTP/2.0"),
        "whose name some take for another": head(b"Content_Length: 5", first=post) + b"hello",
        "begins with an empty line": b"\r\n" + head(),
        "more than 64 KiB": head(*[b"x: " + b"y" * 1000] * 70),
        "more than 256 fields": head(*[b"x: y"] * 300),
        "another protocol": head(b"Connection: upgrade", b"Upgrade: h2c"),
        "HTTP/1.0 does not know": head(b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.0"),
        "proper size": head(b"Transfer-Encoding: chunked", first=post) + b"5;x=y\r\nhello\r\n0\r\n\r\n",
        "longer than it says": head(b"Transfer-Encoding: chunked", first=post) + b"3\r\nhello\r\n0\r\n\r\n",
    }
    with serve() as (server, run):
        for part, request in requests.items():
            part = "both a Content-Length" if part == "Transfer-Encoding and" else part
            stopped(run, request, part if part != "longer than it says" else "")
        expect(all(b"evil" not in told for told in server.heads), f"heads: {server.heads}")


def test_bodies():
    """Chunks with trailers, much of it, after an interim answer; and the next request on the same connection."""
    def collect(server, plain):
        told, rest = take_head(server, plain)
        if b"100-continue" in told:
            plain.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not rest.endswith(b"0\r\nx-sum: 1\r\n\r\n"):
            rest += plain.recv(1 << 20)
        server.bodies.append(rest)
        plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        take_head(server, plain)
        plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext")

    with serve(collect) as (server, run), run.connect() as made:
        made.sendall(head(b"Expect: 100-continue", b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.1"))
        expect_equal(made.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        sent = b"".join(b"%X\r\n" % len(part) + part + b"\r\n" for part in (os.urandom(n) for n in (1, 70000, 3_000_000, 16384)))
        sent += b"0\r\nx-sum: 1\r\n\r\n"
        expect(exchange(made, sent).endswith(b"ok"), "the first answer")
        expect(exchange(made, head(b"Authorization: Bearer " + PLACE.encode())).endswith(b"next"), "the next answer")
        expect_equal(server.bodies, [sent], "the body")
        expect(VALUE.encode() in server.heads[1], "the secret in the next request")


def test_large_answer_and_slow_reader():
    data = os.urandom(1 << 20) * 24

    def send(server, plain):
        take_head(server, plain)
        plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

    with serve(send) as (_, run), run.connect() as made:
        made.sendall(head())
        time.sleep(1)
        with open(f"/proc/{run.process.pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        expect(resident < 40000, f"{resident} KiB in memory for a reader that does not read")
        got = b"".join(iter(lambda: made.recv(1 << 20), b""))
        expect(got.split(b"\r\n\r\n", 1)[1] == data, "the answer is another one")


def test_masking_across_pieces():
    """A secret in an answer, cut at every place; and what only begins like one comes through, in time."""
    value = VALUE.encode()

    def pieces(server, plain):
        take_head(server, plain)
        plain.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for cut in range(0, len(value) + 1, 7):
            plain.sendall(b"[" + value[:cut])
            time.sleep(0.005)
            plain.sendall(value[cut:] + b"]")
        plain.sendall(b"data: sk-")
        plain.recv(1)  # until the guest has seen this
        plain.sendall(b"x" + value[:30])
        time.sleep(0.3)
        plain.sendall(value[30:])

    with serve(pieces) as (_, run), run.connect() as made:
        made.sendall(head())
        data = b""
        while not data.endswith(b"data: sk-"):
            data += made.recv(65536)
        made.sendall(head())
        data += b"".join(iter(lambda: made.recv(65536), b""))
        times = len(range(0, len(value) + 1, 7))
        expect_equal(data.split(b"\r\n\r\n", 1)[1], (b"[" + PLACE.encode() + b"]") * times + b"data: sk-x" + PLACE.encode())
    with serve(lambda server, plain: (take_head(server, plain), plain.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + value[:40]))) as (_, run), \
            run.connect() as made:
        made.sendall(head())
        expect(value[:40] not in read_all(made), "most of a secret, and then the end")


def test_nothing_packed_is_asked_for():
    with serve() as (server, run), run.connect() as made:
        exchange(made, head(b"Accept-Encoding: gzip, br", b"TE: gzip"))
        expect(b"gzip" not in server.heads[-1], f"{server.heads[-1]!r}")


def test_upgrade():
    def sockets(server, plain):
        told, _ = take_head(server, plain)
        if b"/no" in told:
            plain.sendall(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")
            simple(server, plain)
            return
        plain.sendall(b"HTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n")
        while data := plain.recv(65536):
            plain.sendall(data)

    upgrade = (b"Connection: keep-alive, Upgrade", b"Upgrade: websocket", b"Authorization: Bearer " + PLACE.encode())
    with serve(sockets) as (server, run):
        with run.connect() as made:
            made.sendall(head(*upgrade))
            data = b""
            while not data.endswith(b"Protocols\r\n\r\n"):
                data += made.recv(65536)
            expect(VALUE.encode() in server.heads[-1], "the secret in its head")
            frame = bytes(range(256)) * 20
            made.sendall(frame)
            got = b""
            while len(got) < len(frame):
                got += made.recv(65536)
            expect_equal(got, frame, "what is HTTP no more")
        with run.connect() as made:
            # What follows a request that was not agreed to is a request again.
            made.sendall(head(*upgrade, first=b"GET /no HTTP/1.1") + head(b"Content-Length: 1", host="evil.test"))
            expect(read_all(made).startswith(b"HTTP/1.1 400 No"), "the server's answer")
        expect(all(b"evil" not in told for told in server.heads), "a request after an Upgrade")


def test_bad_servers():
    """Nothing is sent to one that is not who it says, and the program learns why."""
    cases = ((dict(name="evil.test"), "hostname mismatch"), (dict(own=True), "self-signed"), (dict(days="-1"), "has expired"))
    for named, part in cases:
        with Secure(Run.authority.context(**named), simple) as server, Run(server.port) as run:
            with run.connect() as made:
                answer = exchange(made, head(b"Authorization: Bearer " + PLACE.encode()))
                expect(answer.startswith(b"HTTP/1.1 502") and part.encode() in answer, f"{named}: {answer!r}")
            event = run.event()
            expect(event[0] == EVENT_FAILED and part in event[5], f"{event}")
            expect_equal(server.heads, [], f"requests to the server with {named}")
    # TLS of yesterday.
    with Secure(Run.authority.context(minimum=ssl.TLSVersion.TLSv1_1), simple) as server, Run(server.port) as run:
        with run.connect() as made:
            answer = exchange(made, head())
            expect(answer.startswith(b"HTTP/1.1 502"), f"{answer!r}")
        expect_equal((run.event()[0], server.heads), (EVENT_FAILED, []))
    # No TLS at all, and a server that goes.
    for handle in (lambda made: made.sendall(b"HTTP/1.1 200 OK\r\n\r\n"), lambda made: made.recv(10)):
        with Server(handle) as server, Run(server.port) as run:
            with run.connect() as made:
                expect(exchange(made, head()).startswith(b"HTTP/1.1 502"), "answer")
            expect_equal(run.event()[0], EVENT_FAILED)
    # What a server says before the program has asked does not pass by mvagent-secret.
    with Server(lambda made: (made.sendall(b"HTTP/1.1 200 OK\r\n\r\n"), made.recv(10))) as server, Run(server.port) as run:
        with run.relay.request(HOST, run.port) as made:
            expect_equal(made.recv(1), bytes([CONNECTED]), "status")
            made.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                raise Failure(f"{made.recv(100)!r} came before anything was asked")


def test_bad_clients():
    with serve() as (server, run):
        # Another name, another protocol, no TLS: by the relay; before anything is sent.
        run.relay.expect_denied(HOST, run.port, "only TLS that asks for it by name", client_hello("other.test"))
        with run.relay.connect(HOST, run.port) as made:
            made.sendall(head())
            expect_equal(read_all(made), b"", "what is no TLS")
        with contextlib.suppress(ssl.SSLError, OSError), run.connect(protocols=["h2"]) as made:
            raise Failure(f"HTTP/2 was agreed to: {made.selected_alpn_protocol()}")
        event = run.event()
        expect(event[0] == EVENT_FAILED and "not the HTTP that the server speaks" in event[5], f"{event}")
        with run.connect(protocols=["h2", "http/1.1"]) as made:
            expect_equal(made.selected_alpn_protocol(), "http/1.1")
            exchange(made, head())
        # One that does not know the authority.
        made = run.relay.request(HOST, run.port)
        expect_equal(made.recv(1), bytes([CONNECTED]))
        try:
            ssl.create_default_context().wrap_socket(made, server_hostname=HOST)
            raise Failure("a stranger trusts the authority")
        except ssl.SSLCertVerificationError:
            made.close()
        event = run.event()
        expect(event[0] == EVENT_FAILED and "certificate" in event[5], f"{event}")


def test_placeholder_elsewhere():
    """In the clear to another host that is allowed, in pieces; and in a name."""
    got = []
    with Server(lambda made: got.append(read_all(made))) as server, \
            Run(server.port, secrets=[secret("API_KEY", VALUE, PLACE, (HOST, 443))], lines=(allow("*.wild.test"),)) as run:
        with run.relay.connect("other.test", server.port) as made:
            made.sendall(b"GET /?" + PLACE[:20].encode())
            time.sleep(0.1)
            made.sendall(PLACE[20:].encode() + b"\r\n")
            expect_equal(read_all(made), b"")
        event = run.relay.event()
        expect(event[0] == EVENT_DENIED and "placeholder of API_KEY" in event[5], f"{event}")
        run.relay.event()  # its end
        expect(all(PLACE.encode() not in data for data in got), f"the server got {got}")
    # What begins like TLS is looked through as well.
    got.clear()
    with Server(lambda made: got.append(read_all(made))) as server, \
            Run(server.port, secrets=[secret("API_KEY", VALUE, PLACE, (HOST, 443))]) as run:
        with run.relay.connect("other.test", server.port, b"\x16GET /?" + PLACE.encode()) as made:
            expect_equal(read_all(made), b"")
        event = run.relay.event()
        expect(event[0] == EVENT_DENIED and "placeholder of API_KEY" in event[5], f"{event}")
        run.relay.event()  # its end
        expect(all(PLACE.encode() not in data for data in got), f"the server got {got}")
    short = "shortPLACE0123456789"
    with Server(lambda made: None) as server, \
            Run(server.port, secrets=[secret("API_KEY", "shortVALUE0123456789", short, (HOST, 443))],
                lines=(allow("*.wild.test"),)) as run:
        run.relay.expect_denied(f"a.{short.lower()}.wild.test", 443, "placeholder")
        expect_equal(run.names.asked, [], "questions to the name server")


def test_many():
    """180 connections, 30 at a time: each is served, none is left."""
    with serve() as (_, run):
        failures = []

        def one(number):
            try:
                with run.connect() as made:
                    answer = exchange(made, head(b"x-number: %d" % number, b"Authorization: Bearer " + PLACE.encode()))
                    if b"x-number: %d\r\n" % number not in answer or VALUE.encode() in answer:
                        failures.append(answer)
            except Exception as error:  # told below
                failures.append(error)

        for begin in range(0, 180, 30):
            threads = [threading.Thread(target=one, args=(begin + i,)) for i in range(30)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            expect_equal(failures, [], "failures")
            uses = 0
            while uses < 30:
                event = run.event()
                uses += event[3] if event[0] == EVENT_SECRET else 0
        end = time.monotonic() + LIMIT
        place = f"/proc/{run.process.pid}/fd"
        while len(os.listdir(place)) > 12 and time.monotonic() < end:
            time.sleep(0.05)
        expect(len(os.listdir(place)) <= 12, f"descriptors that are left: {os.listdir(place)}")


def test_abandoned():
    """Guests that go in the middle of everything leave nothing behind."""
    with serve() as (_, run):
        for what in (b"", client_hello(HOST)[:50], client_hello(HOST)):
            for _ in range(20):
                made = run.relay.request(HOST, run.port, what)
                made.recv(1)
                made.close()
        for _ in range(20):
            made = run.connect()
            made.sendall(head(b"Content-Length: 100", first=b"POST / HTTP/1.1") + b"half")
            made.close()
        end = time.monotonic() + LIMIT
        places = [f"/proc/{pid}/fd" for pid in (run.process.pid, run.relay.process.pid)]
        while max(len(os.listdir(place)) for place in places) > 12 and time.monotonic() < end:
            time.sleep(0.05)
        counts = [len(os.listdir(place)) for place in places]
        expect(max(counts) <= 12, f"descriptors that are left: {counts}")


def main(tests):
    """Runs those of @tests (a module's names) that the command line asks for."""
    options = relay_driver.read_options(__doc__)
    place = options.build.resolve() / "libexec/mvagent"
    Relay.program, Run.program = str(place / "mvagent-relay"), str(place / "mvagent-secret")
    # Those weigh memory, of which AddressSanitizer keeps what was freed.
    weighed = {"test_large_answer_and_slow_reader", "test_key_updates_without_end", "test_slow_readers"}
    weighed |= {name for name in tests if name.startswith("test_weighed_")}
    with tempfile.TemporaryDirectory() as directory:
        Run.authority = Authority(directory)
        return relay_driver.run_tests(tests, options.tests, {"test_jail", *weighed} if options.sanitized else set())


if __name__ == "__main__":
    sys.exit(main(globals()))
