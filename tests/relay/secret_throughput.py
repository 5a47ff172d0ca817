#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a body comes through mvagent-relay and mvagent-secret, in HTTP/1.1 and in HTTP/2, against a plain connection.

    tests/relay/secret_throughput.py [--build BUILD] [MIB [TIMES]]

curl takes the same file in turns: from a server in the clear by loopback, from one by TLS, and by TLS through the two
processes (and a program in the place of vsock, which both pass). Prints the median of each in MiB/s, and its part of the
plain one. Nothing else should run on the machine.
"""

import argparse
import contextlib
import http.server
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import secret_driver
import secret_http2_peers
from relay_driver import Relay
from secret_driver import HOST, PLACE, Run


class Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def http1(directory, context):
    """A server of HTTP/1.1: its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Files(*words, directory=str(directory)))
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def fetch(url, *words):
    """How many seconds it takes."""
    begin = time.monotonic()
    subprocess.run(["curl", "-sS", "-f", "-o", "/dev/null", "-H", f"authorization: Bearer {PLACE}", *words, url], check=True)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("mib", nargs="?", type=int, default=256)
    parser.add_argument("times", nargs="?", type=int, default=5)
    options = parser.parse_args()
    place = options.build.resolve() / "libexec/mvagent"
    Relay.program, Run.program = str(place / "mvagent-relay"), str(place / "mvagent-secret")
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as all_of_it:
        files = pathlib.Path(directory)
        Run.authority = secret_driver.Authority(directory)
        context = Run.authority.context()
        (files / "much").write_bytes(os.urandom(1 << 20) * options.mib)
        enter = all_of_it.enter_context
        plain = enter(http1(files, None))
        first = enter(http1(files, context))
        second, _ = enter(secret_http2_peers.nghttpd(files, "-w", "20", "-W", "20"))
        ways = {"plain": (f"http://127.0.0.1:{plain}/much",),
                "HTTP/1.1 by TLS": (f"https://127.0.0.1:{first}/much", "-k", "--http1.1"),
                "HTTP/2 by TLS": (f"https://127.0.0.1:{second}/much", "-k", "--http2")}
        for name, port, protocol in (("HTTP/1.1 with a secret", first, "--http1.1"), ("HTTP/2 with a secret", second, "--http2")):
            run = enter(Run(port))
            door = enter(secret_http2_peers.Door(run))
            ways[name] = (f"https://{HOST}:{port}/much", "-k", protocol, "--connect-to", f"{HOST}:{port}:127.0.0.1:{door.port}")
        taken = {name: [] for name in ways}
        for _ in range(options.times):
            for name, words in ways.items():
                taken[name].append(fetch(*words))
        base = statistics.median(taken["plain"])
        for name, seconds in taken.items():
            middle = statistics.median(seconds)
            print(f"{name:24} {options.mib / middle:7.0f} MiB/s {base / middle:6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
