# SPDX-License-Identifier: Apache-2.0
"""The host's ssh-agent for a real guest (--ssh-agent): log-ins at the server that is named, and nothing else.

OpenSSH on both sides: two servers on this host's loopback, an agent with two keys that both servers let in, and the
client, git and ssh-keygen in the guest.
"""

import contextlib
import getpass
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in, run_json, wait_until
from test_ways import Names, tool, ways


def ssh_keygen(*words):
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, capture_output=True)


def make_key(path, comment):
    ssh_keygen("-t", "ed25519", "-N", "", "-C", comment, "-f", path)


@contextlib.contextmanager
def program(*words, **named):
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **named)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(harness.LIMIT)


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as made:
            return made.recv(4) == b"SSH-"
    except OSError:
        return False


@contextlib.contextmanager
def ssh_server(place, name, kind="ed25519"):
    """A real one, with a key of its own. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    ssh_keygen("-t", kind, "-N", "", "-f", place / f"{name}.key")
    (place / f"{name}.config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/{name}.key\nAuthorizedKeysFile {place}/authorized\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\nPermitRootLogin prohibit-password\nPrintMotd no\n")
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    with open(place / f"{name}.log", "w") as log, \
            program(shutil.which("sshd", path="/usr/sbin:/usr/local/sbin"), "-D", "-e", "-f", str(place / f"{name}.config"), stderr=log):
        wait_until(lambda: answers(port), "the server")
        yield port


@contextlib.contextmanager
def agent(place):
    """With two keys, ada@laptop and work; both are let in by the servers. Its socket."""
    path = f"{place}/agent"
    with program("ssh-agent", "-D", "-a", path, stdout=subprocess.DEVNULL):
        wait_until(lambda: os.path.exists(path), "the agent")
        for name, comment in (("ada", "ada@laptop"), ("work", "work")):
            make_key(place / name, comment)
            subprocess.run(["ssh-add", "-q", place / name], env={**os.environ, "SSH_AUTH_SOCK": path}, check=True, capture_output=True)
            os.unlink(place / name)  # the agent alone has it
        (place / "authorized").write_text((place / "ada.pub").read_text() + (place / "work.pub").read_text())
        yield path


def known(place, name, port):
    """What ssh would have written when the user first went there, hashed."""
    key = " ".join((place / f"{name}.key.pub").read_text().split()[:2])
    with open(place / "known", "a") as file:
        file.write(f"[{name}.test]:{port} {key}\n")
    ssh_keygen("-H", "-f", place / "known")


@contextlib.contextmanager
def hosts():
    """Everything on the host: place, socket of the agent, ports of git.test and other.test, options of a run."""
    if not shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or not shutil.which("ssh-agent"):
        raise harness.Skip("OpenSSH's server and agent are not on this host")
    with directory() as place:
        (place / "tools").mkdir()
        for name in ("ssh", "ssh-add", "ssh-keygen"):
            tool(name, place / "tools")
        with agent(place) as path, ssh_server(place, "git") as git, ssh_server(place, "other", "ecdsa") as other, \
                Names({"git.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]}) as names:
            known(place, "git", git)
            options = [*ways(names, f"127.0.0.1:{git}", f"127.0.0.1:{other}", f"other.test:{other}"), "--ssh-agent", f"ada@*@git.test:{git}",
                       "--known-hosts", str(place / "known"), "--share", f"{place}/tools:ro"]
            yield place, path, git, other, options


def run_in(place, path, options, script, **named):
    for name in ("ada.pub", "work.pub"):
        shutil.copy(place / name, place / "tools")
    variables = f"T={place}/tools; ssh() {{ LD_LIBRARY_PATH=$T $T/ssh -o BatchMode=yes \"$@\"; }}; cd /tmp\n"
    return run_json(*options, "--", "sh", "-c", variables + script, env={**os.environ, "SSH_AUTH_SOCK": path}, limit=300, **named)


def test_git_over_ssh():
    """clone and push, with the key that stays in the host's agent, and a server that the guest knows by the host's word."""
    with hosts() as (place, path, git, _, options):
        bare = place / "repo.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True, capture_output=True)
        url = f"ssh://{getpass.getuser()}@git.test:{git}{bare}"
        script = (f"export GIT_SSH_COMMAND=\"env LD_LIBRARY_PATH=$T $T/ssh -o BatchMode=yes\"\n"
                  f"git clone -q {url} work && cd work && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m made && "
                  "git push -q origin HEAD:main && git ls-remote -q origin | cut -f 2\n"
                  "echo $SSH_AUTH_SOCK; LD_LIBRARY_PATH=$T $T/ssh-add -l | cut -d ' ' -f 3")
        with directory() as records:
            result, outcome = run_in(place, path, [*options, "--record", str(records)], script)
            lines = [json.loads(line) for file in records.rglob("*.jsonl") for line in file.read_text().splitlines()]
        expect_equal(result.out.splitlines(), ["HEAD", "refs/heads/main", "/run/mvagent/ssh-agent", "ada@laptop"],
                     f"in the guest: {result.err[-1500:]} {(place / 'git.log').read_text()[-800:]}")
        log = subprocess.run(["git", "-C", bare, "log", "--format=%s", "main"], check=True, capture_output=True, text=True)
        expect_equal(log.stdout, "made\n", "what was pushed")
        fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", place / "ada.pub"], check=True, capture_output=True, text=True).stdout.split()[1]
        sentence = f"your ssh-agent signed a log-in of {getpass.getuser()} at git.test:{git} with {fingerprint} (ada@laptop)"
        expect_equal(result.err.count(sentence), 1, f"what the user is told: {result.err}")
        expect_equal(outcome["network"]["signatures"], [{"what": sentence, "count": 3}], "the report: clone, push and ls-remote")
        expect_equal([line["what"] for line in lines if line["event"] == "network" and "signed" in line.get("what", "")], [sentence] * 3,
                     "the record")
        start = next(line for line in lines if line["event"] == "start")
        expect_equal(start["policy"]["ssh_agent"], [f"ada@*@git.test:{git}"], "the policy on record")


RAW = r"""
import os, socket, struct
def ask(*parts):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20); s.connect(os.environ['SSH_AUTH_SOCK'])
        body = b''.join(parts)
        s.sendall(struct.pack('>I', len(body)) + body)
        answer = s.recv(5)
        return answer[4] if len(answer) == 5 else None
