# SPDX-License-Identifier: Apache-2.0
"""The share as a POSIX file system: the suite of tests/posix on it, and, as reference, on the host's own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import harness
from harness import Failure, Skip, directory, expect, expect_equal, run

PROGRAMS = harness.BUILD / "tests/posix"
SCRATCH = "/scratch" if os.path.isdir("/scratch") else None

# Fewer checks than these mean that the suite did not run to its end.
LEAST_CHECKS = 19000
LARGE_COUNT = 10000

# With a number of steps given, the seeds are new each time.
STEPS = os.environ.get("MVAGENT_POSIX_STEPS")
DEFAULT_STEPS = 3000


def random_arguments(seed):
    if STEPS:
        return ["--steps", STEPS, "--check", "1000"]
    return ["--steps", str(DEFAULT_STEPS), "--seed", str(seed)]


def random_limit():
    return 300 + int(STEPS or DEFAULT_STEPS) // 20


def program(place, name):
    """A copy of the program @name in the share @place, as guests run it."""
    if not (PROGRAMS / name).exists():
        raise Skip(f"{PROGRAMS / name} is not built (make posix-programs)")
    return shutil.copy(PROGRAMS / name, place / name)


def expect_conforming(status, output):
    """Every check passed, and they were as many as there are."""
    failures = [line for line in output.splitlines() if line.startswith("FAIL ")]
    last = re.search(r"^conform: (\d+) passed, (\d+) failed, (\d+) skipped$", output, re.MULTILINE)
    if failures or not last or status != 0:
        raise Failure(f"status {status}, {len(failures)} checks failed: {failures[:20]} {output[-300:]!r}")
    passed, failed, skipped = map(int, last.groups())
    expect_equal(failed, 0, "failed checks")
    expect(passed >= LEAST_CHECKS, f"only {passed} checks were made")
    expect(skipped <= 2, f"{skipped} checks were skipped: {output}")
    print(f"     {passed} checks passed", file=sys.stderr)


def conform_on_host(place, user):
    if user and os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.chmod(0o777)
    done = subprocess.run([program(place, "conform"), place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          user=user, group=user, extra_groups=[] if user else None, timeout=harness.LIMIT, check=False)
    if done.returncode == 2 and "--backing" in done.stdout:
        raise Skip(f"{place} is neither tmpfs nor ext4")
    expect_conforming(done.returncode, done.stdout)


def test_reference_on_tmpfs():
    for user in [None, 1000]:
        with directory("/dev/shm") as place:
            conform_on_host(place, user)


def test_reference_on_ext4():
    for user in [None, 1000]:
        with directory(SCRATCH) as place:
            conform_on_host(place, user)


def conform_on_share(place, backing, *options):
    large = place / "large"
    large.mkdir()
    for number in range(LARGE_COUNT):
        (large / f"entry{number}").touch()
    rights = [] if os.geteuid() == 0 else ["--owner-rights"]
    result = run(*options, "--share", place, "--", program(place, "conform"), "--share", *rights, "--backing", backing,
                 "--large", large, place, limit=600)
    expect_conforming(result.status, result.out + result.err)
    expect_equal(sorted(os.listdir(place)), ["conform", "large"], "names left in the share")


def test_conformance_as_agent_on_tmpfs():
    with directory("/dev/shm") as place:
        conform_on_share(place, "tmpfs")


def test_conformance_as_root_on_ext4():
    if not SCRATCH:
        raise Skip("there is no ext4 of a known kind here")
    with directory(SCRATCH) as place:
        conform_on_share(place, "ext4", "--user", "root")


def expect_steps(result, name):
    done = re.search(rf"^{name}: (\d+) steps passed.*$", result.out, re.MULTILINE)
    if result.status != 0 or not done:
        raise Failure(f"status {result.status}: {result.out[-6000:]} {result.err[-600:]}")
    expect_equal(int(done.group(1)), int(STEPS or DEFAULT_STEPS), "steps")
    print(f"     {done.group(0)}", file=sys.stderr)


def test_random_files():
    with directory(SCRATCH) as place:
        result = run("--share", place, "--", program(place, "random_files"), *random_arguments(1), place,
                     limit=random_limit())
        expect_steps(result, "random_files")


def test_differential_with_tmpfs():
    with directory("/dev/shm") as place:
        result = run("--share", place, "--", program(place, "differential"), *random_arguments(2), place, "/tmp",
                     limit=random_limit())
        expect_steps(result, "differential")


EXT4 = """
set -e
cat "$1/image" >/tmp/image
mkdir /tmp/mount
mount "$(losetup -f --show /tmp/image)" /tmp/mount
shift
exec "$@" /tmp/mount
"""


def test_differential_with_ext4():
    if not shutil.which("mkfs.ext4"):
        raise Skip("mkfs.ext4 is not installed (e2fsprogs)")
    with directory(SCRATCH) as place:
        image = pathlib.Path(place / "image")
        with open(image, "wb") as file:
            file.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        result = run("--user", "root", "--share", place, "--", "sh", "-c", EXT4, "sh", str(place),
                     program(place, "differential"), *random_arguments(3), place, limit=random_limit())
        expect_steps(result, "differential")


if __name__ == "__main__":
    harness.main(globals())
