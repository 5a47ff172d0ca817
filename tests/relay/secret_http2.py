#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 through mvagent-relay and mvagent-secret, with real TLS, on this host's loopback: what works.

Prints "ok NAME" or "not ok NAME: why" for each test.
"""

import base64
import os
import sys
import time

import secret_driver
from http2_peer import GOAWAY, Server, echo, frame, guest, h2, serve
from relay_driver import EVENT_FAILED, EVENT_MASKED, EVENT_SECRET, expect, expect_equal
from secret_driver import HOST, PLACE, VALUE, Run, exchange, head


def bearer(text=PLACE):
    return ("authorization", "Bearer " + text)


def test_secret_in_a_header():
    with serve() as (server, run):
        with guest(run) as peer:
            for name, value in (("authorization", "Bearer %s"), ("x-api-key", "%s"), ("cookie", "k=%s")):
                stream = peer.ask(("cookie", "a=b"), (name, value % PLACE))
                expect_equal(server.heads[-1][name.encode()], (value % VALUE).encode(), "what the server got")
                expect_equal(stream.status, 200, "status")
                expect((value % PLACE).encode() in stream.body and VALUE.encode() not in stream.body, f"the guest got {stream.body}")
            stream = peer.ask(("x-back", PLACE))
            expect_equal(stream.field("x-back"), PLACE.encode(), "a field that comes back")
            expect_equal(server.heads[-1][b"x-back"], VALUE.encode(), "the field that the server got")
        expect_equal(run.event(), (EVENT_SECRET, HOST, run.port, 4, 0, "API_KEY"))
        # Thrice in a body, once in a head and in the body with it.
        expect_equal(run.event(), (EVENT_MASKED, HOST, run.port, 0, 5, "API_KEY"))
        expect_equal(server.protocols, ["h2"], "protocol with the server")


def test_basic():
    with serve() as (server, run), guest(run) as peer:
        for user in (b"user:", b"x:", b"", b"longer-user-name:"):
            peer.ask(("authorization", b"Basic " + base64.b64encode(user + PLACE.encode())))
            expect_equal(server.heads[-1][b"authorization"], b"Basic " + base64.b64encode(user + VALUE.encode()))


def test_which_http():
    """HTTP/2 if both speak it; HTTP/1.1 otherwise; or nothing, and the user learns why."""
    cases = ((["h2", "http/1.1"], ["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], ["h2"], "h2"), (["h2", "http/1.1"], ["http/1.1"], "http/1.1"),
             (["http/1.1"], ["h2", "http/1.1"], "http/1.1"), (None, ["h2", "http/1.1"], None), (["h2"], ["http/1.1"], "fails"))
    for ours, theirs, agreed in cases:
        with Server(protocols=theirs) as server, Run(server.port) as run:
            if agreed == "fails":
                try:
                    with run.connect(protocols=ours):
                        raise AssertionError("it was agreed to")
                except OSError:
                    pass
                event = run.event()
                expect(event[0] == EVENT_FAILED and "not the HTTP that the server speaks" in event[5], f"{event}")
                continue
            with run.connect(protocols=ours) as made:
                expect_equal(made.selected_alpn_protocol(), agreed, f"guest {ours}, server {theirs}")
                if agreed != "h2":
                    expect(VALUE.encode() not in exchange(made, head(b"x: " + PLACE.encode())), "HTTP/1.1 works")
            end = time.monotonic() + 10  # its end of the handshake may be the last
            while not server.protocols and time.monotonic() < end:
                time.sleep(0.01)
            expect_equal([name or "http/1.1" for name in server.protocols], [agreed or "http/1.1"], "with the server")


def test_bodies_and_trailers():
    sent = os.urandom(3_000_000)

    def answer(peer, number, stream):
        peer.headers(number, [(b":status", b"200")])
        peer.data(number, stream.body)
        peer.headers(number, [(b"grpc-status", b"0"), (b"x-echo", dict(stream.trailers)[b"x-sum"])], end=True)

    with serve(answer) as (server, run), guest(run) as peer:
        stream = peer.ask(("te", "trailers"), body=sent, trailers=[(b"x-sum", b"1")], method="POST")
        expect(stream.body == sent and server.bodies == [sent], "the body")
        expect_equal(server.heads[-1][b"te"], b"trailers")
        expect_equal(stream.trailers, [(b"grpc-status", b"0"), (b"x-echo", b"1")], "the trailer")
        # A body of no bytes with a trailer, and the other way round.
        stream = peer.ask(trailers=[(b"x-sum", b"2")], method="POST")
        expect_equal((stream.body, dict(stream.trailers)[b"x-echo"]), (b"", b"2"))


def test_grpc():
    """A call whose answer is a head alone; and one that goes both ways while it lasts."""
    def answer(peer, number, stream):
        if stream.headers and dict(stream.headers)[b":path"] == b"/s/Only":
            peer.headers(number, [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-status", b"7")], end=True)

    def begin(peer):
        note = peer.note

        def both_ways(event):
            note(event)
            stream = peer.streams.get(getattr(event, "stream_id", 0) or 0)
            if type(event).__name__ == "RequestReceived" and dict(stream.headers)[b":path"] == b"/s/Both":
                peer.headers(event.stream_id, [(b":status", b"200"), (b"content-type", b"application/grpc")])
            elif type(event).__name__ == "DataReceived" and dict(stream.headers)[b":path"] == b"/s/Both":
                peer.data(event.stream_id, event.data)
            elif type(event).__name__ == "StreamEnded" and dict(stream.headers)[b":path"] == b"/s/Both":
                peer.headers(event.stream_id, [(b"grpc-status", b"0")], end=True)

        peer.note = both_ways

    with serve(answer, begin=begin) as (server, run), guest(run) as peer:
        fields = (("content-type", "application/grpc"), ("te", "trailers"), ("grpc-accept-encoding", "identity,deflate,gzip"), bearer())
        stream = peer.ask(*fields, method="POST", path="/s/Only", body=b"\0\0\0\0\0")
        expect_equal((stream.status, stream.field("grpc-status"), stream.body), (200, b"7", b""))
        expect_equal(server.heads[-1][b"grpc-accept-encoding"], b"identity", "nothing packed is asked for")
        number = peer.begin(*fields, method="POST", path="/s/Both", end=False)
        for message in (b"\0\0\0\0\x01x", b"\0\0\0\0\x03abc"):
            before = len(peer.streams[number].body)
            peer.data(number, message)
            peer.wait(lambda before=before, message=message: len(peer.streams[number].body) == before + len(message))
        peer.h2.end_stream(number)
        peer.flush()
        stream = peer.finish(number)
        expect_equal((stream.body, dict(stream.trailers)), (b"\0\0\0\0\x01x\0\0\0\0\x03abc", {b"grpc-status": b"0"}))


def test_interim_answers():
    """100 and 103 before the final one; the body only after the first of them."""
    def begin(peer):
        note = peer.note

        def early(event):
            note(event)
            if type(event).__name__ == "RequestReceived":
                peer.headers(event.stream_id, [(b":status", b"100")])
                peer.headers(event.stream_id, [(b":status", b"103"), (b"link", VALUE.encode())])

        peer.note = early

    with serve(begin=begin) as (server, run), guest(run) as peer:
        number = peer.begin(("expect", "100-continue"), bearer(), method="POST", end=False)
        stream = peer.streams[number]
        peer.wait(lambda: len(stream.interim) == 2)
        expect_equal(stream.interim, [[(b":status", b"100")], [(b":status", b"103"), (b"link", PLACE.encode())]])
        expect_equal(server.bodies, [], "bodies before it was asked for")
        peer.data(number, b"the body", end=True)
        expect_equal((peer.finish(number).status, server.bodies), (200, [b"the body"]))


def test_answers_without_bodies():
    def answer(peer, number, stream):
        status, fields = {b"/head": (b"200", [(b"content-length", b"1000")]), b"/none": (b"204", []),
                          b"/same": (b"304", [(b"content-length", b"77")]), b"/empty": (b"200", [])}[dict(stream.headers)[b":path"]]
        peer.headers(number, [(b":status", status), *fields], end=True)

    with serve(answer) as (_, run), guest(run) as peer:
        for method, path, status in (("HEAD", "/head", 200), ("GET", "/none", 204), ("GET", "/same", 304), ("DELETE", "/empty", 200)):
            stream = peer.ask(method=method, path=path)
            expect_equal((stream.status, stream.body, stream.reset), (status, b"", None), path)


def test_masking_across_frames():
    """A secret in a body cut at every place, in a field and in a trailer; what only begins like one comes through in time."""
    value = VALUE.encode()

    def answer(peer, number, stream):
        peer.headers(number, [(b":status", b"200"), (b"x-key", value)])
        for cut in range(0, len(value) + 1, 7):
            peer.data(number, b"[" + value[:cut])
            time.sleep(0.002)
            peer.data(number, value[cut:] + b"]")
        peer.data(number, b"data: sk-")
        time.sleep(0.5)
        peer.data(number, b"x" + value[:30])
        time.sleep(0.3)
        peer.data(number, value[30:])
        peer.headers(number, [(b"x-key", b"<" + value + b">")], end=True)

    with serve(answer) as (_, run), guest(run) as peer:
        number = peer.begin()
        stream = peer.streams[number]
        peer.wait(lambda: stream.body.endswith(b"data: sk-"))
        peer.finish(number)
        times = len(range(0, len(value) + 1, 7))
        expect_equal(stream.body, (b"[" + PLACE.encode() + b"]") * times + b"data: sk-x" + PLACE.encode())
        expect_equal((stream.field("x-key"), stream.trailers), (PLACE.encode(), [(b"x-key", b"<" + PLACE.encode() + b">")]))
    with serve(lambda peer, number, stream: peer.say(number, value[:40])) as (_, run), guest(run) as peer:
        expect(value[:40] not in peer.ask().body, "most of a secret, and then the end")


def test_two_answers_at_once():
    """What one stream holds back is not mixed up with another's."""
    value = VALUE.encode()

    def begin(peer):
        peer.wait(lambda: len(peer.server.heads) == 2)
        numbers = sorted(peer.streams)
        for number in numbers:
            peer.headers(number, [(b":status", b"200")])
        for at in range(len(value)):
            for number in numbers:
                peer.data(number, value[at:at + 1])
        for number in numbers:
            peer.data(number, b"-%d" % number, end=True)

    with serve(lambda peer, number, stream: None, begin=begin) as (_, run), guest(run) as peer:
        numbers = [peer.begin(), peer.begin()]
        for number in numbers:
            expect_equal(peer.finish(number).body, PLACE.encode() + b"-%d" % number)


