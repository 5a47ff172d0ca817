#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs in which one system call of one process fails, with the programs that users run.

    tests/faults/fault_driver.py [--build DIR] [--calls N|all] [--first N] [--process NAME] [--mode rw|review|ro]

The guest (tests/hostile/guest_work.c) works in its share and says at the end what must be there by the answers that it
got. inject (inject.c) lets the Nth call of a process return an error. Then the run ends within a bound and says why, or
goes on and is right: no crash, no hang, no success that is none, no descriptor left open, nothing left behind, the record
whole or its failure said. N calls of each process, spread over all and other ones each time (MVAGENT_FAULT_CALLS, or 8);
"all" tries each. Prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from kill_driver import write_image
from kills import OLD, WAYS_OUT, Agent, Failure, Place, need

END_SECONDS = 30

PROCESSES = ["mvagent", "mvagent-vmm", "mvagent-blk", "mvagent-fs"]


class Injected:
    """One run."""

    def __init__(self, build, agent, process, call, mode):
        self.mode, self.call = mode, call
        self.program = build / "tests/faults/bin/mvagent"
        self.place = Place(pathlib.Path(tempfile.mkdtemp(prefix="mvagent-fault-", dir="/var/tmp")), endless=False)
        write_image(self.place.path / "root.img")
        # This guest takes none of them.
        ways = agent.open_ways(self.place) if process in WAYS_OUT else []
        share = str(self.place.share) + ("" if mode == "rw" else ":" + mode)
        reader, writer = os.pipe()
        command = ["bash", "-c", 'exec 3>&"$0" "$@"', str(writer), build / "tests/faults/inject", process, str(call), "--",
                   self.program, "run", "--root", self.place.path / "root.img", "--kernel",
                   build / "share/mvagent/selftest.elf", "--memory", "128M", "--json", "report.json", "--share", share,
                   *ways, "--", "work"]
        try:
            done = subprocess.run(command, env=self.place.environment, cwd=self.place.path, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=END_SECONDS, pass_fds=[writer], check=False)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"it still runs after {END_SECONDS} s; it said {late.stderr!r}") from late
        finally:
            os.close(writer)
            with os.fdopen(reader) as pipe:
                self.told = pipe.read()
        self.status, self.output, self.errors = done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
        failed = re.search(r"^call (.*)$", self.told, re.MULTILINE)
        self.failed = failed[1] if failed else None
        end = re.search(r"^end (\d+) (\d+) (-?\d+)$", self.told, re.MULTILINE)
        self.end, self.calls, self.descriptors = map(int, end.groups()) if end else (None, 0, None)

    def forget(self):
        shutil.rmtree(self.place.path)

    def mvagent(self, *arguments):
        return self.place.mvagent(self.program, *arguments)

    def expect_end(self):
        need(self.status in (0, 125), f"exit status {self.status}: {self.errors}")
        need("killed by signal" not in self.errors and "system call that it may not make" not in self.errors,
             f"a crash: {self.errors}")
        if self.status:
            need(re.search(r"^mvagent[a-z-]*: \S.*\S", self.errors, re.MULTILINE), f"no sentence: {self.errors!r}")

    def expect_record(self):
        """Whole; or that it could not be kept is said, and the run has failed."""
        records = list((self.place.path / "home/.local/state/mvagent/records").glob("*.jsonl"))
        if self.status == 0:
            need(len(records) == 1, f"success, and {len(records)} records")
        for record in records:
            checked = self.mvagent("record", "verify", record)
            if checked.returncode or "signed" not in checked.stdout:
                need(self.status == 125, f"success, and the record: {checked.stdout}{checked.stderr}")

    def apply(self):
        for name in (path.name for path in self.place.share.iterdir()):
            need((self.place.share / name).read_bytes() == OLD, f"the host's {name} was changed under review")
        runs = json.loads(self.mvagent("runs", "--json").stdout)
        for run in runs:
            if run["state"] == "open":
                applied = self.mvagent("apply", run["run"])
                need(applied.returncode == 0, f"apply: {applied.stdout}{applied.stderr}")

    def expect_share(self):
        """What the guest was told is so. It is told nothing of a share that it may not write to."""
        if self.mode == "review":
            self.apply()
        self.place.expect_consistent()
        if self.mode == "ro":
            self.place.expect_unchanged()
            return
        for line in self.output.splitlines():
            name, letter, *length = line.split()
            path = self.place.share / name
            if letter == "-":
                need(not path.exists(), f"{name} is there, and the guest was told that it was removed")
                continue
            need(path.exists(), f"{name} is not there, and the guest was told that it was written")
            need(path.read_bytes() == letter.encode() * int(length[0]),
                 f"{name} holds {path.stat().st_size} bytes {path.read_bytes()[:1]!r}, not {length[0]} {letter}")
        if self.status == 0:
            need(len(self.output.splitlines()) >= 6, f"the command's output was lost: {self.output!r}")

    def expect_order(self):
        """Nothing is left; where something had to be left, that is said, and can be brought to order."""
        repaired = self.mvagent("runs", "--repair")
        need(repaired.returncode == 0, f"runs --repair: {repaired.stdout}{repaired.stderr}")
        if "; 0 things were removed" not in repaired.stdout:
            need(self.errors.strip(), f"left without a word: {repaired.stdout}")
        self.place.expect_nothing_else()

    def check(self, base):
        self.expect_end()
        self.expect_record()
        self.expect_share()
        self.expect_order()
        if base and self.end == 0:
            need(self.descriptors <= base.descriptors, f"{self.descriptors} descriptors are open at its end, not "
                                                       f"{base.descriptors}: {self.errors}")


