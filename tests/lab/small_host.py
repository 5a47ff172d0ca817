# SPDX-License-Identifier: Apache-2.0
"""A host inside the lab's, in which mvagent runs: tools/lab/small-host, tools/lab/enter."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import harness

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOL = harness.CHECKOUT / "tools/lab/small-host"
ENTER = harness.CHECKOUT / "tools/lab/enter"
IMAGE = harness.BUILD / "share/mvagent/base.erofs"


class SmallHost:
    def __init__(self, root):
        self.root = root

    def path(self, name):
        return self.root / name.lstrip("/")

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def command(self, *arguments, user=0):
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        return [str(ENTER), str(self.root), *become, harness.MVAGENT, *arguments]

    def run(self, *arguments, limit=300, stdin=subprocess.DEVNULL, user=0, home="/root"):
        """mvagent run --root host ARGUMENTS, in this host."""
        done = subprocess.run(self.command("run", "--root", "host", *map(os.fsencode, arguments), user=user), stdin=stdin,
                              capture_output=True, timeout=limit, check=False, env={"HOME": home, "PATH": PATH})
        return harness.Result(done, 0)

    def run_ok(self, *arguments, **named):
        result = self.run(*arguments, **named)
        if result.status != 0:
            raise harness.Failure(f"status {result.status}: {result.err[-600:]}")
        return result

    def sh(self, script):
        """Runs a script in this host itself; returns its output."""
        return subprocess.run([str(ENTER), str(self.root), "/bin/sh", "-ec", script], check=True, capture_output=True).stdout


@contextlib.contextmanager
def small_host():
    if os.getuid() != 0:
        raise harness.Skip("needs root to mount a host of its own")
    place = pathlib.Path(tempfile.mkdtemp(prefix="mvagent-host-", dir="/tmp"))
    try:
        subprocess.run([TOOL, place, IMAGE, harness.BUILD], check=True)
        yield SmallHost(place)
    finally:
        # What is at the place, and what it lies on.
        while os.path.ismount(place):
            subprocess.run(["umount", "-R", "-l", place], check=True)
        place.rmdir()
