# SPDX-License-Identifier: Apache-2.0
"""Who is compared: each runs the script of a share and prints its output, and tells which processes it is."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/lab"))
import harness  # noqa: E402
import test_peers as peers  # noqa: E402
import rows  # noqa: E402

MEMORY = 1024  # MiB of each guest
CPUS = 1
AS_OWNER = ["setpriv", f"--reuid={rows.OWNER}", f"--regid={rows.OWNER}", "--clear-groups"] if os.getuid() == 0 else []


class Subject:
    """One run. roots: processes whose time counts, with their children."""

    name = ""
    is_guest = True

    def __init__(self, share):
        self.share = share
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
        self.errors = open(self.place / "errors", "w+b")
        self.processes = []
        try:
            self.start()
        except Exception:
            self.remove()
            raise

    @property
    def roots(self):
        return [process.pid for process in self.processes]

    def spawn(self, *command, **named):
        named.setdefault("stdin", subprocess.DEVNULL)
        named.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen([str(part) for part in command], stderr=self.errors, **named)
        self.processes.append(process)
        return process

    def lines(self):
        return self.processes[-1].stdout

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def counts(self):
        """{request: count} and kicks and interrupts of mvagent-fs over the whole run; {} elsewhere."""
        return {}

    def end(self):
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self.processes:
            if process.stdout:
                process.stdout.close()

    def remove(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.errors.close()
        shutil.rmtree(self.place, ignore_errors=True)


class Host(Subject):
    """No guest: the same work on the host of the guests."""

    name = "host"
    is_guest = False

    def start(self):
        self.spawn(*AS_OWNER, "sh", "script", cwd=self.share, stdout=subprocess.PIPE)


class Mvagent(Subject):
    name = "mvagent"
    cache = "shared"
    command = ("sh", "script")
    home = None  # where all runs keep their records, and what is kept from one run to the next

    @classmethod
    def prepare(cls):
        """One run before all others: it hashes what runs are made of, for the record, which later ones need not."""
        home = tempfile.TemporaryDirectory(prefix="bench-home-")
        if AS_OWNER:
            os.chown(home.name, rows.OWNER, rows.OWNER)
        Mvagent.home = home
        subprocess.run([*AS_OWNER, harness.MVAGENT, "run", *harness.ROOT, "--", "true"], env=cls.environment(), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, cwd=home.name, check=True)

    @classmethod
    def environment(cls):
        return {**os.environ, "XDG_STATE_HOME": f"{cls.home.name}/state", "XDG_CACHE_HOME": f"{cls.home.name}/cache"}

    def start(self):
        if not self.home:
            self.prepare()
        self.spawn(*AS_OWNER, harness.MVAGENT, "run", *harness.ROOT, "-v", "--memory", f"{MEMORY}M", "--cpus", CPUS, "--cache", self.cache,
                   "--share", self.share, "--at", "/mnt", "--", *self.command,
                   stdout=subprocess.PIPE, env=self.environment())

    def counts(self):
        found = {}
        for line in self.complaint().splitlines():
            if match := re.match(r"mvagent-fs: requests: (\S+) (\d+)", line):
                found[match[1]] = int(match[2])
            elif match := re.match(r"mvagent-fs: kicks (\d+), interrupts (\d+)", line):
                found["kicks"], found["interrupts"] = int(match[1]), int(match[2])
        return found


class MvagentExclusive(Mvagent):
    name = "mvagent exclusive"
    cache = "exclusive"


def virtiofsd(subject, path):
    """Debian's server for a subject's share, in its default configuration but for what a share of one tree needs."""
    if not peers.VIRTIOFSD:
        raise FileNotFoundError("virtiofsd is not installed")
    subject.spawn(peers.VIRTIOFSD, f"--socket-path={path}", "-o", f"source={subject.share}", "-o", "cache=auto",
                  "-o", "sandbox=chroot")
    harness.wait_until(path.exists, "virtiofsd to listen")


class Virtiofsd(Subject):
    """QEMU's microvm with Debian's virtiofsd."""

    name = "virtiofsd"
    kernel = peers.SHARE / "vmlinux"

    def start(self):
        if not self.kernel.exists():
            raise FileNotFoundError(f"no {self.kernel}: tools/kernel/build --unpatched --output {self.kernel.parent} makes it")
        virtiofsd(self, self.place / "fs.sock")
        self.spawn(
            "qemu-system-x86_64", "-M", "microvm,acpi=off,pit=on,pic=on,rtc=off,isa-serial=off", "-accel", "kvm",
            "-cpu", "host", "-smp", CPUS, "-m", MEMORY, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-global", "virtio-mmio.force-legacy=false",
            "-object", f"memory-backend-memfd,id=memory,size={MEMORY}M,share=on", "-numa", "node,memdev=memory",
            "-kernel", self.kernel, "-initrd", peers.make_initramfs(self.place),
            "-append", "console=hvc0 quiet reboot=t panic=-1",
            "-chardev", "stdio,id=console", "-device", "virtio-serial-device", "-device", "virtconsole,chardev=console",
            "-drive", f"if=none,id=root,format=raw,readonly=on,file={peers.SHARE}/base.erofs",
            "-device", "virtio-blk-device,drive=root",
            "-chardev", f"socket,id=fs,path={self.place}/fs.sock",
            "-device", "vhost-user-fs-device,queue-size=1024,chardev=fs,tag=share", stdout=subprocess.PIPE)


class VirtiofsdUnpatched(Virtiofsd):
    """The same, with the guest kernel that its users have: ours without kernel-config/patches."""

    name = "virtiofsd (kernel unpatched)"
    kernel = harness.BUILD / "bench/unpatched/vmlinux"


class MachineVirtiofsd(Subject):
    """Our machine with Debian's server: tells what of a difference is the server's."""

    name = "mvagent-vmm + virtiofsd"
    machine = None

    def start(self):
        virtiofsd(self, self.place / "fs.sock")
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.place / "fs.sock"))
        self.machine = peers.Machine(connection, memory=MEMORY)
        if self.machine.message()[0] != 1:
            raise RuntimeError(f"{self.name}: no HELLO from the guest")
        self.machine.control.sendall(peers.start_message("/mnt", ["sh", "script"]))
        if self.machine.message()[0] != 3:
            raise RuntimeError(f"{self.name}: the guest did not start the command")

    @property
    def roots(self):
        return [*super().roots, self.machine.vmm.pid, self.machine.blk.pid]

    def lines(self):
        return self.machine.stdout.makefile("rb")

    def end(self):
        self.machine.message()
        self.machine.stop()
        super().end()

    def remove(self):
        if self.machine:
            self.machine.stop()
        super().remove()


class GuestTmpfs(Mvagent):
    """mvagent, but the work is done in the guest's own memory: what a guest costs without any share."""

    name = "guest's own tmpfs"
    command = ("sh", "-c", "cp -a . /tmp/own && cd /tmp/own && "
               "{ test ! -d tree/.git || GIT_CONFIG_COUNT=0 git -C tree update-index -q --refresh; } && exec sh script")

    def counts(self):
        return {}


