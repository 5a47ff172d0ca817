# SPDX-License-Identifier: Apache-2.0
"""A host inside the lab's: the base image, writable, in which mvagent runs by chroot.

The lab's own tree is read over 9p, where looking through the host's tools takes minutes; this one is an ordinary
Debian system of 9,000 files in the lab's memory.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE = harness.BUILD / "share/mvagent/base.erofs"


def sh(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def libraries(programs):
    """The shared libraries of programs, as {path that they are loaded from}."""
    listed = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"=> (/\S+)", listed))


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

    def command(self, *arguments):
        return ["/usr/sbin/chroot", str(self.root), harness.MVAGENT, *arguments]

    def run(self, *arguments, limit=300, stdin=subprocess.DEVNULL):
        """mvagent run --root host ARGUMENTS, in this host."""
        done = subprocess.run(self.command("run", "--root", "host", *map(os.fsencode, arguments)), stdin=stdin,
                              capture_output=True, timeout=limit, check=False, env={"HOME": "/root", "PATH": PATH})
        return harness.Result(done, 0)

    def run_ok(self, *arguments, **named):
        result = self.run(*arguments, **named)
        if result.status != 0:
            raise harness.Failure(f"status {result.status}: {result.err[-600:]}")
        return result

    def sh(self, script):
        """Runs a script in this host itself; returns its output."""
        return subprocess.run(["/usr/sbin/chroot", str(self.root), "/bin/sh", "-ec", script], check=True, capture_output=True).stdout


@contextlib.contextmanager
def small_host():
    if os.getuid() != 0:
        raise harness.Skip("needs root to mount a host of its own")
    place = pathlib.Path(tempfile.mkdtemp(prefix="mvagent-host-", dir="/tmp"))
    mounted = []

    def mount(target, *words):
        sh("mount", *words, target)
        mounted.append(target)

    try:
        mount(place, "-t", "tmpfs", "-o", "mode=0755", "host")
        for name in ("image", "upper", "work", "root"):
            (place / name).mkdir()
        root = place / "root"
        mount(place / "image", "-t", "erofs", "-o", "loop,ro", IMAGE)
        mount(root, "-t", "overlay", "-o", f"lowerdir={place}/image,upperdir={place}/upper,workdir={place}/work", "overlay")
        for name in ("dev", "proc", "sys"):
            mount(root / name, "--rbind", f"/{name}")
        host = SmallHost(root)
        build = host.path(str(harness.BUILD))
        build.mkdir(parents=True, exist_ok=True)
        mount(build, "--bind", harness.BUILD)
        programs = [harness.MVAGENT, *(str(path) for path in (harness.BUILD / "libexec/mvagent").iterdir())]
        for library in libraries(programs):
            if not host.path(library).exists():
                host.path(library).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, host.path(library))
        yield host
    finally:
        for target in reversed(mounted):
            subprocess.run(["umount", "-R", "-l", str(target)], check=False)
        place.rmdir()
