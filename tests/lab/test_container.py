# SPDX-License-Identifier: Apache-2.0
"""mvagent in a container that has /dev/kvm and no more, as root and as an ordinary user, and where no namespaces may
be made in it."""

import os
import pathlib

import container
import harness
from harness import MVAGENT, ROOT, directory, expect_equal, expect_in

USER = 1000
COMMAND = 'test ! -e /dev/kvm && test "$(id -u)" != 0 && cat given && echo made >new && mv given taken'


def run_in_container(user, namespaces, *options):
    """A run that reads, writes and renames in its share; what it printed on standard error."""
    if missing := container.is_missing():
        raise harness.Skip(missing)
    with directory() as name:
        work = pathlib.Path(name)
        (work / "given").write_text("words\n")
        for path in (work, work / "given"):
            os.chown(path, user, user)
        done = container.run([MVAGENT, "run", *ROOT, *options, "--share", work, "--", "sh", "-c", COMMAND], user=user, namespaces=namespaces,
                             writable=[work])
        expect_equal((done.returncode, done.stdout), (0, "words\n"), done.stderr[-900:])
        expect_equal(sorted(path.name for path in work.iterdir()), ["new", "taken"], "the share")
        expect_equal((work / "new").read_text(), "made\n", "what was written")
        expect_equal((work / "new").stat().st_uid, user, "its owner")
        return done.stderr


def test_root():
    run_in_container(0, True)


def test_ordinary_user():
    run_in_container(USER, True)


def test_without_namespaces():
    """Landlock alone keeps processes from files there, and a host whose walls are fewer says so when it is asked."""
    run_in_container(USER, False)
    expect_in("mount namespace", run_in_container(0, False, "-v"), "what is missing")


if __name__ == "__main__":
    harness.main(globals())
