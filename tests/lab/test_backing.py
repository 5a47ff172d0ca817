# SPDX-License-Identifier: Apache-2.0
"""Shares on file systems that are full, limited, broken, or know neither case nor modes nor links."""

import contextlib
import ctypes
import os
import pathlib
import re
import struct
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in, run, run_ok

SCRATCH = "/scratch" if os.path.isdir("/scratch") else None
MEBIBYTE = 1 << 20
SECTORS_OF_A_BLOCK = 8


def command(*words, skip=False):
    """Runs a tool of the host's. @skip: where it fails the test cannot be run here."""
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        if not skip:
            raise
        said = getattr(error, "stderr", None) or str(error)
        raise harness.Skip(f"{words[0]}: {said.strip()[-200:]}") from error


@contextlib.contextmanager
def loop_device(size):
    """A block device of @size bytes, in a file."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to make file systems")
    for name in ("loop", "dm-mod", "vfat", "nls_cp437", "nls_ascii", "nls_utf8", "quota_v2"):
        subprocess.run(["modprobe", name], capture_output=True, check=False)
    with directory(SCRATCH) as place:
        with open(place / "image", "wb") as file:
            file.truncate(size)
        device = command("losetup", "-f", "--show", str(place / "image"), skip=True).strip()
        try:
            yield device
        finally:
            command("losetup", "-d", device)


@contextlib.contextmanager
def mounted(device, *options):
    with directory("/tmp") as place:
        command("mount", *options, device, str(place), skip=True)
        try:
            yield place
        finally:
            command("umount", str(place))


def test_vfat():
    """Names in any case and by their short forms are one file there: hidden and protected ones stay so."""
    with loop_device(64 * MEBIBYTE) as device:
        command("mkfs.vfat", device, skip=True)
        with mounted(device, "-t", "vfat", "-o", "shortname=mixed") as place:
            (place / ".env").write_text("secret")
            (place / ".git" / "hooks").mkdir(parents=True)
            (place / ".git" / "config").write_text("[core]\n")
            (place / ".vscode").mkdir()
            short = [name for name in ("ENV~1", "GIT~1/config", "GI9EB4~1/config", ".GIT/CONFIG", "VSCODE~1") if (place / name).exists()]
            expect(".GIT/CONFIG" in short and len(short) >= 3, f"the host itself knows only {short}")
            script = "for n in .ENV .Env ENV~1 'ENV~1 ' .env. GIT~1/config; do cat \"$n\" 2>/dev/null; done; " \
                     "for n in .git .GIT GIT~1 '.git.' '.git '; do echo evil >>\"$n/config\"; mkdir \"$n/hooks/x\"; done 2>/dev/null; " \
                     "for n in .VSCODE VSCODE~1; do echo evil >\"$n/tasks.json\"; done 2>/dev/null; mv .GIT other 2>/dev/null; " \
                     "mkdir d && echo text >d/File && cat d/fILE && ls d; ln d/file l 2>/dev/null || echo no link; " \
                     "ln -s d s 2>/dev/null || echo no symlink; ls -A"
            result = run_ok("--share", place, "--", "sh", "-c", script)
            expect_equal(result.out.splitlines(), ["text", "File", "no link", "no symlink", ".git", ".vscode", "d"], result.err)
            expect_equal((place / ".git/config").read_text(), "[core]\n")
            expect_equal((os.listdir(place / ".git/hooks"), os.listdir(place / ".vscode")), ([], []))
            expect_equal((place / ".env").read_text(), "secret")


def test_a_full_disk():
    """ENOSPC when it is so, with what was written before, and space again when something is removed."""
    script = "dd if=/dev/zero of=big bs=64k count=1000 conv=fsync 2>&1 | grep -o 'No space left on device'; " \
             "echo x >small && cat small; rm big; dd if=/dev/zero of=again bs=64k count=16 2>/dev/null && echo again"
    with loop_device(16 * MEBIBYTE) as device:
        command("mkfs.ext4", "-q", "-m", "0", device)
        with mounted(device) as place:
            (place / "w").mkdir()
            for cache in ("shared", "exclusive", "none"):
                result = run("--cache", cache, "--share", place / "w", "--", "sh", "-c", script)
                lines = result.out.splitlines()
                expect_equal((lines[:1], lines[-1:]), (["No space left on device"], ["again"]), f"{cache}: {result.err}")
                expect_equal((place / "w/again").stat().st_size, MEBIBYTE)
                (place / "w/again").unlink()


QUOTACTL = 179  # of x86-64
SET_QUOTA_OF_USER = 0x800008 << 8
LIMITS_ARE_VALID = 1


def limit_space(device, user, kibibytes):
    """quotactl(2), Q_SETQUOTA: a hard limit for @user."""
    limits = struct.pack("8QI", kibibytes, kibibytes, 0, 0, 0, 0, 0, 0, LIMITS_ARE_VALID) + bytes(4)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(QUOTACTL, SET_QUOTA_OF_USER, device.encode(), user, limits):
        raise harness.Skip(f"quotactl: {os.strerror(ctypes.get_errno())}")


def test_a_quota():
    """EDQUOT, as for any program of the user's."""
    user = 1234
    with loop_device(64 * MEBIBYTE) as device:
        command("mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota", device, skip=True)
        with mounted(device, "-o", "usrquota") as place, directory("/tmp") as home:
            limit_space(device, user, 2048)
            (place / "w").mkdir()
            os.chown(place / "w", user, user)
            os.chown(home, user, user)
            place.chmod(0o755)
            script = "dd if=/dev/zero of=big bs=64k count=100 conv=fsync 2>&1 | grep -o 'Disk quota exceeded'; rm big; echo x >small && cat small"
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", harness.MVAGENT, "run", *harness.ROOT, "--share",
                     str(place / "w"), "--", "sh", "-c", script]
            done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=harness.LIMIT,
                                  env={"HOME": str(home), "PATH": os.environ["PATH"]})
            expect_equal(done.stdout, b"Disk quota exceeded\nx\n", done.stderr.decode()[-600:])


