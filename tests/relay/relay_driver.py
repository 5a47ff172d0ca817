#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mvagent-relay against real peers on this host's loopback: name servers, servers with and without TLS, a proxy. This
program plays mvagent-vmm (asks for connections) and the guest (says what it wants in them).

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import resource
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback

CONNECTED, DENIED, FAILED = 0, 1, 2
EVENT_DENIED, EVENT_FAILED, EVENT_ENDED, EVENT_SECRET, EVENT_MASKED, EVENT_WALLS, EVENT_SPENT, EVENT_SIGNED, EVENT_UNTOLD, EVENT_TOKEN = range(1, 11)
EVENT = struct.Struct("=IIQQ256s1024sQ")
LIMIT = 20.0


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def expect_equal(seen, wanted, what="value"):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


def text(field):
    return field.split(b"\0", 1)[0].decode()


def expect_walls(events, process):
    """The first that a process tells, once it is confined; nothing, if it does not start."""
    first = events.recv(EVENT.size)
    if first:
        kind, _, walls, _, _, name, _ = EVENT.unpack(first)
        expect_equal((kind, text(name)), (EVENT_WALLS, process), "first event")
        expect(walls, f"{process} is confined by nothing")


class Relay:
    """A relay with its settings: (word, first, second) each."""

    program = None

    def __init__(self, *lines, secret_fd=None, sign_fd=None):
        settings = os.memfd_create("settings")
        os.write(settings, "".join(f"{a}\t{b}\t{c}\n" for a, b, c in lines).encode())
        os.lseek(settings, 0, os.SEEK_SET)
        self.lender, lender = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.events, events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.lender.settimeout(LIMIT)
        self.events.settimeout(LIMIT)
        self.serial = 0
        numbers = {"settings": settings, "lender": lender.fileno(), "event": events.fileno()}
        if secret_fd is not None:
            numbers["secret"] = secret_fd
        if sign_fd is not None:
            numbers["sign"] = sign_fd
        words = [word for name, number in numbers.items() for word in (f"--{name}-fd", str(number))]
        self.process = subprocess.Popen([self.program, *words], pass_fds=tuple(numbers.values()), stderr=subprocess.PIPE, env={})
        os.close(settings)
        lender.close()
        events.close()
        expect_walls(self.events, "mvagent-relay")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.lender.close()
        try:
            error = self.process.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("the relay does not end") from None
        finally:
            self.events.close()
        if kind is None:
            expect_equal((self.process.returncode, error), (0, b""), "the relay's end")
        elif error:
            print(error.decode(), file=sys.stderr)

    def stream(self):
        """One end of a stream, as mvagent-vmm gets it; None when it is refused."""
        self.serial += 1
        self.lender.send(struct.pack("=II", 16, self.serial))
        answer, fds, *_ = socket.recv_fds(self.lender, 64, 4)
        expect_equal(struct.unpack("=II", answer), (16, self.serial), "slot and serial")
        if not fds:
            return None
        made = socket.socket(fileno=fds[0])
        made.settimeout(LIMIT)
        return made

    def request(self, host, port, data=b""):
        """Asks for a connection, with @data behind the request, and waits for nothing."""
        host = host if isinstance(host, bytes) else host.encode()
        made = self.stream()
        expect(made, "the relay lends no stream")
        made.sendall(struct.pack("<BBHBB", 1, 1, port, len(host), 0) + host + data)
        return made

    def status(self, host, port, data=b""):
        with self.request(host, port, data) as made:
            answer = made.recv(1)
            return answer[0] if answer else None

    def connect(self, host, port, data=b""):
        made = self.request(host, port, data)
        expect_equal(made.recv(1), bytes([CONNECTED]), f"status of {host}:{port}")
        return made

    def event(self):
        kind, port, sent, received, host, sentence, self.microseconds = EVENT.unpack(self.events.recv(EVENT.size))
        return kind, text(host), port, sent, received, text(sentence)

    def no_event(self, seconds=0.2):
        if select.select([self.events], [], [], seconds)[0]:
            raise Failure(f"an event: {self.event()}")

    def expect_denied(self, host, port, part, data=b""):
        expect_equal(self.status(host, port, data), DENIED, f"status of {host}:{port}")
        event = self.event()
        expect_equal((event[0], event[2]), (EVENT_DENIED, port), f"event {event}")
        expect(part in event[5], f"{part!r} is not in {event[5]!r}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Server:
    """Accepts on a free port of 127.0.0.1; each connection is @handle's, in a thread."""

    def __init__(self, handle, address="127.0.0.1", family=socket.AF_INET):
        self.socket = socket.create_server((address, 0), family=family, backlog=2048)
        self.port = self.socket.getsockname()[1]
        self.handle = handle
        self.accepted = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                made, _ = self.socket.accept()
                self.accepted += 1
                threading.Thread(target=self.serve, args=(made,), daemon=True).start()

    def serve(self, made):
        with made, contextlib.suppress(OSError):
            self.handle(made)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A thread that waits in accept keeps a socket that is only closed.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def echo(made):
    """What comes goes back, and so does the end."""
    while data := made.recv(65536):
        made.sendall(data)
    made.shutdown(socket.SHUT_WR)


class Names:
    """A name server that answers from a table: {name: [address, ...]}, a callable for the address list, or nothing."""

    def __init__(self, table, address=("127.0.0.1", 0)):
        self.table = table
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.setting = ("servers", "{}:{}".format(*self.socket.getsockname()), "")
        self.asked = []
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.socket.settimeout(0.1)
        while not self.over:
            with contextlib.suppress(TimeoutError):
                request, client = self.socket.recvfrom(512)
                answer = self.answer(request)
                if answer:
                    self.socket.sendto(answer, client)

    def answer(self, request):
        labels, at = [], 12
        while request[at]:
            labels.append(request[at + 1:at + 1 + request[at]].decode())
            at += 1 + request[at]
        kind = struct.unpack_from(">H", request, at + 1)[0]
        name = ".".join(labels)
        self.asked.append((name, kind))
        found = self.table.get(name)
        found = found() if callable(found) else found
        if found == "silence":
            return None
        records = []
        for address in found or []:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == (28 if family == socket.AF_INET6 else 1):
                packed = socket.inet_pton(family, address)
                records.append(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(packed)) + packed)
        code = 0 if found is not None else 3
        return (request[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0) + request[12:at + 5]
                + b"".join(records))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.socket.close()


