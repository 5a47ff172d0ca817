# SPDX-License-Identifier: Apache-2.0
"""The client of tools/bench/network: HOST PORT HTTPS-PORT MEBIBYTES [AUTHORITY [KEY]]. Prints "ROW name value" for each row.

Without AUTHORITY it trusts whom its environment names; the key is $API_KEY unless it is given.
"""

import os
import socket
import ssl
import statistics
import sys
import time

host, port, https, mebibytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
context = ssl.create_default_context(cafile=sys.argv[5] if len(sys.argv) > 5 else None)
key = sys.argv[6] if len(sys.argv) > 6 else os.environ["API_KEY"]
BLOCK = bytes(1 << 18)


def connect(number=port):
    made = socket.create_connection((host, number), timeout=120)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def seconds(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def show(name, value):
    print("ROW", name, value, flush=True)


def microseconds(work, count):
    return statistics.median(seconds(work) for _ in range(count)) * 1e6


def upload():
    with connect() as made:
        made.sendall(b"U")
        for _ in range(mebibytes * 4):
            made.sendall(BLOCK)
        made.shutdown(socket.SHUT_WR)
        assert made.recv(1) == b"k"


def take(made, length):
    while length > 0:
        got = len(made.recv(min(length, 1 << 20)))
        assert got
        length -= got


def download():
    with connect() as made:
        made.sendall(b"D")
        take(made, mebibytes << 20)


def one_byte(made):
    made.sendall(b"x")
    assert made.recv(1) == b"x"


def connection():
    with connect() as made:
        made.sendall(b"P")
        one_byte(made)


def request(made, path):
    made.sendall(f"GET /{path} HTTP/1.1\r\nHost: api.test:{https}\r\nx-api-key: {key}\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        more = made.recv(65536)
        assert more
        answer += more
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), answer
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" in fields:
        take(made, int(fields[b"content-length"]) - len(rest))
        return
    while not rest.endswith(b"0\r\n\r\n"):  # in chunks, of zeros
        more = made.recv(1 << 20)
        assert more
        rest = rest[-8:] + more


show("upload", mebibytes / seconds(upload))
show("download", mebibytes / seconds(download))
with connect() as echo:
    echo.sendall(b"P")
    one_byte(echo)
    show("round trip", microseconds(lambda: one_byte(echo), 200))
show("connection", microseconds(connection, 50))
with context.wrap_socket(connect(https), server_hostname="api.test") as stream:
    request(stream, "small")
    show("https download", mebibytes / seconds(lambda: request(stream, "large")))
    show("https request", microseconds(lambda: request(stream, "small"), 100))
