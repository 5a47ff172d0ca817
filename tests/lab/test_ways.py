# SPDX-License-Identifier: Apache-2.0
"""Hosts that are allowed, from inside a real guest: programs reach them by name without being told how, and nothing else.
All peers are on this host's loopback: a name server, servers with and without TLS, a proxy; their address is allowed as such."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading

import harness
import inject
from harness import directory, expect, expect_equal, expect_in, run_json

sys.path.insert(0, str(harness.CHECKOUT / "tests/relay"))
from relay_driver import Names, Proxy, Server, echo, read_all  # noqa: E402


def ways(names, *allowed):
    """Options: these hosts, found by this name server."""
    options = ["--resolver", names.setting[1]]
    for host in allowed:
        options += ["--allow", host]
    return options


def python(program, *arguments):
    return ["--", "python3", "-c", program, *map(str, arguments)]


CLIENT = r"""
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as s:
    s.sendall(b'hello')
    peer = s.getpeername()[0]  # not once it has hung up
    s.shutdown(socket.SHUT_WR)
    print(s.recv(100).decode(), peer)
"""


def test_a_name_that_is_allowed():
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names:
        result, outcome = run_json(*ways(names, f"api.test:{server.port}", f"127.0.0.1:{server.port}"),
                                   *python(CLIENT, "API.test", server.port))
        expect_equal(result.status, 0, result.err[-600:])
        word, address = result.out.split()
        expect_equal(word, "hello")
        expect(address.startswith("127.77."), f"the name's address in the guest is {address}")
        expect_equal(result.err, "", "what the user is told")
        way = outcome["network"]["reached"][0]
        expect_equal((way["host"], way["port"], way["connections"], way["bytes_sent"], way["bytes_received"]),
                     ("api.test", server.port, 1, 5, 5), "the report")


TRY = r"""
import socket, sys
for place in sys.argv[1:]:
    host, port = place.split(':')
    try:
        with socket.create_connection((host, int(port)), timeout=60) as s: print(s.recv(1))
    except OSError as error: print(type(error).__name__)
"""


def test_allowed_hosts_that_fail():
    """Somebody who allowed a host learns that it cannot be reached: once, however often a program tries."""
    with socket.socket() as closed, Names({"api.test": ["127.0.0.1"]}) as names, directory() as records:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        port = closed.getsockname()[1]
        result, outcome = run_json(*ways(names, f"api.test:{port}", f"127.0.0.1:{port}", "gone.test:443"), "--record", str(records),
                                   *python(TRY, *[f"api.test:{port}"] * 3, "gone.test:443"))
        wanted = [f"api.test:{port} cannot be reached: Connection refused", "gone.test:443 cannot be reached: Domain name not found"]
        expect_equal(result.err.splitlines(), [f"mvagent: {sentence}" for sentence in wanted], "what the user is told")
        expect_equal([failed["reason"] for failed in outcome["network"]["failed"]], wanted, "the report")
        expect_equal([(way["host"], way["failures"], way["connections"]) for way in outcome["network"]["reached"]],
                     [("api.test", 3, 0), ("gone.test", 1, 0)], "failures")
        lines = [json.loads(line) for path in records.rglob("*.jsonl") for line in path.read_text().splitlines()]
        expect_equal([(line["decision"], line["what"]) for line in lines if line["event"] == "network"],
                     [("failed", sentence) for sentence in wanted], "the record")


RESOLVER = r"""
import socket, subprocess, sys
port = int(sys.argv[1])
def what(call):
    try: return call()
    except socket.gaierror as error: return {socket.EAI_NONAME: 'EAI_NONAME', socket.EAI_NODATA: 'EAI_NODATA'}.get(error.errno, error.errno)
    except OSError as error: return type(error).__name__
for name in ('a.wild.test', 'b.wild.test', 'a.wild.test'):
    print(name, what(lambda: socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]))
for name in ('wild.test', 'secret.wild.test', 'evil.test', 'a.wild.test.evil'):
    print(name, what(lambda: socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]))
