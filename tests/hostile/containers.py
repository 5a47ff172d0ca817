#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine and its walls in containers that have /dev/kvm and no more: `mvagent selftest` in each.

    tests/hostile/containers.py [--build DIR] [TEST...]

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test. Any KVM will do.
"""

import argparse
import json
import os
import pathlib
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/lab"))
import container  # noqa: E402

USER = 1000
# One of each device, and one that goes on until it is stopped.
ATTACKS = ("well-behaved", "broken-chains", "vsock-forged", "blk", "net", "fuse", "endless-loop")


def layers(build, user, namespaces):
    """Whether doctor calls each good: {"namespaces": True}. It ends with 125 where Linux cannot boot."""
    done = container.run([build / "bin/mvagent", "doctor", "--json"], user=user, namespaces=namespaces)
    assert done.returncode in (0, 125), done.stderr
    return {check["name"]: check["good"] for check in json.loads(done.stdout)["checks"]}


def expect_attacks_held(build, user, namespaces):
    done = container.run([build / "bin/mvagent", "selftest", "--json", *ATTACKS], user=user, namespaces=namespaces)
    assert done.returncode == 0, done.stdout[-900:] + done.stderr[-600:]
    held = [attack["name"] for attack in json.loads(done.stdout)["attacks"] if attack["good"]]
    assert sorted(held) == sorted(ATTACKS), held


def test_root(build):
    expect_attacks_held(build, 0, True)
    assert layers(build, 0, True)["namespaces"]


def test_ordinary_user(build):
    """/proc is partly covered there, and nothing may be written for want of a mode."""
    expect_attacks_held(build, USER, True)
    assert layers(build, USER, True)["empty root"]


def test_root_without_namespaces(build):
    expect_attacks_held(build, 0, False)
    found = layers(build, 0, False)
    assert (found["namespaces"], found["Landlock"]) == (False, True), found


def test_ordinary_user_without_namespaces(build):
    expect_attacks_held(build, USER, False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=CHECKOUT / "build")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    missing = "only root makes containers here" if os.getuid() else container.is_missing()
    failed = False
    for name in options.tests or tests:
        try:
            if missing:
                print(f"skip {name}: {missing}")
                continue
            tests[name](options.build.resolve())
            print(f"ok {name}")
        except AssertionError as error:
            print(f"not ok {name}: {' | '.join(str(error).split(chr(10)))}")
            failed = True
    return failed


sys.exit(main())
