# SPDX-License-Identifier: Apache-2.0
"""A terminal with mvagent in it, for tests: they are the screen and the keyboard."""

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import termios
import time

import harness
from harness import Failure

# What mvagent itself writes at the end: modes that a program may have left on are switched off.
RESET = (b"\033\\\033[?2004l\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l\033[?1l\033>\033[?25h"
         b"\033[0m")


class Terminal:
    """A terminal of the test's own with mvagent in it: the test is the screen and the keyboard."""

    def __init__(self, rows=37, columns=133):
        self.screen, self.line = os.openpty()
        os.set_blocking(self.screen, False)
        self.resize(rows, columns)
        # Settings that nobody has by accident, so that giving back something like them is not enough.
        settings = termios.tcgetattr(self.line)
        settings[3] &= ~termios.ECHOK
        settings[6][termios.VERASE] = b"\x08"
        settings[6][termios.VINTR] = b"\x07"
        termios.tcsetattr(self.line, termios.TCSANOW, settings)
        self.before = termios.tcgetattr(self.line)
        self.output = b""
        self.process = None

    def start(self, *arguments, **named):
        named = {"stdin": self.line, "stdout": self.line, "stderr": subprocess.PIPE} | named
        self.process = harness.start(*arguments, start_new_session=True, preexec_fn=self.control, **named)

    def control(self):
        fcntl.ioctl(self.line, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.line, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take(self, seconds=0.05):
        """Takes what is on the screen now, waiting a moment for it. False when nothing came."""
        if not select.select([self.screen], [], [], seconds)[0]:
            return False
        try:
            self.output += os.read(self.screen, 65536)
        except BlockingIOError:
            return False
        return True

    def wait_for(self, text, seconds=60.0, count=1):
        end = time.monotonic() + seconds
        while self.output.count(text) < count:
            if time.monotonic() > end:
                raise Failure(f"waited {seconds:.0f} s for {text!r} on the screen: {self.output[-600:]!r}")
            self.take()

    def type(self, keys):
        """Types @keys, reading the screen meanwhile as a terminal does."""
        while keys:
            if select.select([], [self.screen], [], 0.05)[1]:
                with contextlib.suppress(BlockingIOError):
                    keys = keys[os.write(self.screen, keys):]
            self.take(0)

    def is_raw(self):
        return not termios.tcgetattr(self.line)[3] & termios.ICANON

    def finish(self, seconds=60.0):
        """Waits for mvagent's end. Returns its status; the screen's contents are in output, the rest in error."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise Failure(f"mvagent did not end in {seconds:.0f} s: {self.output[-600:]!r}")
            self.take()
        while self.take(0):
            pass
        self.error = self.process.stderr.read().decode() if self.process.stderr else ""
        return self.process.returncode

    def expect_given_back(self):
        harness.wait_until(lambda: termios.tcgetattr(self.line) == self.before,
                           f"the terminal's settings: {termios.tcgetattr(self.line)}, not {self.before}", 5)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process and self.process.stderr:
            self.process.stderr.close()
        for fd in (self.screen, self.line):
            with contextlib.suppress(OSError):
                os.close(fd)


@contextlib.contextmanager
def terminal(*arguments, **named):
    """A terminal with mvagent run ARGUMENTS in it."""
    it = Terminal()
    try:
        it.start(*arguments, **named)
        yield it
    finally:
        it.close()