def choose(total, wanted):
    """So many of 1 to total, one out of each part of it."""
    if wanted == "all" or int(wanted) >= total:
        return list(range(1, total + 1))
    parts = int(wanted)
    return [random.randint(part * total // parts + 1, (part + 1) * total // parts) for part in range(parts)]


def try_process(build, agent, process, mode, options, ends):
    base = Injected(build, agent, process, 0, mode)
    need(base.status == 0 and base.end == 0, f"it fails by itself: {base.errors}")
    base.check(None)
    base.forget()
    numbers = choose(base.calls, options.calls)
    failures = []
    for number in numbers:
        if number < options.first:
            continue
        try:
            run = Injected(build, agent, process, number, mode)
        except Failure as failure:
            failures.append(f"call {number}: {failure}")
            print(f"     {process} {mode} {failures[-1]}", file=sys.stderr, flush=True)
            continue
        try:
            run.check(base)
        except Failure as failure:
            failures.append(f"call {run.failed}: {failure}")
            print(f"     {process} {mode} {failures[-1]} (left in {run.place.path})", file=sys.stderr, flush=True)
            continue
        run.forget()
        ends[process, "went on" if run.status == 0 else "ended the run with a sentence"] += 1
    need(not failures, f"{len(failures)} of {len(numbers)} calls, the first: {failures[:1]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--calls", default=os.environ.get("MVAGENT_FAULT_CALLS") or "8")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--process", choices=PROCESSES + WAYS_OUT)
    parser.add_argument("--mode", choices=["rw", "review", "ro"])
    options = parser.parse_args()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        print("skip each_call_fails: there is no /dev/kvm here")
        return 0
    with tempfile.TemporaryDirectory() as place, Agent(pathlib.Path(place)) as agent:
        return try_all(options, agent)


def try_all(options, agent):
    ends = collections.Counter()
    bad = False
    for process in [options.process] if options.process else PROCESSES + WAYS_OUT:
        for mode in [options.mode] if options.mode else ["rw"] if process in WAYS_OUT else ["rw", "review"]:
            name = f"each_call_of_{process.replace('-', '_')}_fails_{mode}"
            try:
                try_process(options.build.resolve(), agent, process, mode, options, ends)
                print(f"ok {name}", flush=True)
            except Failure as failure:
                bad = True
                print(f"not ok {name}: {failure}", flush=True)
    for (process, end), count in sorted(ends.items()):
        print(f"{process}: {count} failures {end}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