print('v6', what(lambda: socket.getaddrinfo('a.wild.test', port, socket.AF_INET6)))
print('reverse', what(lambda: socket.gethostbyaddr(socket.gethostbyname('b.wild.test'))[0]))
print('other port', what(lambda: socket.create_connection(('a.wild.test', port + 1), timeout=5)))
print('address', what(lambda: socket.create_connection(('192.0.2.1', port), timeout=5)))
"""


def test_names_in_the_guest():
    with Names({}) as names:
        result, outcome = run_json(*ways(names, "*.wild.test:4433"), "--deny", "secret.wild.test", *python(RESOLVER, 4433))
        expect_equal(result.status, 0, result.err[-600:])
        lines = [line.rsplit(" ", 1) for line in result.out.splitlines()]
        first, second, third = (address for _, address in lines[:3])
        expect(first == third != second, f"addresses: {lines[:3]}")
        expect_equal([answer for _, answer in lines[3:7]], ["EAI_NONAME"] * 4, "names that are not allowed")
        expect_equal(lines[7:], [["v6", "EAI_NODATA"], ["reverse", "b.wild.test"], ["other port", "ConnectionRefusedError"],
                                 ["address", "OSError"]], "the rest")
        expect_equal(names.asked, [], "questions to the name server: nobody has connected")
        # One sentence for each name, with the rule or the option.
        for sentence in ("wild.test is not allowed; --allow wild.test would allow it",
                         "secret.wild.test is denied by --deny secret.wild.test",
                         "evil.test is not allowed; --allow evil.test would allow it"):
            expect_equal(result.err.count(f"mvagent: {sentence}\n"), 1, f"{sentence!r} in {result.err!r}")
        expect_equal([denied["host"] for denied in outcome["network"]["denied"]],
                     ["wild.test", "secret.wild.test", "evil.test", "a.wild.test.evil"], "the report")


SPEED = r"""
import socket, time
for name in ('n%d.test' % i for i in range(20)):
    begin = time.monotonic()
    try: socket.getaddrinfo(name, 443)
    except socket.gaierror: pass
    print('%.3f' % (time.monotonic() - begin))
