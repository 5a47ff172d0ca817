#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that speak HTTP/2 with each other through mvagent-relay and mvagent-secret: nghttpd, nghttp, h2load and
curl. What they say comes to 127.0.0.1 in the place of the guest.

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test.
"""

import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian has gRPC's, for a python3 that is not Debian's

import secret_driver
from relay_driver import CONNECTED, LIMIT, expect, expect_equal
from secret_driver import HOST, PLACE, VALUE, Run

MUCH = int(os.environ.get("MVAGENT_HTTP2_MIB", "256")) << 20  # each way


class Door:
    """Listens on loopback; each connection goes on through the relay, as one of the guest's would."""

    def __init__(self, run):
        self.run, self.listener = run, socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port, self.over = self.listener.getsockname()[1], False
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                made, _ = self.listener.accept()
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as vsock is
                threading.Thread(target=self.carry, args=(made,), daemon=True).start()

    def carry(self, made):
        with made, contextlib.suppress(OSError):
            with self.run.lock:
                inner = self.run.relay.request(HOST, self.run.port)
            with inner:
                if inner.recv(1) != bytes([CONNECTED]):
                    return
                back = threading.Thread(target=pump, args=(inner, made), daemon=True)
                back.start()
                pump(made, inner)
                back.join()


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def nghttpd(directory, *words):
    """A server with files. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    Run.authority.context()
    place = Run.authority.place
    process = subprocess.Popen(["nghttpd", "-a", "127.0.0.1", "-d", str(directory), "--echo-upload", *words, str(port),
                                f"{place}/{HOST}-2-False.key", f"{place}/{HOST}-2-False.pem"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port, process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def everything(*words):
    """A server, the two processes, a door, and a file with the authority for clients."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        (place / "files").mkdir()
        with nghttpd(place / "files", *words) as (port, _), Run(port) as run, Door(run) as door:
            (place / "authority.pem").write_text(run.certificate)
            yield place, run, door


def curl(place, run, door, *words, path="/"):
    made = subprocess.run(["curl", "-sS", "--http2", "--cacert", str(place / "authority.pem"), "--connect-to", f"{HOST}:{run.port}:127.0.0.1:{door.port}",
                           "-w", "%{stderr}%{http_version} %{http_code} %{size_download} %{size_upload}", *words, f"https://{HOST}:{run.port}{path}"],
                          capture_output=True, timeout=300, check=False)
    expect_equal(made.returncode, 0, f"curl: {made.stderr.decode()}")
    return made.stdout, made.stderr.decode().split()


def test_curl():
    with everything() as (place, run, door):
        (place / "files/hello").write_bytes(b"hello " + VALUE.encode())
        body, told = curl(place, run, door, "-H", f"Authorization: Bearer {PLACE}", path="/hello")
        expect_equal((body, told[:2]), (b"hello " + PLACE.encode(), ["2", "200"]))
        body, told = curl(place, run, door, "--data-binary", "x" * 100_000, path="/any")
        expect_equal((body, told[:2]), (b"x" * 100_000, ["2", "200"]))
        body, told = curl(place, run, door, "--data-binary", PLACE, path="/any")
        expect(told[:2] == ["2", "403"] and b"no header" in body, f"{told}: {body}")


def write_much(path):
    digest = hashlib.sha256()
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for number in range(MUCH >> 20):
            part = number.to_bytes(4, "big") + block[4:]
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_much_each_way():
    with everything("-w", "20", "-W", "20") as (place, run, door):
        wanted = write_much(place / "files/much")
        begin = time.monotonic()
        _, told = curl(place, run, door, "-o", str(place / "got"), path="/much")
        down = time.monotonic() - begin
        expect_equal((told[:3], digest_of(place / "got")), (["2", "200", str(MUCH)], wanted), "down")
        begin = time.monotonic()
        _, told = curl(place, run, door, "-o", str(place / "got"), "-T", str(place / "files/much"), path="/any")
        both = time.monotonic() - begin
        expect_equal((told[:4], digest_of(place / "got")), (["2", "200", str(MUCH), str(MUCH)], wanted), "up, and down again")
        print(f"     {MUCH >> 20} MiB: down {down:.1f} s, up and down {both:.1f} s", file=sys.stderr)