def test_nothing_packed_is_asked_for():
    with serve() as (server, run), guest(run) as peer:
        peer.ask(("accept-encoding", "gzip, br"), ("a-im", "gzip"), ("te", "trailers"))
        told = server.heads[-1]
        expect_equal((told[b"accept-encoding"], told[b"a-im"], told[b"te"]), (b"", b"", b"trailers"))


def test_many_streams():
    """100 at once, thrice: each gets its own answer."""
    with serve() as (server, run), guest(run) as peer:
        for turn in range(3):
            numbers = {peer.begin(("x-number", f"{turn}-{i}"), bearer(), method="POST", end=False): i for i in range(100)}
            for number, i in numbers.items():
                peer.data(number, b"body %d" % i, end=True)
            for number, i in numbers.items():
                stream = peer.finish(number)
                expect(b"x-number: %d-%d\n" % (turn, i) in stream.body and stream.body.endswith(b"|body %d" % i), f"{stream.body}")
                expect(VALUE.encode() not in stream.body and PLACE.encode() in stream.body, "masked")
        expect_equal(len(server.heads), 300, "requests to the server")


def test_resets():
    """An end that one side puts to a stream reaches the other."""
    def answer(peer, number, stream):
        path = dict(stream.headers)[b":path"]
        if path == b"/refuse":
            peer.h2.reset_stream(number, h2.errors.ErrorCodes.REFUSED_STREAM)
        elif path == b"/half":
            peer.say(number, b"half", end=False)
            peer.h2.reset_stream(number, h2.errors.ErrorCodes.INTERNAL_ERROR)
        elif path == b"/early":
            peer.say(number, b"no")
        peer.flush()

    with serve(answer) as (server, run), guest(run) as peer:
        expect_equal(peer.ask(path="/refuse").reset, h2.errors.ErrorCodes.REFUSED_STREAM)
        expect_equal(peer.ask(path="/half").reset, h2.errors.ErrorCodes.INTERNAL_ERROR)
        number = peer.begin(method="POST", path="/wait", end=False)
        expect_equal(peer.ask(path="/early").body, b"no")
        peer.h2.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
        peer.flush()
        end = time.monotonic() + 10
        theirs = server.peers[0]
        while time.monotonic() < end and not any(stream.reset is not None for stream in theirs.streams.values()):
            time.sleep(0.01)
        expect_equal([stream.reset for stream in theirs.streams.values() if stream.reset is not None], [h2.errors.ErrorCodes.CANCEL])