def allow(what):
    return "allow", what, f"--allow {what}"


def deny(what):
    return "deny", what, f"--deny {what}"


def local(port):
    """By default nothing of this host may be reached, so that tests allow it by its address."""
    return allow(f"127.0.0.1:{port}")


def client_hello(name, alpn=None):
    """The first bytes of a real client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        made.do_handshake()
    return outgoing.read()


def read_exactly(made, count):
    data = b""
    while len(data) < count and (part := made.recv(count - len(data))):
        data += part
    return data


def read_all(made):
    data = b""
    while part := made.recv(1 << 20):
        data += part
    return data


def test_bytes_both_ways():
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names, \
            Relay(allow(f"api.test:{server.port}"), local(server.port), names.setting) as relay:
        with relay.connect("api.test", server.port) as made:
            made.sendall(b"hello")
            expect_equal(made.recv(100), b"hello")
            made.shutdown(socket.SHUT_WR)
            expect_equal(made.recv(100), b"", "the end")
        event = relay.event()
        expect_equal(event[:5], (EVENT_ENDED, "api.test", server.port, 5, 5), "what was told")
        expect(0 < relay.microseconds < 1e6 * LIMIT, f"for how long it was open: {relay.microseconds}")
        expect_equal({name for name, _ in names.asked}, {"api.test"}, "names asked for")


def test_half_close():
    """The guest is done with sending, and the server only then begins."""
    def late(made):
        data = read_all(made)
        time.sleep(0.3)
        made.sendall(hashlib.sha256(data).hexdigest().encode())

    data = os.urandom(3_000_000)
    with Server(late) as server, Relay(local(server.port)) as relay:
        with relay.connect("127.0.0.1", server.port) as made:
            made.sendall(data)
            made.shutdown(socket.SHUT_WR)
            expect_equal(read_all(made).decode(), hashlib.sha256(data).hexdigest(), "what the server got")

    # And the other way round.
    def early(made):
        made.sendall(b"bye")
        made.shutdown(socket.SHUT_WR)
        got.append(read_all(made))

    got = []
    with Server(early) as server, Relay(local(server.port)) as relay:
        with relay.connect("127.0.0.1", server.port) as made:
            expect_equal(read_all(made), b"bye")
            made.sendall(b"later")
        end = time.monotonic() + LIMIT
        while not got and time.monotonic() < end:
            time.sleep(0.01)
        expect_equal(got, [b"later"], "what the server got after its own end")


def test_nothing_is_asked_for_what_is_not_allowed():
    with Names({"evil.test": ["127.0.0.1"]}) as names, Relay(allow("api.test"), names.setting) as relay:
        relay.expect_denied("evil.test", 443, "evil.test:443 is not allowed; --allow evil.test would allow it")
        relay.expect_denied("api.test", 22, "--allow api.test:22 would allow it")
        relay.expect_denied("127.0.0.1", 443, "127.0.0.1:443 is not allowed")
        relay.expect_denied(b"evil.test\0.api.test", 443, "no host's name")
        relay.expect_denied(b"api.test\0", 444, "no host's name")
        relay.expect_denied(b"x" * 255, 446, "no host's name")
        relay.expect_denied("127.1", 445, "no host's name")
        # Once each.
        for _ in range(5):
            expect_equal(relay.status("evil.test", 443), DENIED)
        relay.no_event()
        expect_equal(names.asked, [], "questions to the name server")


def test_addresses_that_are_not_public():
    table = {"a.test": ["10.0.0.1"], "b.test": ["169.254.169.254"], "c.test": ["::1"], "d.test": ["::ffff:127.0.0.1"],
             "e.test": ["64:ff9b::7f00:1"], "f.test": ["fd00::1"], "g.test": ["0.0.0.0"], "h.test": ["127.0.0.1", "224.0.0.1"]}
    words = {"a.test": "private", "b.test": "metadata", "c.test": "loopback", "d.test": "loopback", "e.test": "loopback",
             "f.test": "private", "g.test": "this host"}
    with Names(table) as names, Server(echo) as server, \
            Relay(*(allow(f"{name}:{server.port}") for name in table), names.setting) as relay:
        for name in table:
            relay.expect_denied(name, server.port, words.get(name, "--allow"))
        expect_equal(server.accepted, 0, "connections to this host")


def test_an_answer_that_changes():
    """Rebinding: the name has a good address when it is looked at, and this host's a moment later."""
    with Server(echo) as server:
        turns = iter(["127.0.0.2", "127.0.0.2"] + ["127.0.0.1"] * 100)
        with Names({"api.test": lambda: [next(turns)]}) as names, \
                Relay(allow(f"api.test:{server.port}"), allow(f"127.0.0.2:{server.port}"), names.setting) as relay:
            # Nobody listens at the address that is allowed.
            expect_equal(relay.status("api.test", server.port), FAILED)
            expect_equal(relay.event()[0], EVENT_FAILED)
            time.sleep(1.5)  # the answer was good for a second
            relay.expect_denied("api.test", server.port, "its address 127.0.0.1 is loopback")
            expect_equal(server.accepted, 0, "connections to this host")


