# SPDX-License-Identifier: Apache-2.0
"""Clients as people have them, in a real guest: curl, git, Node, Python's requests, Go, npm and pip, by --allow and by --secret.

One server on this host's loopback, with an authority of the test's own, is all that they need: it serves those who have
the token, git repositories over smart HTTP, a registry of npm packages and an index of Python's. By --allow the guest has
the token and is told of the authority; by --secret it has neither, and the server gets the token all the same.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess

import harness
from harness import directory, expect, expect_equal, run_json
from test_packages import npm_archive, npm_tools, pip_tools, wheel
from test_ways import Names, authority, serving, tool, ways

TOKEN = "ghp_OnlyTheHostKnowsThisToken0123456789abcd"


class Services(http.server.BaseHTTPRequestHandler):
    """All of it, for those who have the token."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, status=200, kind="text/plain", fields=()):
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *fields]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def handle_any(self):
        body = self.read_body()
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            given = base64.b64decode(given).decode().partition(":")[2]
        path, _, query = self.path.partition("?")
        self.server.told.append((self.headers.get("User-Agent", "").split("/")[0], self.command, path, given))
        if given != TOKEN:
            return self.reply(b"", 401, fields=[("WWW-Authenticate", 'Basic realm="test"')])
        if path.startswith("/repo.git/"):
            return self.git(path, query, body)
        file = self.server.place / path.lstrip("/")
        if (file / "index").is_file():
            return self.reply((file / "index").read_bytes(), kind="application/json" if "/npm/" in path else "text/html")
        if file.is_file():
            return self.reply(file.read_bytes(), kind="application/octet-stream")
        return self.reply(f"yes, {self.command}, {len(body)} bytes\n".encode())

    def git(self, path, query, body):
        """As any web server does it: by git's own program (git-http-backend(1))."""
        environment = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.server.place), "GIT_HTTP_EXPORT_ALL": "1",
                       "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query, "REMOTE_USER": "user",
                       "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
                       "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                       "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "HOME": str(self.server.place)}
        answer = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE, check=True).stdout
        head, _, rest = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        self.reply(rest, status, fields.pop("Content-Type", "text/plain"), fields.items())

    do_GET = do_POST = do_PUT = handle_any


@contextlib.contextmanager
def services(place):
    """For api.test: (its port, what it was told)."""
    authority(place, "api.test")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Services)
    server.place, server.told = place / "served", []
    server.place.mkdir(exist_ok=True)
    with serving(server, place) as port:
        yield port, server.told


def run_clients(place, script, secret, *options):
    """Runs a script of the guest's whose clients find the server at $URL. Returns its lines, and what the server was told."""
    tools = place / "tools"
    with services(place) as (port, told), Names({"api.test": ["127.0.0.1"]}) as names:
        shutil.copy(place / "ca.pem", tools)
        prepare(place, port)
        if secret:
            host = {**os.environ, "SSL_CERT_FILE": str(place / "ca.pem"), "TOKEN": TOKEN}
            options = [*ways(names, f"127.0.0.1:{port}"), "--secret", f"TOKEN@api.test:{port}", *options]
        else:
            host = dict(os.environ)
            options = [*ways(names, f"api.test:{port}", f"127.0.0.1:{port}"), "--env", f"TOKEN={TOKEN}", *options]
            for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"):
                options += ["--env", f"{name}={tools}/ca.pem"]
        variables = f"URL=https://api.test:{port}; SERVER=api.test:{port}; T={tools}; export HOME=/tmp; cd /tmp\n"
        result, outcome = run_json(*options, "--share", f"{tools}:ro", "--memory", "1G", "--", "sh", "-c",
                                   variables + script + "\necho token: $TOKEN", env=host, limit=500)
        *lines, token = result.out.splitlines()
        token = token.removeprefix("token: ")
        expect_equal(len(token), len(TOKEN), f"length of the token in the guest ({result.out!r}; {result.err[-1500:]!r})")
        expect_equal(token == TOKEN, not secret, "the guest has the token")
        expect({given for *_, given in told} <= {TOKEN, ""}, f"what the server got: {told}")
        if secret:
            used = {entry["host"]: entry["used"] for entry in outcome["network"]["secrets"]}
            expect_equal(used, {"api.test": sum(given == TOKEN for *_, given in told)}, "uses on record")
            expect(TOKEN not in result.out + result.err, "the token is in what came back")
        return lines, told, result.err


