# SPDX-License-Identifier: Apache-2.0
"""Root in a real guest tries the ways out by which others of this kind were left, with a host that works in the same
directories. Each is printed with its boundary, what was tried, what stopped it, and what was seen.

One guest does them all; each test then looks at what the host has, and at what the guest saw."""

import ctypes
import functools
import json
import os
import pathlib
import socket
import stat
import subprocess
import sys
import tempfile
import threading

import harness
from harness import expect, expect_equal
from screen import Terminal

MARK = "outside-of-the-share"
HIDDEN_MARK = "a-hidden-credential"
ABSENT = [".vscode/tasks.json", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".idea/workspace.xml", ".envrc",
          ".git/hooks/pre-commit", ".devcontainer/devcontainer.json", ".cursor/mcp.json", ".gdbinit"]

# What the guest does: a function for each attack, named as its test. It returns what it counted, as text.
GUEST = r"""
import ctypes, glob, json, os, socket, stat, struct, subprocess, sys, time
MARK, HIDDEN = sys.argv[1].encode(), sys.argv[2].encode()
SHARE, READ_ONLY, OUTSIDE, CANARY_PORT, SECONDS, ABSENT = json.loads(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
seen = []
def look(data):
    for mark in (MARK, HIDDEN):
        if mark in data: seen.append(mark.decode())
def attempt(call, *arguments):
    "1 if it worked. What it reads is looked at."
    try:
        got = call(*arguments)
    except (OSError, ValueError) as error:
        return 0
    if isinstance(got, bytes): look(got)
    return 1
def read(path, flags=os.O_RDONLY, at=None):
    fd = os.open(path, flags, dir_fd=at)
    try: return os.read(fd, 4096)
    finally: os.close(fd)
def write(path, data=b"evil", flags=os.O_WRONLY | os.O_CREAT, at=None):
    fd = os.open(path, flags, 0o666, dir_fd=at)
    try: return os.write(fd, data)
    finally: os.close(fd)
def sh(script):
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60)
    look(done.stdout)
    return done.returncode

def symlink_farm():
    os.mkdir("farm"); os.chdir("farm")
    up = [("../" * n) + rest for n in range(1, 24) for rest in ("outside/secret", OUTSIDE[1:] + "/secret", "outside/new")]
    targets = up + [OUTSIDE + "/secret", "/proc/self/root" + OUTSIDE + "/secret", "/proc/1/root" + OUTSIDE + "/secret", "/proc/self/cwd/../../outside/secret",
                    "loop", ".", "..", "/", "x" * 4000]
    for n, target in enumerate(targets): attempt(os.symlink, target, f"l{n}")
    attempt(os.symlink, "loop", "loop")
    previous = "../up"  # the host made it: to ../outside
    for n in range(45):
        attempt(os.symlink, previous, f"chain{n}"); previous = f"chain{n}"
    worked = 0
    for name in os.listdir("."):
        for path in (name, name + "/secret", name + "/../outside/secret"):
            worked += attempt(read, path)
            attempt(write, path, b"evil", os.O_WRONLY)
    for name in ("../up", "../up/secret", "../absolute", "../up/../outside/secret"):
        worked += attempt(read, name); attempt(write, name, b"evil", os.O_WRONLY); attempt(os.truncate, name, 0)
        attempt(os.chmod, name, 0o777); attempt(os.unlink, name + "/secret"); attempt(os.mkdir, name + "/new")
    return f"{len(targets) + 50} links, {worked} reads of something"

def hard_link_farm():
    made = 0
    for n in range(50):
        made += attempt(os.link, "linked", f"h{n}"); attempt(write, f"h{n}", b"evil")
    attempt(os.chmod, "linked", 0o777); attempt(os.truncate, "linked", 1); attempt(os.utime, "linked", (1, 1))
    attempt(os.setxattr, "linked", "user.evil", b"x"); attempt(write, "linked", b"more", os.O_WRONLY | os.O_APPEND)
    for name in (".env", "up", "absolute", ".git/config"): attempt(os.link, name, name.replace("/", "_") + ".link")
    attempt(os.link, READ_ONLY + "/file", "from-ro"); attempt(os.link, "linked", READ_ONLY + "/to-ro")
    return f"{made} links, each written to"

def rename_race():
    end, turns, worked = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        turns += 1
        worked += attempt(read, "swing/secret")
        for call in ((write, "swing/new"), (write, "swing/secret"), (read, "swing/secret"), (os.mkdir, "swing/d"), (os.unlink, "swing/secret"), (os.chmod, "swing", 0o777),
                     (os.symlink, "x", "swing/s"), (os.rename, "mover", "swing/mover"), (os.rename, "swing/mover", "mover"), (os.listdir, "swing"),
                     (os.rename, "swing/secret", "stolen"), (read, "stolen"), (os.truncate, "swing/secret", 0), (os.rmdir, "swing/d"), (os.unlink, "swing/new")):
            attempt(*call)
    return f"{turns} turns, {worked} reads"

def proc_and_descriptors():
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY); path = os.open(".", os.O_PATH); worked = 0
    for at in (fd, path):
        for name in ("../outside/secret", "../../outside/secret", "up/secret", "..", f"/proc/self/fd/{at}/../outside/secret"):
            worked += attempt(read, name, os.O_RDONLY, at); attempt(write, name, b"evil", os.O_WRONLY, at)
    class Handle(ctypes.Structure): _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
    handle, mount = Handle(128), ctypes.c_int()
    forged = 0
    if libc.name_to_handle_at(-100, b".", ctypes.byref(handle), ctypes.byref(mount), 0) == 0:
        for node in list(range(200)) + [1 << n for n in range(64)] + [(1 << 64) - 1]:
            ctypes.memmove(handle.data, struct.pack("<Q", node), 8)
            got = libc.open_by_handle_at(fd, ctypes.byref(handle), os.O_RDONLY); forged += 1
            if got >= 0:
                try: look(os.read(got, 4096))
                except OSError: pass
                worked += attempt(read, "../outside/secret", os.O_RDONLY, got); os.close(got)
    for name in glob.glob("/proc/*/root") + glob.glob("/proc/*/cwd") + glob.glob("/proc/*/fd/*"):
        for rest in (OUTSIDE + "/secret", "/../outside/secret", "/../../outside/secret"): worked += attempt(read, name + rest)
    sh("nsenter -t 1 -a cat ../outside/secret; mkdir -p /tmp/b; mount --bind .. /tmp/b; ls /tmp/b; cat /tmp/b/outside/secret; "
       "mount --bind up /tmp/b && cat /tmp/b/secret; chroot . /bin/cat /../outside/secret; true")
    return f"{forged} forged handles, {worked} reads of something"

def git_planting():
    made = 0
    def evil(path, text):
        nonlocal made
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True); return write(path, text.encode(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    run = f"touch {SHARE}/git-ran; touch {OUTSIDE}/git-ran"
    for name in ("pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "prepare-commit-msg"):
        made += attempt(evil, f".git/hooks/{name}", f"#!/bin/sh\n{run}\n"); attempt(os.chmod, f".git/hooks/{name}", 0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external", "alias.status", "filter.x.clean", "core.hooksPath"):
        made += sh(f"git config {key} '{run}'") == 0
    made += attempt(evil, ".git/config.worktree", f"[core]\n\tfsmonitor = {run}\n") + attempt(evil, ".git/commondir", "../evil.git\n")
    made += attempt(os.rename, ".git", "old.git") + attempt(os.rename, ".git/hooks", ".git/h") + attempt(os.symlink, "../evil", ".git/hooks.new")
    # Where nothing is protected yet: repositories of the guest's own, bare and nested, and attributes that name a filter.
    sh(f"mkdir evil.git nested; git init -q --bare evil.git; git init -q nested; printf '[core]\\n\\tfsmonitor = {run}\\n\\tbare = false\\n' >>evil.git/config; "
       f"printf '[core]\\n\\tfsmonitor = {run}\\n' >>nested/.git/config; echo '{run}' >nested/.git/hooks/post-index-change; chmod +x nested/.git/hooks/*; "
       "mkdir bare; cd bare; mkdir objects refs hooks; echo 'ref: refs/heads/main' >HEAD; printf '[core]\\n\\tfsmonitor = %s\\n\\trepositoryformatversion = 0\\n' '" + run + "' >config; true")
    attempt(evil, ".gitattributes", "* filter=x diff=x merge=x\n"); attempt(evil, ".gitmodules", '[submodule "x"]\n\tpath = nested\n\turl = --upload-pack=evil\n\tupdate = !' + run + '\n')
    write("tracked", b"changed by the guest\n", os.O_WRONLY | os.O_TRUNC)
    return f"{made} writes went through"

def names_not_there_yet():
    made = 0
    for name in ABSENT:
        for one in (name, name.upper(), name.capitalize()):
            top = one.split("/")[0]
            made += attempt(os.makedirs, os.path.dirname(one)) if "/" in one and not one.startswith((".git/", ".GIT/")) else 0
            made += attempt(write, one)
            if one.lower().startswith(".git/"): continue
            attempt(os.mkdir, "innocent"); attempt(write, "innocent/tasks.json")
            made += attempt(os.rename, "innocent", top) + attempt(os.symlink, "innocent", top) + attempt(os.link, "tracked", top) + attempt(os.mknod, top)
    return f"{made} of them were made"

def hidden_names():
    for name in (".env", ".ENV", ".Env", "./.env", ".env.", ".env ", "a/../.env", "h.link", ".env::$DATA", ".ssh/id", ".SSH/id", "copied"):
        attempt(read, name); attempt(os.rename, name, "found"); attempt(read, "found"); attempt(os.link, name, "found2"); attempt(read, "found2")
        attempt(write, name, b"evil", os.O_WRONLY)
    sh("grep -rD skip . . 2>/dev/null | head -c 200000; find . -type f -exec cat {} + 2>/dev/null | head -c 1000000; git -c core.pager=cat show --stat HEAD; git status --short")
    return f"{len(os.listdir('.'))} names were listed"

def read_only_share():
    made = 0
    os.chdir(READ_ONLY)
    with open("/proc/self/mounts") as file: mine = [line.split() for line in file if line.split()[1] == READ_ONLY]
    for script in ("mount -o remount,rw .", f"mount -o remount,bind,rw {READ_ONLY}", f"mkdir -p /tmp/again && mount -t virtiofs {mine[0][0]} /tmp/again"): sh(script)
    for top in (READ_ONLY, "/tmp/again"):
        for call in ((write, top + "/new"), (write, top + "/file", b"evil", os.O_WRONLY), (os.truncate, top + "/file", 0), (os.chmod, top + "/file", 0o777), (os.unlink, top + "/file"),
                     (os.rename, top + "/file", top + "/other"), (os.link, top + "/file", top + "/l"), (os.symlink, "x", top + "/s"), (os.mkdir, top + "/d"),
                     (os.setxattr, top + "/file", "user.x", b"x"), (os.utime, top + "/file", (1, 1)), (os.mknod, top + "/n", stat.S_IFIFO | 0o666)):
            made += attempt(*call)
    return f"{made} changes went through"

def sockets_and_pipes():
    def connect():
        with socket.socket(socket.AF_UNIX) as way: way.connect("host.sock"); way.send(b"evil")
    def fifo():
        fd = os.open("host.fifo", os.O_WRONLY | os.O_NONBLOCK); os.write(fd, b"evil")
    worked = attempt(connect) + attempt(fifo)
    for name in ("@canary", "\0mvagent-test-canary"):
        def abstract():
            with socket.socket(socket.AF_UNIX) as way: way.connect(name)
        worked += attempt(abstract)
    return f"{worked} connections"

def devices_and_set_id():
    made = 0
    for n, (kind, major, minor) in enumerate(((stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 10, 232), (stat.S_IFBLK, 8, 0), (stat.S_IFBLK, 254, 0))):
        made += attempt(os.mknod, f"dev{n}", kind | 0o666, os.makedev(major, minor))
    sh("cp /bin/busybox s 2>/dev/null || cp /bin/sh s; chown 0:0 s; chmod 6755 s; mkdir sd; chmod 2777 sd; setcap cap_sys_admin+ep s 2>/dev/null; true")
    for name in ("security.capability", "trusted.overlay.opaque", "system.posix_acl_access", "security.selinux"): attempt(os.setxattr, "s", name, b"\1\0\0\2" + b"\xff" * 16)
    return f"{made} nodes of devices"

def network_and_host_ports():
    worked = 0
    for address in ("127.0.0.1", "10.0.2.2", "169.254.169.254", "192.168.0.1"):
        for family in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(socket.AF_INET, family) as way:
                    way.settimeout(2); way.connect((address, CANARY_PORT)); way.send(b"evil"); worked += family == socket.SOCK_STREAM
            except OSError: pass
    tried = 0
    for cid in (0, 1, 2):
        for port in list(range(1, 2100, 31)) + [22, 1024, 1025, 1026, 1027, 1028, CANARY_PORT, 0xffffffff]:
            try:
                with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as way:
                    tried += 1; way.settimeout(2); way.connect((cid, port))
                    worked += cid == 2
            except OSError: pass
    return f"{tried} ports of the host, {worked} connections"

# What is allowed works, or nothing here says anything.
assert read("tracked") == b"tracked\n" and write("mine") and sh("git -c user.name=a -c user.email=b commit -q --allow-empty -m allowed") == 0
assert "user.mine" in (os.setxattr("mine", "user.mine", b"x"), *os.listxattr("mine"))
answers = {}
for name in [name for name, value in list(globals().items()) if callable(value) and value.__module__ == "__main__" and name not in ("look", "attempt", "read", "write", "sh")]:
    os.chdir(SHARE); del seen[:]
    begin = time.monotonic()
    answers[name] = [globals()[name](), list(seen), time.monotonic() - begin]
print(json.dumps(answers))
"""