def test_an_answer_before_the_end_of_a_request():
    """A server that has heard enough: its whole answer comes, and the upload may stop."""
    def begin(peer):
        peer.wait(lambda: any(stream.body for stream in peer.streams.values()))
        number = next(iter(peer.streams))
        peer.say(number, b"too much", status="413")
        peer.h2.reset_stream(number, h2.errors.ErrorCodes.NO_ERROR)
        peer.flush()

    with serve(begin=begin) as (_, run), guest(run) as peer:
        number = peer.begin(method="POST", end=False)
        peer.data(number, b"x" * 10_000_000)
        stream = peer.finish(number)
        peer.wait(lambda: stream.reset is not None)
        expect_equal((stream.status, stream.body, stream.reset), (413, b"too much", h2.errors.ErrorCodes.NO_ERROR))
        expect_equal(peer.ask(path="/next", body=b"").status, 200, "the next one")


def test_ends():
    """A server that goes, in its time or at once."""
    def leave(peer, number, stream):
        peer.plain.sendall(frame(GOAWAY, payload=number.to_bytes(4, "big") + bytes(4)))
        peer.say(number, b"the last")

    with serve(leave) as (_, run), guest(run) as peer:
        expect_equal(peer.ask().body, b"the last")
        peer.wait(lambda: peer.goaway is not None)
        expect_equal(peer.goaway, 0, "GOAWAY")
    with serve(lambda peer, number, stream: peer.plain.close()) as (_, run), guest(run) as peer:
        stream = peer.ask()
        expect_equal((stream.status, stream.reset), (0, h2.errors.ErrorCodes.INTERNAL_ERROR))
        peer.wait(lambda: peer.over)
    with serve(lambda peer, number, stream: (peer.say(number, b"half", end=False), peer.plain.close())) as (_, run), guest(run) as peer:
        expect_equal(peer.ask().reset, h2.errors.ErrorCodes.INTERNAL_ERROR)


