#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mvagent image: what it makes of archives, honest and hostile. Needs no guest: erofs-utils reads the images.

Prints "ok NAME" or "not ok NAME: why" for each test. usage: tests/image/test_image.py [--build DIR] [TESTS]
"""

import bz2
import gzip
import json
import lzma
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import traceback

import archives
from archives import END, TIME, directory, entry, header, link, pad, symlink, tar

BUILD = pathlib.Path("build")
SETTINGS = {"User": "node", "Env": ["PATH=/usr/bin:/bin", "COLOUR=blue"], "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo hi"],
            "WorkingDir": "/srv/dir"}
PASSWD = b"root:x:0:0::/root:/bin/sh\nnode:x:1001:1002::/home/node:/bin/sh\n"

LOWER = tar(
    directory("./"), symlink("bin", "usr/bin"), directory("usr/bin"), entry("usr/bin/a", b"A" * 5000, mode=0o4755),
    link("usr/bin/b", "usr/bin/a"), directory("etc"), entry("etc/passwd", PASSWD), entry("opt/x/one", b"1"),
    entry("opt/x/two", b"2"), entry("gone", b"SECRET-OF-A-LOWER-LAYER"), entry("w/keep", b"k"), entry("w/drop", b"d"),
    directory("tree/sub"), entry("tree/sub/low", b"l"), entry("owned", b"o", uid=70000, gid=4000000000, mode=0o640))
UPPER = tar(
    entry("bin/c", b"C"), entry(".wh.gone"), directory("opt"), directory("opt/x"), entry("opt/x/.wh..wh..opq"),
    entry("opt/x/three", b"3"), entry("w/.wh.drop"), entry("usr/bin/a", b"new a"), entry("tree/sub/high", b"h"),
    entry(".wh.tree"), entry(".wh..wh.plnk", b"of AUFS"))
LAYERS = [LOWER, UPPER]


class Failure(Exception):
    """Something else was seen than is expected."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def expect_equal(seen, wanted, what="value"):
    expect(seen == wanted, f"{what}: {seen!r} instead of {wanted!r}")


