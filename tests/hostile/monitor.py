# SPDX-License-Identifier: Apache-2.0
"""vmm/wire/monitor.h for Python."""

import struct

RUNNING, COUNTERS, CONSOLE, FRAME, ENDED, COUNT, STOP = range(1, 8)
STOPPED, RESET, PANIC, TRIPLE_FAULT, INTERNAL_ERROR, DEVICE_LOST, HOST_ERROR = range(1, 8)

COUNTER_COUNT = 10
PACKET = struct.Struct(f"<IIQ{COUNTER_COUNT}QI1024s4x")
