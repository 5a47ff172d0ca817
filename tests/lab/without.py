# SPDX-License-Identifier: Apache-2.0
"""Runs a command as on a host without Landlock, or without mount namespaces for processes that want one too: the system calls that would make them fail as
they do there.

    without.py landlock|both PROGRAM [ARGUMENT...]
"""

import ctypes
import errno
import os
import struct
import sys

# What fails, and how.
CALLS = {"landlock": [(444, errno.ENOSYS)], "both": [(444, errno.ENOSYS), (272, errno.EPERM)]}  # landlock_create_ruleset, unshare
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7FFF0000
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # seccomp(2): instructions of BPF


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid(calls):
    steps = [(LOAD, 0, 0, 0)]
    for number, error in calls:
        steps += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, SECCOMP_RET_ERRNO | error)]
    steps.append((RETURN, 0, 0, SECCOMP_RET_ALLOW))
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(len(steps), code))):
        raise OSError(ctypes.get_errno(), "the filter was not taken")


if __name__ == "__main__":
    forbid(CALLS[sys.argv[1]])
    os.execv(sys.argv[2], sys.argv[2:])
