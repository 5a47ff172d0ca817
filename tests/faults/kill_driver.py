#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs with a small guest that works (tests/hostile/guest_work.c), each of which loses a process to SIGKILL.

    tests/faults/kill_driver.py [--build DIR] [--runs N] [--seed N] [--secrets N]

N runs, by default as many as the variable MVAGENT_KILL_RUNS says, or 25. Prints "ok NAME", "not ok NAME: why" or
"skip NAME: why", and on standard error how long the others took to end.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile

import kills
from kills import EVERYTHING, PROCESSES, WAYS_OUT, Agent, Failure, Place, Run

# From the start to the middle of the guest's work, or beyond the end of one that ends.
SECONDS = 0.4
SECONDS_WITH_SECRETS = 0.8


def write_image(path):
    """Blocks that pass for an image of EROFS: the guest only reads them."""
    data = bytearray(65536)
    data[1024:1028] = bytes.fromhex("e2e1f5e0")
    path.write_bytes(data)


def one(build, agent, number, chance, seconds):
    secret = chance.random() < 0.3
    review = chance.random() < 0.5
    targets = [name for name in PROCESSES if secret or name not in WAYS_OUT]
    target = chance.choice([*targets, EVERYTHING])
    delay = chance.uniform(0, SECONDS_WITH_SECRETS if secret else SECONDS)
    endless = chance.random() < 0.7
    place = Place(pathlib.Path(tempfile.mkdtemp(prefix="mvagent-kill-", dir="/var/tmp")), endless)
    program = build / "tests/faults/bin/mvagent"
    write_image(place.path / "root.img")
    command = [program, "run", "--root", place.path / "root.img", "--kernel", build / "share/mvagent/selftest.elf",
               "--memory", "128M", "--json", "report.json",
               "--share", f"{place.share}:review" if review else place.share,
               *(agent.open_ways(place) if secret else []), "--", "work"]
    told = f"run {number}: {target} after {delay:.3f} s, {'review' if review else 'rw'}{', secret' if secret else ''}"
    try:
        run = Run(place, program, command, target, delay)
        run.check(review)
    except Failure as failure:
        raise Failure(f"{told}: {failure} (left in {place.path})") from failure
    shutil.rmtree(place.path)
    if run.killed:
        seconds[run.target].append(run.seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--runs", type=int, default=int(os.environ.get("MVAGENT_KILL_RUNS") or 25))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    build = options.build.resolve()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        print("skip kill_of_each_process: there is no /dev/kvm here")
        return 0
    chance = random.Random(options.seed)
    seconds = collections.defaultdict(list)
    before = kills.host_state()
    failures = []
    with tempfile.TemporaryDirectory() as place, Agent(pathlib.Path(place)) as agent:
        for number in range(options.runs):
            try:
                one(build, agent, number, chance, seconds)
            except Failure as failure:
                failures.append(str(failure))
                print(f"not ok kill_of_each_process: {failure}", flush=True)
    for target, times in sorted(seconds.items()):
        print(f"{target}: killed {len(times)} times; all had ended after {1000 * sum(times) / len(times):.0f} ms on average, "
              f"{1000 * max(times):.0f} ms at most", file=sys.stderr)
    print(f"{options.runs} runs, seed {options.seed}", file=sys.stderr)
    if not failures:
        print("ok kill_of_each_process")
    print("ok nothing_of_the_host_changed" if kills.host_state() == before
          else f"not ok nothing_of_the_host_changed: {before} became {kills.host_state()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