RENAME_EXCHANGE = 2


class Racer(threading.Thread):
    """The host's part of the race: a directory in the share is, every other moment, a link that leads out of it."""

    def __init__(self, share):
        super().__init__(daemon=True)
        self.share, self.stopped, self.turns = share, threading.Event(), 0
        self.libc = ctypes.CDLL(None, use_errno=True)

    def run(self):
        one, other = (os.fsencode(self.share / name) for name in ("swing", "swing-link"))
        while not self.stopped.wait(0.005):
            self.turns += self.libc.renameat2(-100, one, -100, other, RENAME_EXCHANGE) == 0


class Attacked:
    """A host, and what one guest did to it."""

    def __init__(self, top):
        self.top, self.share, self.read_only, self.outside = top, top / "share", top / "ro", top / "outside"
        self.make_host()
        self.before = self.listing(self.outside), self.listing(self.read_only)
        self.racer = Racer(self.share)
        with socket.create_server(("127.0.0.1", 0)) as self.server, socket.socket(socket.AF_UNIX) as self.abstract, \
                socket.socket(socket.AF_UNIX) as self.local:
            self.abstract.bind("\0mvagent-test-canary")
            self.local.bind(str(self.share / "host.sock"))
            for listening in (self.abstract, self.local):
                listening.listen()
            self.reader = os.open(self.share / "host.fifo", os.O_RDONLY | os.O_NONBLOCK)
            self.racer.start()
            try:
                self.result = harness.run(
                    "--user", "root", "--share", str(self.share), "--share", f"{self.read_only}:ro", "--", "python3", "-c", GUEST, MARK,
                    HIDDEN_MARK, json.dumps([str(self.share), str(self.read_only), str(self.outside), self.server.getsockname()[1], 10, ABSENT]),
                    limit=400)
            finally:
                self.racer.stopped.set()
                self.racer.join()
            self.reached = [name for name in ("server", "abstract", "local") if self.was_reached(getattr(self, name))]
            if os.read(self.reader, 10):
                self.reached.append("pipe")
            os.close(self.reader)
        expect_equal(self.result.status, 0, f"the guest: {self.result.err[-900:]}")
        self.answers = json.loads(self.result.out)

    @staticmethod
    def was_reached(listening):
        listening.setblocking(False)
        try:
            listening.accept()[0].close()
            return True
        except BlockingIOError:
            return False

    def make_host(self):
        for place in (self.share, self.read_only, self.outside, self.share / "swing", self.share / "mover", self.share / ".ssh"):
            place.mkdir()
        (self.outside / "secret").write_text(MARK)
        (self.outside / "linked").write_text(MARK.replace("outside", "linked"))
        (self.share / "swing/secret").write_text("inside")
        (self.share / "swing-link").symlink_to("../outside")
        (self.share / "up").symlink_to("../outside")
        (self.share / "absolute").symlink_to(self.outside / "secret")
        os.link(self.outside / "linked", self.share / "linked")
        (self.read_only / "file").write_text("read only")
        (self.share / ".env").write_text(HIDDEN_MARK)
        (self.share / ".ssh/id").write_text(HIDDEN_MARK)
        os.link(self.share / ".ssh/id", self.share / "copied")
        (self.share / "tracked").write_text("tracked\n")
        os.mkfifo(self.share / "host.fifo")
        self.git("init", "-q", "-b", "main")
        self.git("add", "tracked")
        self.git("commit", "-qm", "first")

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.com", "-c", f"safe.directory={self.share}", *arguments],
                              cwd=self.share, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60)

    @staticmethod
    def listing(place):
        """What must not change: every name with its kind, mode, links, times, attributes and contents."""
        found = {}
        for path in [place, *sorted(place.rglob("*"))]:
            status = path.lstat()
            found[str(path.relative_to(place))] = (
                status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, os.listxattr(path, follow_symlinks=False),
                path.read_bytes() if path.is_file() else None)
        return found


