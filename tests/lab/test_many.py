# SPDX-License-Identifier: Apache-2.0
"""Many runs, one after the other and side by side: statuses right, nothing left, memory flat."""

import gc
import os
import pathlib
import threading

import harness
from harness import directory, expect, expect_equal

RUNS = int(os.environ.get("MANY_RUNS", "24"))


def host_state():
    """What a run must leave as it was."""
    return {
        "mounts": len(pathlib.Path("/proc/self/mounts").read_text().splitlines()),
        "unix sockets": len(pathlib.Path("/proc/net/unix").read_text().splitlines()),
        "files in /tmp": sorted(os.listdir("/tmp")),
        "files in /dev/shm": sorted(os.listdir("/dev/shm")),
        "files in /run": sorted(os.listdir("/run")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": sorted(harness.processes()),
    }


def memory_in_use():
    values = {}
    for line in open("/proc/meminfo", encoding="ascii"):
        name, value = line.split(":")
        values[name] = int(value.split()[0])
    return (values["MemTotal"] - values["MemFree"] - values["Cached"] - values["Buffers"] - values["SReclaimable"]) // 1024


def one_run(place, number):
    status = number % 7
    result = harness.run("--cpus", "1", "--memory", "256M", "--share", str(place), "--", "sh", "-c",
                         f"echo {number} > out{number % 8}; cat out{number % 8}; exit {status}")
    expect_equal((result.status, result.out, result.err), (status, f"{number}\n", ""), f"run {number}")


def test_many_in_a_row():
    with directory() as place:
        one_run(place, 1)
        before, early = host_state(), None
        for number in range(RUNS):
            one_run(place, number)
            if number == RUNS // 10:
                gc.collect()
                early = memory_in_use()
        harness.expect_nothing_left()
        grown = memory_in_use() - early
        expect(grown < 48, f"{grown} MiB more in use after {RUNS} runs")
        expect_equal(host_state(), before, "what was left")


def test_eight_at_once():
    with directory() as place:
        failures = []

        def work(number):
            try:
                one_run(place, number)
            except harness.Failure as failure:
                failures.append(str(failure))

        for _ in range(max(1, RUNS // 30)):
            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        expect_equal(failures, [], "failures")


if __name__ == "__main__":
    harness.main(globals())