def test_names_that_have_no_answer():
    with Names({"silent.test": "silence", "empty.test": []}) as names, \
            Relay(*(allow(f"{name}.test") for name in ("silent", "empty", "none")), names.setting) as relay:
        for name in ("empty.test", "none.test"):
            begin = time.monotonic()
            expect_equal(relay.status(name, 443), FAILED, name)
            expect(time.monotonic() - begin < 2, f"{name} took too long")
            event = relay.event()
            expect(event[0] == EVENT_FAILED and f"{name}:443 cannot be reached" in event[5], f"{event}")
        with relay.request("silent.test", 443) as made:
            made.settimeout(40)
            expect_equal(made.recv(1), bytes([FAILED]), "silent.test")


def test_many_ask_for_one_name():
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names, \
            Relay(allow(f"api.test:{server.port}"), local(server.port), names.setting) as relay:
        streams = [relay.request("api.test", server.port) for _ in range(200)]
        for made in streams:
            expect_equal(made.recv(1), bytes([CONNECTED]))
            made.close()
        expect(len(names.asked) <= 6, f"{len(names.asked)} questions for 200 connections")


def test_the_next_address():
    """An address that refuses, one of a family that is not there, one that does not answer: the last is found."""
    with Server(echo) as server, Names({"api.test": ["127.0.0.3", "2001:db8::1", "127.0.0.1"]}) as names, \
            Relay(allow(f"api.test:{server.port}"), local(server.port), allow(f"127.0.0.3:{server.port}"),
                  allow(f"[2001:db8::1]:{server.port}"), names.setting) as relay:
        begin = time.monotonic()
        with relay.connect("api.test", server.port) as made:
            made.sendall(b"x")
            expect_equal(made.recv(1), b"x")
        expect(time.monotonic() - begin < 3, "it took too long")


def tls_relay(server, names, *more):
    return Relay(allow("api.test:443"), allow(f"api.test:{server.port}"), local(server.port), local(443), names.setting, *more)


