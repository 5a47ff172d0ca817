# SPDX-License-Identifier: Apache-2.0
"""mvagent as a service of systemd, with the settings that services are hardened with. systemd is process 1 of a
process namespace here, and ends with the service."""

import contextlib
import os
import pathlib
import subprocess

import harness
from harness import MVAGENT, ROOT, directory, expect, expect_equal, expect_in

SYSTEMD = pathlib.Path("/lib/systemd/systemd")
GROUPS = pathlib.Path("/sys/fs/cgroup")
USER = 1000
MACHINE = ("--cpus", "1", "--memory", "256M")
HARDENED = """
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
DevicePolicy=closed
DeviceAllow=/dev/kvm rw
LockPersonality=yes
RestrictRealtime=yes
"""
START = """
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
exec env -i container=other SYSTEMD_UNIT_PATH="$1": SYSTEMD_LOG_TARGET=console PATH="$PATH" "$2" --system --unit=run.service
"""


@contextlib.contextmanager
def control_groups():
    if os.geteuid() or not SYSTEMD.exists():
        raise harness.Skip("needs root and systemd")
    mounted = not (GROUPS / "cgroup.controllers").exists()
    if mounted and subprocess.run(["mount", "-t", "cgroup2", "cgroup2", GROUPS], check=False, capture_output=True).returncode:
        raise harness.Skip("no cgroup v2 can be mounted here")
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", GROUPS], check=True)


def quoted(word):
    return '"' + str(word).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'


def run_service(place, options, settings, command):
    """A service until it has ended: (what it printed, what it said)."""
    home, work = place / "home", place / "work"
    words = [MVAGENT, "run", *ROOT, *MACHINE, *options, "--share", work, "--", "sh", "-c", command]
    (place / "run.service").write_text(f"""
[Unit]
DefaultDependencies=no
SuccessAction=exit
FailureAction=exit
[Service]
Type=exec
Environment=HOME={home} XDG_STATE_HOME={home}/state XDG_CACHE_HOME={home}/cache
WorkingDirectory={work}
ReadWritePaths={place}
StandardOutput=file:{place}/out
StandardError=file:{place}/err
ExecStart={" ".join(map(quoted, words))}
{settings}""")
    done = subprocess.run(["unshare", "--pid", "--mount", "--cgroup", "--fork", "--kill-child", "sh", "-ec", START, "sh", place, SYSTEMD],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    expect((place / "err").exists(), f"systemd started nothing: {done.stdout[-900:]}{done.stderr[-900:]}")
    return (place / "out").read_text(), (place / "err").read_text()


@contextlib.contextmanager
def places():
    with control_groups(), directory() as place:
        for name in ("home", "work"):
            (place / name).mkdir()
        (place / "work/given").write_text("words\n")
        for path in (place, place / "home", place / "work", place / "work/given"):
            os.chown(path, USER, USER)
        yield place


def expect_ran(place, out, err):
    expect_equal(out, "words\n", err[-900:])
    expect((place / "work/new").exists(), f"nothing was written: {err[-900:]}")
    expect_equal((place / "work/new").read_text(), "made\n", "the share")
    expect_equal((place / "work/new").stat().st_uid, USER, "whose the new file is")
    expect_equal(harness.processes(), {}, "processes left behind")


def test_user_with_a_control_group():
    """Delegate= gives the service's group to it: limits hold there."""
    with places() as place:
        out, err = run_service(place, ("--cgroup", "memory=1G"), f"{HARDENED}User={USER}\nDelegate=yes\n", "cat given; echo made >new")
        expect_ran(place, out, err)


def test_root_without_namespaces():
    """What systemd forbids is as what another host forbids."""
    with places() as place:
        out, err = run_service(place, ("-v",), HARDENED + "RestrictNamespaces=yes\n", "cat given; echo made >new")
        expect_ran(place, out, err)
        expect_in("mount namespace", err, "what is missing")


def test_setting_that_cannot_be():
    with places() as place:
        out, err = run_service(place, (), f"User={USER}\nRestrictSUIDSGID=yes\n", "cat given")
        expect_equal(out, "", "nothing runs")
        expect_in("RestrictSUIDSGID=", err, "what to do")


def test_time_of_a_service():
    """systemd ends it by SIGTERM: what was written is there, and nothing is left."""
    with places() as place:
        out, err = run_service(place, (), f"{HARDENED}User={USER}\nRuntimeMaxSec=20\n", "cat given; echo made >new; sleep 1000")
        expect_ran(place, out, err)


if __name__ == "__main__":
    harness.main(globals())
