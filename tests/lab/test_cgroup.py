# SPDX-License-Identifier: Apache-2.0
"""--cgroup: a control group for the run's processes, its limits, and that it is gone afterwards."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in

ROOT = pathlib.Path("/sys/fs/cgroup")
GUEST = ("--cpus", "1", "--memory", "128M")
WAIT = ("sh", "-c", "touch here; sleep 1000")


@contextlib.contextmanager
def control_groups():
    """The host's own, or mounted for the test."""
    if os.geteuid() != 0:
        raise harness.Skip("needs root to make groups for others")
    mounted = not (ROOT / "cgroup.controllers").exists()
    if mounted and subprocess.run(["mount", "-t", "cgroup2", "cgroup2", ROOT], check=False, capture_output=True).returncode:
        raise harness.Skip("no cgroup v2 can be mounted here")
    try:
        missing = {"memory", "pids", "cpu"} - set((ROOT / "cgroup.controllers").read_text().split())
        if missing:
            raise harness.Skip(f"this kernel's cgroup v2 has no {missing}")
        yield
    finally:
        if mounted:
            subprocess.run(["umount", ROOT], check=True)


def groups(parent=ROOT):
    return sorted(parent.glob("mvagent-*"))


@contextlib.contextmanager
def waiting_run(*arguments, **named):
    """A run whose command waits, its group, and its process; killed at the end if the test has not ended it."""
    with directory() as place:
        work = place / "work"
        work.mkdir(mode=0o777)
        work.chmod(0o777)
        place.chmod(0o755)
        process = harness.start("--share", str(work), *arguments, *GUEST, "--", *WAIT, **named)
        try:
            harness.wait_until(lambda: (work / "here").exists() or process.poll() is not None, "the command", 60)
            expect(process.poll() is None, f"it ended: {process.stderr.read() if process.poll() is not None else ''}")
            yield process
        finally:
            process.kill()
            process.communicate()


def roles(group):
    pids = (group / "cgroup.procs").read_text().split()
    return sorted(pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name for pid in pids)


def test_limits_hold_for_every_process():
    with control_groups(), waiting_run("--cgroup", "memory=512M,pids=100", "--cgroup", "cpu=50%") as process:
        (group,) = groups()
        expect_equal(group.name, f"mvagent-{process.pid}", "name")
        expect_equal(roles(group), ["mvagent-blk", "mvagent-fs", "mvagent-vmm"], "processes")
        expect_equal([(group / name).read_text().strip() for name in ("memory.max", "memory.oom.group", "pids.max", "cpu.max")],
                     [str(512 << 20), "1", "100", "50000 100000"], "limits")
        process.send_signal(signal.SIGTERM)
        process.wait(100)
        expect_equal(groups(), [], "groups left")


def test_use_is_told():
    with control_groups(), directory() as place:
        result, outcome = harness.run_json("--share", str(place), "--cgroup", "memory=512M", *GUEST, "--", "true")
        expect_equal(result.status, 0, f"status, with {result.err}")
        expect(outcome["cgroup"]["memory_peak_bytes"] > 16 << 20, f"peak: {outcome['cgroup']}")
        expect(outcome["cgroup"]["cpu_microseconds"] > 1000, f"time: {outcome['cgroup']}")
        expect_equal(outcome["cgroup"]["killed_for_memory"], 0, "kills")
        expect_equal(groups(), [], "groups left")
        expect_equal(harness.run_json("--share", str(place), *GUEST, "--", "true")[1]["cgroup"], None, "without")


def test_all_of_the_memory_is_taken():
    with control_groups(), directory() as place:
        env = dict(os.environ, XDG_STATE_HOME=str(place))
        with waiting_run("--cgroup", "memory=512M", env=env) as process:
            (group,) = groups()
            # As if the run had grown: by its own means it cannot.
            (group / "memory.max").write_text(str(8 << 20))
            err = process.communicate(timeout=60)[1].decode()
            expect_equal(process.returncode, 125, "status")
            expect_in("took all of its --cgroup memory=512M", err, "standard error")
            expect_equal(groups(), [], "groups left")
        (record,) = (place / "mvagent/records").glob("*.jsonl")
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        expect_equal([line["limit"] for line in lines if line["event"] == "limit"], ["memory"], "limits in the record")


def test_group_of_a_killed_mvagent_is_removed():
    with control_groups():
        with waiting_run("--cgroup", "pids=100") as process:
            process.kill()
            process.wait()
            harness.expect_nothing_left()
            expect_equal(len(groups()), 1, "groups after SIGKILL")
        with directory() as place:
            harness.run_ok("--share", str(place), "--cgroup", "pids=100", *GUEST, "--", "true")
        expect_equal(groups(), [], "groups after the next run")


def test_group_of_an_earlier_process_of_the_same_number_is_removed():
    """Left by one that was killed, with limits under which nothing could run."""
    with control_groups(), directory() as place:
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        stale = 'mkdir "$0/mvagent-$$" && echo 1 >"$0/mvagent-$$/pids.max" && exec "$@"'
        command = [harness.MVAGENT, "run", *harness.ROOT, "--share", str(place), "--cgroup", "memory=512M", *GUEST, "--", "echo", "ran"]
        done = subprocess.run(["sh", "-c", stale, str(ROOT), *command], capture_output=True, check=False, timeout=harness.LIMIT)
        expect_equal((done.returncode, done.stdout), (0, b"ran\n"), done.stderr.decode())
        expect_equal(groups(), [], "groups left")


def test_a_group_that_was_delegated():
    with control_groups():
        delegated = ROOT / "delegated"
        inner = delegated / "inner"
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        delegated.mkdir()
        inner.mkdir()
        try:
            for group in (delegated, inner):
                os.chown(group, 1000, 1000)
                for name in ("cgroup.procs", "cgroup.subtree_control"):
                    os.chown(group / name, 1000, 1000)
            with directory() as home:
                os.chown(home, 1000, 1000)
                env = {"HOME": str(home), "PATH": os.environ["PATH"]}
                user = ("setpriv", "--reuid=1000", "--regid=1000", f"--groups={os.stat('/dev/kvm').st_gid}", "--")
                enter = ("sh", "-c", 'echo $$ >"$0" && exec "$@"', str(inner / "cgroup.procs"))
                with waiting_run("--cgroup", "memory=512M", env=env, prefix=(*enter, *user)) as process:
                    (group,) = groups(delegated)
                    expect_equal(roles(group), ["mvagent-blk", "mvagent-fs", "mvagent-vmm"], "processes")
                    process.send_signal(signal.SIGTERM)
                    process.wait(100)
                expect_equal(groups(delegated), [], "groups left")
                outside = harness.start("--cgroup", "memory=512M", *GUEST, "--", "true", env=env, prefix=user)
                err = outside.communicate(timeout=60)[1].decode()
                expect_equal(outside.returncode, 125, "status outside of it")
                expect_in("--cgroup: no control group here is yours to write", err, "standard error")
        finally:
            harness.wait_until(lambda: not (inner / "cgroup.procs").read_text(), "processes of the group to end")
            inner.rmdir()
            delegated.rmdir()


def test_io_of_a_share_without_a_disk():
    with control_groups(), directory() as place:
        result = harness.run("--share", str(place), "--cgroup", "io=10M", *GUEST, "--", "true")
        expect_equal((result.status, groups()), (125, []), "status and groups")
        expect_in("on no disk that the kernel can limit" if "io" in (ROOT / "cgroup.controllers").read_text().split()
                  else "can set those limits", result.err, "standard error")


if __name__ == "__main__":
    harness.main(globals())