@contextlib.contextmanager
def broken_below(device, path):
    """The file system of @device, but where the contents of the file @path are, nothing can be read or written."""
    blocks = sorted({int(number) for number in re.findall(r"\d+", command("debugfs", "-R", f"blocks /{path}", device))})
    first, last = blocks[0], blocks[-1]
    expect_equal(last - first + 1, len(blocks), "blocks side by side")
    total = int(command("blockdev", "--getsz", device))
    begin, end = first * SECTORS_OF_A_BLOCK, (last + 1) * SECTORS_OF_A_BLOCK
    table = f"0 {begin} linear {device} 0\n{begin} {end - begin} error\n{end} {total - end} linear {device} {end}\n"
    subprocess.run(["dmsetup", "create", "--noudevsync", "mvagent-broken"], input=table.encode(), check=True, capture_output=True)
    try:
        command("dmsetup", "mknodes", "mvagent-broken")
        yield "/dev/mapper/mvagent-broken"
    finally:
        command("dmsetup", "remove", "--noudevsync", "--retry", "mvagent-broken")


def test_a_broken_disk():
    """EIO to who reads and to who asks for what is written to be safe; all else goes on."""
    command("dmsetup", "version", skip=True)
    with loop_device(64 * MEBIBYTE) as device:
        command("mkfs.ext4", "-q", "-b", "4096", device)
        with mounted(device) as place:
            (place / "w").mkdir()
            (place / "w/bad").write_bytes(b"b" * MEBIBYTE)
            (place / "w/good").write_text("good\n")
        script = "cat good; head -c 10 bad 2>&1 >/dev/null | grep -o 'Input/output error'; " \
                 "python3 -c 'import os,mmap; f=os.open(\"bad\", 0); m=mmap.mmap(f, 4096, prot=1); print(m[0])'; [ $? = 135 ] && echo SIGBUS; " \
                 "dd if=/dev/zero of=bad bs=4k count=4 conv=notrunc,fsync 2>&1 | grep -o 'Input/output error'; " \
                 "echo more >>good && cat good && stat -c %s bad"
        with broken_below(device, "w/bad") as broken:
            for cache in ("shared", "exclusive"):
                with mounted(broken) as place:
                    (place / "w/good").write_text("good\n")
                    result = run("--cache", cache, "--share", place / "w", "--", "sh", "-c", script)
                    expect_equal(result.out.splitlines(), ["good", "Input/output error", "SIGBUS", "Input/output error", "good", "more",
                                                           str(MEBIBYTE)], f"{cache}: {result.err}")
                    expect_in("good\nmore\n", pathlib.Path(place / "w/good").read_text())


if __name__ == "__main__":
    harness.main(globals())
