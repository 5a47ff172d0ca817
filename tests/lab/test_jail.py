# SPDX-License-Identifier: Apache-2.0
"""The jail of each process of a run, looked at from outside while a guest is there, with and without namespaces."""

import contextlib
import os
import pathlib
import re
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in

JAILED = ("mvagent-vmm", "mvagent-blk", "mvagent-fs")
CAP_DAC_OVERRIDE, CAP_FOWNER = 1 << 1, 1 << 3

# Forbids unshare, clone3 and mounts as a container's filter may; ENOSYS for clone3 is what Docker answers.
NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces"


@contextlib.contextmanager
def sleeping_run(*arguments, share):
    """A run whose command has begun, and its processes by name."""
    process = harness.start("--share", str(share), *arguments, "--", "sh", "-c", "echo begun; sleep 1000")
    try:
        line = process.stdout.readline()
        if line != b"begun\n":
            process.kill()
            raise harness.Failure(f"{line!r}: {process.stderr.read()[-600:]!r}")
        yield {os.path.basename(line.split()[0]): pid for pid, line in harness.processes().items()}
    finally:
        process.kill()
        process.communicate()


def status_of(pid):
    return dict(re.findall(r"^(\w+):\s*(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def expect_apart(name, pid, kinds):
    for kind in kinds:
        expect(namespace(pid, kind) != namespace("self", kind), f"{name} shares its {kind} namespace with the host")


def expect_no_powers(name, pid):
    status = status_of(pid)
    kept = CAP_DAC_OVERRIDE | CAP_FOWNER if name == "mvagent-fs" and os.getuid() == 0 else 0
    for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        expect_equal(int(status[kind], 16) & ~(kept if kind in ("CapEff", "CapPrm") else 0), 0, f"{name}: {kind}")
    expect_equal(status["NoNewPrivs"], "1", f"{name}: no new privileges")
    expect_equal(status["Seccomp"], "2", f"{name}: a filter for system calls")
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    expect(re.search(r"Max core file size +0 +0 ", limits), f"{name} may leave a core file")


def expect_empty_root(name, pid):
    """Only root can look."""
    expect_equal(sorted(os.listdir(f"/proc/{pid}/root")), ["proc"] if name == "mvagent-fs" else [], f"{name}: files")
    mounts = pathlib.Path(f"/proc/{pid}/mounts").read_text().splitlines()
    points = sorted(line.split()[1] for line in mounts)
    expect_equal(points, ["/", "/proc"] if name == "mvagent-fs" else ["/"], f"{name}: mounts")
    expect_in(" ro,", mounts[0])


def expect_no_terminal(name, pid):
    """Its messages go to the supervisor, and it has no terminal to open."""
    expect_in("pipe:", os.readlink(f"/proc/{pid}/fd/2"))
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    expect_equal(fields[4], "0", f"{name}: terminal")  # tty_nr


def expect_no_sockets_but_unix(name, pid):
    """All that each has is connected to another process of the run."""
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet"):
        with contextlib.suppress(FileNotFoundError):
            lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()
            expect_equal(len(lines), 1, f"{name}: sockets in net/{table}: {lines}")
    devices = pathlib.Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    expect_equal([line.split(":")[0].strip() for line in devices], ["lo"], f"{name}: network interfaces")


def test_every_process_is_apart():
    with directory() as place, sleeping_run(share=place) as processes:
        for name in JAILED:
            pid = processes[name]
            # The files in /proc of a process that cannot be traced belong to root.
            if os.getuid() == 0:
                expect_apart(name, pid, ("mnt", "pid", "net", "ipc", "uts", "cgroup"))
                expect_empty_root(name, pid)
                expect_no_sockets_but_unix(name, pid)
                expect_no_terminal(name, pid)
                expect_equal(status_of(pid)["Uid"].split()[1], "0" if name == "mvagent-fs" else "65534", f"{name}: user")
            expect_no_powers(name, pid)
            # One line for each namespace of process numbers that it is in.
            expect_equal(status_of(pid)["NSpid"].split()[1:], ["1"], f"{name}: its number in a namespace of its own")


def test_a_share_with_something_mounted_below():
    """What is mounted there stays out of reach, and what it covers too."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to mount")
    with directory() as place:
        (place / "mounted").mkdir()
        (place / "mounted/covered").write_text("covered")
        subprocess.run(["mount", "-t", "tmpfs", "t", place / "mounted"], check=True)
        try:
            (place / "mounted/above").write_text("above")
            result = harness.run_ok("--share", str(place), "--", "sh", "-c",
                                    "ls -a; ls mounted; cat mounted/covered mounted/above; true")
        finally:
            subprocess.run(["umount", place / "mounted"], check=True)
        expect_equal(result.out.split(), [".", "..", "mounted"], "listing")
        expect_equal(result.err.count("Permission denied"), 3, f"refusals in {result.err!r}")
        expect_equal((place / "mounted/covered").read_text(), "covered", "what was covered")


def test_without_namespaces():
    """Landlock alone holds, and -v says so. In a user namespace that may have none below it."""
    with directory() as place:
        (place / "file").write_text("x")
        script = f'{NO_NAMESPACES} && exec setpriv --bounding-set -all --inh-caps -all "$@"'
        result = subprocess.run(["unshare", "-Ur", "sh", "-c", script, "sh", harness.MVAGENT, "run", *harness.ROOT, "-v", "--share",
                                 place, "--", "sh", "-c", "cat file && echo y > file"], capture_output=True, timeout=120, check=False)
        error = result.stderr.decode()
        expect_equal((result.returncode, result.stdout), (0, b"x"), f"run: {error[-600:]}")
        expect_in("allows no mount namespace to this process; Landlock alone keeps it in", error)
        expect_equal((place / "file").read_text(), "y\n", "what was written")


if __name__ == "__main__":
    harness.main(globals())
