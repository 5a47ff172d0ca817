# SPDX-License-Identifier: Apache-2.0
"""Both ends of HTTP/2 for the tests of mvagent-secret, with python3-h2, which here checks nothing of what it is told to
send; and frames by hand for what it cannot say."""

import contextlib
import sys
import time

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian has them, for a python3 that is not Debian's

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack

import secret_driver
from relay_driver import LIMIT, Failure, expect
from secret_driver import HOST, Run, Secure

WINDOW = 1 << 24  # what our ends may be sent at once

# Types and flags of frames: RFC 9113, 6.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Stream:
    """What has come in one stream."""

    def __init__(self):
        self.interim, self.headers, self.trailers, self.body, self.ended, self.reset = [], None, None, b"", False, None

    def field(self, name):
        return dict(self.headers or {}).get(name.encode())

    @property
    def status(self):
        return int(self.field(":status") or 0)


class Peer:
    """One end of a connection. @reads: what comes is taken, so that more may come."""

    def __init__(self, plain, client, reads=True, window=WINDOW, settings=None):
        self.plain, self.reads, self.client = plain, reads, client
        self.streams, self.goaway, self.over, self.pings, self.agreed = {}, None, False, 0, False
        config = h2.config.H2Configuration(client_side=client, header_encoding=None, validate_outbound_headers=False,
                                           normalize_outbound_headers=False, validate_inbound_headers=False,
                                           normalize_inbound_headers=False)
        self.h2 = h2.connection.H2Connection(config=config)
        codes = h2.settings.SettingCodes
        wanted = {codes.INITIAL_WINDOW_SIZE: window, codes.MAX_CONCURRENT_STREAMS: 100, **({codes.ENABLE_PUSH: 0} if client else {})}
        self.h2.local_settings = h2.settings.Settings(client=client, initial_values={**wanted, **(settings or {})})
        self.h2.initiate_connection()
        if window > 65535:
            self.h2.increment_flow_control_window(window - 65535)
        self.flush()

    def flush(self):
        if data := self.h2.data_to_send():
            self.plain.sendall(data)

    def step(self):
        """Takes what comes next. Whether there was anything."""
        with contextlib.suppress(OSError):
            if data := self.plain.recv(1 << 18):
                for event in self.h2.receive_data(data):
                    self.note(event)
                with contextlib.suppress(OSError):
                    self.flush()
                return True
        self.over = True
        return False

    def note(self, event):
        events = h2.events
        stream = self.streams.setdefault(event.stream_id, Stream()) if getattr(event, "stream_id", None) else None
        if isinstance(event, events.InformationalResponseReceived):
            stream.interim.append(event.headers)
        elif isinstance(event, (events.ResponseReceived, events.RequestReceived)):
            stream.headers = event.headers
        elif isinstance(event, events.TrailersReceived):
            stream.trailers = event.headers
        elif isinstance(event, events.DataReceived):
            stream.body += event.data
            if self.reads and event.flow_controlled_length:
                with contextlib.suppress(h2.exceptions.StreamClosedError):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, events.StreamEnded):
            stream.ended = True
            self.ended(event.stream_id, stream)
        elif isinstance(event, events.StreamReset):
            stream.reset = event.error_code
        elif isinstance(event, events.ConnectionTerminated):
            self.goaway = event.error_code
            # h2 takes it for the end of all streams.
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        elif isinstance(event, events.SettingsAcknowledged):
            self.agreed = True
        elif isinstance(event, events.PingAckReceived):
            self.pings += 1

    def ended(self, number, stream):
        """The other end has said all of it."""

    def headers(self, number, fields, end=False):
        self.h2.send_headers(number, fields, end_stream=end)
        self.flush()

    def data(self, number, body, end=False):
        """All of @body, as the other end takes it. Whether it took all."""
        at = 0
        while at < len(body):
            stream = self.streams.get(number)
            if self.over or (stream and stream.reset is not None):
                return False
            try:
                room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, len(body) - at)
                if room <= 0:
                    self.step()
                    continue
                self.h2.send_data(number, body[at:at + room])
            except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError):
                return False
            self.flush()
            at += room
        if end:
            self.h2.end_stream(number)
            self.flush()
        return True

    def wait(self, done):
        end = time.monotonic() + LIMIT
        while not done() and not self.over:
            if time.monotonic() > end:
                raise Failure("nothing more comes")
            self.step()

    def begin(self, *fields, method="GET", path="/", authority=HOST, end=True, pseudo=None):
        """A request's head. Its stream's number."""
        number = self.h2.get_next_available_stream_id()
        parts = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)] if pseudo is None else pseudo
        self.headers(number, [(as_bytes(name), as_bytes(value)) for name, value in (*parts, *fields)], end)
        self.streams.setdefault(number, Stream())
        return number

    def finish(self, number):
        stream = self.streams[number]
        self.wait(lambda: stream.ended or stream.reset is not None)
        return stream

    def ask(self, *fields, body=None, trailers=None, **named):
        """A request; what came for it."""
        number = self.begin(*fields, end=body is None and trailers is None, **named)
        if body is not None:
            self.data(number, body, end=trailers is None)
        if trailers is not None:
            self.headers(number, trailers, end=True)
        return self.finish(number)


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