string = lambda b: struct.pack('>I', len(b)) + b
print([ask(bytes([kind])) for kind in (17, 18, 19, 20, 22, 23, 25, 26)], ask(b'\x1b', string(b'query')), ask(b'\x0d', string(b'k'), string(b'd'), bytes(4)))
"""


def test_what_is_not_signed():
    """Another server, another key, a commit, a change of what the agent has: none of it, and the user is told why."""
    with hosts() as (place, path, git, other, options):
        user = getpass.getuser()
        script = (f"ssh -p {git} {user}@git.test echo in\n"
                  f"ssh -o StrictHostKeyChecking=no -p {other} {user}@other.test echo in 2>&1 | grep -c 'Permission denied'\n"
                  f"ssh -o IdentitiesOnly=yes -i $T/work.pub -p {git} {user}@git.test echo in 2>&1 | grep -c 'Permission denied'\n"
                  "echo text > file; LD_LIBRARY_PATH=$T $T/ssh-keygen -q -Y sign -f $T/ada.pub -n git file 2>/dev/null || echo unsigned\n"
                  f"python3 -c {shlex.quote(RAW)}")
        result, outcome = run_in(place, path, options, script)
        expect_equal(result.out.splitlines(), ["in", "1", "1", "unsigned", "[5, 5, 5, 5, 5, 5, 5, 5] 5 5"], f"in the guest: {result.err[-1500:]}")
        expect_equal([entry["count"] for entry in outcome["network"]["signatures"]], [1], "signatures")
        expect_in("the ssh-agent did not sign for a client: its server is none of those of --ssh-agent", result.err)
        # The agent has what it had.
        listed = subprocess.run(["ssh-add", "-l"], env={**os.environ, "SSH_AUTH_SOCK": path}, check=True, capture_output=True, text=True)
        expect_equal(len(listed.stdout.splitlines()), 2, "keys of the agent")
        accepted = (place / "other.log").read_text().count("Accepted publickey")
        expect_equal(accepted, 0, "log-ins at the other server")


def test_the_process_that_signs():
    """It has the agent's socket, and no network, no file, no privilege, and few system calls."""
    if os.getuid():
        raise harness.Skip("another process's walls cannot be seen")
    with hosts() as (_, path, _, _, options):
        process = harness.start(*options, "--", "sh", "-c", "echo begun; sleep 1000", env={**os.environ, "SSH_AUTH_SOCK": path})
        try:
            expect_equal(process.stdout.readline(), b"begun\n", "start")
            found = {os.path.basename(line.split()[0]): pid for pid, line in harness.processes().items()}
            place = f"/proc/{found['mvagent-sign']}"
            with open(f"{place}/status") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            expect_equal([status[name] for name in ("Seccomp", "NoNewPrivs", "CapEff")], ["2", "1", "0" * 16], "walls")
            expect_equal(os.listdir(f"{place}/root"), [], "files that it sees")
            expect(os.readlink(f"{place}/ns/net") != os.readlink("/proc/self/ns/net"), "it has the host's network")
            # The agent's ends of its connections have its name; the one is mvagent-sign's.
            with open("/proc/net/unix") as file:
                ends = [line for line in file if line.rstrip().endswith(f" {path}") and line.split()[5] == "03"]
            expect_equal(len(ends), 1, "connections to the agent")
            expect("SSH_AUTH_SOCK" not in pathlib.Path(f"{place}/environ").read_text(), "it knows where the agent is")
        finally:
            process.kill()
            process.communicate()


def test_options_that_are_wrong():
    with hosts() as (place, path, git, other, options):
        for words, environment, part in (
                (["--ssh-agent", "git.test"], {}, "give KEY@HOST"),
                (["--ssh-agent", "ada@127.0.0.1"], {}, "give KEY@HOST"),
                (["--ssh-agent", f"ada@other.test:{other}", "--known-hosts", str(place / "known")], {}, f"has no key of [other.test]:{other}"),
                (["--ssh-agent", f"ada@git.test:{git}", "--known-hosts", "/nowhere"], {}, "--known-hosts /nowhere: cannot read it"),
                ([*options], {"SSH_AUTH_SOCK": ""}, "SSH_AUTH_SOCK is not set"),
                ([*options], {"SSH_AUTH_SOCK": "/nowhere"}, "cannot reach the agent at /nowhere")):
            result = harness.run(*words, "--", "true", env={**os.environ, "SSH_AUTH_SOCK": path, **environment})
            expect_equal(result.status, 125, f"status with {words}")
            expect_in(part, result.err)


if __name__ == "__main__":
    harness.main(globals())