@functools.cache
def attack_once():
    try:
        return Attacked(pathlib.Path(PLACE.name)), None
    except (harness.Failure, subprocess.TimeoutExpired) as failure:
        return None, failure


def attacked():
    host, failure = attack_once()
    if failure:
        raise harness.Failure(f"the attacks did not end: {failure}")
    return host


PLACE = tempfile.TemporaryDirectory(prefix="mvagent-test-", dir="/scratch" if os.path.isdir("/scratch") else None)


def expect_held(attack, boundary, tried, mechanism, more=""):
    """What holds of every attack; and the line about it."""
    host = attacked()
    counted, seen, seconds = host.answers[attack]
    print(f"     {attack}: {seconds:.1f} s", file=sys.stderr, flush=True)
    expect_equal(seen, [], f"what the guest saw in {attack}")
    expect_equal(host.listing(host.outside), host.before[0], "beside the share")
    print(f"boundary: {boundary} | attack: {tried} ({counted}) | stopped by: {mechanism} | result: held{more}", flush=True)
    return host


SHARE_TO_HOST = "share → the host's files"


def test_symlink_farm():
    expect_held("symlink_farm", SHARE_TO_HOST, "links and chains of links up, out, through /proc, of the guest's and the host's making, read and written through",
                "names are resolved one by one beneath an open directory, following nothing: openat2 (vmm/fs/path.c)")


