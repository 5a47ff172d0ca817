# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a process of a run, or of all of them, at a random time: what is looked at then.

Used by kill_driver.py, with a guest that needs no Linux, and by tests/lab/test_kills.py, with real ones."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

# By the word one second; a loaded host gets more, and what was seen is printed.
END_SECONDS = 5.0

FILES = [f"w{number}" for number in range(8)]
OLD = b"A" * 100  # what the host had in each

# The last ones are there when there are ways out.
WAYS_OUT = ["mvagent-relay", "mvagent-secret", "mvagent-sign"]
PROCESSES = ["mvagent", "mvagent-vmm", "mvagent-blk", "mvagent-fs", *WAYS_OUT]
EVERYTHING = "everything"


class Failure(Exception):
    """Something is not as it must be."""


def need(condition, why):
    if not condition:
        raise Failure(why)


class Place:
    """A home, a directory for temporary files and a share of one run's own."""

    def __init__(self, path, endless):
        self.path = path
        self.share = path / "share"
        for name in ("home", "temporary", "share"):
            (path / name).mkdir()
        for name in FILES:
            (self.share / name).write_bytes(OLD)
        if endless:
            (self.share / "endless").touch()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(path / "home"), "TMPDIR": str(path / "temporary"),
                            "TOKEN": "a-secret-of-the-test"}

    def mvagent(self, program, *arguments):
        return subprocess.run([program, *arguments], env=self.environment, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, cwd=self.path, check=False)

    def expect_consistent(self):
        """Each file is one that was written, whole or up to a write's end, or the host's own."""
        for path in self.share.iterdir():
            if path.name == "endless":
                continue
            need(path.name in FILES, f"{path.name} is in the share")
            data = path.read_bytes()
            need(len(data) in (0, 100, 4096, 8192) and len(set(data)) <= 1, f"{path.name} holds {data[:20]!r}, {len(data)} bytes")

    def expect_unchanged(self):
        for name in FILES:
            need((self.share / name).read_bytes() == OLD, f"the host's {name} was changed under review")

    def expect_nothing_else(self):
        """Outside the share, the state directory and the cache nothing is there."""
        found = [str(path.relative_to(self.path)) for path in self.path.rglob("*") if not path.is_dir()]
        allowed = re.compile(r"share/[^/]+|report\.json|root\.img|home/\.cache/mvagent/.*"
                             r"|home/\.local/state/mvagent/(record\.key(\.pub)?|records/[^/]+\.jsonl|runs/[^/]+/.*"
                             r"|\.mvagent-[0-9a-f]{16})")  # a key in the making: the age tells that it is nobody's
        left = [name for name in found if not allowed.fullmatch(name)]
        need(not left, f"left behind: {left}")
        need(not os.listdir(self.path / "temporary"), "something is left among the temporary files")