def test_pings_and_windows_that_change():
    """Each side is answered by mvagent-secret; a window that shrinks and grows is kept to."""
    def answer(peer, number, stream):
        peer.h2.ping(b"12345678")
        peer.say(number, b"x" * 200_000)

    with serve(answer) as (server, run), guest(run) as peer:
        peer.h2.ping(b"abcdefgh")
        peer.flush()
        for window in (1000, 100, 70_000):
            peer.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
            peer.agreed = False
            peer.flush()
            peer.wait(lambda: peer.agreed)
            number = peer.begin()
            expect_equal(len(peer.finish(number).body), 200_000, f"all of it, by a window of {window}")
        expect_equal((peer.pings, server.peers[0].pings), (1, 3), "answers to PING")


def test_slow_readers():
    """One that takes nothing holds up neither the other streams nor much memory."""
    data = os.urandom(1 << 20)

    def answer(peer, number, stream):
        if dict(stream.headers)[b":path"] == b"/big":
            peer.headers(number, [(b":status", b"200")])
            peer.big = number
            peer.data(number, data[:200_000])
        else:
            echo(peer, number, stream)

    with serve(answer) as (_, run), guest(run, window=1000) as peer:
        peer.reads = False
        for _ in range(3):
            peer.begin(path="/big")
        peer.reads = True
        expect_equal(peer.ask(path="/small").status, 200, "a small one beside")
        with open(f"/proc/{run.process.pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        expect(resident < 40000, f"{resident} KiB in memory")


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
