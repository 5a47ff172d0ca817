# SPDX-License-Identifier: Apache-2.0
"""mvagent run at a terminal: its size, keys and pastes, what its output may do, and that it is given back."""

import hashlib
import os
import signal
import subprocess
import time

import harness
from harness import expect, expect_equal, expect_in
from screen import RESET, terminal


def shown(*arguments, status=0, **named):
    """What a command that needs no keys showed on the screen, without mvagent's own end of it."""
    with terminal(*arguments, **named) as it:
        expect_equal(it.finish(), status, f"status ({it.error})")
        expect(it.output.endswith(RESET), f"the screen's modes were not put back: {it.output[-200:]!r}")
        it.expect_given_back()
        return it.output.removesuffix(RESET)


def machine():
    """The process id of the machine of the one run that there is, once it is there."""
    found = []

    def look():
        found[:] = [pid for pid, line in harness.processes().items() if "mvagent-vmm" in line]
        return found

    harness.wait_until(look, "the machine to be started")
    return found[0]


def test_size_and_type_from_the_first_instruction():
    environment = dict(os.environ, TERM="xterm-of-the-test")
    expect_equal(shown("--", "stty", "size", env=environment), b"37 133\r\n", "size")
    output = shown("--", "sh", "-c", "tty; echo $TERM; test -t 0 && test -t 1 && test -t 2 && exit 7",
                   env=environment, status=7)
    expect_equal(output, b"/dev/pts/0\r\nxterm-of-the-test\r\n", "terminal and type")


def test_size_changed_during_boot():
    with terminal("--", "stty", "size") as it:
        machine()
        it.resize(41, 99)
        expect_equal(it.finish(), 0, "status")
        expect_equal(it.output.removesuffix(RESET), b"41 99\r\n", "size at the first instruction")


def test_resizes_follow():
    program = ("import os,signal\n"
               "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
               "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n"
               "while True:\n"
               "  print('<%d %d>' % tuple(reversed(os.get_terminal_size())), flush=True)\n"
               "  signal.sigwait([signal.SIGWINCH])\n")
    with terminal("--", "python3", "-c", program) as it:
        it.wait_for(b"<37 133>")
        for step in range(20):
            it.resize(24 + step, 200 - 3 * step)
            it.wait_for(f"<{24 + step} {200 - 3 * step}>".encode(), 20)
        # Faster than they can be shown: the last one counts.
        for step in range(50):
            it.resize(100 + step, 150 + step)
        it.wait_for(b"<149 199>", 20)
        it.type(b"\x03")
        expect_equal(it.finish(), 130, "status after ^C")
        it.expect_given_back()


def test_keys_reach_the_line_discipline():
    program = ("import signal,sys\n"
               "wanted = [signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP]\n"
               "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
               "print('<ready>', flush=True)\n"
               "for _ in wanted: print('<' + signal.Signals(signal.sigwait(wanted)).name + '>', flush=True)\n"
               "print('<' + sys.stdin.readline().strip() + '>', flush=True)\n"
               "print('<end>' if sys.stdin.readline() == '' else '<more>', flush=True)\n")
    with terminal("--", "python3", "-c", program) as it:
        it.wait_for(b"<ready>")
        expect(it.is_raw(), "the user's terminal still interprets keys")
        for key, name in ((b"\x03", b"<SIGINT>"), (b"\x1c", b"<SIGQUIT>"), (b"\x1a", b"<SIGTSTP>")):
            it.type(key)
            it.wait_for(name, 20)
        # Editing is the guest's: erase, then end of file. The user's own interrupt key is an ordinary one.
        it.type(b"worx\x7fd\r")
        it.wait_for(b"<word>", 20)
        it.type(b"\x04")
        it.wait_for(b"<end>", 20)
        expect_equal(it.finish(), 0, "status")
        it.expect_given_back()