class Agent:
    """An ssh-agent with a key, and a server that it is known to: what mvagent-sign needs."""

    def __init__(self, path):
        self.known_hosts, self.socket = path / "known_hosts", path / "agent"
        for name in ("key", "server"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of the test", "-f", path / name], check=True)
        self.known_hosts.write_text("git.example.com " + (path / "server.pub").read_text())
        self.process = subprocess.Popen(["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.DEVNULL)
        while not self.socket.exists():
            need(self.process.poll() is None, "ssh-agent does not start")
            time.sleep(0.01)
        subprocess.run(["ssh-add", "-q", path / "key"], env={**os.environ, "SSH_AUTH_SOCK": str(self.socket)}, check=True,
                       stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def open_ways(self, place):
        """The options with which all processes are there; the variables for them are put in the environment of @place."""
        place.environment["SSH_AUTH_SOCK"] = str(self.socket)
        return ["--allow", "example.com", "--secret", "TOKEN@api.example.com", "--ssh-agent", "of the test@git.example.com",
                "--known-hosts", self.known_hosts]


def host_state():
    """What of the host's must be as before: its mounts, names of sockets, control groups, shared memory."""
    groups = {str(path) for path in pathlib.Path("/sys/fs/cgroup").rglob("mvagent-*")} if os.path.isdir("/sys/fs/cgroup") else set()
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        mounts = {line.split()[1] for line in file if "mvagent" in line}
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        sockets = {line.split()[-1] for line in file if "mvagent" in line.split()[-1]}
    return groups, mounts, sockets, {name for name in os.listdir("/dev/shm") if "mvagent" in name}


def family(supervisor):
    """The processes of a run, as {pid: name}; those that have ended are none."""
    found = {}
    for pid in [supervisor, *children(supervisor)]:
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            found[pid] = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[0] in "ZX":
            del found[pid]
    return found


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            pass
    return found


def is_gone(pid, name):
    try:
        return (os.path.basename(os.readlink(f"/proc/{pid}/exe")) != name
                or pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX")
    except OSError:
        return True


class Run:
    """One run of @command, of which @target is killed after @delay seconds."""

    def __init__(self, place, program, command, target, delay):
        self.place, self.program, self.target = place, program, target
        self.report = place.path / "report.json"
        self.ended_before = self.killed = False
        self.seconds = 0.0
        with open(place.path / "errors", "w+b") as errors:
            (place.path / "errors").unlink()
            self.process = subprocess.Popen(command, env=place.environment, cwd=place.path, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=errors)
            try:
                time.sleep(delay)
                self.kill()
            finally:
                if self.process.poll() is None:
                    self.process.kill()
                    self.process.wait()
            errors.seek(0)
            self.errors = errors.read().decode(errors="replace")

    def kill(self):
        there = family(self.process.pid)
        if self.process.poll() is not None:
            self.ended_before = True
            return
        victims = [pid for pid, name in there.items() if self.target in (name, EVERYTHING)]
        begin = time.monotonic()
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
                self.killed = True
            except ProcessLookupError:
                pass
        if not self.killed:
            # It has not begun yet: nothing but the supervisor is there for certain.
            self.target = "mvagent"
            self.process.kill()
            self.killed = True
        # What was started since the list was made is there too.
        there.update(family(self.process.pid))
        while time.monotonic() - begin < END_SECONDS:
            if self.process.poll() is not None and all(is_gone(pid, name) for pid, name in there.items()):
                break
            time.sleep(0.005)
        else:
            left = [name for pid, name in there.items() if not is_gone(pid, name)]
            raise Failure(f"{left} are still there {END_SECONDS:.0f} s after {self.target} was killed")
        self.seconds = time.monotonic() - begin

    def supervisor_was_killed(self):
        return self.killed and self.target in ("mvagent", EVERYTHING)

    def records(self):
        return sorted((self.place.path / "home/.local/state/mvagent/records").glob("*.jsonl"))

    def expect_told(self):
        """A supervisor that lives says what happened, and its record is whole."""
        need(self.process.returncode == 125 or (self.process.returncode == 0 and self.ends_by_itself()),
             f"exit status {self.process.returncode} after {self.target} was killed: {self.errors}")
        need(self.process.returncode == 0 or self.errors.strip(), f"no sentence after {self.target} was killed")
        outcome = json.loads(self.report.read_text())
        need(self.process.returncode == 0 or outcome["message"], f"no message after {self.target} was killed: {outcome}")
        for record in self.records():
            checked = self.place.mvagent(self.program, "record", "verify", record)
            need(checked.returncode == 0, f"the record after {self.target} was killed: {checked.stdout}{checked.stderr}")

    def ends_by_itself(self):
        """The command may have ended before its machine was missed."""
        return not (self.place.share / "endless").exists()

    def expect_holds(self):
        """The record of one that was killed holds as far as it goes."""
        for record in self.records():
            checked = self.place.mvagent(self.program, "record", "verify", record)
            # The key may not have been made yet; then there is no record either.
            need(checked.returncode in (0, 2), f"the record of a run that was killed: {checked.stdout}{checked.stderr}")

    def expect_order(self, review):
        """What is left can be brought to order, and is in order then; changes under review can be applied."""
        if review:
            self.place.expect_unchanged()
        repaired = self.place.mvagent(self.program, "runs", "--repair")
        need(repaired.returncode == 0 and not repaired.stderr, f"runs --repair: {repaired.stdout}{repaired.stderr}")
        waiting = self.place.mvagent(self.program, "runs", "--json")
        need(waiting.returncode == 0 and not waiting.stderr, f"runs: {waiting.stderr}")
        for run in json.loads(waiting.stdout):
            if run["state"] == "open":
                need(review, "a run without review has changes that wait")
                applied = self.place.mvagent(self.program, "apply", run["run"])
                need(applied.returncode == 0, f"apply: {applied.stdout}{applied.stderr}")
            need(run["state"] in ("open", "cut", "ended"), f"a run is {run['state']} after its end")
        self.place.expect_consistent()
        self.place.expect_nothing_else()
        again = self.place.mvagent(self.program, "runs", "--repair")
        need(again.returncode == 0 and "; 0 things were removed" in again.stdout, f"runs --repair once more: {again.stdout}")

    def check(self, review):
        if self.ended_before:
            need(self.process.returncode == 0, f"exit status {self.process.returncode}: {self.errors}")
        if self.supervisor_was_killed():
            self.expect_holds()
        else:
            self.expect_told()
        self.expect_order(review)