def test_hard_link_farm():
    host = expect_held("hard_link_farm", SHARE_TO_HOST, "a file that has a name outside as well is linked, written, cut, and its mode changed",
                       "such a file is copied before its first change (vmm/fs/link_break.c)")
    expect_equal((host.outside / "linked").read_text(), MARK.replace("outside", "linked"), "the other name")
    expect(not (host.read_only / "to-ro").exists(), "a link into the read-only share")


def test_rename_race():
    host = expect_held("rename_race", SHARE_TO_HOST, "a directory that the host exchanges for a link out of the share all the while",
                       "openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS from an open directory (vmm/fs/path.c)")
    expect(host.racer.turns > 100, f"the host exchanged them only {host.racer.turns} times")


def test_proc_and_descriptors():
    expect_held("proc_and_descriptors", SHARE_TO_HOST, "'..' of descriptors, forged handles, /proc/*/root, /proc/*/fd, nsenter, bind mounts, chroot",
                "a node is a number that the server looks up, and '..' is no name to it (vmm/fs/inode.c, name.c)")


def test_git_planting():
    host = expect_held("git_planting", "share → what the host runs", "hooks, configuration, commondir, nested and bare repositories, filters; then git on the host",
                       "names that git obeys are protected, in repositories of the guest's own too (vmm/fs/guard.c, guard_repository.c)")
    for words in (("status",), ("diff",), ("add", "tracked"), ("commit", "-qm", "second"), ("log", "-1"), ("checkout", "-q", "-b", "other"), ("stash", "list")):
        done = host.git(*words)
        expect_equal(done.returncode, 0, f"git {words}: {done.stderr.decode()}")
    for inner in ("nested", "bare", "evil.git"):
        subprocess.run(["git", "-c", "safe.directory=*", "-C", host.share / inner, "status"], capture_output=True, check=False, timeout=60)
    for place in (host.share, host.outside):
        expect(not (place / "git-ran").exists(), "git on the host ran what the guest wrote")


