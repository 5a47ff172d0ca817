# SPDX-License-Identifier: Apache-2.0
"""Mixed work in one guest for long, with whole runs beside it: the memory, the descriptors and the threads of each
process, the inodes of the share and the memory of the host are at the end what they were at the beginning.

MVAGENT_SOAK_SECONDS: how long, half a minute if it is not set."""

import json
import os
import pathlib
import subprocess
import sys
import time

import harness
from harness import directory, expect, expect_equal

sys.path.insert(0, str(harness.CHECKOUT / "tests/relay"))
from relay_driver import Names, Server, echo  # noqa: E402
from test_many import memory_in_use  # noqa: E402

SECONDS = int(os.environ.get("MVAGENT_SOAK_SECONDS") or "30")
WARM = 3  # rounds after which all that is made once has been made

# One round: files of every kind of change, a repository, a database, an archive, connections, output. All of it is
# removed, and what the guest's kernel remembers is dropped, so that each round ends as the one before it.
WORK = r"""
import mmap, os, pathlib, shutil, socket, sqlite3, subprocess, sys
port, top = int(sys.argv[1]), pathlib.Path("round")
def shell(script):
    subprocess.run(["sh", "-ec", script], check=True, cwd=top, stdout=subprocess.DEVNULL)
def files():
    for number in range(100):
        path = top / f"d{number % 5}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes([number]) * (number * 97))
        os.setxattr(path, "user.number", b"%d" % number)
        path.chmod(0o600)
    for number in range(0, 100, 3):
        path = top / f"d{number % 5}" / f"f{number}"
        os.link(path, top / f"l{number}")
        path.rename(top / f"r{number}")
        (top / f"s{number}").symlink_to(f"r{number}")
        assert (top / f"s{number}").read_bytes() == bytes([number]) * (number * 97)
    for directory in top.iterdir():
        os.stat(directory, follow_symlinks=False)
    with open(top / "map", "w+b") as file:
        file.truncate(1 << 20)
        with mmap.mmap(file.fileno(), 0) as view:
            view[4096:8192] = b"m" * 4096
            view.flush()
    held = open(top / "gone", "w+b")
    os.unlink(top / "gone")
    held.write(b"x" * 100000)
    held.close()
def database():
    base = sqlite3.connect(top / "data.db")
    base.execute("pragma journal_mode=wal")
    base.execute("create table t (a)")
    for number in range(10):
        with base:
            base.execute("insert into t values (?)", (number,))
    assert base.execute("pragma integrity_check").fetchone() == ("ok",)
    base.close()
def connections():
    for number in range(20):
        with socket.create_connection(("api.test", port), timeout=60) as way:
            way.sendall(b"c" * 65536)
            way.shutdown(socket.SHUT_WR)
            assert len(b"".join(iter(lambda: way.recv(65536), b""))) == 65536
    try:
        socket.getaddrinfo("denied.test", 443)
        raise SystemExit("a name that is not allowed was found")
    except socket.gaierror:
        pass
GIT = "git init -q g; cd g; git config user.name a; git config user.email a@b; for i in 1 2 3; do echo $i >f$i; git add .; git commit -qm $i; " \
      "done; git gc -q; cd ..; git clone -q g h; git -C h fsck --strict; tar cf a.tar d0 h; mkdir x; tar xf a.tar -C x"
number = 0
while True:
    number += 1
    top.mkdir()
    files()
    database()
    shell(GIT)
    connections()
    sys.stderr.write("e" * 100000)
    sys.stderr.flush()
    shutil.rmtree(top)
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    print(number, "o" * 100000, flush=True)
    if sys.stdin.readline() != "go on\n":
        break
"""


class Sample:
    """What there is between two rounds."""

    def __init__(self, share):
        self.descriptors, self.threads, self.memory = {}, {}, {}
        for pid, command in harness.processes().items():
            place = pathlib.Path(f"/proc/{pid}")
            name = os.path.basename(command.split()[0])
            status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
            self.descriptors[name] = len(os.listdir(place / "fd"))
            self.threads[name] = int(status["Threads"])
            self.memory[name] = int(status["RssAnon"].split()[0])
        system = os.statvfs(share)
        self.inodes = system.f_files - system.f_ffree
        self.open_files = int(pathlib.Path("/proc/sys/fs/file-nr").read_text().split()[0])
        self.host_memory = memory_in_use()

    def __str__(self):
        each = ", ".join(f"{name} {self.memory[name]} KiB {self.descriptors[name]} fds {self.threads[name]} threads"
                         for name in sorted(self.memory))
        return f"{each}; {self.inodes} inodes, {self.open_files} open files, {self.host_memory} MiB in use"