def test_job_control():
    with terminal("--", "bash", "--norc", "--noprofile", "-i") as it:
        it.wait_for(b"$ ")
        expect("cannot set terminal process group" not in it.output.decode(), "no job control")
        it.type(b"sleep 1000; echo slept=$?\r")
        it.wait_for(b"slept=$?")
        time.sleep(0.5)
        it.type(b"\x1a")
        it.wait_for(b"Stopped", 20)
        it.type(b"fg\r")
        it.wait_for(b"sleep 1000\r\n", 20)
        time.sleep(0.5)
        it.type(b"\x03")
        it.wait_for(b"^C", 20)
        it.type(b"echo was=$?=\r")
        it.wait_for(b"was=130=", 20)
        it.type(b"printf '<%s>' in; cat; echo cat=$?=\r")
        it.wait_for(b"<in>", 20)
        it.type(b"line\r")
        it.wait_for(b"line\r\nline\r\n", 20)
        it.type(b"\x04")
        it.wait_for(b"cat=0=", 20)
        it.type(b"exit 7\r")
        expect_equal(it.finish(), 7, "status")
        it.expect_given_back()


def test_paste_arrives_exactly():
    paste = b"\x1b[200~" + bytes(range(256)) * 256 + b"\x1b[201~"
    program = ("import hashlib,os,tty\n"
               "tty.setraw(0)\n"
               "os.write(1, b'<ready>')\n"
               f"data = b''\nwhile len(data) < {len(paste)}: data += os.read(0, 4096)\n"
               "os.write(1, hashlib.sha256(data).hexdigest().encode())\n")
    with terminal("--", "python3", "-c", program) as it:
        it.wait_for(b"<ready>")
        it.type(paste)
        expect_equal(it.finish(), 0, "status")
        expect_in(hashlib.sha256(paste).hexdigest().encode(), it.output)


def numbers(last):
    """What seq(1) writes to a terminal."""
    return b"".join(b"%d\r\n" % number for number in range(1, last + 1))


def test_fast_writer_is_complete():
    output = shown("--", "seq", "1", "200000")
    expect_equal(len(output), len(numbers(200000)), "length of the output")
    expect(output == numbers(200000), "the output is not what was written")


def test_slow_screen_gets_everything():
    with terminal("--", "seq", "1", "30000") as it:
        it.wait_for(b"1\r\n")
        time.sleep(3)
        expect_equal(it.finish(), 0, "status")
        expect(it.output.removesuffix(RESET) == numbers(30000), "the output is not what was written")


def test_stuck_screen_does_not_hold_the_time_limit():
    with terminal("--timeout", "2", "--", "yes") as it:
        expect_equal(it.process.wait(timeout=60), 124, "status")
        it.expect_given_back()


def test_given_back_after_bad_ends():
    """The command is killed; mvagent is asked to end, or killed; the machine dies."""
    for end in ("command", "SIGTERM", "SIGKILL", "machine"):
        command = "echo ready; read x; kill -9 $$" if end == "command" else "echo ready; sleep 1000"
        with terminal("--", "sh", "-c", command) as it:
            it.wait_for(b"ready")
            expect(it.is_raw(), "the terminal is not raw")
            if end == "command":
                it.type(b"\r")
            elif end == "machine":
                os.kill(machine(), signal.SIGKILL)
            else:
                it.process.send_signal(getattr(signal, end))
            wanted = {"command": 137, "SIGTERM": 143, "SIGKILL": -9, "machine": 125}[end]
            expect_equal(it.finish(), wanted, f"status after {end}")
            it.expect_given_back()
            while it.take(0.2):
                pass
            expect(it.output.endswith(RESET), f"the modes were not put back after {end}: {it.output[-200:]!r}")
            if end == "machine":
                expect_in("mvagent-vmm was killed by signal 9", it.error)
        harness.expect_nothing_left()


def test_terminal_that_goes_away():
    """The user closes the window: an idle shell ends, and so does a command that does not care about SIGHUP."""
    for command in (["bash", "--norc", "-i"], ["sh", "-c", "trap '' HUP; echo '$ '; cat"]):
        with terminal("--", *command) as it:
            it.wait_for(b"$ ")
            os.close(it.screen)
            os.close(it.line)
            it.process.wait(timeout=60)
        harness.expect_nothing_left()


