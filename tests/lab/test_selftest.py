# SPDX-License-Identifier: Apache-2.0
"""mvagent selftest where KVM is hardware's, or what the lab emulates of it: interrupts, faults and processors are
other code there than in a KVM that emulates its guests."""

import json

import harness
from harness import expect, expect_equal, mvagent


def attack(*arguments):
    result = mvagent("selftest", "--json", *arguments, limit=900)
    report = json.loads(result.out)
    expect_equal([f"{one['name']}: {one['why']}" for one in report["attacks"] if not one["good"]], [], "got through")
    expect_equal(result.status, 0, result.err)
    return report["attacks"]


def test_every_attack_holds():
    names = mvagent("selftest", "--list").out.split()
    expect_equal([one["name"] for one in attack()], names, "attacks")


def test_other_seeds_hold():
    attacks = attack("--seed", "20", "--seconds", "60", "random-rings", "race", "interrupts", "registers")
    expect(len({one["seed"] for one in attacks}) > 1, "only one seed was used")


if __name__ == "__main__":
    harness.main(globals())