def settled(share, wanted):
    """A sample, when what the round left to be done is done: at most @wanted's descriptors, or what there is then."""
    for _ in range(20):
        sample = Sample(share)
        if not wanted or all(sample.descriptors.get(name, 0) <= count for name, count in wanted.descriptors.items()):
            break
        time.sleep(0.25)
    return sample


def short_run(number):
    """A whole run, whose changes under review are looked at and thrown away."""
    with directory() as place:
        (place / "f").write_text("old\n")
        env = dict(os.environ, XDG_STATE_HOME=str(place / "state"))
        (place / "share").mkdir()
        result = harness.run("--cpus", "1", "--memory", "256M", "--share", f"{place / 'share'}:review", "--", "sh", "-c",
                             f"echo {number} >new; cat new; exit {number % 5}", env=env)
        expect_equal((result.status, result.out), (number % 5, f"{number}\n"), f"a run beside it: {result.err}")
        runs = json.loads(harness.mvagent("runs", "--json", env=env).out)
        expect_equal(harness.mvagent("discard", runs[0]["run"], env=env).status, 0, "discard")
        expect_equal(os.listdir(place / "share"), [], "the share of that run")


def expect_flat(first, last, rounds):
    for what in ("descriptors", "threads"):
        expect_equal(getattr(last, what), getattr(first, what), f"{what} after {rounds} rounds")
    for name, before in first.memory.items():
        expect(last.memory[name] < before + 2048, f"{name} has {last.memory[name]} KiB after {rounds} rounds, not {before}")
    expect_equal(last.inodes, first.inodes, "inodes of the share's file system")
    expect(last.open_files < first.open_files + 256, f"{last.open_files} open files, not {first.open_files}")
    expect(last.host_memory < first.host_memory + 48, f"{last.host_memory} MiB in use, not {first.host_memory}")


class Guest:
    """The run that lasts."""

    def __init__(self, share, names, port):
        self.errors = open(share.parent / "errors", "w+b")
        self.process = harness.start(
            "--user", "root", "--cpus", "1", "--memory", "512M", "--resolver", names.setting[1], "--allow", f"api.test:{port}",
            "--allow", f"127.0.0.1:{port}", "--share", str(share), "--", "python3", "-c", WORK, str(port),
            stdin=subprocess.PIPE, stderr=self.errors)

    def wait_for_round(self, number):
        line = self.process.stdout.readline()
        said = self.errors_said() if len(line) < 100000 else ""
        expect_equal((line[:line.find(b" ")], len(line)), (b"%d" % number, len(b"%d" % number) + 100002), f"round {number}: {said}")
        self.errors.truncate(0)

    def errors_said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").replace("e" * 100000, "")[-600:]

    def go_on(self, more):
        self.process.stdin.write(b"go on\n" if more else b"enough\n")
        self.process.stdin.flush()


def test_nothing_grows():
    parent = "/scratch" if os.path.isdir("/scratch") else None
    with directory(parent) as place, Server(echo) as server, Names({"api.test": ["127.0.0.1"]}) as names:
        share = place / "share"
        share.mkdir()
        guest = Guest(share, names, server.port)
        try:
            work(guest, share)
        finally:
            guest.process.kill()
            guest.process.wait()


def work(guest, share):
    first = last = None
    number, begin = 0, time.monotonic()
    while number <= WARM or time.monotonic() - begin < SECONDS:
        number += 1
        guest.wait_for_round(number)
        if number % 3 == 1:
            short_run(number)
        last = settled(share, first)
        if number == WARM:
            first = last
        if number % 25 == WARM:
            print(f"     {time.monotonic() - begin:5.0f} s, round {number}: {last}", file=sys.stderr, flush=True)
        guest.go_on(True)
    guest.wait_for_round(number + 1)
    last = settled(share, first)
    print(f"     {time.monotonic() - begin:5.0f} s, round {number + 1}: {last}", file=sys.stderr, flush=True)
    guest.go_on(False)
    expect_equal(guest.process.wait(harness.LIMIT), 0, guest.errors_said())
    expect_flat(first, last, number + 1 - WARM)


if __name__ == "__main__":
    harness.main(globals())
