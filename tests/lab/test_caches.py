# SPDX-License-Identifier: Apache-2.0
"""What the patches of the guest's kernel let it keep, and what makes it let go: names that are absent, renamed
entries, sizes of mapped files, and events that were lost on their way."""

import os
import re
import signal
import threading
import time

import harness
from harness import directory, expect, expect_equal
from test_coherence import INOTIFY, Guest, replace

FILES = 60

# In the guest: says of each of the space-separated paths of a line what it is.
LOOKER = r"""
import os, sys
def look(path):
    if path == "drop":
        return open("/proc/sys/vm/drop_caches", "w").write("2")
    try:
        return os.lstat(path).st_size
    except OSError as error:
        return f"errno {error.errno}"
for line in sys.stdin:
    print(*(look(path) for path in line.split()), sep=",", flush=True)
"""


def requests(guest):
    """{request: count} of a guest's run, which ends here."""
    guest.process.stdin.close()
    guest.process.wait(timeout=harness.LIMIT)
    return {name: int(count) for name, count in
            re.findall(r"^mvagent-fs: requests: (\S+) (\d+)$", guest.process.stderr.read().decode(), re.M)}


def names(prefix, count):
    return " ".join(f"d/{prefix}{index}" for index in range(count))


def all_of(what, count):
    return ",".join([what] * count)


class Directory:
    """A guest that has seen all names of a directory "d" of the share, by looking up some of them."""

    def __init__(self, place, *options):
        (place / "d").mkdir()
        for index in range(FILES):
            (place / "d" / f"f{index}").write_text("text")
        self.guest = Guest(place, LOOKER, options=("-v", "--user", "root", *options))
        self.know()

    def know(self):
        expect_equal(self.guest.ask(names("f", FILES)), all_of("4", FILES), "names that are there")

    def see(self, path, wanted):
        seconds = self.guest.see(path, wanted, 20)
        expect(seconds is not None, f"{path} is never seen as {wanted}, but {self.guest.ask(path)}")


def check_absent_is_free(*options):
    with directory() as place:
        known = Directory(place, *options)
        try:
            for prefix in ("absent", "other"):
                expect_equal(known.guest.ask(names(prefix, 100)), all_of("errno 2", 100), "names that are not there")
            counts = requests(known.guest)
        finally:
            known.guest.end()
        print(f"     {' '.join(options)}: {counts}")
        expect(counts["lookup"] < 40, f"200 names that are not there were asked for: {counts}")


def test_absent_names_are_free():
    """Once a directory is known as a whole nothing is asked for what is not in it."""
    check_absent_is_free()
    check_absent_is_free("--cache", "exclusive")


def test_absent_names_come():
    """What the host makes in such a directory is there at once, by whatever means it came, and what it takes is gone."""
    with directory() as place:
        known = Directory(place)
        see, there = known.see, place / "d"
        try:
            for round_number in range(4):
                expect_equal(known.guest.ask(names("absent", 8)), all_of("errno 2", 8), "names that are not there")
                (there / "absent0").write_text("made")
                see("d/absent0", "4")
                (place / "outside").write_text("moved in")
                (place / "outside").rename(there / "absent1")
                see("d/absent1", "8")
                os.link(there / "absent0", there / "absent2")
                see("d/absent2", "4")
                (there / "absent0").rename(there / "absent3")
                see("d/absent0", "errno 2")
                see("d/absent3", "4")
                replace(there / "absent3", "replaced")
                see("d/absent3", "8")
                for index in (1, 2, 3):
                    (there / f"absent{index}").unlink()
                    see(f"d/absent{index}", "errno 2")
                expect_equal(known.guest.ask("d/absent0"), "errno 2", f"in round {round_number}")
                known.know()
        finally:
            known.guest.end()


