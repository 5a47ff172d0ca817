#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `mvagent selftest`, on a whole installation and on ones that lie: it must not pass where nothing was attacked.

    tests/hostile/selftest_driver.py [--build DIR]

Prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from monitor import CONSOLE, COUNTER_COUNT, ENDED, PACKET, RESET, RUNNING

# In place of mvagent-vmm: says what it likes, and hangs up. @SAY@: what to say.
FAKE_MACHINE = f"""#!{sys.executable} -IS
import socket, struct, sys
PACKET = struct.Struct("{PACKET.format}")
monitor = socket.socket(fileno=int(sys.argv[sys.argv.index("--monitor-fd") + 1]))
seed, nonce, name = sys.argv[sys.argv.index("--command-line") + 1].split()

def mix(value):
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    value = (value ^ value >> 27) * 0x94d049bb133111eb % 2**64
    return value ^ value >> 31

def proof(*numbers):
    due = int(nonce)
    for number in numbers:
        due = mix((due + number) % 2**64)
    return due

def say(text, kind={CONSOLE}, counters=(0,) * {COUNTER_COUNT}):
    monitor.send(PACKET.pack(kind, {RESET} if kind == {ENDED} else 0, 0, *counters, len(text), text.encode()))

say("", kind={RUNNING})
@SAY@
say("the guest reset the machine", kind={ENDED}, counters=(1, 1) + (10000,) * {COUNTER_COUNT - 2})
"""
DONE = 'say("done %016x %016x %016x %016x\\n" % ({0}, proof({0})))'


class Failure(Exception):
    """A test has failed, for this reason."""


def need(condition, why):
    if not condition:
        raise Failure(why)


class Installation:
    """A copy of the build's programs, parts of which a test replaces."""

    def __init__(self, build, directory):
        self.directory = directory
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        for part in ("bin/mvagent", "libexec/mvagent/mvagent-vmm", "libexec/mvagent/mvagent-fs",
                     "libexec/mvagent/mvagent-blk", "share/mvagent/selftest.elf"):
            (directory / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(build / part, directory / part)

    def replace(self, part, text):
        path = self.directory / part
        path.unlink()
        path.write_text(text)
        path.chmod(0o755)

    def command(self, *arguments):
        return [self.directory / "bin/mvagent", "selftest", *arguments]

    def run(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "TMPDIR": str(self.temporary)})

    def expect_failure(self, why, attack="rng"):
        result = self.run(attack)
        need(result.returncode == 1, f"status {result.returncode}, not 1: {result.stdout}{result.stderr}")
        need(why in result.stdout, f"'{why}' is not the reason: {result.stdout}")
        need(not os.listdir(self.temporary), "something is left behind")


def test_all_attacks_hold(installation):
    result = installation.run("--json", "--seed", "7")
    need(result.returncode == 0, f"status {result.returncode}: {result.stdout[-2000:]}{result.stderr}")
    report = json.loads(result.stdout)
    names = [attack["name"] for attack in report["attacks"]]
    need(names == installation.run("--list").stdout.split(), "not all attacks were run")
    need(report["held"] == len(names) and report["failed"] == 0, "the sums are wrong")
    for attack in report["attacks"]:
        need(attack["good"] and attack["tries"] > 0 and attack["sentence"] and not attack["why"],
             f"{attack['name']}: {attack}")
        need(attack["ports_host"] >= attack["ports_guest"], f"{attack['name']}: ports")
    need(not os.listdir(installation.temporary), "something is left behind")


def test_time_is_used_for_other_seeds(installation):
    result = installation.run("--json", "--seed", "3", "--seconds", "6", "fuse-ids", "rng")
    need(result.returncode == 0, f"status {result.returncode}: {result.stdout[-2000:]}{result.stderr}")
    report = json.loads(result.stdout)
    need(report["seconds"] >= 5, "the time was not used")
    need(len({attack["seed"] for attack in report["attacks"] if attack["name"] == "fuse-ids"}) >= 2, "seeds")
    need(sum(attack["name"] == "rng" for attack in report["attacks"]) == 1, "what is not random was repeated")


def test_one_seed_is_one_attack(installation):
    counts = [json.loads(installation.run("--json", "--seed", seed, "registers", "random-rings").stdout)
              for seed in ("11", "11", "12")]
    tries = [[attack["tries"] for attack in count["attacks"]] for count in counts]
    need(tries[0] == tries[1], f"one seed, two attacks: {tries}")
    need(tries[0] != tries[2], f"two seeds, one attack: {tries}")