"""


def test_denials_are_fast():
    """Also in the emulator a name that is not allowed takes a moment only."""
    result, outcome = run_json("--quiet", *python(SPEED))
    print(f"     {outcome['milliseconds']}", file=sys.stderr)
    times = sorted(map(float, result.out.split()))
    expect(len(times) == 20 and times[10] < 0.5 and times[-1] < 3, f"seconds: {times}")


def test_denied_without_any_way():
    result, outcome = run_json("--", "python3", "-c", "import socket\nfor _ in range(3):\n try: socket.getaddrinfo('api.test', 443)\n"
                               " except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)")
    expect_equal((result.status, result.out), (0, "True\n" * 3), result.err)
    expect_equal(result.err, "mvagent: api.test is not allowed; --allow api.test would allow it\n", "what the user is told")
    expect_equal(len(outcome["network"]["denied"]), 1, "denials in the report")


def test_addresses_that_are_allowed():
    """By their own number, also one that is the guest's own, and one of IPv6."""
    with Server(echo) as server, Server(echo, "::1", socket.AF_INET6) as six:
        result = harness.run("--allow", f"127.0.0.1:{server.port}", "--allow", f"[::1]:{six.port}", "--",
                             "python3", "-c", f"import sys\nfor sys.argv in ['', '127.0.0.1', {server.port}], ['', '::1', {six.port}]:\n"
                             "  exec(" + repr(CLIENT) + ")")
        expect_equal((result.status, result.out), (0, "hello 127.0.0.1\nhello ::1\n"), result.err[-600:])
    # One that is not the guest's: the host's end does not matter, that the guest finds a listener does.
    program = r"""
import socket
for host, port in (('198.51.100.7', 5432), ('2001:db8::7', 5432)):
    try: s = socket.create_connection((host, port), timeout=20); print(s.getpeername()[0], s.recv(1))
    except OSError as error: print(host, type(error).__name__)
try: socket.create_connection(('198.51.100.7', 80), timeout=5)
except OSError as error: print(type(error).__name__)
"""
    with Server(echo) as server, Proxy({"198.51.100.7:5432": ("127.0.0.1", 1), "[2001:db8::7]:5432": ("127.0.0.1", 1)}) as proxy:
        environment = {**os.environ, "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}
        result = harness.run("--allow", "198.51.100.7:5432", "--allow", "[2001:db8::7]:5432", "--", "python3", "-c", program, env=environment)
        expect_equal(result.status, 0, result.err[-600:])
        lines = result.out.splitlines()
        expect_equal(lines[2], "ConnectionRefusedError", "another port")
        expect_equal([request.split()[1] for request in proxy.requests], [b"198.51.100.7:5432", b"[2001:db8::7]:5432"], "requests")


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def authority(place, name):
    """An authority of the test's own, and a certificate for @name by it."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", place / "ca.key", "-out", place / "ca.pem", "-days", "30",
            "-subj", "/CN=test authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", place / "server.key", "-out", place / "server.csr", "-subj", f"/CN={name}")
    (place / "extensions").write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", place / "server.csr", "-CA", place / "ca.pem", "-CAkey", place / "ca.key", "-CAcreateserial",
            "-out", place / "server.pem", "-days", "30", "-extfile", place / "extensions")


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "https://evil.test/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()


@contextlib.contextmanager
def serving(server, tls=None):
    """A server of http.server at work, by TLS with the certificate that authority() has put into @tls: its port."""
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "server.pem", tls / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def web_server(place, tls):
    return serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(place))), tls)


def tool(name, place):
    """A program of this host for the guest, with all that it is linked with."""
    path = shutil.which(name)
    if not path:
        raise harness.Skip(f"there is no {name} on this host")
    shutil.copy(pathlib.Path(path).resolve(), place / name)
    for line in subprocess.run(["ldd", path], capture_output=True, check=True, text=True).stdout.splitlines():
        library = pathlib.Path(line.split("=>")[-1].split("(")[0].strip())
        if library.is_absolute() and not library.name.startswith(("libc.so", "ld-linux", "libm.so", "libpthread", "libdl")):
            shutil.copy(library, place)


PYTHON_HTTPS = r"""
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
print(urllib.request.urlopen(sys.argv[1] + '/page', context=context).read().decode().strip())
try: urllib.request.urlopen(sys.argv[1] + '/elsewhere', context=context)
except OSError as error: print('redirect:', error)
"""

NODE_FETCH = "fetch(process.argv[1] + '/page').then(r => r.text()).then(t => console.log(t.trim()), e => console.log(String(e.cause)))"


def test_clients_by_https():
    """curl, git, Python and Node reach a server whose authority they are told, without other settings."""
    with directory() as place:
        served, tools = place / "served", place / "tools"
        served.mkdir()
        tools.mkdir()
        for name in ("curl", "node"):
            tool(name, tools)
        authority(place, "api.test")
        shutil.copy(place / "ca.pem", tools)
        (served / "page").write_text("the page\n")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place / "origin")]
        (place / "origin").mkdir()
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        subprocess.run(["git", "clone", "-q", "--bare", place / "origin", served / "repo.git"], check=True, capture_output=True)
        subprocess.run(["git", "-C", served / "repo.git", "update-server-info"], check=True)
        with web_server(served, place) as port, Names({"api.test": ["127.0.0.1"]}) as names:
            url = f"https://api.test:{port}"
            script = (f"export LD_LIBRARY_PATH={tools}; cd /tmp;"
                      f"{tools}/curl -sS --cacert {tools}/ca.pem {url}/page;"
                      f"python3 -c {shlex.quote(PYTHON_HTTPS)} {url} {tools}/ca.pem;"
                      f"NODE_EXTRA_CA_CERTS={tools}/ca.pem {tools}/node -e \"{NODE_FETCH}\" {url};"
                      f"unset LD_LIBRARY_PATH; git -c http.sslCAInfo={tools}/ca.pem clone -q {url}/repo.git && git -C repo log --format=%s")
            result = harness.run(*ways(names, f"api.test:{port}", f"127.0.0.1:{port}"), "--share", f"{tools}:ro", "--memory", "1G", "--",
                                 "sh", "-c", script, limit=300)
        expect_equal((result.status, result.out.splitlines()),
                     (0, ["the page", "the page", "redirect: <urlopen error [Errno -2] Name or service not known>", "the page", "first"]),
                     f"clients: {result.err[-800:]}")
        expect_in("mvagent: evil.test is not allowed; --allow evil.test would allow it", result.err)


def test_behind_a_proxy():
    with directory() as place, Names({}) as names:
        (place / "page").write_text("by a proxy\n")
        with web_server(place, None) as port, Proxy({"api.test:80": ("127.0.0.1", port)}) as proxy:
            environment = {**os.environ, "https_proxy": f"http://127.0.0.1:{proxy.port}"}
            result = harness.run(*ways(names, "api.test"), *python("import urllib.request; print(urllib.request.urlopen("
                                 "'http://api.test/page').read().decode().strip())"), env=environment)
            expect_equal((result.status, result.out), (0, "by a proxy\n"), result.err[-600:])
            expect_equal(names.asked, [], "names that the proxy finds")


def test_the_hosts_own_name_servers():
    """As with systemd-resolved: /etc/resolv.conf names a server on loopback, and a search list that must not be used."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to put another file in the place of /etc/resolv.conf")
    with directory() as place, Server(echo) as server, Names({"api.test": ["127.0.0.1"]}, ("127.0.0.53", 53)) as names:
        (place / "resolv.conf").write_text("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch corp.test\n")
        subprocess.run(["mount", "--bind", place / "resolv.conf", "/etc/resolv.conf"], check=True)
        try:
            result = harness.run("--allow", f"api.test:{server.port}", "--allow", f"none.test:{server.port}", "--allow",
                                 f"127.0.0.1:{server.port}", "--", "sh", "-c",
                                 f"for name in api none; do python3 -c {shlex.quote(CLIENT)} $name.test {server.port} 2>&1 | tail -n 1; done")
        finally:
            subprocess.run(["umount", "/etc/resolv.conf"], check=True)
        expect_equal(result.status, 0, result.err[-600:])
        lines = result.out.splitlines()
        expect(lines[0].startswith("hello 127.77."), f"clients: {lines}")
        # Where the client was when the reset came: at the socket's next use, or at one that asks for its peer.
        expect("ConnectionReset" in lines[1] or "Errno 107" in lines[1], f"clients: {lines}")
        expect_equal({name for name, _ in names.asked}, {"api.test", "none.test"}, "names asked for")


