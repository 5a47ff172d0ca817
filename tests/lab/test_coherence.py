# SPDX-License-Identifier: Apache-2.0
"""What the host changes in a share while a guest works there: seen, at once, whole, and as inotify events."""

import os
import subprocess
import threading
import time

import harness
from harness import directory, expect, expect_equal

# In the guest: fills the caches, then answers each line that names a path with what it finds there.
WATCHER = r"""
import os, sys
def look(path):
    try:
        status = os.lstat(path)
        if os.path.islink(path):
            return f"link {os.readlink(path)}"
        if os.path.isdir(path):
            return "dir " + ",".join(sorted(os.listdir(path)))
        with open(path) as file:
            size = os.fstat(file.fileno()).st_size
            text = file.read()
        return f"file {oct(status.st_mode & 0o777)} {status.st_size} {size} {text!r}"
    except OSError as error:
        return f"errno {error.errno}"
for line in sys.stdin:
    print(look(line.rstrip("\n")), flush=True)
"""

# In the guest: prints the inotify events of a directory.
INOTIFY = r"""
import ctypes, os, struct, sys
os.listdir(sys.argv[1]) # the directory is watched on the host from the first look into it on
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, sys.argv[1].encode(), 0xfff) == 1
print("ready", flush=True)
while True:
    data = os.read(fd, 65536)
    while data:
        _, mask, _, length = struct.unpack("iIII", data[:16])
        name = data[16:16 + length].rstrip(b"\0").decode()
        data = data[16 + length:]
        print(f"{mask:x} {name}", flush=True)
"""


