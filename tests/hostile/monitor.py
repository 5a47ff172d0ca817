# SPDX-License-Identifier: Apache-2.0
"""vmm/wire/monitor.h for Python: its numbers are read from there, so that they cannot differ."""

import pathlib
import re
import struct

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "vmm/wire/monitor.h").read_text()


def block(kind, name):
    """What is between the braces of that enum or struct, without its comments."""
    (text,) = re.findall(rf"{kind} {name} {{(.*?)}};", HEADER, re.S)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def numbers(name, prefix):
    """The constants of an enum whose first is 1, without their prefix."""
    names = [word.split("=")[0].strip() for word in block("enum", name).split(",")]
    return {word.removeprefix(prefix): number for number, word in enumerate(filter(None, names), 1)}


globals().update(numbers("monitor_type", "MONITOR_"))
globals().update(numbers("monitor_reason", "MONITOR_REASON_"))

COUNTER_COUNT = block("struct", "monitor_counters").count("uint64_t")
PACKET = struct.Struct(f"<IIQ{COUNTER_COUNT}QI1024s4x")