def test_published_port_that_is_taken():
    """The process that finds out says so, and nobody says more: one sentence, also as the outcome."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result, outcome = run_json("--publish", f"{port}:3000", "--", "true")
        sentence = f"--publish 127.0.0.1:{port}:3000: cannot listen there: Address already in use"
        expect_equal((result.status, result.err), (125, f"mvagent-relay: {sentence}\n"), "what the user is told")
        expect_equal((outcome["outcome"], outcome["message"]), ("setup-failed", sentence), "the outcome")


def test_published_port():
    """A server of the guest is there on the host, and only there where it was asked for."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    program = r"""
import http.server, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '4'); self.end_headers(); self.wfile.write(b'page')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Page)
print('ready', flush=True)
server.serve_forever()
"""
    process = harness.start("--publish", f"{port}:3000", "--", "python3", "-c", program)
    try:
        expect_equal(process.stdout.readline(), b"ready\n", "start")
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                expect_equal(read_all(client).split(b"\r\n\r\n")[1], b"page")
        try:
            with socket.create_connection(("127.0.0.2", port), timeout=5):
                raise harness.Failure("it listens elsewhere too")
        except ConnectionRefusedError:
            pass
    finally:
        process.kill()
        process.communicate()


MANY = r"""
import socket, sys, threading
port = int(sys.argv[1])
streams = [socket.create_connection(('api.test', port), timeout=60) for _ in range(300)]
for number, s in enumerate(streams): s.sendall(b'%04d' % number * 500)
for number, s in enumerate(streams):
    data = b''
    while len(data) < 2000: data += s.recv(2000)
    assert data == b'%04d' % number * 500
    s.close()
for _ in range(300):
    s = socket.create_connection(('api.test', port), timeout=60)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b''
    s.close()
s = socket.create_connection(('api.test', port), timeout=60)
got = [0]
def read():
    while data := s.recv(1 << 20): got[0] += len(data)