def test_tls_names_its_server():
    """On any port TLS has to ask for the name that is allowed; what is no TLS may pass, but not to 443."""
    hello = client_hello("api.test")
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names:
        with tls_relay(server, names) as relay:
            with relay.connect("api.test", server.port) as made:
                for at in range(0, len(hello), 50):  # in pieces
                    made.sendall(hello[at:at + 50])
                    time.sleep(0.01)
                expect_equal(made.recv(10000), hello, "what came back")
            with relay.connect("API.test.", server.port, hello) as made:
                expect_equal(made.recv(10000), hello, "what came back")
            with relay.connect("api.test", server.port) as made:
                made.sendall(b"GET / HTTP/1.0\r\n\r\n")
                expect_equal(made.recv(100), b"GET / HTTP/1.0\r\n\r\n")
        for data, words in ((client_hello("evil.test"), "asks for another server, evil.test"), (client_hello(None), "(no SNI)"),
                            (hello[:3] + b"\xff\xff" + hello[5:], "begins like TLS and is none")):
            with tls_relay(server, names) as relay:
                with relay.request("api.test", server.port, data) as made:
                    expect(read_all(made) in (b"", bytes([DENIED]), bytes([CONNECTED])), "bytes came back")
                event = next(event for event in iter(relay.event, None) if event[0] == EVENT_DENIED)
                expect(words in event[5] and "--allow-any-sni" in event[5], f"{words!r} is not in {event[5]!r}")
        with tls_relay(server, names, ("any-server-name", "", "")) as relay:
            with relay.connect("api.test", server.port, client_hello("evil.test")) as made:
                expect_equal(made.recv(10000)[:1], b"\x16", "what came back")


def test_no_byte_leaves_before_the_verdict():
    got = []

    def note(made):
        got.append(read_all(made))

    with Server(note) as server, Names({"api.test": ["127.0.0.1"]}) as names, tls_relay(server, names) as relay:
        with relay.request("api.test", server.port, client_hello("evil.test")) as made:
            read_all(made)
        time.sleep(0.3)
        expect(not any(got), f"bytes that left: {got}")


def test_a_server_that_speaks_first():
    def greet(made):
        made.sendall(b"220 ready\r\n")
        made.sendall(made.recv(100).upper())

    with Server(greet) as server, Names({"api.test": ["127.0.0.1"]}) as names, tls_relay(server, names) as relay:
        with relay.connect("api.test", server.port) as made:
            expect_equal(made.recv(100), b"220 ready\r\n")
            made.sendall(b"helo")
            expect_equal(made.recv(100), b"HELO")


def test_slow_reader():
    """The server does not read: the guest is stopped, not the relay, which keeps no more than a little."""
    go = threading.Event()

    def slow(made):
        go.wait(LIMIT)
        made.sendall(hashlib.sha256(read_all(made)).hexdigest().encode())

    data = os.urandom(1 << 20) * 32
    with Server(slow) as server, Relay(local(server.port)) as relay:
        with relay.connect("127.0.0.1", server.port) as made:
            made.setblocking(False)
            sent, end = 0, time.monotonic() + 1
            while time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    sent += made.send(data[sent:sent + 65536])
            expect(sent < 24 << 20, f"{sent} bytes went somewhere")
            memory = pathlib.Path(f"/proc/{relay.process.pid}/status").read_text()
            resident = int(memory.split("VmRSS:")[1].split()[0])
            expect(resident < 40000, f"the relay has {resident} KiB")
            go.set()
            made.settimeout(LIMIT)
            made.sendall(data[sent:])
            made.shutdown(socket.SHUT_WR)
            expect_equal(read_all(made).decode(), hashlib.sha256(data).hexdigest(), "what the server got")


def test_a_gibibyte_each_way():
    block = os.urandom(1 << 20)
    count = 1024

    def serve(made):
        digest, total = hashlib.sha1(), 0
        sender = threading.Thread(target=lambda: [made.sendall(block) for _ in range(count)])
        sender.start()
        while total < count << 20:
            part = made.recv(1 << 20)
            digest.update(part)
            total += len(part)
        sender.join()
        made.sendall(digest.digest())

    with Server(serve) as server, Relay(local(server.port)) as relay:
        with relay.connect("127.0.0.1", server.port) as made:
            made.settimeout(120)
            sender = threading.Thread(target=lambda: [made.sendall(block) for _ in range(count)])
            begin = time.monotonic()
            sender.start()
            digest, total, tail = hashlib.sha1(), 0, b""
            while part := made.recv(1 << 20):
                tail = (tail + part)[-20:]
                total += len(part)
            sender.join()
            seconds = time.monotonic() - begin
            for _ in range(count):
                digest.update(block)
            expect_equal(total, (count << 20) + 20, "bytes that came")
            expect_equal(tail, digest.digest(), "digest of what the server got")
            print(f"     2 GiB in {seconds:.1f} s", file=sys.stderr)