class Guest:
    """A command in a guest that is talked to line by line."""

    def __init__(self, share, script, *arguments, options=()):
        self.process = harness.start("--share", str(share), *options, "--", "python3", "-c", script, *arguments,
                                     stdin=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.line()

    def line(self):
        text = self.process.stdout.readline().decode()
        if not text:
            raise harness.Failure(f"the run has ended: {self.process.stderr.read().decode(errors='replace')[-600:]}")
        return text.rstrip("\n")

    def end(self):
        self.process.kill()
        self.process.wait(timeout=harness.LIMIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def see(self, path, wanted, limit):
        """Asks until the answer is the wanted one; returns how long that took and how many questions, or None."""
        start = time.monotonic()
        questions = 0
        while time.monotonic() - start < limit:
            questions += 1
            if self.ask(path) == wanted:
                return time.monotonic() - start, questions
        return None


def replace(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.rename(path)


def edits(place):
    """Each is a path, what the guest sees of it first, a change by the host, and what it must see then."""
    return [
        ("grown", "file 0o644 3 3 'one'", lambda: (place / "grown").write_text("one and two"),
         "file 0o644 11 11 'one and two'"),
        ("cut", "file 0o644 9 9 'long text'", lambda: os.truncate(place / "cut", 4), "file 0o644 4 4 'long'"),
        ("same", "file 0o644 5 5 'aaaaa'", lambda: (place / "same").write_text("bbbbb"), "file 0o644 5 5 'bbbbb'"),
        ("replaced", "file 0o644 3 3 'old'", lambda: replace(place / "replaced", "newer"), "file 0o644 5 5 'newer'"),
        ("gone", "file 0o644 1 1 'x'", lambda: (place / "gone").unlink(), "errno 2"),
        ("absent", "errno 2", lambda: (place / "absent").write_text("here"), "file 0o644 4 4 'here'"),
        ("mode", "file 0o644 1 1 'x'", lambda: (place / "mode").chmod(0o600), "file 0o600 1 1 'x'"),
        ("d", "dir a", lambda: (place / "d" / "b").write_text(""), "dir a,b"),
        ("d/sub", "errno 2", lambda: (place / "d" / "sub").mkdir(), "dir "),
        ("moved", "dir in", lambda: (place / "moved").rename(place / "away"), "errno 2"),
        ("away/in", "errno 2", lambda: None, "file 0o644 1 1 'x'"),
        ("link", "link a", lambda: replace_link(place / "link", "b"), "link b"),
    ]


def replace_link(path, target):
    path.unlink()
    path.symlink_to(target)


def fill(place):
    for name, text in (("grown", "one"), ("cut", "long text"), ("same", "aaaaa"), ("replaced", "old"), ("gone", "x"),
                       ("mode", "x")):
        (place / name).write_text(text)
        (place / name).chmod(0o644)
    (place / "d").mkdir()
    (place / "d" / "a").write_text("")
    (place / "moved").mkdir()
    (place / "moved" / "in").write_text("x")
    (place / "link").symlink_to("a")


def measure(options, limit):
    """{path: what Guest.see says of the edit of it}."""
    os.umask(0o022)
    with directory() as place:
        fill(place)
        guest = Guest(place, WATCHER, options=options)
        try:
            for path, before, _, _ in edits(place):
                expect_equal(guest.ask(path), before, f"the guest's first sight of {path}")
            seen = {}
            for path, _, change, after in edits(place):
                guest.ask(path)
                change()
                seen[path] = guest.see(path, after, limit)
            return seen
        finally:
            guest.end()


def test_edits_are_seen_at_once():
    """Within 100 ms, where the guest may keep for ten minutes what it was told; on a machine that is busy with others, where
    a question alone can take as long, by the third question."""
    seen = measure((), 20)
    missing = [path for path, found in seen.items() if found is None]
    expect(not missing, f"never seen: {missing}")
    print("     seen after " + ", ".join(f"{path} {seconds * 1000:.0f} ms" for path, (seconds, _) in seen.items()))
    late = {path: found for path, found in seen.items() if found[0] > 0.1 and found[1] > 3}
    expect(not late, f"seen late (seconds, questions): {late}")


def test_without_notes_a_second_passes():
    """The same without notes to the guest: what is kept for a second is seen after it. So the test above can fail."""
    seen = measure(("--no-notes",), 20)
    expect(all(seen.values()), f"never seen: {seen}")
    late = [path for path, (seconds, questions) in seen.items() if seconds > 0.4 and questions > 3]
    expect(len(late) >= 4, f"only {late} were seen late: {seen}")


def test_without_cache():
    seen = measure(("--cache", "none"), 20)
    expect(all(seen.values()), f"never seen: {seen}")


def test_inotify_events():
    """Programs in the guest that watch a directory hear of what the host does there, and of hidden names nothing."""
    with directory() as place:
        (place / "d").mkdir()
        (place / "d" / "file").write_text("x")
        guest = Guest(place, INOTIFY, str(place / "d"))
        try:
            expect_equal(guest.line(), "ready")
            changes = [
                (lambda: (place / "d" / ".env").write_text("secret"), None),
                (lambda: (place / "d" / "new").mkdir(), "40000100 new"),
                (lambda: (place / "d" / "file").write_text("longer"), "2 file"),
                (lambda: (place / "d" / "file").rename(place / "d" / "other"), "80 other"),
                (lambda: (place / "d" / "other").chmod(0o600), "4 other"),
                (lambda: (place / "d" / "other").unlink(), "200 other"),
            ]
            for change, wanted in changes:
                change()
                while wanted:
                    line = guest.line()
                    expect(".env" not in line, "an event of a hidden name")
                    if line == wanted:
                        break
                    expect(line != "", f"no event '{wanted}'")
        finally:
            guest.end()


# In the guest: reads a file over and over that the host rewrites, and checks that what it reads is whole: the
# lines of one generation, in order, none missing in between, no zero bytes; and not less than fstat(2) said.
READER = r"""
import os, sys, time
end = time.monotonic() + float(sys.argv[2])
reads = changes = 0
last = None
while time.monotonic() < end:
    file = os.open(sys.argv[1], os.O_RDONLY)
    size = os.fstat(file).st_size
    data = os.read(file, 65536) # one call: between two the file may be started anew anywhere
    os.close(file)
    reads += 1
    if data != last:
        changes += 1
        last = data
    if b"\0" in data:
        sys.exit(f"zero bytes: {data[:80]!r}... size {size}")
    if data and not data.endswith(b"\n"):
        sys.exit(f"cut in a line: ...{data[-80:]!r} size {size}")
    lines = data.decode().splitlines()
    if lines:
        generation = lines[0].split()[0]
        for number, line in enumerate(lines):
            if line != f"{generation} {number} {'x' * 50}":
                sys.exit(f"line {number} is {line!r} in generation {generation}, of {len(data)} bytes, size {size}")
print(f"{reads} reads, {changes} changes", flush=True)
"""


def rewrite(path, stop):
    """Grows a file line by line, and now and then starts it anew, half of the time in place."""
    generation = 0
    while not stop.is_set():
        generation += 1
        new = path.with_name("new") if generation % 2 else path
        with open(new, "wb", buffering=0) as file:
            if generation % 2:
                file.write(f"{generation} 0 {'x' * 50}\n".encode())
                os.rename(new, path)
            for number in range(generation % 2, 60):
                file.write(f"{generation} {number} {'x' * 50}\n".encode())
                time.sleep(0.002)


def read_while_rewritten(options, seconds):
    with directory() as place:
        path = place / "file"
        path.write_text("")
        stop = threading.Event()
        writer = threading.Thread(target=rewrite, args=(path, stop))
        writer.start()
        try:
            return harness.run("--share", str(place), *options, "--", "python3", "-c", READER, str(path), str(seconds))
        finally:
            stop.set()
            writer.join()


def test_reads_are_whole():
    """No mix of an old size and new contents while the host rewrites a file, in place and by rename."""
    for options in ((), ("--no-notes",)):
        result = read_while_rewritten(options, 15)
        expect_equal(result.status, 0, f"status with {options}: {result.err}")
        reads, changes = (int(word) for word in result.out.split() if word.isdigit())
        print(f"     {' '.join(options) or 'with notes'}: {result.out.strip()}")
        expect(changes >= (20 if not options else 3), f"{reads} reads saw only {changes} states")


def test_many_edits_at_once():
    """More changes than can be told one by one: the guest is told to forget everything, and sees them all."""
    with directory() as place:
        for number in range(1500):
            (place / f"file-with-a-longer-name-{number}").write_text("old")
        script = ("import os, sys, time\n"
                  "def total(): return sum(os.stat(e).st_size for e in os.listdir('.'))\n"
                  "assert total() == 4500\nprint('ready', flush=True)\nsys.stdin.readline()\n"
                  "end = time.monotonic() + 30\n"
                  "while total() != 9000 and time.monotonic() < end: time.sleep(0.05)\n"
                  "print(total(), flush=True)\n")
        guest = Guest(place, script)
        try:
            expect_equal(guest.line(), "ready")
            for number in range(1500):
                (place / f"file-with-a-longer-name-{number}").write_text("longer")
            expect_equal(guest.ask(""), "9000")
        finally:
            guest.end()


def test_exclusive_is_flushed():
    """With a write-back cache everything is on the host when mvagent returns, also when time was up."""
    with directory() as place:
        result = harness.run_ok("--share", str(place), "--cache", "exclusive", "--", "sh", "-c",
                                "head -c 3000000 /dev/urandom > a; sha256sum a; printf x >> a; mkdir d; mv a d/b; chmod 600 d/b")
        expect_equal((place / "d" / "b").stat().st_size, 3000001)
        expect_equal((place / "d" / "b").stat().st_mode & 0o777, 0o600)
        summed = subprocess.run(["sh", "-c", f"head -c 3000000 '{place}/d/b' | sha256sum"], stdout=subprocess.PIPE, check=True)
        expect_equal(summed.stdout.split()[0].decode(), result.out.split()[0], "checksum")
        result = harness.run("--share", str(place), "--cache", "exclusive", "--timeout", "3", "--", "sh", "-c",
                             "echo kept > late; sleep 1000")
        expect_equal(result.status, 124)
        expect_equal((place / "late").read_text(), "kept\n")


def test_append_and_partial_writes_exclusive():
    with directory() as place:
        (place / "f").write_text("0123456789")
        harness.run_ok("--share", str(place), "--cache", "exclusive", "--", "python3", "-c",
                       "import os\nf=os.open('f',os.O_WRONLY)\nos.pwrite(f,b'AB',4)\n"
                       "g=os.open('f',os.O_WRONLY|os.O_APPEND)\nos.write(g,b'end')\nos.pwrite(f,b'Z',0)\n")
        expect_equal((place / "f").read_text(), "Z123AB6789end")


if __name__ == "__main__":
    harness.main(globals())