def test_names_not_there_yet():
    host = expect_held("names_not_there_yet", "share → what the host runs", "settings of editors and agents that do not exist yet: made, renamed to, linked, in other case",
                       "protected by name, whether it is there or not (vmm/fs/guard.c)")
    there = [str(path.relative_to(host.share)) for path in host.share.rglob("*")
             if str(path.relative_to(host.share)).lower() in ABSENT or path.parent == host.share and path.name.lower() in (
                 ".vscode", ".claude", ".mcp.json", ".idea", ".envrc", ".devcontainer", ".cursor", ".gdbinit")]
    expect_equal(there, [], "what was made")


def test_hidden_names():
    host = expect_held("hidden_names", "share → credentials in it", "hidden names read, renamed, linked, in other case, by another link, by git",
                       "hidden names and other links to them do not exist for the guest (vmm/fs/guard.c)")
    for name in (".env", ".ssh/id", "copied"):
        expect_equal((host.share / name).read_text(), HIDDEN_MARK, name)


def test_read_only_share():
    host = expect_held("read_only_share", "read-only share → the host's files", "remounted and mounted again for writing, then 12 kinds of change",
                       "the server refuses every change, whatever the guest's mount says (vmm/fs/dispatch.c)")
    expect_equal(host.listing(host.read_only), host.before[1], "the read-only share")
    expect(host.answers["read_only_share"][0].startswith("0 changes"), "a change that the guest was told of")