def test_ten_thousand_half_closed():
    """One after the other, each ended by one side only at first; nothing is left of them."""
    with Server(echo) as server, Relay(local(server.port)) as relay:
        relay.connect("127.0.0.1", server.port).close()
        time.sleep(0.5)
        before = relay.descriptors()
        for number in range(10000):
            with relay.connect("127.0.0.1", server.port) as made:
                if number % 2:
                    made.shutdown(socket.SHUT_WR)
                    if number % 4 == 1:
                        expect_equal(made.recv(1), b"")
            while select.select([relay.events], [], [], 0)[0]:
                relay.event()
        time.sleep(1.5)
        expect(relay.descriptors() <= before, f"{relay.descriptors()} descriptors, {before} before")


def test_denials_that_hide_others():
    """One of a host does not hide another of the same host, and many do not hide that there are more."""
    with Server(lambda made: made.recv(1)) as server, Names({"a.test": ["127.0.0.1"]}) as names, \
            Relay(allow(f"a.test:{server.port}"), local(server.port), names.setting, ("placeholder", "KEY", "PLACEHOLDER-of-KEY")) as relay:
        for _ in range(2):
            expect_equal(relay.status("a.test", server.port, client_hello("b.test")), DENIED, "status")
        event = relay.event()
        expect(event[0] == EVENT_DENIED and "asks for another server" in event[5], f"{event}")
        with relay.connect("a.test", server.port, b"GET /PLACEHOLDER-of-KEY") as made:
            read_all(made)
        event = relay.event()
        expect(event[0] == EVENT_DENIED and "placeholder of KEY" in event[5], f"{event}")
        expect_equal(relay.event()[0], EVENT_ENDED)
        for number in range(100):
            expect_equal(relay.status(f"n{number}.test", 443), DENIED, "status")
        expect_equal([relay.event()[0] for _ in range(62)], [EVENT_DENIED] * 62, "denials, of which two were told before")
        relay.lender.shutdown(socket.SHUT_RDWR)
        kind, _, untold, *_ = EVENT.unpack(relay.events.recv(EVENT.size))
        expect_equal((kind, untold), (EVENT_UNTOLD, 38), "those that were not told")


def test_ends_are_told_to_a_slow_supervisor():
    """What a guest had connections to is told of each, also when so many end at once that the supervisor is behind."""
    count = 400
    with Server(echo) as server, Names({"a.test": ["127.0.0.1"]}) as names, \
            Relay(allow(f"a.test:{server.port}"), local(server.port), names.setting) as relay:
        made = [relay.connect("a.test", server.port) for _ in range(count)]
        for one in made:
            one.close()
        time.sleep(1)
        ended = 0
        while ended < count:
            try:
                event = relay.event()
            except TimeoutError:
                raise Failure(f"{ended} of {count} ends were told") from None
            expect_equal((event[0], event[1]), (EVENT_ENDED, "a.test"))
            ended += 1


def test_the_end_is_not_waited_for():
    """A run with connections ends as soon as one without, whatever their servers do, or were to be found: it is waited for them only
    where they have not taken all that the guest said."""
    def silent(made):
        read_all(made)
        gone.wait(LIMIT)

    def opened(relay, port):
        made = relay.connect("127.0.0.1", port, b"x")
        time.sleep(0.05)
        return made

    def half(relay, port):
        made = opened(relay, port)
        made.shutdown(socket.SHUT_WR)
        return made

    def many(relay, port):
        return [relay.connect("127.0.0.1", port) for _ in range(200)]

    for what in (lambda *_: None, opened, half, many, lambda relay, _: relay.request("slow.test", 443, b"x"),
                 lambda relay, _: relay.request("192.0.2.1", 99, b"x")):
        gone = threading.Event()
        with Server(silent) as server, Names({"slow.test": "silence"}) as names, \
                Relay(local(server.port), allow("slow.test:443"), allow("192.0.2.1:99"), names.setting) as relay:
            made = what(relay, server.port)
            begin = time.monotonic()
            relay.lender.shutdown(socket.SHUT_RDWR)  # the machine is gone, and with it its ends
            for one in made if isinstance(made, list) else [made] if made else []:
                one.close()
            while relay.events.recv(EVENT.size):
                pass
            relay.process.wait(LIMIT)
            took = time.monotonic() - begin
            gone.set()
        expect(took < 1, f"{getattr(what, '__name__', what)}: the relay took {took:.2f} s to end")


