# SPDX-License-Identifier: Apache-2.0
"""Tests of real guests: every function of a test file whose name begins with test_ is one test.

A test file ends with harness.main(globals()). It runs where /dev/kvm works: directly, or in the lab. It prints
"ok NAME", "not ok NAME: why" or "skip NAME: why" for each test and nothing is left behind: after each
test the harness looks for processes of mvagent that are still there.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MVAGENT_BUILD", CHECKOUT / "build")).resolve()
MVAGENT = str(BUILD / "bin/mvagent")

# In the lab a run takes seconds; a limit is there so that a hang fails instead of hanging the suite.
LIMIT = 120


class Skip(Exception):
    """Raised by a test that cannot be run here, with the reason."""


class Failure(Exception):
    """Raised by a test that saw something else than it expects."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def expect_equal(seen, wanted, what="value"):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


def expect_in(part, whole, what="output"):
    if part not in whole:
        raise Failure(f"{part!r} is not in {what}: {whole[-600:]!r}")


class Result:
    def __init__(self, completed, seconds):
        self.status = completed.returncode
        self.stdout = completed.stdout
        self.stderr = completed.stderr
        self.seconds = seconds

    @property
    def out(self):
        return self.stdout.decode(errors="replace")

    @property
    def err(self):
        return self.stderr.decode(errors="replace")


# The host's own tools take minutes to look through over the lab's 9p: what tests other things gets the base image.
ROOT = ("--root", str(BUILD / "share/mvagent/base.erofs"))
ROOT_WORDS = " ".join(ROOT)


def mvagent(*arguments, stdin=b"", env=None, limit=LIMIT, program=None, cwd=None):
    """Runs mvagent with its streams on pipes; `run` gets the base image unless the arguments name another root."""
    if arguments[:1] == ("run",):
        arguments = ("run", *ROOT, *arguments[1:])
    begin = time.monotonic()
    given = isinstance(stdin, bytes)
    with subprocess.Popen([program or MVAGENT, *map(os.fsencode, arguments)], stdin=subprocess.PIPE if given else stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd) as process:
        try:
            out, err = process.communicate(stdin if given else None, timeout=limit)
        except subprocess.TimeoutExpired as late:
            tell_what_waits(late)
            process.kill()
            raise
        except BaseException:
            process.kill()
            raise
    completed = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    return Result(completed, time.monotonic() - begin)


def tell_what_waits(late):
    """A run stands still: what it said, and what each thread of ours waits in, so that the log says why."""
    print(f"     stands still; it said {late.stdout!r}, {late.stderr!r}; what waits:", file=sys.stderr)
    for pid in sorted(processes()):
        for thread in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
            said = []
            for name in ("comm", "wchan", "syscall", "stat", "stack"):
                try:
                    said.append((thread / name).read_text().strip().replace("\n", " < "))
                except OSError as error:
                    said.append(error.strerror)
            print("     " + " | ".join(said), file=sys.stderr)
    tell_of_processors()
    sys.stderr.flush()


def tell_of_processors():
    """What KVM counts of each virtual machine: whether its clock is right, and whether it is halted or turns round."""
    subprocess.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"], capture_output=True, check=False)
    for machine in pathlib.Path("/sys/kernel/debug/kvm").glob("[0-9]*"):
        for _ in range(2):
            counts = [f"{path.relative_to(machine)}={path.read_text().strip()}" for path in sorted(machine.rglob("*"))
                      if path.is_file() and "hist" not in path.name]
            print(f"     {time.clock_gettime(time.CLOCK_BOOTTIME):.3f} {machine.name}: "
                  + " ".join(count for count in counts if not count.endswith("=0")), file=sys.stderr)
            time.sleep(1)


def run(*arguments, **named):
    """mvagent run ARGUMENTS."""
    return mvagent("run", *arguments, **named)


def start(*arguments, prefix=(), **named):
    """Starts mvagent run ARGUMENTS, by the command @prefix if there is one, without waiting for it."""
    named.setdefault("stdin", subprocess.DEVNULL)
    named.setdefault("stdout", subprocess.PIPE)
    named.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([*prefix, MVAGENT, "run", *ROOT, *arguments], **named)


def run_ok(*arguments, **named):
    """As run, for runs that must succeed."""
    result = run(*arguments, **named)
    if result.status != 0:
        raise Failure(f"status {result.status}: {result.err[-600:]}")
    return result


def run_json(*arguments, **named):
    """As run, with the outcome that --json wrote."""
    with directory() as place:
        path = place / "outcome.json"
        result = run("--json", str(path), *arguments, **named)
        return result, json.loads(path.read_text())


@contextlib.contextmanager
def directory(parent=None):
    """A directory of the test's own, gone afterwards."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="mvagent-test-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def processes():
    """The processes of mvagent that exist now, as {pid: command line}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            target = os.readlink(entry / "exe")
            if target.startswith(str(BUILD)):
                # Empty while the process is on its way out, or not yet what it will be.
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(entry.name)] = command or f"{target} "
        except OSError:
            continue
    return found