def test_sockets_and_pipes():
    host = expect_held("sockets_and_pipes", "share → processes of the host", "a socket and a pipe in the share at which the host waits, and an abstract socket",
                       "only regular files and directories are ever opened (vmm/fs/handle.c)")
    expect_equal(host.reached, [], "who was reached")


def test_devices_and_set_id():
    host = expect_held("devices_and_set_id", SHARE_TO_HOST, "nodes of the host's devices, set-id programs, capabilities in attributes",
                       "no node of a device is made, set-id bits and such attributes are not stored (vmm/fs/create.c, attr.c, xattr.c)")
    for path in host.share.rglob("*"):
        status = path.lstat()
        expect(not stat.S_ISBLK(status.st_mode) and not stat.S_ISCHR(status.st_mode), f"{path.name} is a device")
        expect(not stat.S_ISREG(status.st_mode) or not status.st_mode & 0o6000, f"{path.name} has mode {status.st_mode:o}")
    expect("security.capability" not in os.listxattr(host.share / "s"), "capabilities of a file")


def test_network_and_host_ports():
    host = expect_held("network_and_host_ports", "guest → the host's network", "addresses of the host and its cloud, every kind of vsock port of the host",
                       "a card without a route, and a port is one socket that was there before (vmm/virtio/net.c, vsock_connection.c)")
    expect("server" not in host.reached, "the host's server was reached")


def test_terminal():
    """The clipboard, the title, answers that come back as typed input, in 7 and 8 bits."""
    sequences = [b"\033]52;c;ZXZpbA==\a", b"\033]52;c;?\033\\", b"\x9d52;c;ZXZpbA==\x9c", b"\033P$q\"p\033\\", b"\033Ptmux;\033\033]52;c;ZXZpbA==\a\033\\",
                 b"\033]50;?\a", b"\033[21t", b"\033]1337;File=name=eA==:ZXZpbA==\a", b"\033_Gf=24;x\033\\", b"\033[5i"]
    screen = Terminal()
    script = "printf '%b' '" + b"".join(b"".join(b"\\0%03o" % byte for byte in sequence) + b"." for sequence in sequences).decode() + "'; echo; echo end of all"
    screen.start("--", "sh", "-c", script)
    screen.wait_for(b"end of all")
    expect_equal(screen.finish(), 0, "status")
    for forbidden in (b"]52", b"\x9d", b"\033P", b"\033_", b"]50;?", b"[21t", b"1337;File", b"\033[5i"):
        expect(forbidden not in screen.output, f"{forbidden!r} reached the terminal: {screen.output[:600]!r}")
    print(f"boundary: output → the user's terminal | attack: {len(sequences)} sequences for the clipboard, answers, files, printers | "
          "stopped by: such sequences are taken out (vmm/cli/escape_filter.c) | result: held", flush=True)


if __name__ == "__main__":
    try:
        harness.main(globals())
    finally:
        PLACE.cleanup()
