# SPDX-License-Identifier: Apache-2.0
"""What a piece of work cost: between two marks on a subject's standard output."""

import os
import pathlib
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")
KVM = pathlib.Path("/sys/kernel/debug/kvm")


def process_table():
    """{pid: (parent, seconds)}: user, system and guest time, with that of children that were waited for."""
    table = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = pathlib.Path(entry.path, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # proc(5): after the name come state, ppid (4) ... utime (14), stime, cutime, cstime (17).
        table[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) * TICK)
    return table


def cpu_seconds(roots):
    """Of the processes @roots and all below them."""
    table = process_table()
    wanted, grown = set(roots), True
    while grown:
        more = {pid for pid, (parent, _) in table.items() if parent in wanted} - wanted
        wanted |= more
        grown = bool(more)
    return sum(table[pid][1] for pid in wanted if pid in table)


def exits():
    """{guest: exits so far}, or {} where debugfs is not to be had."""
    found = {}
    for path in KVM.glob("*/exits"):
        try:
            found[path.parent.name] = int(path.read_text())
        except OSError:
            continue
    return found


def exits_between(begin, end):
    """Of the guests that are there at the end; mvagent also probes KVM with guests of a moment."""
    return sum(count - begin.get(guest, 0) for guest, count in end.items()) if end else None


class Sample:
    def __init__(self, roots):
        self.wall = time.monotonic()
        self.cpu = cpu_seconds(roots)
        self.exits = exits()


def between_marks(subject):
    """Reads what a started subject prints to its end; returns the costs of the work as a dictionary."""
    samples, interrupts, other = {}, {}, []
    for line in subject.lines():
        wall = time.monotonic()
        text = line.decode(errors="replace").rstrip("\r\n")
        match text.split():
            case ["MARK", name]:
                # The work begins now; all but the time is as it was just before.
                if name not in samples:
                    samples[name] = Sample(subject.roots)
                samples[name].wall = wall
            case ["MARK", name, count]:
                interrupts[name] = int(count)
                if name == "before":
                    samples["begin"] = Sample(subject.roots)
            case [*_]:
                other.append(text)
    if set(samples) != {"begin", "end"} or set(interrupts) != {"before", "after"} or "FAILED" in other:
        raise RuntimeError(f"{subject.name}: the work failed: {' | '.join(other[-8:])} {subject.complaint()}")
    begin, end = samples["begin"], samples["end"]
    return {
        "wall": end.wall - begin.wall,
        "cpu": end.cpu - begin.cpu,
        "exits": exits_between(begin.exits, end.exits),
        "interrupts": interrupts["after"] - interrupts["before"] if subject.is_guest else None,
    }