def test_a_thousand_at_once():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with Server(echo) as server, Relay(local(server.port)) as relay:
        streams = [relay.request("127.0.0.1", server.port) for _ in range(1000)]
        for number, made in enumerate(streams):
            expect_equal(made.recv(1), bytes([CONNECTED]), f"connection {number}")
        for number, made in enumerate(streams):
            made.sendall(struct.pack("=I", number) * 100)
        for number, made in enumerate(streams):
            data = b""
            while len(data) < 400:
                data += made.recv(400)
            expect_equal(data, struct.pack("=I", number) * 100, f"bytes of connection {number}")
        # As many as there may be, and then no more.
        more = [relay.stream() for _ in range(60)]
        expect_equal(sum(made is None for made in more), 36, "connections refused")
        for made in streams + [made for made in more if made]:
            made.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_bad_requests():
    with Relay(allow("api.test")) as relay:
        for data in (b"\0", b"\2\1\1\0\0\0", b"\1\1\0\0\1\0a", b"\1\3\1\0\1\0a", b"\1\1\1\0\1\1a", b"\1\2\1\0\0\0", b"GET / HTTP/1.1"):
            with relay.stream() as made:
                made.sendall(data)
                made.shutdown(socket.SHUT_WR)
                expect_equal(read_all(made), b"", f"answer to {data!r}")
        with relay.stream() as made:  # and nothing at all
            made.close()
        relay.no_event()


def test_the_last_bytes_of_a_run():
    """The machine goes with its end of all streams; what was said in them before still arrives."""
    got = []

    def slow(made):
        time.sleep(0.5)
        got.append(read_all(made))

    data = os.urandom(8_000_000)
    with Server(slow) as server:
        with Relay(local(server.port)) as relay:
            made = relay.connect("127.0.0.1", server.port)
            made.sendall(data)
            made.close()
        end = time.monotonic() + LIMIT
        while not got and time.monotonic() < end:
            time.sleep(0.01)
        expect_equal([hashlib.sha256(part).digest() for part in got], [hashlib.sha256(data).digest()], "what the server got")


def test_dead_server():
    """Nobody answers, and somebody who is gone: the guest learns of both."""
    def reset(made):
        made.recv(10)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = unused.getsockname()[1]
    with Server(reset) as server, Relay(local(server.port), local(dead)) as relay:
        expect_equal(relay.status("127.0.0.1", dead), FAILED)
        expect("Connection refused" in relay.event()[5], "the reason was told")
        with relay.connect("127.0.0.1", server.port) as made:
            made.sendall(b"x")
            expect_equal(read_all(made), b"", "after the reset")