class Answering(Peer):
    """A server's end. @answer(self, number, stream) once a request is complete."""

    def __init__(self, server, plain, answer, **named):
        super().__init__(plain, False, **named)
        self.server, self.answer = server, answer

    def ended(self, number, stream):
        self.server.heads.append(dict(stream.headers))
        self.server.bodies.append(stream.body)
        self.answer(self, number, stream)

    def say(self, number, body, *fields, status="200", end=True):
        self.headers(number, [(b":status", status.encode()), *fields])
        self.data(number, body, end=end)


def echo(peer, number, stream):
    """All that was said, again."""
    said = b"\n".join(name + b": " + value for name, value in stream.headers) + b"|" + stream.body
    if stream.trailers:
        said += b"|" + b"\n".join(name + b": " + value for name, value in stream.trailers)
    peer.say(number, said, (b"content-length", b"%d" % len(said)), *[field for field in stream.headers if field[0] == b"x-back"])


class Server(Secure):
    """Speaks HTTP/2 if it is asked to, and else HTTP/1.1 (secret_driver.simple)."""

    def __init__(self, answer=echo, begin=None, protocols=("h2", "http/1.1"), **named):
        self.answers, self.begin, self.named, self.peers, self.failures = answer, begin, named, [], []
        context = Run.authority.context()
        context.set_alpn_protocols(list(protocols))
        super().__init__(context, Server.converse)

    def converse(self, plain):
        if plain.selected_alpn_protocol() != "h2":
            secret_driver.simple(self, plain)
            return
        plain.settimeout(LIMIT)
        peer = Answering(self, plain, self.answers, **self.named)
        self.peers.append(peer)
        if self.begin:
            self.begin(peer)
        try:
            while peer.step():
                pass
        except h2.exceptions.ProtocolError as error:
            self.failures.append(error)


@contextlib.contextmanager
def serve(answer=echo, *more, begin=None, protocols=("h2", "http/1.1"), named=None, **run_named):
    with Server(answer, begin, protocols, **(named or {})) as server, Run(server.port, *more, **run_named) as run:
        yield server, run
    expect(not server.failures, f"what the server thinks of mvagent-secret: {server.failures}")


@contextlib.contextmanager
def guest(run, **named):
    """The guest's end of a connection."""
    with run.connect(protocols=["h2", "http/1.1"]) as made:
        expect(made.selected_alpn_protocol() == "h2", f"the protocol is {made.selected_alpn_protocol()}")
        made.settimeout(LIMIT)
        peer = Peer(made, True, **named)
        peer.wait(lambda: peer.agreed)
        yield peer


def head_block(*fields, path="/", method="GET", authority=HOST):
    """A head as it is in frames, packed."""
    parts = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path), *fields]
    return hpack.Encoder().encode([(as_bytes(name), as_bytes(value)) for name, value in parts])