def test_absent_names_and_what_is_dropped():
    """Names that memory pressure dropped from the guest's cache are there all the same."""
    with directory() as place:
        known = Directory(place)
        try:
            for _ in range(5):
                expect_equal(known.guest.ask("d/absent"), "errno 2")
                known.guest.ask("drop")
                expect_equal(known.guest.ask(names("f", FILES)), all_of("4", FILES), "names after memory pressure")
                expect_equal(known.guest.ask("d/absent"), "errno 2")
        finally:
            known.guest.end()


# In the guest: makes, takes and moves names itself, in a directory that it knows as a whole.
OWN = r"""
import errno, os
known = {f"d/f{index}" for index in range(60)}
for path in known:
    os.lstat(path)
def expect(error, call, *arguments):
    try:
        call(*arguments)
    except OSError as failed:
        assert failed.errno == error, (call, arguments, failed)
    else:
        assert error == 0, (call, arguments)
for turn in range(3):
    expect(errno.ENOENT, os.lstat, "d/new")
    os.close(os.open("d/new", os.O_CREAT | os.O_WRONLY))
    expect(0, os.lstat, "d/new")
    expect(errno.EEXIST, os.mkdir, "d/new")
    expect(errno.EEXIST, os.open, "d/f1", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.link("d/new", "d/link")
    os.rename("d/new", "d/moved")
    expect(errno.ENOENT, os.lstat, "d/new")
    os.mkdir("e"); os.rename("d/moved", "e/moved"); os.rename("e/moved", "d/back"); os.rmdir("e")
    os.symlink("x", "d/symlink")
    for name in ("link", "back", "symlink"):
        expect(0, os.lstat, f"d/{name}")
        os.unlink(f"d/{name}")
        expect(errno.ENOENT, os.lstat, f"d/{name}")
    expect(errno.ENAMETOOLONG, os.lstat, "d/" + "x" * 300)
    assert {f"d/{name}" for name in os.listdir("d")} == known
print("done")
"""


def test_own_changes_in_a_known_directory():
    for options in ((), ("--cache", "exclusive"), ("--cache", "none")):
        with directory() as place:
            (place / "d").mkdir()
            for index in range(FILES):
                (place / "d" / f"f{index}").write_text("")
            result = harness.run_ok("--share", str(place), *options, "--", "python3", "-c", OWN)
            expect_equal(result.out, "done\n", f"with {options}")


# In the guest: knows "a", and renames it a moment after it was told to, while the host replaces it.
RENAMER = r"""
import os, sys, time
for line in sys.stdin:
    what, path, delay = line.split()
    if what == "rename":
        time.sleep(float(delay))
        os.rename("a", path)
    print(open("a" if what == "know" else path).read() if what != "rename" else "", flush=True)
"""


def test_renamed_is_what_the_host_has():
    """The host replaces a file while the guest renames it: the new name must not stand for what was replaced."""
    with directory() as place:
        (place / "a").write_text("first")
        guest = Guest(place, RENAMER)
        try:
            for turn in range(40):
                replace(place / "a", f"old {turn}")
                time.sleep(0.1)
                expect_equal(guest.ask("know a 0"), f"old {turn}")
                (place / "new").write_text(f"new {turn}")
                guest.process.stdin.write(f"rename b{turn} {turn % 10 / 1000}\n".encode())
                guest.process.stdin.flush()
                time.sleep(turn % 8 / 2000)
                (place / "new").rename(place / "a")
                guest.line()
                time.sleep(0.1)
                expect_equal(guest.ask(f"look b{turn} 0"), (place / f"b{turn}").read_text(), f"b{turn}")
        finally:
            guest.end()


