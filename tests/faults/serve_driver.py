#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mvagent-relay and mvagent-secret at work, of which one system call fails.

    tests/faults/serve_driver.py [--build DIR] [--calls N|all] [--process NAME]

fault_driver.py lets calls of a whole run fail, whose guest goes out nowhere. Here peers on loopback ask for connections:
through mvagent-secret to a server that says what it got, and to a host that is not allowed. Then each answer is right and
without the secret, or none, within a bound; who ends early says why; no crash, no descriptor left open. N calls of each
process, spread over all (MVAGENT_FAULT_CALLS, or 8). Prints "ok NAME" or "not ok NAME: why"."""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from fault_driver import choose
from kills import Failure, need

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "relay"))

import relay_driver  # noqa: E402
import secret_driver  # noqa: E402
from relay_driver import DENIED, Relay  # noqa: E402
from secret_driver import PLACE, VALUE, Authority, Run, Secure, exchange, head, simple  # noqa: E402

END_SECONDS = 20
PROCESSES = {"mvagent-relay": Relay, "mvagent-secret": Run}

# What says on descriptor 3 how the process ended. The parent has that number in use, so no other descriptor has it.
WRAPPER = """#!/bin/bash
exec 3>{report}
exec {inject} {name} {call} -- {program} "$@"
"""


class Faulty:
    """Both processes and their peers; call @call of @process fails."""

    def __init__(self, build, place, process, call):
        self.process, self.report = process, place / "report"
        self.report.unlink(missing_ok=True)
        programs = build / "libexec/mvagent"
        for name, kind in PROCESSES.items():
            kind.program = str(programs / name)
        wrapper = place / f"wrapper-{call}"
        wrapper.write_text(WRAPPER.format(report=self.report, inject=build / "tests/faults/inject", name=process, call=call,
                                          program=programs / process))
        wrapper.chmod(0o755)
        PROCESSES[process].program = str(wrapper)
        self.answers = []
        self.ends = {}
        with Secure(Run.authority.context(), simple) as server:
            self.run = None
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionError):
                    self.run = Run(server.port)
                    self.ask(server)
            except TimeoutError as late:
                raise Failure(f"no answer within {relay_driver.LIMIT} s") from late
            finally:
                self.end()
        wrapper.unlink()
        told = self.report.read_text() if self.report.exists() else ""
        failed = re.search(r"^call (.*)$", told, re.MULTILINE)
        self.failed = failed[1] if failed else None
        end = re.search(r"^end (-?\d+) (\d+) (-?\d+)$", told, re.MULTILINE)
        self.status, self.calls, self.descriptors = map(int, end.groups()) if end else (None, 0, None)

    def ask(self, server):
        """Three requests with the placeholder, each by a connection of its own, and one to where nothing leads."""
        for number in range(3):
            mark = b"x-mark: %d-of-the-test" % number
            answer = b""
            # A connection that is refused, or is over early, is an answer: none.
            try:
                with self.run.connect() as made:
                    answer = exchange(made, head(b"Authorization: Bearer " + PLACE.encode(), mark))
            except TimeoutError:
                raise
            except (OSError, ValueError, secret_driver.Failure):
                pass
            whole = mark in answer and PLACE.encode() in answer
            need(VALUE.encode() not in answer, "the guest was told the secret")
            need(whole or b"200 OK" not in answer or b"x-mark" not in answer, f"an answer that is wrong: {answer[-300:]!r}")
            need(not whole or VALUE.encode() in server.heads[-1], f"an answer, and the server got {server.heads[-1:]}")
            self.answers.append(whole)
        made = self.run.relay.stream()
        if made:
            with made:
                made.sendall(b"\1\1\xbb\1\x0b\0elsewhere.x")
                with contextlib.suppress(ConnectionError):
                    got = made.recv(1)
                    need(got in (b"", bytes([DENIED])), f"a host that is not allowed: {got!r}")

    def end(self):
        """As a supervisor ends them: nothing more is lent."""
        if not self.run:
            return
        self.run.relay.lender.close()
        for name, process in (("mvagent-relay", self.run.relay.process), ("mvagent-secret", self.run.process)):
            try:
                errors = process.communicate(timeout=END_SECONDS)[1].decode(errors="replace")
            except subprocess.TimeoutExpired as late:
                process.kill()
                raise Failure(f"{name} does not end") from late
            self.ends[name] = (process.returncode, errors)
        for closed in (self.run.relay.events, self.run.events):
            closed.close()
        self.run.names.__exit__()

    def check(self, base):
        for name, (status, errors) in self.ends.items():
            need(status in (0, 1), f"{name} ended with status {status}: {errors}")
            need("killed by signal" not in errors and "AddressSanitizer" not in errors, f"{name} has crashed: {errors}")
            need(status == 0 or errors.strip(), f"{name} ended without a sentence")
        if base and self.status == 0:
            need(self.descriptors <= base.descriptors, f"{self.descriptors} descriptors at its end, not {base.descriptors}")

    def what_became_of_it(self):
        if not self.failed:
            return "did not make them this time"
        if all(self.answers) and len(self.answers) == 3:
            return "went on"
        return "went on after fewer answers" if self.status == 0 else "ended with a sentence"


def try_process(build, place, process, wanted, ends):
    base = Faulty(build, place, process, 0)
    base.check(None)
    need(base.answers == [True] * 3 and base.status == 0, f"it fails by itself: {base.answers} {base.ends}")
    failures, reached = [], 0
    numbers = choose(base.calls, wanted)
    for number in numbers:
        try:
            faulty = Faulty(build, place, process, number)
            faulty.check(base)
        except Failure as failure:
            report = (place / "report").read_text().strip().replace("\n", ", ") if (place / "report").exists() else ""
            failures.append(f"call {number} ({report}): {failure}")
            print(f"     {process} {failures[-1]}", file=sys.stderr, flush=True)
            continue
        ends[process, faulty.what_became_of_it()] += 1
        reached += faulty.failed is not None
    need(reached or failures, f"none of calls {numbers} was made again")
    need(not failures, f"{len(failures)} of {len(numbers)} calls, the first: {failures[:1]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--calls", default=os.environ.get("MVAGENT_FAULT_CALLS") or "8")
    parser.add_argument("--process", choices=list(PROCESSES))
    options = parser.parse_args()
    while os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) < 3:
        pass
    ends, bad = collections.Counter(), False
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        (place / "authority").mkdir()
        Run.authority = Authority(place / "authority")
        for process in [options.process] if options.process else list(PROCESSES):
            test = f"each_call_of_{process.replace('-', '_')}_at_work_fails"
            try:
                try_process(options.build.resolve(), place, process, options.calls, ends)
                print(f"ok {test}", flush=True)
            except Failure as failure:
                bad = True
                print(f"not ok {test}: {failure}", flush=True)
    for (process, end), count in sorted(ends.items()):
        print(f"{process}: {count} calls that were to fail: it {end}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