t = threading.Thread(target=read); t.start()
for _ in range(16): s.sendall(bytes(1 << 20))
s.shutdown(socket.SHUT_WR); t.join()
print(got[0] >> 20)
"""


def test_many_connections_and_bytes():
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names:
        result = harness.run(*ways(names, f"api.test:{server.port}", f"127.0.0.1:{server.port}"), *python(MANY, server.port), limit=300)
        expect_equal((result.status, result.out), (0, "16\n"), result.err[-800:])


PROXIED = r"""
import os, ssl, socket, urllib.request, urllib.error
place = urllib.request.getproxies()
print(place.get('https'), place.get('http'), place.get('no'), os.environ['HTTPS_PROXY'] == os.environ['https_proxy'])
looked = []
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: looked.append(host) or real(host, *more, **named)
context = ssl.create_default_context(cafile=sys.argv[2])
print(urllib.request.urlopen(sys.argv[1] + '/page', context=context).read().decode().strip())
print(looked)  # the name is the proxy's business
try: urllib.request.urlopen('https://evil.test/', context=context)
except OSError as error: print(error)
"""


def test_a_proxy_for_programs_that_insist():
    """--proxy-env: the program finds no name and connects to no address of its own accord; the host decides as ever."""
    with directory() as place:
        served, tools = place / "served", place / "tools"
        served.mkdir()
        tools.mkdir()
        tool("curl", tools)
        authority(place, "api.test")
        shutil.copy(place / "ca.pem", tools)
        (served / "page").write_text("the page\n")
        with web_server(served, place) as port, Names({"api.test": ["127.0.0.1"]}) as names:
            url = f"https://api.test:{port}"
            curl = f"LD_LIBRARY_PATH={tools} {tools}/curl -sS --cacert {tools}/ca.pem"
            script = (f"python3 -c {shlex.quote('import sys' + PROXIED)} {url} {tools}/ca.pem; {curl} -v {url}/page 2>&1 | "
                      f"grep -E 'CONNECT|^the page|< HTTP/1.1 200 Conn'; {curl} https://evil.test/ 2>&1")
            options = [*ways(names, f"api.test:{port}", f"127.0.0.1:{port}"), "--share", f"{tools}:ro"]
            result = harness.run("--proxy-env", *options, "--", "sh", "-c", script, limit=300)
            lines = result.out.splitlines()
            expect_equal(lines[:4], ["http://127.77.255.1:3128 None localhost,127.0.0.1,::1 True", "the page", "['127.77.255.1']",
                                     "<urlopen error Tunnel connection failed: 403 Forbidden>"], f"Python: {result.err[-600:]}")
            expect(f"> CONNECT api.test:{port} HTTP/1.1" in lines and "the page" in lines[4:], f"curl: {lines}")
            expect_in("403", lines[-1])
            expect_equal(result.err.count("evil.test:443 is not allowed; --allow evil.test would allow it"), 1, result.err)
            # Without it there is none, and no variable.
            result = harness.run(*options, "--", "sh", "-c", "env | grep -ic proxy; python3 -c \"import socket;"
                                 "socket.create_connection(('127.77.255.1', 3128), 5)\" 2>&1 | tail -n 1")
            expect_equal(result.out.splitlines()[0], "0", "variables")
            expect_in("refused", result.out)


LIMITED = r"""
import socket, sys
port = int(sys.argv[1])
def ask():
    try:
        with socket.create_connection(('api.test', port), timeout=30) as s:
            s.sendall(b'x' * 40000)
            data = b''
            while len(data) < 40000 and (part := s.recv(65536)): data += part
            return len(data)
    except OSError as error: return type(error).__name__