# In the guest: maps a file of three pages, and touches a page of it in a child, for a SIGBUS ends only that.
MAPPER = r"""
import mmap, os, sys
file = os.open("file", os.O_RDONLY)
pages = mmap.mmap(file, 3 * 4096, prot=mmap.PROT_READ)
for line in sys.stdin:
    if line == "size\n":
        print(os.fstat(file).st_size, flush=True)
        continue
    child = os.fork()
    if child == 0:
        os._exit(pages[int(line) * 4096])
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_a_mapping_follows_the_size():
    """A page that the host appends to a mapped file can be read without a look at the size; one that it cut off cannot."""
    with directory() as place:
        path = place / "file"
        path.write_bytes(b"\1" * 3 * 4096)
        guest = Guest(place, MAPPER)
        try:
            expect_equal(guest.ask("2"), "256", "a page that is there: exit status 1")
            os.truncate(path, 4096)
            expect(guest.see("size", "4096", 20) is not None, "the size is never seen")
            expect_equal(guest.ask("2"), str(int(signal.SIGBUS)), "a page behind the end")
            with open(path, "ab", buffering=0) as file:
                file.write(b"\2" * 2 * 4096)
            expect(guest.see("2", "512", 20) is not None, "the page is never there")
            os.truncate(path, 4096)
            expect(guest.see("1", str(int(signal.SIGBUS)), 20) is not None, "the page is always there")
        finally:
            guest.end()


# In the guest: a mapped file must hold, up to the size that fstat(2) gives, what the host wrote and no zeros.
MAPPED_READER = r"""
import mmap, os, sys, threading
file = os.open("file", os.O_RDONLY)
pages = mmap.mmap(file, 65536, prot=mmap.PROT_READ)
size = len(pages[:]) - 65536 # touched each
print("mapped", flush=True)
sys.stdin.readline()
while os.fstat(file).st_size > 10:
    pass
print("ready", flush=True)
def look(): # another, who may be told of a size before
    while size < 65536:
        os.stat("file")
threading.Thread(target=look, daemon=True).start()
seen = set()
while size < 65536:
    size = os.fstat(file).st_size
    seen.add(size)
    end = pages[max(0, size - 300):size]
    if end.strip(b"x"):
        size = 65536
        sys.exit(f"not what was written, before the end {size}: {end!r}")
print(len(seen), flush=True)
"""


def grow(path):
    with open(path, "ab", buffering=0) as file:
        size = 10
        while size < 65536:
            size += file.write(b"x" * min(61, 65536 - size))
            time.sleep(0.002)


def test_mapped_reads_are_whole():
    """No zeros behind the old end of a mapped file that the host makes longer, once its new size was told."""
    seen = 0
    for _ in range(3):
        with directory() as place:
            path = place / "file"
            path.write_bytes(b"x" * 65536)
            guest = Guest(place, MAPPED_READER, options=("--cpus", "2"))
            try:
                expect_equal(guest.line(), "mapped")
                os.truncate(path, 10)
                expect_equal(guest.ask(""), "ready")
                grow(path)
                seen += int(guest.line())
            finally:
                guest.end()
    print(f"     {seen} sizes seen")
    expect(seen > 60, f"only {seen} sizes of some 3000 were seen")


def test_lost_events_are_told():
    """More changes than can be told: programs that watch hear that their queue is no longer whole, and look again."""
    with directory() as place:
        (place / "d").mkdir()
        guest = Guest(place, INOTIFY, str(place / "d"))
        try:
            expect_equal(guest.line(), "ready")
            machine = next(pid for pid, line in harness.processes().items() if "/mvagent-vmm " in line)
            os.kill(machine, signal.SIGSTOP)
            try:
                for index in range(3000):
                    (place / "d" / f"file-with-a-rather-long-name-for-its-purpose-{index}").write_text("x")
                time.sleep(0.5)
            finally:
                os.kill(machine, signal.SIGCONT)
            timer = threading.Timer(60, guest.process.kill)
            timer.start()
            wanted = {"4000", "40000004"}
            while wanted:  # the run ends when they never come
                wanted.discard(guest.line().split()[0])
            timer.cancel()
        finally:
            guest.end()


if __name__ == "__main__":
    harness.main(globals())