def agents(told):
    """Who came with the token."""
    return {agent for agent, *_, given in told if given == TOKEN}


def repository(served):
    """A bare one with a commit, which may be pushed to."""
    served.mkdir()
    git = ["git", "-C", str(served / "repo.git")]
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", served / "repo.git"], check=True, capture_output=True)
    tree = subprocess.run([*git, "mktree"], input="", check=True, capture_output=True, text=True).stdout.strip()
    commit = subprocess.run([*git, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "first", tree],
                            check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([*git, "update-ref", "refs/heads/main", commit], check=True)


def npm_registry(served, port):
    (served / "npm/thing/-").mkdir(parents=True)
    archive = served / "npm/thing/-/thing-1.0.0.tgz"
    npm_archive(archive, "thing", "thing")
    digest = hashlib.sha512(archive.read_bytes()).digest()
    version = {"name": "thing", "version": "1.0.0", "bin": {"thing": "run.js"}, "dist": {
        "tarball": f"https://api.test:{port}/npm/thing/-/thing-1.0.0.tgz", "integrity": "sha512-" + base64.b64encode(digest).decode()}}
    (served / "npm/thing/index").write_text(json.dumps({"name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def python_index(served):
    (served / "simple/thing").mkdir(parents=True)
    (served / "packages").mkdir()
    file = served / "packages/thing-1.0-py3-none-any.whl"
    wheel(file, "thing")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (served / "simple/thing/index").write_text(f'<a href="/packages/{file.name}#sha256={digest}">{file.name}</a>')


def prepare(place, port):
    """What is served knows the server's port."""
    served = place / "served"
    if not (served / "npm").exists():
        npm_registry(served, port)
        python_index(served)


CURL = """
curl() { LD_LIBRARY_PATH=$T $T/curl -sS -H "Authorization: Bearer $TOKEN" "$@"; }
echo "curl: $(curl $URL/hello)"
echo "curl: $(head -c 3000000 /dev/zero | curl -T - $URL/hello)"
echo "curl: $(LD_LIBRARY_PATH=$T $T/curl -sS -u "user:$TOKEN" -d some=data $URL/hello)"
"""

NODE = """
echo "node: $(LD_LIBRARY_PATH=$T $T/node -e "
const headers = {authorization: 'Bearer ' + process.env.TOKEN};
const body = new ReadableStream({start(c) { for (let i = 0; i < 10; i++) c.enqueue(new Uint8Array(1000)); c.close(); }});
const ask = (options) => fetch('$URL/hello', {headers, ...options}).then(r => r.text()).then(t => t.trim());
ask({}).then(async a => console.log(a + '; ' + await ask({method: 'POST', body, duplex: 'half'})), e => console.log(String(e.cause)));
")"
"""

REQUESTS = """
echo "requests: $(PYTHONPATH=$T/python PYTHONDONTWRITEBYTECODE=1 python3 -c "
import os, requests
session = requests.Session()
session.headers['Authorization'] = 'Bearer ' + os.environ['TOKEN']
print(session.get('$URL/hello').text.strip(), session.post('$URL/hello', data=iter([bytes(1000)] * 10)).text.strip(), sep='; ')
")"
"""

GO = """
echo "go: $(cd / && $T/fetch $URL/hello | tr '\\n' ';')"
"""

GIT = """
git() { command git -c user.name=a -c user.email=a@b "$@"; }
git clone -q https://user:$TOKEN@$SERVER/repo.git work && cd work && head -c 2000000 /dev/urandom > data && git add data &&
    git commit -q -m second && git push -q origin main && git fetch -q && echo "git: $(git log --format=%s origin/main | tr '\\n' ' ')"
cd /tmp
"""

NPM = """
mkdir project && cd project
printf 'registry=%s/npm/\\n//%s/npm/:_authToken=${TOKEN}\\n' $URL $SERVER > .npmrc
export LD_LIBRARY_PATH=$T
PATH=$T:$PATH node $T/npm/bin/npm-cli.js install --no-audit --no-fund --no-update-notifier thing > log 2>&1 || tail -n 5 log
echo "npm: $(PATH=$T:$PATH node_modules/.bin/thing) $(grep -c $SERVER package-lock.json)"
unset LD_LIBRARY_PATH
cd /tmp
"""

PIP = """
PYTHONPATH=$T PYTHONDONTWRITEBYTECODE=1 python3 -m pip install -q --no-cache-dir --disable-pip-version-check \
    --root-user-action=ignore --index-url https://user:$TOKEN@$SERVER/simple --target site thing
echo "pip: $(PYTHONPATH=site python3 -c 'import thing.part3; print(thing.part3.VALUE)')"
"""


def python_modules(place):
    """requests and what it needs, as Debian has them."""
    source = pathlib.Path("/usr/lib/python3/dist-packages")
    if not (source / "requests").is_dir():
        return False
    for name in ("requests", "urllib3", "idna", "chardet", "charset_normalizer", "certifi"):
        if (source / name).is_dir():
            shutil.copytree(source / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in source.glob("six.py"):
        shutil.copy(path, place)
    return True


def everyday_clients(secret):
    """Those that are there, each with what it is to print."""
    with directory() as place:
        tools = place / "tools"
        (tools / "python").mkdir(parents=True)
        for name in ("curl", "node"):
            tool(name, tools)
        repository(place / "served")
        script, wanted, who = CURL + NODE + GIT, ["curl: yes, GET, 0 bytes", "curl: yes, PUT, 3000000 bytes", "curl: yes, POST, 9 bytes",
                                                  "node: yes, GET, 0 bytes; yes, POST, 10000 bytes", "git: second first "], {"curl", "node", "git"}
        if python_modules(tools / "python"):
            script, wanted, who = script + REQUESTS, [*wanted, "requests: yes, GET, 0 bytes; yes, POST, 10000 bytes"], who | {"python-requests"}
        if (harness.BUILD / "tests/clients/fetch").exists():
            shutil.copy(harness.BUILD / "tests/clients/fetch", tools)
            script, wanted, who = script + GO, [*wanted, "go: 200 yes, GET, 0 bytes;200 yes, POST, 200000 bytes;"], who | {"Go-http-client"}
        lines, told, error = run_clients(place, script, secret)
        expect_equal(lines, wanted, f"clients: {error[-1500:]}")
        expect_equal(agents(told), who, "who came to the server with the token")
        log = subprocess.run(["git", "-C", place / "served/repo.git", "log", "--format=%s", "main"], check=True, capture_output=True, text=True)
        expect_equal(log.stdout, "second\nfirst\n", "what was pushed")


def test_everyday_clients_by_allow():
    everyday_clients(False)


def test_everyday_clients_by_secret():
    everyday_clients(True)


def package_managers(secret):
    with directory() as place:
        tools = place / "tools"
        tools.mkdir()
        npm_tools(tools)
        pip_tools(tools)
        lines, told, error = run_clients(place, NPM + PIP, secret)
        expect_equal(lines, ["npm: thing 1", "pip: 3"], f"package managers: {error[-1500:]}")
        expect_equal(agents(told), {"npm", "pip"}, "who came to the server with the token")


def test_package_managers_by_allow():
    package_managers(False)


def test_package_managers_by_secret():
    package_managers(True)


if __name__ == "__main__":
    harness.main(globals())