def test_no_guest_is_no_success(installation):
    installation.replace("libexec/mvagent/mvagent-vmm", FAKE_MACHINE.replace("@SAY@", ""))
    installation.expect_failure("the guest did not report that it did anything")


def test_a_word_is_no_report(installation):
    installation.replace("libexec/mvagent/mvagent-vmm", FAKE_MACHINE.replace("@SAY@", 'say("done\\n")'))
    installation.expect_failure("the guest did not report that it did anything")


def test_another_report_is_none(installation):
    text = 'say("done %016x %016x %016x %016x\\n" % (5000, 1, 0, 5000))'
    installation.replace("libexec/mvagent/mvagent-vmm", FAKE_MACHINE.replace("@SAY@", text))
    installation.expect_failure("the guest's report is not that of this machine")


def test_too_few_tries_are_none(installation):
    installation.replace("libexec/mvagent/mvagent-vmm", FAKE_MACHINE.replace("@SAY@", DONE.format("1, 1, 0")))
    installation.expect_failure("the guest tried only 1 times")


def test_more_than_was_seen_is_none(installation):
    installation.replace("libexec/mvagent/mvagent-vmm", FAKE_MACHINE.replace("@SAY@", DONE.format("5000, 1, 5000")))
    installation.expect_failure("mvagent-vmm saw 1")


def test_another_guest_is_none(installation):
    guest = installation.directory / "share/mvagent/selftest.elf"
    code = bytearray(guest.read_bytes())
    at = code.index(b"done\0")
    code[at:at + 4] = b"DONE"
    guest.write_bytes(code)
    installation.expect_failure("the guest did not report that it did anything")


def test_a_killed_process_is_a_failure(installation):
    installation.replace("libexec/mvagent/mvagent-blk", f"#!{sys.executable} -IS\nimport os\nos.abort()\n")
    installation.expect_failure("mvagent-blk was killed by SIG")


def changing(statement):
    """In place of mvagent-fs: does something to what lies beside the share, and serves nothing."""
    return f"""#!{sys.executable} -IS
import os, signal, socket, sys
share = int(sys.argv[sys.argv.index("--root-fd") + 1])
beside = os.readlink("/proc/self/fd/%d" % share) + "/.."
{statement}
"""


def test_a_changed_canary_is_a_failure(installation):
    for statement, why in (
            ('open(beside + "/canary", "w").write("nobody changes this")', "a file beside the share has changed"),
            ('open(beside + "/other", "w")', "something was made or removed beside the share"),
            ('os.unlink(beside + "/initrd")', "something was made or removed beside the share"),
            ('open(beside + "/image", "r+b").write(b"x")', "the disk's image has changed"),
            ('socket.socket(socket.AF_UNIX).connect(beside + "/socket")', "connected to a socket of the host")):
        installation.replace("libexec/mvagent/mvagent-fs", changing(statement))
        installation.expect_failure(why)


def test_what_is_missing_is_said(installation):
    (installation.directory / "share/mvagent/selftest.elf").unlink()
    result = installation.run("rng")
    need(result.returncode == 125 and "not complete" in result.stderr, f"{result}")
    for arguments, why in ((["nothing"], "there is no attack 'nothing'"), (["--seed", "x"], "--seed"),
                           (["--seconds", "0"], "--seconds"), (["--more"], "unknown option")):
        result = installation.run(*arguments)
        need(result.returncode == 125 and why in result.stderr, f"{arguments}: {result}")


def test_a_signal_ends_it(installation):
    environment = {**os.environ, "TMPDIR": str(installation.temporary)}
    with subprocess.Popen(installation.command("--seconds", "60"), env=environment, stdout=subprocess.DEVNULL) as process:
        time.sleep(1)
        need(len(os.listdir(installation.temporary)) == 1, "it has no directory of its own")
        process.send_signal(signal.SIGTERM)
        need(process.wait(timeout=10) == 128 + signal.SIGTERM, f"status {process.returncode}")
    need(not os.listdir(installation.temporary), "something is left behind")


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as reason:
        print(f"skip selftest: {reason}")
        return 0
    failed = False
    for test in TESTS:
        name = test.__name__.removeprefix("test_")
        with tempfile.TemporaryDirectory(prefix="mvagent-selftest-test-") as directory:
            try:
                test(Installation(build, pathlib.Path(directory)))
                print(f"ok selftest_{name}", flush=True)
            except (Failure, OSError, ValueError, subprocess.SubprocessError) as failure:
                failed = True
                print(f"not ok selftest_{name}: {str(failure)[:2000]}", flush=True)
    return 1 if failed else 0


sys.exit(main())