class Store:
    """A store of a test's own, and what is done with it."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.data = self.place / "data"
        self.images = self.data / "mvagent/images"

    def run(self, *arguments, stdin=b"", limit=120):
        return subprocess.run([BUILD / "bin/mvagent", "image", *map(os.fspath, arguments)], input=stdin, capture_output=True,
                              timeout=limit, check=False, cwd=self.place,
                              env={"XDG_DATA_HOME": os.fspath(self.data), "HOME": os.fspath(self.place), "PATH": os.environ["PATH"]})

    def ok(self, *arguments, **named):
        done = self.run(*arguments, **named)
        expect(done.returncode == 0, f"{arguments}: status {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
        return done.stdout.decode()

    def take(self, name, archive, *options, **named):
        """Imports the bytes of an archive; returns the image's digest."""
        path = self.place / "archive"
        path.write_bytes(archive)
        return self.ok("import", *options, name, path, **named).strip().split("@")[1]

    def file(self, digest):
        return self.images / f"{digest[7:]}.image"

    def tree(self, digest):
        """The files of an image, extracted, and checked by fsck.erofs."""
        out = self.place / f"out-{digest[7:15]}"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run(["fsck.erofs", f"--extract={out}", "--force", "--preserve-perms", "--no-preserve-owner",
                               self.file(digest)], capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode(errors="replace")
        expect(done.returncode == 0 and "<E>" not in said and "<W>" not in said, f"fsck.erofs: {said[-500:]}")
        return out

    def names(self, digest):
        out = self.tree(digest)
        return sorted(os.fsencode(path.relative_to(out)) for path in out.rglob("*"))

    def inode(self, digest, path):
        return subprocess.run(["dump.erofs", f"--path={path}", self.file(digest)], capture_output=True, check=True).stdout.decode()

    def left(self):
        return sorted(path.name for path in self.images.iterdir()) if self.images.exists() else []


def refused(store, archive, *words, options=()):
    """The archive is refused, by one clear sentence, and nothing is left of it."""
    before = store.left()
    path = store.place / "archive"
    path.write_bytes(archive)
    done = store.run("import", *options, "bad", path)
    said = done.stderr.decode(errors="replace")
    expect_equal(done.returncode, 125, f"status, with {said[-300:]!r}")
    for word in words:
        expect(word in said, f"{word!r} is not in {said[-400:]!r}")
    expect(len(said.splitlines()) == 1 and "\x1b" not in said, f"no single sentence: {said[-600:]!r}")
    expect_equal(store.left(), before, "what is in the store")


def test_layers_are_applied_in_order(store):
    digest = store.take("a", archives.oci(LAYERS, SETTINGS))
    out = store.tree(digest)
    wanted = b"""bin etc etc/passwd opt opt/x opt/x/three owned tree tree/sub tree/sub/high usr usr/bin usr/bin/a usr/bin/b
        usr/bin/c w w/keep srv srv/dir""".split()
    expect_equal(store.names(digest), sorted(wanted), "names")
    expect_equal((out / "usr/bin/a").read_bytes(), b"new a")
    expect_equal((out / "usr/bin/b").read_bytes(), b"A" * 5000, "the other name of a file that was replaced")
    expect_equal((out / "usr/bin/c").read_bytes(), b"C", "a file below a link of the lower layer")
    expect_equal(stat.S_IMODE((out / "usr/bin/b").stat().st_mode), 0o4755, "mode")
    expect(re.search(r"Uid: 70000 +Gid: (4000000000|-294967296) ", store.inode(digest, "/owned")), "owner")
    expect(b"SECRET-OF-A-LOWER-LAYER" not in store.file(digest).read_bytes(), "what is removed is in the image")


def test_the_same_contents_have_one_digest(store):
    wanted = store.take("a", archives.oci(LAYERS, SETTINGS))
    path = store.place / "docker"
    path.write_bytes(archives.docker(LAYERS, SETTINGS))
    expect_equal(store.take("b", path.read_bytes()), wanted, "docker save")
    expect_equal(store.take("c", gzip.compress(path.read_bytes())), wanted, "compressed docker save")
    expect_equal(store.ok("import", "d", "-", stdin=path.read_bytes()).strip(), f"d@{wanted}")
    expect_equal(store.take("e", archives.oci(LAYERS, SETTINGS, packed=LAYERS)), wanted, "layers that are not compressed")
    flat = tar(*[entry(f"f{number}", bytes([number])) for number in range(50)])
    other = tar(*[entry(f"f{number}", bytes([number])) for number in reversed(range(50))])
    wanted = store.take("f", flat)
    for number, archive in enumerate((other, gzip.compress(flat), bz2.compress(flat), lzma.compress(flat),
                                      subprocess.run(["zstd", "-c"], input=flat, capture_output=True, check=True).stdout)):
        expect_equal(store.take(f"g{number}", archive), wanted, f"archive {number}")
    expect(store.take("h", tar(entry("f0", b"x"))) != wanted, "other contents, same digest")


def test_a_layer_that_is_there_twice(store):
    digest = store.take("a", archives.docker([LOWER, UPPER, LOWER]))
    expect(b"gone" in store.names(digest), "what the third layer brings back")


def test_links_xattrs_times_and_odd_names(store):
    nfd, odd = "e\u0301" * 60, os.fsdecode(b"\xff\xfe-" + b"y" * 120)
    digest = store.take("a", tar(
        entry("one", b"1", pax={"SCHILY.xattr.user.colour": "blue", "SCHILY.xattr.trusted.overlay.redirect": "/etc",
                                "SCHILY.xattr.security.selinux": "label"}),
        link("two", "one"), link("./deep/three", "/one"), entry(nfd, b"n"), entry(odd, b"o"), symlink("long", "x" * 4095),
        symlink("nfd", nfd), entry("z" * 255, b""), entry("nanoseconds", b"", pax={"mtime": "1700000000.123456789"})))
    out = store.tree(digest)
    names = [os.fsencode(name) for name in os.listdir(out)]
    expect(nfd.encode() in names and os.fsencode(odd) in names and b"z" * 255 in names, f"{names}")
    expect_equal(os.readlink(out / "long"), "x" * 4095)
    expect_equal(os.readlink(os.fsencode(out / "nfd")), nfd.encode())
    numbers = [re.search(r"NID: (\d+)", store.inode(digest, path)).group(1) for path in ("/one", "/two", "/deep/three")]
    expect(len(set(numbers)) == 1, f"three names of one file: {numbers}")
    expect("Links: 3" in store.inode(digest, "/two"), "count of links")
    expect_equal((out / "nanoseconds").stat().st_mtime_ns, TIME * 10 ** 9 + 123456789)
    data = store.file(digest).read_bytes()
    expect(b"colourblue" in data and b"overlay.redirect" not in data and b"selinux" not in data, "attributes")


def test_sizes(store):
    big = store.place / "big"
    with open(big, "wb") as file:
        file.write(b"begin")
        file.seek((5 << 30) - 3)
        file.write(b"end")
    (store.place / "dir").mkdir()
    for number in range(3):
        (store.place / f"dir/f{number}").write_bytes(bytes([number]) * (4095 + number))
    subprocess.run(["tar", "--sparse", "-C", store.place, "-cf", store.place / "sparse.tar", "big", "dir"], check=True)
    digest = store.ok("import", "a", store.place / "sparse.tar").strip().split("@")[1]
    expect("Size: 5368709120 " in store.inode(digest, "/big"), store.inode(digest, "/big"))
    expect(store.file(digest).stat().st_blocks * 512 < 200 << 20, "holes take room on the disk")
    with open(store.file(digest), "rb") as file:
        file.seek(-(50 << 20), os.SEEK_END)
        expect(b"end" in file.read(), "the end of the large file")


def test_a_directory_of_100000_entries(store):
    digest = store.take("a", tar(*[entry(f"d/entry-{number:06}") for number in range(100000)]), limit=300)
    done = subprocess.run(["fsck.erofs", store.file(digest)], capture_output=True, check=False)
    expect(done.returncode == 0 and b"<E>" not in done.stdout + done.stderr, f"{done}")
    listing = subprocess.run(["dump.erofs", "--path=/d", "--ls", store.file(digest)], capture_output=True, check=True).stdout
    expect_equal(len(set(re.findall(rb"entry-\d{6}", listing))), 100000, "entries")


def test_a_directory_is_an_image(store):
    source = store.place / "source"
    (source / "usr/bin").mkdir(parents=True)
    (source / "usr/bin/tool").write_bytes(b"t" * 9000)
    (source / "usr/bin/tool").chmod(0o2755)
    os.link(source / "usr/bin/tool", source / "other")
    os.symlink("/etc/passwd", source / "link")
    os.mkfifo(source / "fifo")
    os.symlink("/", source / "root")
    done = store.run("import", "a", source)
    expect_equal(done.returncode, 0, done.stderr.decode())
    expect(b"1 devices, FIFOs and sockets are left out" in done.stderr, f"{done.stderr}")
    digest = done.stdout.decode().strip().split("@")[1]
    expect_equal(store.names(digest), [b"link", b"other", b"root", b"usr", b"usr/bin", b"usr/bin/tool"])
    out = store.tree(digest)
    expect_equal(os.readlink(out / "link"), "/etc/passwd")
    expect_equal((out / "other").read_bytes(), b"t" * 9000)
    expect("Links: 2" in store.inode(digest, "/other"), "hard link")
    expect_equal(stat.S_IMODE((out / "other").stat().st_mode), 0o2755)
    expect("Uid: 0" in store.inode(digest, "/other"), "owner")


def test_what_an_image_says_of_its_command(store):
    store.take("a", archives.oci(LAYERS, SETTINGS))
    shown = json.loads(store.ok("show", "--json", "a"))
    expect_equal(shown["user"], {"name": "node", "uid": 1001, "gid": 1002, "home": "/home/node"})
    expect_equal([shown[name] for name in ("variables", "entrypoint", "arguments", "directory")],
                 [SETTINGS[name] for name in ("Env", "Entrypoint", "Cmd", "WorkingDir")])
    for user, wanted in (("0", (0, 0, "root")), ("node:7", (1001, 7, "node")), ("1001", (1001, 1002, "node")),
                         ("4242", (4242, 0, "agent")), ("4242:node", None), ("nobody", None), (":", None), ("node:", None)):
        archive = archives.oci(LAYERS, {"User": user})
        if wanted is None:
            refused(store, archive, "no such user or group")
            continue
        store.take("u", archive)
        shown = json.loads(store.ok("show", "--json", "u"))["user"]
        expect_equal((shown["uid"], shown["gid"], shown["name"]), wanted, user)


def test_names_pins_and_removal(store):
    first = store.take("a", tar(entry("x", b"1")))
    expect_equal(store.take("b", tar(entry("x", b"1"))), first)
    second = store.take("c", tar(entry("x", b"2")))
    expect_equal([line.split()[0] for line in store.ok("list").splitlines()], ["a", "b", "c"])
    expect_equal({entry["digest"] for entry in json.loads(store.ok("list", "--json"))}, {first, second})
    store.ok("show", f"a@{first}")
    store.ok("show", first)
    done = store.run("show", f"a@{second}")
    expect(done.returncode == 125 and second.encode() in done.stderr and first.encode() in done.stderr, f"{done}")
    for wrong in ("none", "sha256:00", "a@sha256:0", "../a", ".new.image", "a/b", "sha256:" + "0" * 64):
        done = store.run("show", wrong)
        expect(done.returncode == 125 and b"there is no image" in done.stderr, f"{wrong}: {done}")
    for wrong in ("host", "a/b", ".a", "-", "a@b", "", "x" * 129, "sha256:0", "a\nb"):
        done = store.run("import", "--", wrong, "archive")
        expect(done.returncode == 125 and len(done.stderr.splitlines()) == 1, f"{wrong!r}: {done}")
    layout = store.place / "layout"
    layout.mkdir()
    (layout / "oci-layout").write_text("{}")
    done = store.run("import", "l", layout)
    expect(done.returncode == 125 and b"as an archive it can be imported" in done.stderr, f"{done}")
    store.ok("remove", "a")
    store.ok("show", "b")
    store.ok("remove", "b")
    expect_equal(store.left(), sorted([f"{second[7:]}.image", f"{second[7:]}.json", "c.name"]))
    expect_equal(store.take("c", tar(entry("x", b"1"))), first, "a name that moves on")
    expect_equal(store.left(), sorted([f"{first[7:]}.image", f"{first[7:]}.json", "c.name"]))
    expect_equal(store.run("remove", "c", "none").returncode, 125)
    expect_equal(store.left(), [])
    expect_equal(oct(store.images.stat().st_mode & 0o7777), "0o700")
    store.images.chmod(0o755)
    done = store.run("list")
    expect(done.returncode == 125 and b"not yours alone" in done.stderr, f"{done}")


def test_a_changed_description_is_found(store):
    digest = store.take("a", tar(entry("x", b"1")))
    path = store.images / f"{digest[7:]}.json"
    path.write_text(path.read_text().replace('"arguments":\t[]', '"arguments":\t["evil"]'))
    done = store.run("show", "a")
    expect(done.returncode == 125 and b"was changed after it was imported" in done.stderr, f"{done}")
    store.take("a", tar(entry("x", b"1")))
    store.ok("show", "a")


def test_veritysetup_agrees(store):
    digest = store.take("a", archives.oci(LAYERS, SETTINGS))
    shown = json.loads(store.ok("show", "--json", "a"))
    command = ["veritysetup", "verify", store.file(digest), store.file(digest), shown["verity"][7:],
               f"--hash-offset={shown['bytes']}"]
    expect_equal(subprocess.run(command, capture_output=True, check=False).returncode, 0)


def test_an_interrupted_import_leaves_nothing(store):
    process = subprocess.Popen([BUILD / "bin/mvagent", "image", "import", "a", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"XDG_DATA_HOME": os.fspath(store.data), "HOME": "/", "PATH": os.environ["PATH"]})
    process.stdin.write(header(b"a", 1 << 20) + bytes(1 << 19))
    process.stdin.flush()
    process.terminate()
    said = process.stderr.read()
    expect_equal(process.wait(timeout=30), 128 + 15, f"status, with {said}")
    expect(b"interrupted" in said, f"{said}")
    process.stdin.close()
    expect_equal(store.left(), [])


# --- hostile archives ---------------------------------------------------------


def test_names_that_lead_outside(store):
    for name in ("../evil", "a/../../evil", "a/..", "..", "/../evil", "./../evil"):
        refused(store, header(name.encode()) + END, "is no name inside of an image")
        refused(store, tar(entry("x", b"x")) [:1024] + header(name.encode(), kind=b"5") + END, "is no name inside")
    digest = store.take("a", header(b"/evil", 4) + pad(b"evil") + header(b"//a//.//b", 2) + pad(b"hi") + END)
    expect_equal(store.names(digest), [b"a", b"a/b", b"evil"])
    expect(not os.path.exists("/evil"), "a file in the host's root")


def test_parents_that_are_symbolic_links(store):
    place = os.fsencode(store.place)
    digest = store.take("a", tar(symlink("l", "/etc"), entry("l/mvagent-evil", b"evil"), symlink("up", "../../../../.."),
                                 entry("up/top", b"t"), symlink("self", os.fsdecode(place)), entry("self/evil", b"e"),
                                 symlink("dangling", "not/there"), entry("dangling/x", b"x")))
    names = store.names(digest)
    for name in (b"etc/mvagent-evil", b"top", place[1:] + b"/evil", b"not/there/x"):
        expect(name in names, f"{name} is not in {names}")
    expect(not os.path.exists("/etc/mvagent-evil") and not (store.place / "evil").exists(), "a file of the host")
    refused(store, tar(symlink("a", "b"), symlink("b", "a"), entry("a/x", b"x")), "too many symbolic links")
    refused(store, tar(symlink("a", "a"), entry("a/x", b"x")), "too many symbolic links")
    refused(store, tar(entry("f", b"f"), entry("f/x", b"x")), "below something that is no directory")
    refused(store, tar(symlink("a", "y/" * 2000), symlink("y", "z/" * 2000), entry("a/x", b"x")), "longer or deeper")


def test_hard_links_that_lead_outside(store):
    refused(store, tar(link("shadow", "/etc/shadow")), "hard link to what is not there")
    refused(store, tar(link("shadow", "../../../etc/shadow")), "is no name inside")
    refused(store, tar(symlink("etc", "/etc"), link("passwd", "etc/passwd")), "too many symbolic links")
    refused(store, tar(symlink("l", "/etc"), link("passwd", "l/passwd")), "hard link to what is not there")
    refused(store, tar(directory("d"), link("e", "d")), "hard link to a directory")
    refused(store, tar(directory("d"), link("d/e", "d/e")), "hard link to what is not there")
    digest = store.take("a", tar(entry("f", b"f"), link("f", "f"), symlink("s", "/etc/shadow"), link("t", "s")))
    expect_equal(os.readlink(store.tree(digest) / "t"), "/etc/shadow", "a hard link to a link")


def test_devices_never_get_in(store):
    made = tar(entry("null", kind=archives.CHARACTER), entry("disk", kind=archives.BLOCK), entry("fifo", kind=archives.FIFO),
               entry("f", b"f"))
    path = store.place / "archive"
    path.write_bytes(made)
    done = store.run("import", "a", path)
    expect(done.returncode == 0 and b"3 devices, FIFOs and sockets are left out" in done.stderr, f"{done}")
    expect_equal(store.names(done.stdout.decode().strip().split("@")[1]), [b"f"])


def test_entries_that_are_there_twice(store):
    digest = store.take("a", tar(
        entry("a", b"file"), directory("a"), entry("a/x", b"x"), entry("b", b"1"), entry("b", b"22"), directory("c"),
        entry("c/y", b"y"), symlink("c", "a"), entry("c/z", b"z"), directory("d"), entry("d/k", b"k"), directory("d", mode=0o700)))
    out = store.tree(digest)
    expect_equal(store.names(digest), [b"a", b"a/x", b"a/z", b"b", b"c", b"d", b"d/k"])
    expect_equal((out / "b").read_bytes(), b"22")
    expect_equal(stat.S_IMODE((out / "d").stat().st_mode), 0o700)


def test_names_and_headers_that_are_too_long(store):
    refused(store, tar(entry("n" * 256, b"")), "longer or deeper")
    refused(store, tar(entry("d/" * 2047 + "x" * 10, b"")), "longer or deeper")
    refused(store, tar(symlink("s", "x" * 4096)), "longer or deeper")
    refused(store, tar(directory("d/" * 1900), symlink("s", "d/" * 1900), directory("s/" + "e/" * 200)), "longer or deeper")
    refused(store, header(b"././@LongLink", 64 << 20, b"L") + bytes(64 << 20) + header(b"x") + END, "no tar archive that can be")
    refused(store, header(b"pax", 64 << 20, b"x") + bytes(64 << 20) + header(b"x") + END, "no tar archive that can be")
    refused(store, tar(entry("a", b"", pax={"SCHILY.xattr.user.x": "v" * (2 << 20)})), "no tar archive that can be")
    for size in (1 << 62, (1 << 63) - 1, 1 << 64):
        refused(store, header(b"huge", size) + bytes(4096) + END)


def test_attributes_that_are_too_long_are_left_out(store):
    path = store.place / "archive"
    path.write_bytes(tar(entry("a", b"a", pax={"SCHILY.xattr.user.x": "v" * 5000, "SCHILY.xattr.user.y": "w"})))
    done = store.run("import", "a", path)
    expect(done.returncode == 0 and b"1 extended attributes are left out" in done.stderr, f"{done}")


def test_bombs(store):
    zeros = gzip.compress(bytes(64 << 20))
    bomb = gzip.compress(header(b"bomb", 4 << 30)) + zeros * 64 + gzip.compress(END)
    refused(store, bomb, "--max-size allows more", options=("--max-size", "100M"))
    refused(store, gzip.compress(bomb), options=("--max-size", "1M"))
    layer = header(b"bomb", 4 << 30)
    refused(store, archives.oci([layer], packed=[bomb]), "--max-size allows more", options=("--max-size", "100M"))
    many = tar(*[entry(f"f{number}", b"x" * 1000000) for number in range(8)])
    refused(store, many, "--max-size allows more", options=("--max-size", "7M"))
    store.take("a", many, "--max-size", "8M")
    # GNU's format for holes: a file of 1 EiB in a few bytes.
    sparse = bytearray(header(b"holes", 512, b"S"))
    sparse[257:265] = b"ustar  \0"
    sparse[386:398] = b"%011o\0" % 0
    sparse[398:410] = b"%011o\0" % 512
    sparse[483:495] = b"\x80" + (1 << 60).to_bytes(11, "big")
    sparse[148:156] = b" " * 8
    sparse[148:155] = b"%06o\0" % sum(sparse)
    refused(store, bytes(sparse) + bytes(512) + END, "--max-size allows more")


def test_archives_that_are_damaged(store):
    whole = tar(entry("a", b"a" * 3000), entry("b", b"b"))
    for length in (100, 600, 1000, 2000, 3500):
        refused(store, whole[:length])
    packed = gzip.compress(whole)
    refused(store, packed[:-20])
    refused(store, packed[:40] + bytes(20) + packed[60:])
    refused(store, lzma.compress(whole)[:-30])
    refused(store, b"PK\x03\x04" + os.urandom(5000), "no tar archive")
    refused(store, os.urandom(8192))
    refused(store, b"", "there is nothing in it")
    refused(store, END, "there is nothing in it")
    refused(store, gzip.compress(b""), "there is nothing in it")
    refused(store, tar(entry("a\x1b[31m/../x", b"")))


def test_whiteouts_that_lead_outside(store):
    for name in (".wh...", "a/.wh...", ".wh.", "../.wh.x", "x/../.wh..wh..opq", ".wh.."):
        refused(store, archives.oci([LOWER, tar(directory("a"), directory("x"), entry(name))]), "is no name inside")
    digest = store.take("a", archives.oci([LOWER, tar(entry(".wh.not-there"), entry("not/there/.wh..wh..opq"), entry(".wh.bin"))]))
    expect(b"usr/bin/a" in store.names(digest) and b"bin" not in store.names(digest), "the link is gone, not what it leads to")
    digest = store.take("b", archives.oci([LOWER, tar(entry(".wh..wh..opq"), entry("only", b"o"))]))
    expect_equal(store.names(digest), [b"only"])
    digest = store.take("c", tar(entry(".wh.bin", b"plain")))
    expect_equal(store.names(digest), [b".wh.bin"], "a root file system has no whiteouts")


def test_oci_archives_that_lie(store):
    good = archives.oci(LAYERS)
    config = archives.config(LAYERS)
    place = good.index(config)
    refused(store, good[:place + 20] + b"X" + good[place + 21:], "is not what its digest says")
    other = gzip.compress(UPPER, mtime=0)
    layers = [gzip.compress(LOWER, mtime=0), other]
    refused(store, good.replace(other, other[:-5] + b"12345"))
    refused(store, archives.oci(LAYERS, packed=[layers[1], layers[0]]), "is not the one that its configuration names")
    refused(store, archives.oci(LAYERS, configuration=archives.config([LOWER])), "another number of layers")
    refused(store, archives.oci(LAYERS, configuration=archives.config(LAYERS, architecture="riscv64")), "riscv64")
    refused(store, archives.oci(LAYERS, index=b'{"manifests": []}'), "has no image for Linux")
    refused(store, archives.oci(LAYERS, index=b"[" * 100000), "no JSON")
    refused(store, archives.oci(LAYERS, index=b'{"manifests": 7}'), "no image")
    missing = b'{"manifests": [{"digest": "sha256:%s"}]}' % (b"0" * 64)
    refused(store, archives.oci(LAYERS, index=missing), "has no 'blobs/sha256/000")
    for digest in (b"sha256:../../../etc/passwd", b"sha512:" + b"0" * 128, b"sha256:" + b"A" * 64, b""):
        refused(store, archives.oci(LAYERS, index=b'{"manifests": [{"digest": "%s"}]}' % digest), "not named by a SHA-256")
    refused(store, archives.oci(LAYERS, index=b" " * (5 << 20)), "more than")
    for settings in ({"Env": ["no"]}, {"Env": "A=b"}, {"Env": [7]}, {"WorkingDir": "relative"}, {"Cmd": {"a": 1}},
                     {"Env": ["A=b"] * 5000}):
        refused(store, archives.oci(LAYERS, settings), "no good variables, directory or command")


def test_indexes_of_indexes(store):
    inner = archives.oci(LAYERS)
    index = json.loads(tarfile.open(fileobj=__import__("io").BytesIO(inner)).extractfile("index.json").read())
    blobs = []
    for _ in range(3):
        text = json.dumps(index).encode()
        blobs.append(archives.blob(text))
        index = {"manifests": [archives.descriptor(text, "index.v1+json")]}
    store.take("a", archives.oci(LAYERS, index=json.dumps(index).encode(), extra=blobs))
    for _ in range(3):
        text = json.dumps(index).encode()
        blobs.append(archives.blob(text))
        index = {"manifests": [archives.descriptor(text, "index.v1+json")]}
    refused(store, archives.oci(LAYERS, index=json.dumps(index).encode(), extra=blobs), "indexes lead to more than")
    several = {"manifests": [dict(index["manifests"][0], platform={"os": "linux", "architecture": name})
                             for name in ("arm64", "riscv64")]}
    refused(store, archives.oci(LAYERS, index=json.dumps(several).encode(), extra=blobs), "no image for Linux on")


def test_archives_with_bytes_changed(store):
    """Whatever is changed: an image or one sentence, and never the end of the process by a signal."""
    numbers = random.Random(1)
    good = [archives.oci(LAYERS, SETTINGS, packed=LAYERS), archives.docker(LAYERS, SETTINGS), LOWER, gzip.compress(UPPER, mtime=0)]
    imported = 0
    for number in range(240):
        data = bytearray(good[number % len(good)])
        for _ in range(numbers.choice((1, 1, 2, 5, 40))):
            place = numbers.randrange(len(data))
            data[place] = numbers.randrange(256)
            block = place - place % 512
            if number % 4 != 3 and numbers.randrange(4):
                # A header is one only with its sum.
                data[block + 148:block + 156] = b" " * 8
                data[block + 148:block + 155] = b"%06o\0" % (sum(data[block:block + 512]) % 8 ** 6)
        path = store.place / "archive"
        path.write_bytes(data)
        done = store.run("import", "--max-size", "64M", "a", path)
        said = done.stderr.decode(errors="replace")
        expect(done.returncode in (0, 125) and "signal" not in said, f"archive {number}: {done.returncode}: {said[-400:]}")
        expect(done.returncode == 0 or len(said.splitlines()) == 1, f"archive {number}: {said[-400:]}")
        if done.returncode == 0:
            imported += 1
            store.tree(done.stdout.decode().strip().split("@")[1])
    expect(10 < imported < 230, f"{imported} of them were imported")


def test_docker_archives_that_lie(store):
    def made(manifest, *members):
        return tar(entry("manifest.json", manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()), *members)

    refused(store, made(b"{}"), "not as docker save writes it")
    refused(store, made([]), "not as docker save writes it")
    one = {"Config": "c.json", "Layers": ["l.tar"]}
    refused(store, made([one, one]), "has 2 images")
    refused(store, made([one]), "has no 'c.json'")
    refused(store, made([{"Config": "/etc/passwd", "Layers": []}]), "has no '/etc/passwd'")
    refused(store, made([{"Config": "l", "Layers": []}], symlink("l", "/etc/passwd")), "has no 'l'")
    refused(store, made([{"Config": "l", "Layers": []}], symlink("l", "l")), "has no 'l'")
    refused(store, made([{"Config": "c.json", "Layers": ["x"] * 600}]), "600 layers")
    refused(store, made([{"Config": "c" * 300, "Layers": []}]), "names no file")
    refused(store, made([one], entry("c.json", archives.config([LOWER])), entry("l.tar", UPPER)), "is not the one")


def main():
    global BUILD
    arguments = sys.argv[1:]
    if arguments[:1] == ["--build"]:
        BUILD = pathlib.Path(arguments[1])
        arguments = arguments[2:]
    BUILD = BUILD.resolve()
    tests = {name: value for name, value in globals().items() if name.startswith("test_")}
    failed = False
    for name in arguments or tests:
        with tempfile.TemporaryDirectory(prefix="mvagent-images-", dir="/var/tmp") as place:
            try:
                tests[name](Store(place))
                print(f"ok {name}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed = True
                where = traceback.extract_tb(error.__traceback__)
                line = next(frame.lineno for frame in reversed(where) if frame.filename == __file__ and frame.name.startswith("test_"))
                print(f"not ok {name}: line {line}: {type(error).__name__}: {str(error)[:700]!r}", flush=True)
    sys.exit(failed)


main()
