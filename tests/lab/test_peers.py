# SPDX-License-Identifier: Apache-2.0
"""Each half against the field's own other half: QEMU drives mvagent-fs and mvagent-blk, mvagent-vmm drives virtiofsd."""

import os
import re
import shutil
import socket
import struct
import subprocess

import harness
from harness import Failure, Skip, directory, expect, expect_equal, expect_in

SHARE = harness.BUILD / "share/mvagent"
PROGRAMS = harness.BUILD / "libexec/mvagent"
VIRTIOFSD = next((path for path in ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd") if os.path.exists(path)), None)

INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
exec > /dev/hvc0 2>&1
/bin/busybox mount -t erofs -o ro /dev/vda /root || echo NO-ROOT
/bin/busybox mount -t devtmpfs dev /root/dev
/bin/busybox mount -t proc proc /root/proc
/bin/busybox mount -t tmpfs tmp /root/tmp
/bin/busybox mount -t virtiofs share /root/mnt || echo NO-SHARE
HOME=/tmp /bin/busybox chroot /root /bin/sh -c 'cd /mnt && . ./script'
echo "STATUS $?"
/bin/busybox umount /root/mnt
/bin/busybox reboot -f
"""


def make_initramfs(place):
    root = place / "initramfs"
    for name in ("bin", "dev", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    names = b"\0".join(os.fsencode(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc"], input=names, cwd=root,
                             capture_output=True, check=True).stdout
    (place / "initramfs.cpio").write_bytes(archive)
    return place / "initramfs.cpio"


def qemu(place, share, script, *options):
    """Runs @script in a guest of QEMU's microvm, in @share served by our server; returns what it printed."""
    for program in ("qemu-system-x86_64", "cpio", "busybox"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    (share / "script").write_text(script)
    servers = [
        subprocess.Popen([PROGRAMS / "mvagent-fs", "--socket", place / "fs.sock", "--root", share, "--guest-uid", "0",
                          "--guest-gid", "0", *options]),
        subprocess.Popen([PROGRAMS / "mvagent-blk", "--socket", place / "blk.sock", "--image", SHARE / "base.erofs"]),
    ]
    try:
        for name in ("fs.sock", "blk.sock"):
            harness.wait_until((place / name).exists, f"the server to listen at {name}")
        done = subprocess.run(
            ["qemu-system-x86_64", "-M", "microvm,acpi=off,pit=on,pic=on,rtc=off,isa-serial=off", "-accel", "kvm",
             "-cpu", "host", "-m", "512", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-global", "virtio-mmio.force-legacy=false",
             "-object", "memory-backend-memfd,id=memory,size=512M,share=on", "-numa", "node,memdev=memory",
             "-kernel", SHARE / "vmlinux", "-initrd", make_initramfs(place),
             "-append", "console=hvc0 quiet reboot=t panic=-1",
             "-chardev", "stdio,id=console", "-device", "virtio-serial-device", "-device", "virtconsole,chardev=console",
             "-chardev", f"socket,id=blk,path={place}/blk.sock", "-device", "vhost-user-blk,chardev=blk",
             "-chardev", f"socket,id=fs,path={place}/fs.sock",
             "-device", "vhost-user-fs-device,queue-size=1024,chardev=fs,tag=share"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.LIMIT, check=False)
        for server in servers:
            expect_equal(server.wait(timeout=10), 0, "a server's exit status after QEMU ended")
        return done.stdout.decode().replace("\r", "") + done.stderr.decode()
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_qemu_drives_our_servers():
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("qemu-system-x86_64 is not installed")
    with directory() as place:
        share = place / "share"
        share.mkdir()
        subprocess.run("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first "
                       "&& echo new > untracked", shell=True, cwd=share, check=True)
        output = qemu(place, share, "git status --porcelain; git log --format=%s; echo made > made; ls; exit 0")
        for line in ("?? untracked", "first", "made", "STATUS 0"):
            expect_in(line, output, "what the guest printed")
        expect_equal((share / "made").read_text(), "made\n")


def test_qemu_drives_a_read_only_share():
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("qemu-system-x86_64 is not installed")
    with directory() as place:
        share = place / "share"
        share.mkdir()
        output = qemu(place, share, "echo x > made; exit 0", "--read-only")
        expect_in("Read-only file system", output, "what the guest printed")
        expect_equal(sorted(os.listdir(share)), ["script"])


SESSION = (harness.CHECKOUT / "vmm/wire/session.h").read_text()
(VERSION,) = map(int, re.findall(r"#define SESSION_VERSION (\d+)U", SESSION))
(START_NAMES,) = map(int, re.findall(r"#define SESSION_START_NAMES\s+(\d+)", SESSION))


def put_string(text):
    data = os.fsencode(text)
    return struct.pack("<I", len(data)) + data


def start_message(path, command):
    """SESSION_START as vmm/wire/session.h describes it."""
    variables = ["PATH=/usr/bin:/bin", "HOME=/root"]
    payload = struct.pack("<8I", 0, 0, 0, 24, 80, 1, len(command), len(variables))
    names = ["root", "/root", "guest", path]
    names += [""] * (START_NAMES - len(names))  # files that are not wanted
    for text in (*names, "peer", path):
        payload += put_string(text)
    payload += struct.pack("<I", 0)
    for text in (*command, *variables):
        payload += put_string(text)
    return struct.pack("<II", 2, len(payload)) + payload


def read_exactly(stream, length):
    data = b""
    while len(data) < length:
        part = stream.recv(length - len(data))
        if not part:
            raise Failure("the guest hung up")
        data += part
    return data


class Machine:
    """mvagent-vmm driven by hand: the supervisor's part, without a supervisor."""

    def __init__(self, share_socket, memory=512):
        self.keep = []
        arguments = [PROGRAMS / "mvagent-vmm", "--memory", str(memory), "--cpus", "1", "--command-line",
                     "loglevel=1 panic=-1 reboot=k earlyprintk=serial,keep tsc=reliable"]
        self.monitor = self.pair(arguments, "--monitor-fd", "", socket.SOCK_SEQPACKET)
        self.control = self.pair(arguments, "--port", "1024:")
        self.stdin = self.pair(arguments, "--port", "1025:")
        self.stdout = self.pair(arguments, "--port", "1026:")
        self.stderr = self.pair(arguments, "--port", "1027:")
        blk = self.pair(arguments, "--blk-fd", "")
        self.keep.append(share_socket)
        arguments += ["--share", f"peer:{share_socket.fileno()}"]
        for option, path in (("--kvm-fd", "/dev/kvm"), ("--kernel-fd", SHARE / "vmlinux"), ("--initrd-fd", SHARE / "initramfs.cpio")):
            file = open(path, "r+b" if "kvm" in option else "rb", buffering=0)
            self.keep.append(file)
            arguments += [option, str(file.fileno())]
        self.blk = subprocess.Popen([PROGRAMS / "mvagent-blk", "--fd", str(blk.fileno()), "--image", SHARE / "base.erofs"],
                                    pass_fds=[blk.fileno()])
        self.vmm = subprocess.Popen(arguments, pass_fds=[item.fileno() for item in self.keep])
        blk.close()
        for item in self.keep:
            item.close()

    def pair(self, arguments, option, prefix, kind=socket.SOCK_STREAM):
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        ours.settimeout(harness.LIMIT)
        self.keep.append(theirs)
        arguments += [option, f"{prefix}{theirs.fileno()}"]
        return ours

    def message(self):
        kind, length = struct.unpack("<II", read_exactly(self.control, 8))
        return kind, read_exactly(self.control, length)

    def stop(self):
        for process in (self.vmm, self.blk):
            process.kill()
            process.wait()


def test_virtiofsd_serves_our_machine():
    if not VIRTIOFSD:
        raise Skip("virtiofsd is not installed")
    if os.getuid() != 0:
        raise Skip("this virtiofsd needs root")
    with directory() as place:
        share = place / "share"
        share.mkdir()
        path = str(place / "fsd.sock")
        daemon = subprocess.Popen([VIRTIOFSD, f"--socket-path={path}", "-o", f"source={share}", "-o", "sandbox=chroot"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        machine = None
        try:
            harness.wait_until(lambda: os.path.exists(path), "virtiofsd to listen")
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            machine = Machine(connection)
            expect_equal(machine.message(), (1, struct.pack("<I", VERSION)), "HELLO")
            machine.control.sendall(start_message("/w", ["sh", "-c", "git init -q . && echo made > made && git add made && git status --porcelain; exit 5"]))
            expect_equal(machine.message()[0], 3, "STARTED")
            output = b""
            while part := machine.stdout.recv(4096):
                output += part
            expect_equal(output, b"A  made\n", "what the command printed")
            expect_equal(machine.message(), (5, struct.pack("<I", 5 << 8)), "EXITED")
            expect_equal((share / "made").read_text(), "made\n")
        finally:
            if machine:
                machine.stop()
            daemon.kill()
            daemon.wait()


def test_hostile_client_against_our_server():
    """Raw FUSE without a Linux in between, the host changing names under the server (tests/hostile)."""
    client = harness.BUILD / "tests/hostile/fuse_client"
    if not client.exists():
        raise Failure(f"{client} was not built")
    done = subprocess.run([client, PROGRAMS / "mvagent-fs", "1", "10"], capture_output=True, timeout=harness.LIMIT, check=False)
    lines = done.stdout.decode().splitlines()
    bad = [line for line in lines if line.startswith("not ok")]
    expect_equal((done.returncode, bad), (0, []), done.stderr.decode()[-500:])
    messages = sum(int(line.split()[1]) for line in lines if line.startswith("# "))
    expect(messages > 1000, f"only {messages} messages were sent: {lines}")


if __name__ == "__main__":
    harness.main(globals())
