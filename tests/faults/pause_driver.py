#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whose host stands still for a while, as a laptop or a virtual machine that is suspended: all their processes are
stopped at once, for longer than any of them would wait for another, and go on.

    tests/faults/pause_driver.py [--build DIR]

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from kill_driver import write_image
from kills import Failure, Place, family, need

# More than a conversation with a device process may take (10 s), and than any wait at the end.
PAUSE_SECONDS = 12

# In the first, processes are started and devices activated.
DELAYS = [(0.0, 0.1), (0.1, 0.3), (0.5, 1.0)]


def newest(share):
    return max(path.stat().st_mtime_ns for path in share.iterdir())


def paused(build, delay):
    place = Place(pathlib.Path(tempfile.mkdtemp(prefix="mvagent-pause-", dir="/var/tmp")), endless=True)
    write_image(place.path / "root.img")
    with open(place.path / "errors", "w+b") as errors, subprocess.Popen(
            [build / "tests/faults/bin/mvagent", "run", "--root", place.path / "root.img", "--kernel",
             build / "share/mvagent/selftest.elf", "--memory", "128M", "--share", place.share, "--timeout", "60", "--", "work"],
            env=place.environment, cwd=place.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as run:
        try:
            time.sleep(delay)
            # The supervisor first: it starts no more.
            os.kill(run.pid, signal.SIGSTOP)
            stopped = family(run.pid)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(PAUSE_SECONDS)
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            time.sleep(2)
            told = place.path.joinpath("errors").read_text(errors="replace")
            need(run.poll() is None, f"stopped after {delay:.3f} s for {PAUSE_SECONDS} s, the run ended: {told}")
            before = newest(place.share)
            time.sleep(1)
            need(newest(place.share) > before, f"stopped after {delay:.3f} s for {PAUSE_SECONDS} s, the guest does nothing: {told}")
            run.send_signal(signal.SIGINT)
            time.sleep(0.2)
            run.send_signal(signal.SIGINT)
            need(run.wait(timeout=10) == 128 + signal.SIGINT, f"interrupted, it ends with {run.returncode}: {told}")
        except subprocess.TimeoutExpired as late:
            raise Failure("interrupted, it does not end") from late
        finally:
            run.kill()
    shutil.rmtree(place.path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    options = parser.parse_args()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        print("skip a_host_that_stands_still: there is no /dev/kvm here")
        return 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = [pool.submit(paused, options.build.resolve(), random.uniform(*delay)) for delay in DELAYS]
    failures = [str(run.exception()) for run in runs if run.exception()]
    print("not ok a_host_that_stands_still: " + "; ".join(failures) if failures else "ok a_host_that_stands_still")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