def wait_until(condition, what, seconds=30.0):
    """Waits for condition() to be true; fails with @what when it does not become so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.02)


def expect_nothing_left():
    """Every process of the runs so far is gone (at once, or within a moment for those that were killed)."""
    wait_until(lambda: not processes(), f"processes to end: {processes()}", 5)


# Tests in which processes are to be killed by their own filters.
WANTED_KILLS = set()


def kills(test):
    """Marks such a test."""
    WANTED_KILLS.add(test)
    return test


class Pulse(threading.Thread):
    """Notes when this host itself stands still, as an emulated one does while its own host has no time for it or is
    suspended: all limits pass meanwhile, and nothing that is tested here is to blame."""

    LONG = 15.0  # seconds; a guest that has the only processor to itself keeps this thread waiting for less

    def __init__(self):
        super().__init__(daemon=True)
        self.gaps = []

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            if now - last > self.LONG:
                self.gaps.append((now, now - last))
            last = now

    def stood_still(self, since):
        """The longest time, 0.0 if it did not."""
        return max((gap for when, gap in self.gaps if when >= since), default=0.0)


class KernelLog:
    """What the host's kernel says while the tests run, where it may be read."""

    def __init__(self):
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = -1

    def lines(self):
        while self.fd >= 0:
            try:
                yield os.read(self.fd, 8192).decode(errors="replace")
            except BrokenPipeError:  # some were lost
                continue
            except BlockingIOError:
                return

    def forget(self):
        """Passes over what was said so far: kills that a test wanted."""
        for _ in self.lines():
            pass

    def expect_no_kills(self):
        """No process of ours was killed by its own filter of system calls (seccomp, audit 1326)."""
        for line in self.lines():
            if "type=1326" in line and f'exe="{BUILD}' in line and "sig=31" in line:
                raise Failure("killed by its own filter: " + line.split(";", 1)[-1].strip())


def give_a_home(place):
    """Where the home directory is not to be written (the lab's is its host's), what a user keeps goes to @place."""
    if not os.access(os.environ.get("HOME", "/"), os.W_OK):
        os.environ.update(XDG_STATE_HOME=f"{place}/state", XDG_CACHE_HOME=f"{place}/cache")


def cache():
    """The variable for a run with a home of its own that need not hash the base image anew."""
    return {name: value for name, value in os.environ.items() if name == "XDG_CACHE_HOME"}


@contextlib.contextmanager
def known_hashes():
    """Which files hash to what, kept from one lab to the next where MVAGENT_HASHES says: a lab needs ten seconds to hash
    the base image, and would in each of these files."""
    kept = os.environ.get("MVAGENT_HASHES")
    place = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "/") + "/.cache") / "mvagent/hashes"
    if kept and os.path.exists(f"{kept}/hashes"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(f"{kept}/hashes", place)
    yield
    if kept and os.access(kept, os.W_OK) and (place / "hashes").exists():
        # By rename, for others look meanwhile; each lab has its own name, for all have the same process numbers.
        with tempfile.NamedTemporaryFile(dir=kept, delete=False) as file:
            file.write((place / "hashes").read_bytes())
            os.fchmod(file.fileno(), 0o644)
        os.rename(file.name, f"{kept}/hashes")


def main(names):
    """Runs the tests that the command line names, or all."""
    with directory() as home:
        give_a_home(home)
        with known_hashes():
            status = run_tests(names)
    sys.exit(status)


def run_test(test, log):
    """Returns the line about one test."""
    try:
        test()
        expect_nothing_left()
        log.forget() if test in WANTED_KILLS else log.expect_no_kills()
        return f"ok {test.__name__}"
    except Skip as reason:
        return f"skip {test.__name__}: {reason}"
    except (Failure, subprocess.TimeoutExpired, OSError) as failure:
        return f"not ok {test.__name__}: {failure}"
    except Exception:  # a broken test is a failed one, with its place
        return f"not ok {test.__name__}: " + traceback.format_exc().replace("\n", " | ")


def run_tests(names):
    tests = {name: value for name, value in names.items() if name.startswith("test_") and callable(value)}
    chosen = sys.argv[1:] or list(tests)
    failed = False
    log = KernelLog()
    pulse = Pulse()
    pulse.start()
    for name in chosen:
        begin = time.monotonic()
        line = run_test(tests[name], log)
        if line.startswith("not ok") and pulse.stood_still(begin):
            print(f"     this host stood still for {pulse.stood_still(begin):.0f} s; once more after: {line}", file=sys.stderr)
            line = run_test(tests[name], log)
        failed |= line.startswith("not ok")
        print(f"{line}", flush=True)
        print(f"     {name} took {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return 1 if failed else 0