# What is written, and what of it reaches the screen.
ESCAPES = (
    (b"\033[1;31mred\033[0m", b"\033[1;31mred\033[0m"),
    (b"\033[38:2::1:2:3mrgb\033[m\033[2J\033[10;20H\033[?1049h\033[?1049l", None),
    ("zażółć gęślą jaźń \u2014 \U0001f600 Ü\u00dd".encode(), None),
    (b"\033]8;;https://example.org/%C3%9C\033\\link\033]8;;\033\\", None),
    (b"\033]0;title\aA", b"A"),
    (b"\033]1;icon\033\\B", b"B"),
    (b"\033]2;" + "Überschrift".encode() + b"\aC", b"C"),
    (b"\033]52;c;aGVsbG8=\aD", b"D"),
    (b"\033]52;c;?\033\\E", b"E"),
    (b"\x9d52;c;aGVsbG8=\x9cF", b"F"),
    (b"\xc2\x9d52;c;aGVsbG8=\xc2\x9cG", b"G"),
    (b"\033P+q544e\033\\H", b"H"),
    (b"\x90q#0~\x9cI", b"I"),
    (b"\033[22;0t\033[21t\033[18tJ", b"\033[18tJ"),
    (b"\033ktitle\033\\K", b"K"),
    (b"\033_Gi=1;AAAA\033\\L\033^private\033\\M\033Xstring\033\\N", b"LMN"),
    (b"\033Ptmux;\033\033]52;c;aGVsbG8=\a\033\\O", None),
    (b"\033\a]52;c;aGVsbG8=\aP", None),
    (b"\033[\x18\x9d52;c;aGVsbG8=\aQ", None),
)


def write_escapes(*options):
    data = b"".join(written for written, _ in ESCAPES)
    program = f"import os,tty\ntty.setraw(1)\nos.write(1, bytes.fromhex('{data.hex()}'))"
    return shown(*options, "--", "python3", "-c", program)


def test_output_cannot_act_beyond_the_screen():
    output = write_escapes()
    rest = output
    for written, wanted in ESCAPES[:-3]:
        wanted = written if wanted is None else wanted
        expect(rest.startswith(wanted), f"{rest[:60]!r} for {written!r}, not {wanted!r}")
        rest = rest[len(wanted):]
    # The last ones are broken on purpose: what is left of them matters little, but it must act on nothing.
    for introducer in (b"\033]", b"\x9d", b"\033P", b"\033\a"):
        expect(introducer not in rest, f"{introducer!r} in {rest!r}")
    for letter in (b"O", b"P", b"Q"):
        expect_in(letter, rest)


def test_passthrough_changes_nothing():
    expect_equal(write_escapes("--terminal-passthrough"), b"".join(written for written, _ in ESCAPES))


def test_half_a_terminal_is_none():
    """A pty is for a command that has the terminal at both ends."""
    ask = "test -t 0 || test -t 1 || test -t 2 || echo none; cat; echo error >&2"
    with terminal("--", "sh", "-c", ask, stdin=subprocess.PIPE) as it:
        it.process.stdin.write(b"input\n")
        it.process.stdin.close()
        expect_equal(it.finish(), 0, "status")
        # The user's own terminal makes the line ends here.
        expect_equal((it.output, it.error), (b"none\r\ninput\r\n", "error\n"), "stdin is a pipe")
    with terminal("--", "sh", "-c", ask.replace("cat", "read x; echo $x"), stdout=subprocess.PIPE) as it:
        it.type(b"typed\r")
        expect_equal(it.process.stdout.read(), b"none\ntyped\n", "stdout is a pipe")
        expect_equal((it.finish(), it.error), (0, "error\n"), "status and errors")
        it.expect_given_back()
        expect(RESET not in it.output, "the terminal's modes were changed")
        it.process.stdout.close()


if __name__ == "__main__":
    harness.main(globals())
