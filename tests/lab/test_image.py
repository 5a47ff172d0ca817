#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images of the user's store as the guest's root: mvagent image, mvagent run --root NAME."""

import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

import harness
from harness import expect, expect_equal, expect_in

sys.path.insert(0, str(harness.CHECKOUT / "tests/image"))
import archives  # noqa: E402  pylint: disable=wrong-import-position
from archives import directory, entry, link, symlink, tar  # noqa: E402  pylint: disable=wrong-import-position

SETTINGS = {"User": "node", "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "COLOUR=blue", "HOME=/elsewhere"],
            "Entrypoint": ["/usr/bin/show", "entry"], "Cmd": ["one", "two words"], "WorkingDir": "/srv/dir"}
SHOW = b"""#!/bin/sh
echo "args $*"; echo "user $(id -un) $(id -u):$(id -g)"; echo "dir $PWD"; echo "env $COLOUR $HOME $PATH"
"""
PASSWD = b"root:x:0:0::/root:/bin/sh\nnode:x:1001:1002::/home/node:/bin/sh\n"


class Store:
    def __init__(self, place):
        self.place = place
        self.data = place / "data"

    def env(self, **more):
        return {"XDG_DATA_HOME": str(self.data), "HOME": str(self.place), "PATH": os.environ["PATH"],
                **harness.cache(), **more}

    def run(self, *arguments, limit=harness.LIMIT):
        done = subprocess.run([harness.MVAGENT, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=limit,
                              check=False, env=self.env())
        return harness.Result(done, 0)

    def ok(self, *arguments, **named):
        result = self.run(*arguments, **named)
        if result.status != 0:
            raise harness.Failure(f"{arguments}: status {result.status}: {result.err[-600:]}")
        return result

    def take(self, name, archive, *options):
        path = self.place / "archive"
        path.write_bytes(archive)
        return self.ok("image", "import", *options, name, str(path)).out.strip().split("@")[1]

    def file(self, digest, suffix="image"):
        return self.data / f"mvagent/images/{digest[7:]}.{suffix}"


@contextlib.contextmanager
def store():
    with tempfile.TemporaryDirectory(prefix="mvagent-store-", dir="/tmp") as place:
        yield Store(pathlib.Path(place))


def busybox():
    """A small system: a static shell under all the names that it has."""
    program = pathlib.Path("/usr/bin/busybox" if os.path.exists("/usr/bin/busybox") else "/bin/busybox").read_bytes()
    names = "sh ls cat id echo stat sha256sum find wc sort dd sleep head tail chmod touch readlink grep cut tr mount mkdir true".split()
    return [directory("./"), symlink("bin", "usr/bin"), entry("usr/bin/busybox", program, mode=0o755),
            *[symlink(f"usr/bin/{name}", "busybox") for name in names], directory("etc"), entry("etc/passwd", PASSWD),
            entry("etc/group", b"root:x:0:\nnode:x:1002:\n"), entry("usr/bin/show", SHOW, mode=0o755)]


def test_the_settings_of_an_image_hold_and_can_be_overridden():
    layers = [tar(*busybox()), tar(entry("etc/second", b"second\n"))]
    with store() as images:
        digest = images.take("a", archives.oci(layers, SETTINGS))
        out = images.ok("run", "--root", "a").out
        expect_equal(out, "args entry one two words\nuser node 1001:1002\ndir /srv/dir\nenv blue /elsewhere "
                          "/usr/local/bin:/usr/bin:/bin\n")
        share = images.place / "share"
        share.mkdir()
        out = images.ok("run", "--root", f"a@{digest}", "--share", str(share), "--user", "root", "--env", "COLOUR=red", "--env",
                        "HOME=/root", "--", "show", "mine").out
        expect_equal(out, f"args mine\nuser root 0:0\ndir {share}\nenv red /root /usr/local/bin:/usr/bin:/bin\n")
        out = images.ok("run", "--root", digest, "--workdir", "/etc", "--", "sh", "-c", "cat second; touch /tmp/x && id -u; pwd").out
        expect_equal(out, "second\n1001\n/etc\n")
        images.take("plain", tar(*busybox()))
        result = images.run("run", "--root", "plain")
        expect_equal(result.status, 125)
        expect_in("no command was given, and the image plain names none", result.err)
        out = images.ok("run", "--root", "plain", "--", "id", "-un").out
        expect(out.strip() != "node", f"{out} runs it")


def test_files_of_a_share_belong_to_the_image_s_user():
    with store() as images:
        images.take("a", archives.oci([tar(*busybox())], SETTINGS))
        share = images.place / "share"
        share.mkdir()
        (share / "mine").write_text("host\n")
        out = images.ok("run", "--root", "a", "--share", str(share), "--", "sh", "-c",
                        "stat -c %u:%g mine; echo guest >>mine; touch new; id -u").out
        expect_equal(out, "1001:1002\n1001\n")
        expect_equal((share / "mine").read_text(), "host\nguest\n")
        expect_equal((share / "new").stat().st_uid, os.getuid())


def test_a_guest_sees_the_files_as_they_were_imported():
    odd = os.fsdecode(b"\xff-odd")
    big = os.urandom(3 << 20)
    layer = tar(*busybox(), entry("big", big), entry("set", b"s", mode=0o4755, uid=5, gid=6), link("other", "big"),
                symlink("long", "x" * 4095), entry("n" * 255, b"n"), entry(odd, b"o"), entry("empty", b""),
                entry("colour", b"", pax={"SCHILY.xattr.user.colour": "blue"}),
                *[entry(f"many/e{number:05}", b"") for number in range(20000)])
    script = f"""
        sha256sum </big; sha256sum </other; stat -c '%a %u:%g %s' /set; stat -c %h /big; readlink /long | wc -c; stat -c %s /{'n' * 255}
        ls / | grep -c odd; ls /many | wc -l; stat -c %s /empty; find / -xdev | wc -l
        """
    with store() as images:
        digest = images.take("a", layer)
        lines = images.ok("run", "--user", "root", "--root", f"a@{digest}", "--", "sh", "-ec", script).out.split("\n")
        wanted = hashlib.sha256(big).hexdigest()
        expect_equal([line.split()[0] for line in lines[:2]], [wanted, wanted])
        expect_equal(lines[2:9], ["4755 5:6 1", "2", "4096", "1", "1", "20000", "0"])


def test_a_changed_image_ends_the_run():
    big = os.urandom(4 << 20)
    with store() as images:
        digest = images.take("a", tar(*busybox(), entry("big", big)))
        file = images.file(digest)
        place = file.read_bytes().index(big[4096:8192]) + 100
        ok = images.ok("run", "--root", "a", "--", "sh", "-c", "sha256sum </big")
        expect_in(hashlib.sha256(big).hexdigest(), ok.out)
        with open(file, "r+b") as out:
            out.seek(place)
            out.write(bytes([big[4196] ^ 1]))
        result = images.run("run", "--root", "a", "--", "sh", "-c", "sha256sum </big; sleep 60")
        expect_equal(result.status, 125, f"status, with {result.err[-400:]}")
        expect_in("of the root image is not what its digest stands for", result.err)
        expect("sha256" not in result.out and len(result.out) < 64, "bytes of the changed file")
        # What is not read is not missed.
        expect_equal(images.ok("run", "--root", "a", "--", "id", "-u").status, 0)
        # The tree of hashes, and the first block.
        for at in (file.stat().st_size - 4000, 1024):
            images.take("a", tar(*busybox(), entry("big", big)))
            with open(file, "r+b") as out:
                out.seek(at)
                byte = out.read(1)
                out.seek(at)
                out.write(bytes([byte[0] ^ 1]))
            result = images.run("run", "--root", "a", "--", "sh", "-c", "cat /big /usr/bin/busybox | wc -c")
            expect_equal(result.status, 125, f"status with byte {at}, and {result.err[-400:]}")
        images.take("a", tar(*busybox(), entry("big", big)))
        os.truncate(file, file.stat().st_size - 4096)
        result = images.run("run", "--root", "a", "--", "id")
        expect_equal(result.status, 125)
        expect_in("import it again", result.err)


def test_an_image_that_is_changed_while_it_is_served():
    big = os.urandom(4 << 20)
    with store() as images:
        digest = images.take("a", tar(*busybox(), entry("big", big)))
        share = images.place / "share"
        share.mkdir()
        process = subprocess.Popen([harness.MVAGENT, "run", "--root", "a", "--user", "root", "--share", str(share), "--", "sh", "-c",
                                    "touch go; while [ ! -e done ]; do sleep 0.2; done; sha256sum </big; sleep 60"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=images.env())
        harness.wait_until((share / "go").exists, "the guest", 60)
        file = images.file(digest)
        place = file.read_bytes().index(big[:4096])
        with open(file, "r+b") as out:
            out.seek(place)
            out.write(bytes(len(big)))
        (share / "done").touch()
        out, err = (text.decode() for text in process.communicate(timeout=60))
        expect_equal(process.returncode, 125, f"status, with {err[-400:]}")
        expect_in("is not what its digest stands for", err)
        expect_equal(out, "")


def test_a_pin_is_that_content_and_no_other():
    with store() as images:
        first = images.take("a", tar(*busybox(), entry("which", b"first\n")))
        second = images.take("a", tar(*busybox(), entry("which", b"second\n")))
        expect_equal(images.ok("run", "--root", f"a@{second}", "--", "cat", "/which").out, "second\n")
        result = images.run("run", "--root", f"a@{first}", "--", "cat", "/which")
        expect_equal((result.status, result.out), (125, ""))
        expect_in(f"and not the {first} that was asked for", result.err)
        for root in ("none", f"none@{first}", first):
            result = images.run("run", "--root", root, "--", "cat", "/which")
            expect_equal((result.status, result.out), (125, ""))
            expect_in(f"--root {root}: there is n", result.err)
        # The content of another image under this one's digest.
        third = images.take("b", tar(*busybox(), entry("which", b"third!\n")))
        os.replace(images.file(third), images.file(second))
        result = images.run("run", "--root", "b", "--", "cat", "/which")
        expect_equal((result.status, result.out), (125, ""))
        expect_in("cannot open the image", result.err)
        result = images.run("run", "--root", f"a@{second}", "--", "cat", "/which")
        expect_equal((result.status, result.out), (125, ""))


def limits_archive(place):
    """All that is at a limit of the format, or odd; what is large in it is a hole."""
    huge = place / "huge"
    with open(huge, "wb") as file:
        file.seek(5 << 30)
        file.write(b"end of it")
    subprocess.run(["tar", "--sparse", "-C", place, "-cf", place / "huge.tar", "huge"], check=True)
    nfd = "e\u0301\u4e2d"
    many = place / "many/d"
    many.mkdir(parents=True)
    subprocess.run("seq -f entry-%06g 0 99999 | xargs touch", shell=True, cwd=many, check=True)
    return tar(directory("./"), entry("n" * 255, b"name"),
               entry("empty", b""), entry("hole", bytes(1 << 20) + b"x"), entry("a", b"A" * 70000), link("b/c/d", "a"),
               link("b/e", "a"), symlink("long", "x" * 4095), symlink("short", "a"), entry(nfd, b"nfd"),
               entry(os.fsdecode(b"\xff\xfe\x80"), b"odd"), entry("\x01\t\n", b"control"), directory("b/sticky", mode=0o1777),
               entry("set", b"s", mode=0o6755, uid=70000, gid=4000000000),
               *[entry(f"size-{size}", bytes([7]) * size) for size in (1, 4031, 4032, 4033, 4095, 4096, 4097, 8192, 100001)],
               entry("colour", b"c", pax={"SCHILY.xattr.user.colour": "blue", "SCHILY.xattr.user.long": "v" * 3500}),
               symlink("deep/" + "d/" * 100 + "up", "../" * 101 + "a"))


def test_stock_kernels_mount_what_we_write():
    """By the kernel of the host that this runs on: in the lab that is Debian's 6.12. For others: tests/image/stock-kernel."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to mount")
    with store() as images:
        digest = images.take("a", limits_archive(images.place))
        huge = images.ok("image", "import", "huge", str(images.place / "huge.tar")).out.strip().split("@")[1]
        place = images.place / "mnt"
        place.mkdir()
        print(f"     mounted by Linux {os.uname().release}", file=sys.stderr)
        many = images.ok("image", "import", "many", str(images.place / "many")).out.strip().split("@")[1]
        for mounted, check in ((digest, check_limits), (huge, check_huge), (many, check_many)):
            done = subprocess.run(["fsck.erofs", str(images.file(mounted))], capture_output=True, check=False)
            expect(done.returncode == 0 and b"<E>" not in done.stdout + done.stderr, f"fsck.erofs: {done}")
            subprocess.run(["mount", "-t", "erofs", "-o", "loop,ro", str(images.file(mounted)), str(place)], check=True)
            try:
                check(place)
            finally:
                subprocess.run(["umount", str(place)], check=True)


def check_huge(place):
    with open(place / "huge", "rb") as file:
        expect_equal(os.fstat(file.fileno()).st_size, (5 << 30) + 9)
        file.seek((5 << 30) - 5)
        expect_equal(file.read(), bytes(5) + b"end of it")


def check_many(place):
    names = os.listdir(place / "d")
    expect_equal(sorted(names), [f"entry-{number:06}" for number in range(100000)], "names")
    for number in (0, 1, 49999, 99998, 99999):
        expect_equal((place / f"d/entry-{number:06}").stat().st_size, 0)
    expect(not (place / "d/entry-100000").exists(), "a name that is not there")


def check_limits(place):
    expect_equal((place / ("n" * 255)).read_bytes(), b"name")
    expect_equal((place / "hole").read_bytes(), bytes(1 << 20) + b"x")
    for name in ("a", "b/c/d", "b/e"):
        expect_equal((place / name).read_bytes(), b"A" * 70000)
        expect_equal(((place / name).stat().st_nlink, (place / name).stat().st_ino), (3, (place / "a").stat().st_ino))
    expect_equal(os.readlink(place / "long"), "x" * 4095)
    expect_equal((place / ("deep/" + "d/" * 100 + "up")).read_bytes(), b"A" * 70000)
    for name, data in (("e\u0301\u4e2d".encode(), b"nfd"), (b"\xff\xfe\x80", b"odd"), (b"\x01\t\n", b"control")):
        with open(os.path.join(os.fsencode(place), name), "rb") as file:
            expect_equal(file.read(), data)
    for size in (1, 4031, 4032, 4033, 4095, 4096, 4097, 8192, 100001):
        expect_equal((place / f"size-{size}").read_bytes(), bytes([7]) * size)
    status = (place / "set").stat()
    expect_equal((status.st_mode & 0o7777, status.st_uid, status.st_gid), (0o6755, 70000, 4000000000))
    expect_equal((place / "b/sticky").stat().st_mode & 0o7777, 0o1777)
    expect_equal((os.getxattr(place / "colour", "user.colour"), len(os.getxattr(place / "colour", "user.long"))), (b"blue", 3500))
    expect_equal((place / "colour").read_bytes(), b"c")
    expect_equal(sum(len(files) for _, _, files in os.walk(place)), 23, "files and links")


def test_the_base_image_by_way_of_an_archive():
    """The image that other tests run as a file, imported: the same tools."""
    with store() as images:
        subprocess.run(["mkdir", str(images.place / "mnt")], check=True)
        mounted = images.place / "mnt"
        subprocess.run(["mount", "-t", "erofs", "-o", "loop,ro", str(harness.BUILD / "share/mvagent/base.erofs"), str(mounted)],
                       check=True)
        try:
            images.ok("image", "import", "base", str(mounted), limit=400)
            wanted = subprocess.run(["sh", "-c", f"cd {mounted}/usr && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"],
                                    capture_output=True, check=True).stdout
        finally:
            subprocess.run(["umount", str(mounted)], check=True)
        out = images.ok("run", "-v", "--user", "root", "--root", "base", "--", "sh", "-c",
                        "cd /usr && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum; git --version; "
                        "python3 -c 'import ssl; print(1)'", limit=400)
        expect_equal(out.stdout.split(b"\n")[0] + b"\n", wanted)
        expect_in("git version", out.out)


if __name__ == "__main__":
    harness.main(globals())