def test_h2load():
    """100 streams at once in each of four connections, 4,000 requests with the secret in them."""
    with everything() as (place, run, door):
        (place / "files/small").write_bytes(VALUE.encode() * 20)
        made = subprocess.run(["h2load", "-n", "4000", "-c", "4", "-m", "100", "-H", f"authorization: Bearer {PLACE}", "--connect-to", f"127.0.0.1:{door.port}",
                               f"https://{HOST}:{run.port}/small"], capture_output=True, text=True, timeout=120, check=True).stdout
        expect("4000 total, 4000 started, 4000 done, 4000 succeeded, 0 failed, 0 errored" in made and "h2" in made, made)


def test_nghttp():
    """Trailers, several requests, padding and windows of its own."""
    with everything("--trailer", "x-sum: 1", "-b", "255") as (place, run, door):
        (place / "files/page").write_bytes(b"page " * 1000)
        with subprocess.Popen(["nghttp", "-nv", "-b", "100", "-w", "10", "-W", "12", "-m", "20", "-H", f"x-key: {PLACE}", "--no-verify-peer", f"https://127.0.0.1:{door.port}/page",
                               "-H", f":authority: {HOST}"], stdout=subprocess.PIPE, text=True) as process:
            made = process.communicate(timeout=LIMIT)[0]
        expect_equal(len(re.findall(r":status: 200", made)), 20, made[-3000:])
        expect("x-sum: 1" in made, "the trailer")


def test_grpc():
    """Calls of each kind by gRPC's own client and server, with the secret in their metadata; and one whose message has it."""
    import grpc  # it starts threads
    key = f"{Run.authority.place}/{HOST}-2-False"
    told = []

    def one(request, context):
        told.append(dict(context.invocation_metadata())["x-key"])
        context.set_trailing_metadata((("x-said", VALUE),))
        return request + b" " + VALUE.encode()

    def fail(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "none " + VALUE)

    def both(requests, context):
        for request in requests:
            yield request + b"!"

    methods = {"One": grpc.unary_unary_rpc_method_handler(one), "Fail": grpc.unary_unary_rpc_method_handler(fail), "Both": grpc.stream_stream_rpc_method_handler(both)}
    Run.authority.context()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", methods),))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pathlib.Path(key + ".key").read_bytes(), pathlib.Path(key + ".pem").read_bytes())]))
    server.start()
    with Run(port) as run, Door(run) as door:
        credentials = grpc.ssl_channel_credentials(run.certificate.encode())
        options = (("grpc.ssl_target_name_override", HOST), ("grpc.default_authority", f"{HOST}:{port}"))
        with grpc.secure_channel(f"127.0.0.1:{door.port}", credentials, options) as channel:
            answer, call = channel.unary_unary("/Test/One").with_call(b"hello", metadata=(("x-key", PLACE),), timeout=LIMIT)
            expect_equal((answer, dict(call.trailing_metadata())["x-said"], told), (b"hello " + PLACE.encode(), PLACE, [VALUE]))
            expect_equal(channel.unary_unary("/Test/One")(b"x" * 3_000_000, metadata=(("x-key", PLACE),), timeout=LIMIT)[:3], b"xxx")
            expect_equal(list(channel.stream_stream("/Test/Both")(iter([b"%d" % i for i in range(200)]), timeout=LIMIT)), [b"%d!" % i for i in range(200)])
            for method, message, code in (("Fail", b"x", grpc.StatusCode.NOT_FOUND), ("One", PLACE.encode(), grpc.StatusCode.PERMISSION_DENIED)):
                try:
                    channel.unary_unary(f"/Test/{method}")(message, metadata=(("x-key", PLACE),), timeout=LIMIT)
                    raise AssertionError("it succeeded")
                except grpc.RpcError as error:
                    expect(error.code() == code and VALUE not in error.details(), f"{method}: {error.code()} {error.details()}")
                    expect(("no header, where no secret is put" if method == "One" else "none " + PLACE) in error.details(), error.details())
    server.stop(None)


if __name__ == "__main__":
    sys.exit(secret_driver.main(globals()))