class Microsandbox(Subject):
    """The package of microsandbox, unpacked: $MICROSANDBOX, or BUILD/bench/microsandbox. Its kernel is its own."""

    name = "microsandbox"
    package = pathlib.Path(os.environ.get("MICROSANDBOX", harness.BUILD / "bench/microsandbox"))
    home = pathlib.Path("/tmp/bench-microsandbox")

    @classmethod
    def install(cls):
        """Where it looks for its parts, and a writable root directory made of our image, once."""
        if not (cls.package / "bin/msb").exists():
            raise FileNotFoundError(f"no bin/msb in {cls.package}: unpack microsandbox's npm package for this machine there")
        parts = cls.home / ".microsandbox"
        shutil.copytree(cls.package / "bin", parts / "bin")
        shutil.copytree(cls.package / "lib", parts / "lib")
        for library in (parts / "lib").glob("libkrunfw.so.*"):
            (parts / "lib/libkrunfw.so.5").symlink_to(library.name)
        for name in ("image", "changes", "work", "root"):
            (cls.home / name).mkdir()
        mount("-t", "erofs", "-o", "loop,ro", peers.SHARE / "base.erofs", cls.home / "image")
        mount("-t", "overlay", "overlay", "-o", f"lowerdir={cls.home}/image,upperdir={cls.home}/changes,workdir={cls.home}/work",
              cls.home / "root")

    def start(self):
        if not self.home.exists():
            self.install()
        # On a terminal, because it keeps the output to the end otherwise.
        self.terminal, slave = os.openpty()
        self.spawn(self.home / ".microsandbox/bin/msb", "run", "--tty", "--cpus", CPUS, "--memory", f"{MEMORY}M",
                   "--tmpfs", "/tmp", "-v", f"{self.share}:/mnt", "--workdir", "/mnt", self.home / "root", "--", "sh", "script",
                   stdin=slave, stdout=slave, env={**os.environ, "HOME": str(self.home), "TERM": "dumb"}, start_new_session=True)
        os.close(slave)

    def lines(self):
        with open(self.terminal, "rb", closefd=True) as terminal:
            try:
                yield from iter(terminal.readline, b"")
            except OSError:  # EIO: the other side is closed
                return

    @property
    def roots(self):
        """It starts processes that are not its children."""
        found = super().roots
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "exe").startswith(str(self.home)):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


KINDS = (Host, GuestTmpfs, Mvagent, MvagentExclusive, Virtiofsd, VirtiofsdUnpatched, MachineVirtiofsd, Microsandbox)
SUBJECTS = {kind.name: kind for kind in KINDS}
PEERS = ("virtiofsd", "microsandbox")
OURS = ("mvagent", "mvagent exclusive")


def versions():
    """What was compared, in one line each."""
    def first_line(*command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return "not installed"
        return (done.stdout + done.stderr).strip().splitlines()[0]

    return {
        "host kernel": os.uname().release,
        "mvagent": first_line(harness.MVAGENT, "--version"),
        "QEMU": first_line("qemu-system-x86_64", "--version"),
        "virtiofsd": first_line(peers.VIRTIOFSD or "virtiofsd", "--version"),
    }