class Proxy(Server):
    """An HTTP proxy that knows CONNECT, with a table of where names really are."""

    def __init__(self, places, credentials=None, answer=b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"):
        self.places, self.credentials, self.answer, self.requests = places, credentials, answer, []
        super().__init__(self.connect)

    def connect(self, made):
        head = b""
        while b"\r\n\r\n" not in head:
            head += made.recv(4096)
        self.requests.append(head)
        target = head.split()[1].decode()
        if self.credentials and b"Proxy-Authorization: Basic " + self.credentials not in head:
            made.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        if target not in self.places:
            made.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        with socket.create_connection(self.places[target]) as onward:
            made.sendall(self.answer)
            thread = threading.Thread(target=copy, args=(onward, made), daemon=True)
            thread.start()
            copy(made, onward)
            thread.join()


def copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def test_by_a_proxy():
    with Server(echo) as server, Names({}) as names:
        with Proxy({"api.test:443": ("127.0.0.1", server.port)}, b"dXNlcjpwYXNz") as proxy, \
                Relay(allow("api.test"), allow("other.test"), ("proxy", f"127.0.0.1:{proxy.port}", "dXNlcjpwYXNz"),
                      ("exceptions", "", ""), names.setting) as relay:
            hello = client_hello("api.test")
            with relay.connect("api.test", 443, hello) as made:
                expect_equal(made.recv(10000), hello)
            expect_equal(relay.event()[0], EVENT_ENDED)
            expect(proxy.requests[0].startswith(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n"), f"{proxy.requests}")
            expect_equal(names.asked, [], "names that the proxy should find")
            expect_equal(relay.status("other.test", 443), FAILED)
            expect("status 403" in relay.event()[5], "the proxy's answer was told")
            relay.expect_denied("evil.test", 443, "is not allowed")
            expect_equal(len(proxy.requests), 2, "requests to the proxy")
        # Answers that are none, and bytes that follow the answer at once.
        for answer, status in ((b"SMTP ready\r\n\r\n", FAILED), (b"HTTP/1.1 2000 x\r\n\r\n", FAILED),
                               (b"HTTP/1.1 200 \r\n" + b"x: y\r\n" * 3000, FAILED)):
            with Proxy({"api.test:443": ("127.0.0.1", server.port)}, answer=answer) as proxy, \
                    Relay(allow("api.test"), ("proxy", f"127.0.0.1:{proxy.port}", "")) as relay:
                with relay.request("api.test", 443) as made:
                    expect_equal(made.recv(1), bytes([status]), f"status for {answer[:20]!r}")
        with Proxy({"api.test:80": ("127.0.0.1", server.port)}, answer=b"HTTP/1.0 200 OK\r\n\r\nfirst") as proxy, \
                Relay(allow("api.test"), ("proxy", f"127.0.0.1:{proxy.port}", "")) as relay:
            with relay.connect("api.test", 80, b"second") as made:
                data = b""
                while len(data) < 11:
                    data += made.recv(100)
                expect_equal(data, b"firstsecond")


def test_around_the_proxy():
    with Server(echo) as server, Names({"in.corp.test": ["127.0.0.1"]}) as names, Proxy({}) as proxy, \
            Relay(allow(f"in.corp.test:{server.port}"), local(server.port), ("proxy", f"127.0.0.1:{proxy.port}", ""),
                  ("exceptions", "localhost, .corp.test", ""), names.setting) as relay:
        with relay.connect("in.corp.test", server.port, b"x") as made:
            expect_equal(made.recv(1), b"x")
        expect_equal(proxy.requests, [])


def offer(relay):
    made = relay.stream()
    made.sendall(struct.pack("<BBHBB", 1, 2, 0, 0, 0))
    return made


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


def test_published_ports():
    port = free_port()
    with Relay(("publish", f"127.0.0.1:{port}", "3000")) as relay:
        with offer(relay) as first, offer(relay) as second:
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as client:
                expect_equal(first.recv(3), struct.pack("<BH", CONNECTED, 3000), "what the guest is told")
                client.sendall(b"GET /")
                expect_equal(first.recv(100), b"GET /")
                first.sendall(b"page")
                first.shutdown(socket.SHUT_WR)
                expect_equal(read_all(client), b"page")
            # One who comes before there is an offer waits for it.
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT):
                expect_equal(second.recv(3), struct.pack("<BH", CONNECTED, 3000))
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT):
                with offer(relay) as third:
                    expect_equal(third.recv(3), struct.pack("<BH", CONNECTED, 3000))


def test_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        relay = Relay(("publish", f"127.0.0.1:{taken.getsockname()[1]}", "3000"))
        error = relay.process.communicate(timeout=LIMIT)[1].decode()
        expect_equal(relay.process.returncode, 1, "status")
        expect("cannot listen there: Address already in use" in error, error)


def test_bad_settings():
    for line in (("allow", "", "--allow"), ("nonsense", "", ""), ("allow", "x", None)):
        relay = Relay(line) if line[2] is not None else Relay(("allow", "a b", "x"))
        error = relay.process.communicate(timeout=LIMIT)[1].decode()
        expect_equal(relay.process.returncode, 1, f"status with {line}")
        expect("mvagent-relay: " in error, error)


def test_bytes_that_are_used_up():
    """So many bytes pass, both ways and over all connections together, and not one more."""
    with Server(echo) as server, Relay(local(server.port), ("bytes", "1000", "")) as relay:
        with relay.connect("127.0.0.1", server.port) as first, relay.connect("127.0.0.1", server.port) as second:
            first.sendall(b"a" * 300)
            expect_equal(len(read_exactly(first, 300)), 300, "back")
            second.sendall(b"b" * 200)
            expect_equal(len(read_exactly(second, 200)), 200, "back: exactly as many as there may be")
            relay.no_event()
            first.sendall(b"c")
            with contextlib.suppress(ConnectionResetError):  # with a byte of it unread
                expect_equal(read_all(first), b"", "what came back of what was too much")
            expect_equal(read_all(second), b"", "of the other connection, which did nothing")
        told = [relay.event() for _ in range(3)]
        expect_equal([(event[0], event[3], event[4]) for event in told if event[0] == EVENT_ENDED],
                     [(EVENT_ENDED, 300, 300), (EVENT_ENDED, 200, 200)], "connections")
        spent = [event for event in told if event[0] == EVENT_SPENT]
        expect(len(spent) == 1 and "the 1000 bytes of --allow-bytes are used up" in spent[0][5], f"events: {told}")
        # No more is even begun, and it is not told again.
        accepted = server.accepted
        expect_equal(relay.status("127.0.0.1", server.port), DENIED, "another connection")
        expect_equal(server.accepted, accepted, "connections to the server")
        relay.no_event()


def test_bytes_of_one_big_stream():
    """A stream that is cut has passed no more than the limit; its first bytes count, too."""
    got = []

    def count(made):
        got.append(0)
        while data := made.recv(1 << 20):
            got[0] += len(data)
        ended.set()

    ended = threading.Event()
    with Server(count) as server, Relay(local(server.port), ("bytes", "1000000", "")) as relay:
        with relay.request("127.0.0.1", server.port, b"first" * 1000) as made:
            with contextlib.suppress(OSError):
                made.sendall(bytes(4 << 20))
            expect(ended.wait(LIMIT), "the server still waits")
        expect_equal(got, [1000000], "bytes that the server got")
        events = [relay.event(), relay.event()]
        expect_equal({event[0] for event in events}, {EVENT_ENDED, EVENT_SPENT}, "events")


def test_bytes_that_suffice():
    """An end is no byte: a stream of exactly the limit ends well."""
    with Server(echo) as server, Relay(local(server.port), ("bytes", "20", "")) as relay:
        with relay.connect("127.0.0.1", server.port) as made:
            made.sendall(b"0123456789")
            made.shutdown(socket.SHUT_WR)
            expect_equal(read_all(made), b"0123456789", "what came back")
        expect_equal(relay.event()[:1], (EVENT_ENDED,), "what was told")
        relay.no_event()


def test_streams_to_the_agent():
    """They are handed over with what was said so far; where there is nobody, they are denied."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(LIMIT)
    request = struct.pack("<BBHBB", 1, 3, 0, 0, 0)
    with ours, theirs, Relay(allow("git.test:22"), sign_fd=theirs.fileno()) as relay:
        for said in (b"", b"\0\0\0\1\x0b"):
            with relay.stream() as made:
                made.sendall(request + said)
                expect_equal(made.recv(1), bytes([CONNECTED]), "status")
                message, fds, *_ = socket.recv_fds(ours, 65536, 4)
                length = struct.unpack_from("=I", message)[0]
                with socket.socket(fileno=fds[0]) as handed:
                    handed.settimeout(LIMIT)
                    got = message[4:]
                    expect_equal((len(fds), length), (1, len(got)), "what was handed over")
                    got += read_exactly(handed, len(said) - len(got))
                    expect_equal(got, said, "what was said so far")
                    handed.sendall(b"answer")
                    expect_equal(read_exactly(made, 6), b"answer")
        relay.no_event()
    with Relay(allow("git.test:22")) as relay, relay.stream() as made:
        made.sendall(request)
        expect_equal(made.recv(1), bytes([DENIED]), "status where there is no agent")


def test_jail():
    """No file, no privileges, the system calls of its role."""
    with Relay(allow("api.test")) as relay:
        relay.stream().close()  # it serves
        place = pathlib.Path(f"/proc/{relay.process.pid}")
        status = (place / "status").read_text()
        expect("Seccomp:\t2" in status and "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status, status)
        if os.getuid() == 0:
            expect_equal(os.listdir(place / "root"), [], "files that it sees")


def read_options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("tests", nargs="*")
    return parser.parse_args()


def run_tests(tests, wanted, skipped):
    """Runs those of @tests (a module's names) that are @wanted, or all, but not those @skipped. The exit status."""
    known = [name for name in tests if name.startswith("test_")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"there is no test {unknown[0]}")
    failed = False
    for name in known:
        if (wanted and name not in wanted) or name in skipped:
            continue
        begin = time.monotonic()
        try:
            tests[name]()
            print(f"ok {name}", flush=True)
        except Exception as failure:  # also a broken test is a failed one
            where = traceback.format_exc().replace("\n", " | ") if not isinstance(failure, Failure) else failure
            print(f"not ok {name}: {where}", flush=True)
            failed = True
        print(f"     {name} took {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return 1 if failed else 0


def main():
    options = read_options(__doc__)
    Relay.program = str(options.build.resolve() / "libexec/mvagent/mvagent-relay")
    return run_tests(globals(), options.tests, {"test_jail", "test_slow_reader"} if options.sanitized else set())


if __name__ == "__main__":
    sys.exit(main())
