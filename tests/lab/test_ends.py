# SPDX-License-Identifier: Apache-2.0
"""The ways a run ends other than by its command's own will, and that each is told from the others."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time

import harness
from harness import directory, expect, expect_equal, expect_in, run_json
from screen import terminal

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1000; done"


class Run:
    """A run that the test acts upon while it lasts."""

    def __init__(self, place, *arguments, **named):
        self.report = place / "outcome.json"
        self.process = harness.start("--json", str(self.report), *arguments, **named)
        self.output = b""

    def wait_for(self, text, seconds=60):
        """Waits for @text on standard output."""
        end = time.monotonic() + seconds
        while text not in self.output:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            expect(ready, f"waited {seconds} s for {text!r}: {self.output[-600:]!r}")
            data = os.read(self.process.stdout.fileno(), 65536)
            expect(data, f"the output ended before {text!r}: {self.output[-600:]!r}")
            self.output += data

    def finish(self, seconds=60):
        """The exit status and the outcome; what was written is in output and error."""
        begin = time.monotonic()
        rest, error = self.process.communicate(timeout=seconds)
        self.seconds = time.monotonic() - begin
        self.output += rest or b""
        self.error = (error or b"").decode(errors="replace")
        return self.process.returncode, json.loads(self.report.read_text())


@contextlib.contextmanager
def started(*arguments, **named):
    with directory() as place:
        it = Run(place, *arguments, **named)
        try:
            yield it
        finally:
            if it.process.poll() is None:
                it.process.kill()
                it.process.communicate()


def process_of(name):
    """The process id of the one process of mvagent with this name, once it is there."""
    found = []

    def look():
        found[:] = [pid for pid, line in harness.processes().items() if line.split()[0].endswith("/" + name)]
        return found

    harness.wait_until(look, f"{name} to be started")
    return found[0]


def expect_time_limit(status, outcome, least, most):
    expect_equal((status, outcome["outcome"], outcome["command_status"]), (124, "time-limit", None), "end")
    expect_in("time limit of 2 s", outcome["message"])
    times = outcome["milliseconds"]
    # No end of the command when the guest was too busy to end it and the machine was stopped instead.
    seconds = (times["command"] or times["total"] - times["prepare"] - times["boot"]) / 1000
    expect(least <= seconds <= most, f"the command ran for {seconds:.1f} s, not {least} to {most} s")


def test_time_limit_asks_first():
    with directory() as place:
        command = "trap 'echo bye > last; echo bye; exit 3' TERM; echo first > first; sleep 1000 & wait"
        result, outcome = run_json("--timeout", "2", "--share", str(place), "--", "sh", "-c", command)
        expect_time_limit(result.status, outcome, 2, 6)
        expect_equal(result.stdout, b"bye\n", "output")
        expect_in("time limit", result.err)
        expect_equal(((place / "first").read_text(), (place / "last").read_text()), ("first\n", "bye\n"), "files")


def test_time_limit_ends_the_whole_group():
    """Nothing in the guest can avoid it: not by ignoring, not by a session of its own, not by being stopped."""
    with directory() as place:
        command = ("trap '' TERM; echo data > data; setsid sh -c 'while :; do date > alive; sleep 0.2; done' & "
                   "kill -STOP $$")
        result, outcome = run_json("--timeout", "2", "--share", str(place), "--", "sh", "-c", command)
        expect_time_limit(result.status, outcome, 7, 16)
        harness.expect_nothing_left()
        expect_equal((place / "data").read_text(), "data\n", "what was written before")
        expect((place / "alive").exists(), "the second process did not run")


def test_time_limit_at_a_terminal():
    with directory() as place:
        report = place / "outcome.json"
        with terminal("--json", str(report), "--timeout", "2", "--", "sh", "-c", STUBBORN) as it:
            it.wait_for(b"ready")
            status = it.finish()
            it.expect_given_back()
        expect_time_limit(status, json.loads(report.read_text()), 7, 16)


def test_time_limit_with_a_reader_that_does_not_read():
    reader, writer = os.pipe()
    try:
        with started("--timeout", "2", "--", "yes", stdout=writer) as it:
            status, outcome = it.finish()
            expect_equal((status, outcome["outcome"]), (124, "time-limit"), "end")
    finally:
        os.close(reader)
        os.close(writer)


def test_signals_reach_the_command():
    program = ("trap 'echo INT' INT; trap 'echo HUP' HUP; trap 'echo QUIT' QUIT; trap 'echo TERM; exit 43' TERM; "
               "echo ready; while :; do sleep 0.1 2>/dev/null; done")
    with started("--", "sh", "-c", program) as it:
        it.wait_for(b"ready")
        for name in ("INT", "HUP", "QUIT", "TERM"):
            it.process.send_signal(getattr(signal, "SIG" + name))
            it.wait_for(name.encode())
        status, outcome = it.finish()
        expect_equal((status, outcome["outcome"], outcome["command_status"]), (43, "exited", 43), "end")
        expect_equal(it.error, "", "standard error")


def test_signals_end_a_command_that_does_not_care():
    for name, number in (("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1)):
        # By exec: a shell that is about to start a program may not act on SIGINT.
        with started("--", "sh", "-c", "echo ready; exec sleep 1000") as it:
            it.wait_for(b"ready")
            it.process.send_signal(getattr(signal, name))
            status, outcome = it.finish()
            expect_equal((status, outcome["outcome"], outcome["command_signal"]), (128 + number, "signaled", number))


def test_second_interrupt_ends_the_machine():
    reader, writer = os.pipe()
    try:
        for command, output in ((["sh", "-c", "trap '' INT; echo ready; sleep 1000"], subprocess.PIPE),
                                (["yes"], writer)):
            with started("--", *command, stdout=output) as it:
                if output == subprocess.PIPE:
                    it.wait_for(b"ready")
                else:
                    os.read(reader, 1)
                    time.sleep(1)
                it.process.send_signal(signal.SIGINT)
                time.sleep(1)
                it.process.send_signal(signal.SIGINT)
                status, outcome = it.finish()
                expect_equal((status, outcome["outcome"]), (130, "interrupted"), f"end of {command}")
                expect(it.seconds < 3, f"{command} went on for {it.seconds:.1f} s")
                expect_in("interrupted", it.error)
            harness.expect_nothing_left()
    finally:
        os.close(reader)
        os.close(writer)


def test_signal_during_boot():
    for name, number in (("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1)):
        with started("--", "echo", "never") as it:
            process_of("mvagent-vmm")
            it.process.send_signal(getattr(signal, name))
            status, outcome = it.finish()
            expect_equal((status, outcome["outcome"], it.output), (128 + number, "interrupted", b""), "end")
            expect(it.seconds < 5, f"it went on for {it.seconds:.1f} s")
        harness.expect_nothing_left()


# Overwrites the program text of the guest's process 1, which is the end of a Linux kernel.
BREAK_INIT = ("import re\n"
              "begin, end = [(int(m[1], 16), int(m[2], 16)) for m in\n"
              "              re.finditer('(?m)^([0-9a-f]+)-([0-9a-f]+) r.xp', open('/proc/1/maps').read())][0]\n"
              "memory = open('/proc/1/mem', 'r+b', buffering=0)\n"
              "memory.seek(begin)\n"
              "memory.write(b'\\xcc' * (end - begin))\n")


def test_guest_panic():
    with directory() as place:
        result, outcome = run_json("--user", "root", "--share", str(place), "--",
                                   "sh", "-c", 'echo before > file; python3 -c "$0"', BREAK_INIT)
        expect_equal((result.status, outcome["outcome"], outcome["command_status"]), (125, "machine-failed", None))
        expect_equal(outcome["machine"]["end"], "guest-panic", "machine.end")
        expect_in("the guest kernel panicked", result.err)
        expect_in("the last messages of the guest kernel were", result.err)
        expect_in("Attempted to kill init", result.err)
        expect_equal((place / "file").read_text(), "before\n", "what was written before")


def test_guest_reset():
    program = "import ctypes; ctypes.CDLL(None).reboot(0x01234567)"
    result, outcome = run_json("--user", "root", "--", "python3", "-c", program)
    expect_equal((result.status, outcome["outcome"]), (125, "machine-failed"))
    expect_equal(outcome["machine"]["end"], "guest-reset", "machine.end")
    expect_in("the guest reset the machine", result.err)


def test_death_of_a_process():
    """Each process of a run is killed in turn: the run ends, and says which one it was."""
    for name in ("mvagent-vmm", "mvagent-fs", "mvagent-blk"):
        with directory() as place:
            command = "echo before > file; echo ready; while :; do ls -lR / >/dev/null 2>&1; done"
            with started("--share", str(place), "--", "sh", "-c", command) as it:
                it.wait_for(b"ready")
                os.kill(process_of(name), signal.SIGKILL)
                status, outcome = it.finish()
                expect_equal((status, outcome["outcome"], outcome["command_status"]), (125, "machine-failed", None))
                expect(it.seconds < 5, f"it took {it.seconds:.1f} s to notice the end of {name}")
                lines = [line for line in it.error.splitlines() if name in line]
                expect(lines, f"no sentence names {name}: {it.error!r}")
                expect(re.search("killed by signal 9|ended before", lines[-1]), f"unclear: {lines[-1]}")
            harness.expect_nothing_left()
            expect_equal((place / "file").read_text(), "before\n", "what was written before")


def test_what_fsync_returned_for_survives():
    """All processes of a run are killed at one time: what was made safe by then is on the host, however the share is cached."""
    script = ("import os\n"
              "f = os.open('file', os.O_RDWR | os.O_CREAT, 0o644)\n"
              "os.write(f, b'x' * 3000000)\nos.fsync(f)\n"
              "os.mkdir('d')\ng = os.open('d/renamed.tmp', os.O_RDWR | os.O_CREAT, 0o644)\nos.write(g, b'whole')\nos.fdatasync(g)\n"
              "os.rename('d/renamed.tmp', 'd/renamed')\nos.fsync(os.open('d', os.O_RDONLY))\n"
              "print('ready', flush=True)\n"
              "while True: os.pwrite(f, b'y' * 100, 0)\n")
    for cache in ("shared", "exclusive", "none"):
        with directory() as place:
            with started("--cache", cache, "--share", str(place), "--", "python3", "-c", script) as it:
                it.wait_for(b"ready")
                for pid in harness.processes():
                    os.kill(pid, signal.SIGKILL)
                it.process.wait(timeout=harness.LIMIT)
            harness.expect_nothing_left()
            found = (place / "file").read_bytes()
            expect_equal((len(found), found[100:] == b"x" * 2999900), (3000000, True), f"with --cache {cache}")
            expect_equal((place / "d/renamed").read_bytes(), b"whole", f"with --cache {cache}")


def test_death_of_mvagent():
    with directory() as place:
        for stage in ("boot", "command"):
            with started("--share", str(place), "--", "sh", "-c", "echo ready; sleep 1000") as it:
                process_of("mvagent-vmm")
                if stage == "command":
                    it.wait_for(b"ready")
                it.process.kill()
                harness.wait_until(lambda: not harness.processes(), f"all to end after {stage}", 2)


def test_output_that_cannot_be_written():
    """A lost output is not a success."""
    with open("/dev/full", "wb") as full:
        with started("--", "sh", "-c", "echo hello; sleep 1; echo again", stdout=full) as it:
            status, outcome = it.finish()
            expect_equal((status, outcome["exit_status"]), (125, 125), "status")
            expect_equal(outcome["outcome"], "output-lost", "outcome")
            expect_in("cannot write the command's standard output: No space left on device", it.error)
    closed = subprocess.run([f"{harness.MVAGENT} run {harness.ROOT_WORDS} -- echo hello >&-"], shell=True, stderr=subprocess.PIPE,
                            timeout=harness.LIMIT, check=False)
    expect_equal(closed.returncode, 125, "status")
    expect_in("cannot write the command's standard output: Bad file descriptor", closed.stderr.decode())
    closed = subprocess.run([f"{harness.MVAGENT} run {harness.ROOT_WORDS} -- true >&-"], shell=True, stderr=subprocess.PIPE,
                            timeout=harness.LIMIT, check=False)
    expect_equal((closed.returncode, closed.stderr), (0, b""), "a command that says nothing")


def test_memory_runs_out():
    program = "x = []\nwhile True: x.append(b'x' * (1 << 26))"
    result, outcome = run_json("--memory", "128", "--", "python3", "-c", program)
    expect_equal((result.status, outcome["outcome"], outcome["command_signal"]), (137, "signaled", 9), "end")
    expect_equal(outcome["guest_memory"]["ran_out"], True, "told in the outcome")
    expect_in("the guest's memory (--memory 128M) ran out, and its kernel ended a process", result.err, "standard error")
    command = 'python3 -c "$0"; echo "python ended with $?"; exit 9'
    result, outcome = run_json("--memory", "128", "--", "sh", "-c", command, program)
    expect_equal((result.status, result.stdout.splitlines()[-1:]), (9, [b"python ended with 137"]), "end")


def test_memory_that_is_nearly_used():
    """A warning at 85 percent and one at 95, and none for a guest that has room."""
    program = ("used() { awk '/MemTotal/ {t=$2} /MemAvailable/ {a=$2} END {print int(100*(t-a)/t)}' /proc/meminfo; }\n"
               "for level in 85 95; do\n"
               "    while [ $(used) -lt $level ]; do head -c 1M /dev/zero >>/tmp/f; done; sleep 3\n"
               "done; rm /tmp/f")
    result, outcome = run_json("--memory", "256", "--scratch", "256", "--", "sh", "-c", program)
    expect_equal((result.status, outcome["guest_memory"]), (0, {"warned_percent": 95, "ran_out": False}), "end")
    expect_equal([line for line in result.err.splitlines() if "memory" in line],
                 ["mvagent: 85% of the guest's memory (--memory 256M) are in use",
                  "mvagent: 95% of the guest's memory (--memory 256M) are in use"], "warnings")
    result, outcome = run_json("--memory", "128", "--", "sleep", "2")
    expect_equal((result.err, outcome["guest_memory"]), ("", {"warned_percent": 0, "ran_out": False}), "with room")


def test_memory_full_of_files():
    result, outcome = run_json("--memory", "128", "--", "sh", "-c",
                               "for i in 1 2; do cat /dev/zero > /tmp/$i; done; echo still here; exit 4")
    expect_equal((result.status, result.stdout), (4, b"still here\n"), "end")
    expect_in("No space left on device", result.err)


def test_fork_bomb():
    """As many processes as there can be, none of which takes notice of SIGTERM."""
    program = ("import os\n"
               "while True:\n"
               "  try: os.fork()\n"
               "  except OSError: pass\n")
    result, outcome = run_json("--timeout", "2", "--memory", "256", "--",
                               "sh", "-c", "trap '' TERM; exec python3 -c \"$0\"", program)
    expect_time_limit(result.status, outcome, 7, 40)


def test_processes_that_were_left():
    """Stopped, not waited for, orphaned: all of them end with the command, and its status is what counts."""
    result, outcome = run_json("--", "sh", "-c", "sleep 1000 & kill -STOP $!; exit 3")
    expect_equal((result.status, outcome["outcome"]), (3, "exited"), "a stopped process")
    program = ("import os,sys\n"
               "for n in range(50):\n"
               "  if os.fork() == 0: os._exit(77)\n"
               "for n in range(50):\n"
               "  if os.fork() == 0:\n"
               "    if os.fork() == 0: os.setsid(); os.execvp('sleep', ['sleep', '1000'])\n"
               "    os._exit(78)\n"
               "sys.exit(6)\n")
    result, outcome = run_json("--", "python3", "-c", program)
    expect_equal((result.status, outcome["outcome"]), (6, "exited"), "zombies and orphans")


def test_root_kills_everything():
    result, outcome = run_json("--user", "root", "--", "sh", "-c",
                               "sleep 1000 & kill -9 -1; kill -9 1; kill -TERM 1; echo survived; exit 5")
    expect_equal((result.status, outcome["outcome"], result.stdout), (5, "exited", b"survived\n"), "end")


def test_killed_command_has_written():
    with directory() as place:
        command = "head -c 3000000 /dev/zero | tr '\\0' x > big; echo small > small; kill -9 $$"
        result, outcome = run_json("--share", str(place), "--", "sh", "-c", command)
        expect_equal((result.status, outcome["command_signal"]), (137, 9), "end")
        expect_equal((place / "small").read_text(), "small\n", "small file")
        expect_equal((place / "big").read_bytes(), b"x" * 3000000, "big file")


if __name__ == "__main__":
    harness.main(globals())