print(ask(), ask() == 40000, ask() == 40000)
"""


def test_bytes_that_are_used_up():
    """--allow-bytes: the first exchange fits, the second does not, and then there is nothing any more."""
    with Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names, directory() as records:
        result, outcome = run_json(*ways(names, f"api.test:{server.port}", f"127.0.0.1:{server.port}"), "--allow-bytes", "100K",
                                   "--record", str(records), *python(LIMITED, server.port))
        expect_equal((result.status, result.out), (0, "40000 False False\n"), result.err[-600:])
        sentence = "the 102400 bytes of --allow-bytes are used up: the command's connections were ended, and it gets no more"
        expect_equal(result.err, f"mvagent: {sentence}\n", "what the user is told")
        way = outcome["network"]["reached"][0]
        expect(80000 <= way["bytes_sent"] + way["bytes_received"] <= 102400, f"bytes that passed: {way}")
        expect_equal(outcome["network"]["byte_limit_reached"], True, "the report")
        lines = [json.loads(line) for path in records.rglob("*.jsonl") for line in path.read_text().splitlines()]
        expect_equal([line["what"] for line in lines if line["event"] == "network" and line["decision"] == "denied"], [sentence],
                     "the record")
        start = next(line for line in lines if line["event"] == "start")
        expect_equal(start["policy"]["network"]["byte_limit"], 102400, "the policy on record")


LIAR = r"""
import socket, struct
def relay(data):
    s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.settimeout(20)
    s.connect((2, 1030)); s.sendall(data)
    try: return s.recv(1)
    except OSError: return b''
def request(host, port): return struct.pack('<BBHBB', 1, 1, port, len(host), 0) + host
print(relay(request(b'evil.test', 443)), relay(request(b'127.0.0.1', 22)), relay(request(b'api.test', 22)),
      relay(request(b'evil.test\0api.test', 443)), relay(b'garbage' * 100))
"""


def test_a_guest_that_asks_the_relay_itself():
    """What the guest's own programs believe is allowed counts for nothing."""
    with Names({"evil.test": ["127.0.0.1"]}) as names:
        result, outcome = run_json(*ways(names, "api.test"), "--user", "root", *python(LIAR))
        expect_equal((result.status, result.out), (0, "b'\\x01' b'\\x01' b'\\x01' b'\\x01' b''\n"), result.err[-600:])
        expect_equal(names.asked, [], "questions to the name server")
        expect_equal(len(outcome["network"]["denied"]), 4, f"denials: {outcome['network']['denied']}")


SOCKET, BIND, LISTEN, OPENAT, EXECVE = 41, 49, 50, 257, 59


@harness.kills
def test_the_relay_alone_has_a_network_and_nothing_else():
    """Calls made from inside: sockets of IP for the relay, and none for the machine beside it."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to trace the processes")
    for number, arguments in ((SOCKET, (socket.AF_UNIX, socket.SOCK_STREAM, 0)), (SOCKET, (socket.AF_PACKET, socket.SOCK_RAW, 0)),
                              (SOCKET, (socket.AF_NETLINK, socket.SOCK_RAW, 0)), (BIND, (0, 0, 0)), (LISTEN, (0, 0, 0)),
                              (OPENAT, (0, 0, 0)), (EXECVE, (0, 0, 0))):
        process = harness.start("--allow", "api.test", "--", "sh", "-c", "echo begun; sleep 1000")
        try:
            expect_equal(process.stdout.readline(), b"begun\n", "start")
            found = {os.path.basename(line.split()[0]): pid for pid, line in harness.processes().items()}
            relay = found["mvagent-relay"]
            if number == SOCKET and arguments[0] == socket.AF_UNIX:
                # What it may do, and what the machine beside it may not.
                kind, made = inject.call(relay, SOCKET, (socket.AF_INET, socket.SOCK_STREAM, 0))
                expect(kind == "returned" and made > 2, f"a socket of IP: {kind} {made}")
                expect_equal(os.readlink(f"/proc/{relay}/ns/net"), os.readlink("/proc/self/ns/net"), "its network")
                expect(os.readlink(f"/proc/{found['mvagent-vmm']}/ns/net") != os.readlink("/proc/self/ns/net"), "the machine's network")
                expect_equal(os.listdir(f"/proc/{relay}/root"), [], "files that it sees")
            expect_equal(inject.call(relay, number, arguments), ("killed", signal.SIGSYS), f"call {number} {arguments}")
            expect_equal(process.wait(timeout=30), 125, "the run's status")
            expect_in("mvagent-relay was killed for a system call", process.stderr.read().decode())
        finally:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    harness.main(globals())
