#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the hostile guest (guest_*.c) on mvagent-vmm, with mvagent-blk and mvagent-fs behind it.

    tests/hostile/machine_driver.py [--build DIR] [--machine FILE] [--seed N] [ATTACK...]

For each attack: a machine of its own, asked all along whether it still answers. It must end for the reason that is due,
within the time that is due; its processes must end by themselves with status 0; nothing outside the share may change.
Prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
"""

import argparse
import collections
import hashlib
import os
import pathlib
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from monitor import (CONSOLE, COUNT, COUNTERS, ENDED, INTERNAL_ERROR, PACKET, PANIC, RESET, RUNNING, STOP, STOPPED,
                     TRIPLE_FAULT)


# vmm/wire/selftest.h
SINK, FLOODS, STUCK, GONE, ECHOS = 1024, (1025, 1026, 1027), 1028, 1029, range(1030, 1034)

ASK_SECONDS = 0.01  # between an answer and the next question
ANSWER_SECONDS = 3.0  # for a question of the supervisor, under attack and on a busy host
HANG_SECONDS = 5.0  # for an attack that may hang its own processor, until it is stopped
STOP_SECONDS = 5.0  # from MONITOR_STOP, or the guest's own end, to the last packet
RUN_SECONDS = 40.0  # for an attack: a guest that waits in vain gives up by itself
DESCRIPTORS_MORE = 8  # that a device process may have open after its queues were set up
PRIVATE_KIB = 64 << 10  # that mvagent-vmm may hold beside the guest's memory
LOG_BYTES = 1024  # that a guest may cause on the standard error of all three
IMAGE_BYTES = 1 << 20
IMAGE_WORD = 0xb1000000  # its first 32-bit word; the others count up from there

Attack = collections.namedtuple("Attack", "name reasons stop options frames asked cold variant",
                                defaults=((RESET,), False, (), None, False, False, ""))
TRAP = ("--trap-registers",)
EPOLL = ("--no-io-uring",)
TWO = ("--cpus", "2")
ENDS = (TRIPLE_FAULT, INTERNAL_ERROR, RESET)

# Sizes of frames that have more than their header of 12 bytes (attack_net), and the one of its good end.
FRAMES = [13, 14, 60, 1514, 9000, 65535, 65536, 65548, 1 << 20, 8 << 20, 72]

ATTACKS = [
    Attack("well-behaved"), Attack("well-behaved", options=TRAP, variant="trap"),
    Attack("well-behaved", options=EPOLL + TWO, variant="epoll"),
    Attack("registers"), Attack("registers", options=TRAP + TWO, variant="trap"), Attack("read-only-registers"),
    Attack("read-only-registers", options=TRAP, variant="trap"), Attack("ports"), Attack("serial"),
    Attack("address-space"), Attack("queue-places"), Attack("queue-overlaps"), Attack("status"),
    Attack("broken-chains"), Attack("odd-chains"), Attack("ring-as-buffer"), Attack("random-rings"),
    Attack("random-rings", options=EPOLL + TRAP, variant="epoll"), Attack("kick-storm", options=TWO),
    Attack("reset-storm"), Attack("reset-storm", options=EPOLL + TRAP, variant="epoll"),
    Attack("vsock-forged"), Attack("vsock-no-buffers"), Attack("vsock-credit"), Attack("vsock-credit-lies"),
    Attack("vsock-half-open"), Attack("vsock-lengths"), Attack("vsock-reset-in-flight"),
    Attack("blk"), Attack("blk-in-flight", cold=True), Attack("net", frames=FRAMES), Attack("rng"), Attack("balloon"),
    Attack("reports"), Attack("fuse"), Attack("fuse-ids"),
    Attack("reset"), Attack("reset", asked=True, variant="asked"), Attack("triple-fault", (TRIPLE_FAULT,)),
    Attack("panic", (PANIC,)), Attack("crash-load", (PANIC,)),
    Attack("panic-then-reset", (PANIC,)), Attack("jump-to-device", ENDS), Attack("jump-to-nowhere", ENDS),
    *(Attack(name) for name in ("msr", "kvm-msr", "tsc", "exceptions", "interrupts", "interrupt-controllers", "features",
                                "lied-features", "moved-rings", "queue-sizes", "register-widths", "memory-slots",
                                "all-addresses", "device-tree")),
    Attack("lied-features", options=EPOLL + TRAP, variant="epoll"), Attack("memory-slots", options=TRAP, variant="trap"),
    Attack("net-sizes", frames=[size for size in range(13, 1616)] + [72]),
    Attack("kick-race", options=TWO), Attack("kick-race", options=TWO + TRAP, variant="trap"),
    Attack("processor-storm", ENDS, options=TWO), Attack("software-interrupts", ENDS), Attack("page-tables", (*ENDS, STOPPED)),
    Attack("stuck-stream"), Attack("race", options=TWO), Attack("race", options=TWO + TRAP + EPOLL, variant="trap"),
    Attack("second-dies", (TRIPLE_FAULT,), options=TWO),
    *(Attack(f"endless-{name}", (STOPPED,), True) for name in ("loop", "halt", "ports", "kicks", "resets", "text")),
]
# These end the guest; it makes its report before.
SILENT = {"reset", "triple-fault", "panic", "crash-load", "panic-then-reset", "jump-to-device", "jump-to-nowhere",
          "second-dies", "processor-storm", "software-interrupts", "page-tables"}
REPORT = re.compile(rb"(done|last|endless)" + rb" ([0-9a-f]{16})" * 4 + rb"\n")


class Failure(Exception):
    """Something was seen that must not be."""


class Programs:
    """Where the programs of a build are, and one that stands in for one of them."""

    def __init__(self, build, machine):
        self.directory = build / "libexec/mvagent"
        self.machine = machine

    def get(self, name):
        return self.machine if self.machine and name == "mvagent-vmm" else self.directory / name


class Place:
    """What the machines of all attacks share: the files, and what must not change."""

    def __init__(self, directory):
        self.share = directory / "share"
        self.image = directory / "image"
        self.canary = directory / "canary"
        self.initrd = directory / "initrd"
        self.share.mkdir()
        self.image.write_bytes(struct.pack(f"<{IMAGE_BYTES // 4}I", *range(IMAGE_WORD, IMAGE_WORD + IMAGE_BYTES // 4)))
        self.canary.write_text("canary")
        self.initrd.write_text("not read")
        (self.share / "inside").write_text("inside")
        (self.share / "out").symlink_to("../canary")
        self.before = self.state()

    def state(self):
        return (hashlib.sha256(self.image.read_bytes()).digest(), self.canary.read_text(),
                sorted(os.listdir(self.canary.parent)))


class Machine:
    """One mvagent-vmm and its device processes, started as mvagent starts them."""

    def __init__(self, programs, guest, place, attack, seed):
        self.keep = []
        self.ours = {}
        self.errors = tempfile.TemporaryFile()
        self.nonce = random.SystemRandom().getrandbits(64)
        self.arguments = [programs.get("mvagent-vmm"), "--memory", "64",
                          "--command-line", f"{seed} {self.nonce} {attack.name}", *attack.options]
        self.monitor = self.pair("--monitor-fd", "", socket.SOCK_SEQPACKET)
        for port in (SINK, *FLOODS, STUCK, GONE, *ECHOS):
            self.ours[port] = self.pair("--port", f"{port}:")
        self.ours.pop(GONE).close()
        blk, share = self.pair("--blk-fd", ""), self.pair("--share", "share:")
        for option, path in (("--kvm-fd", "/dev/kvm"), ("--kernel-fd", guest), ("--initrd-fd", place.initrd)):
            file = open(path, "r+b" if "kvm" in option else "rb", buffering=0)
            self.keep.append(file)
            self.arguments += [option, str(file.fileno())]
        self.processes = {
            "mvagent-blk": self.start([programs.get("mvagent-blk"), "--image", place.image], [blk]),
            "mvagent-fs": self.start([programs.get("mvagent-fs"), "--root", place.share], [share]),
            "mvagent-vmm": self.start(self.arguments, self.keep),
        }
        for item in (blk, share, *self.keep):
            item.close()
        self.cold = threading.Event() if attack.cold else None
        self.threads = [threading.Thread(target=target, args=(self.ours[port],), daemon=True)
                        for target, ports in ((read_all, [SINK]), (write_all, FLOODS), (echo, ECHOS)) for port in ports]
        if self.cold:
            self.threads.append(threading.Thread(target=keep_cold, args=(place.image, self.cold), daemon=True))
        for thread in self.threads:
            thread.start()

    def pair(self, option, prefix, kind=socket.SOCK_STREAM):
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self.keep.append(theirs)
        self.arguments += [option, f"{prefix}{theirs.fileno()}"]
        return ours

    def start(self, command, items):
        if len(items) == 1:
            command = [*command, "--fd", str(items[0].fileno())]
        return subprocess.Popen(command, pass_fds=[item.fileno() for item in items], stdin=subprocess.DEVNULL,
                                stdout=self.errors, stderr=self.errors)

    def descriptors(self, name):
        try:
            return len(os.listdir(f"/proc/{self.processes[name].pid}/fd"))
        except OSError:  # it has ended
            return 0

    def private_kib(self):
        try:
            status = pathlib.Path(f"/proc/{self.processes['mvagent-vmm'].pid}/status").read_text()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        if self.cold:
            self.cold.set()
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        for item in (self.monitor, *self.ours.values()):
            try:
                item.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        for item in (self.monitor, self.errors, *self.ours.values()):
            item.close()


def read_all(stream):
    try:
        while stream.recv(65536):
            pass
    except OSError:
        pass


def write_all(stream):
    try:
        while True:
            stream.sendall(bytes(65536))
    except OSError:
        pass


def echo(stream):
    try:
        while data := stream.recv(65536):
            stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def ask_always(monitor):
    try:
        while True:
            monitor.send(PACKET.pack(COUNT, *[0] * 13, b""))
    except OSError:
        pass


def keep_cold(path, stop):
    """Keeps a file out of the page cache, as far as the system does that."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        while not stop.wait(0.001):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Watch:
    """The supervisor's part: asks, reads what the guest says, and keeps the time."""

    def __init__(self, machine, attack, sanitized):
        self.machine, self.attack, self.sanitized = machine, attack, sanitized
        self.text = self.report = b""
        self.begin = time.monotonic()
        self.asked = self.stopped = None
        self.ask_next = 0.0
        self.running = self.endless = False
        self.first = {}
        self.slowest = 0.0

    def run(self):
        """Until mvagent-vmm hangs up: returns the reason, counters and sentence of its last packet."""
        if self.attack.asked:
            threading.Thread(target=ask_always, args=(self.machine.monitor,), daemon=True).start()
        last = self.read()
        if self.receive():
            raise Failure("a packet comes after the last")
        return last

    def receive(self):
        """The next packet, b"" at the end. An end with questions unread is told first, and once."""
        try:
            return self.machine.monitor.recv(PACKET.size)
        except ConnectionResetError:
            return self.machine.monitor.recv(PACKET.size)

    def read(self):
        while True:
            ready, _, _ = select.select([self.machine.monitor], [], [], ASK_SECONDS)
            packet = self.receive() if ready else None
            now = time.monotonic()
            if packet is not None:
                if len(packet) != PACKET.size:
                    raise Failure(f"mvagent-vmm hung up without a last packet: {self.machine.said()[-600:]}")
                kind, reason, _, *counters, length, text = PACKET.unpack(packet)
                self.take(kind, text[:length], now)
                if kind == ENDED:
                    if self.stopped and now - self.stopped > STOP_SECONDS:
                        raise Failure(f"it took {now - self.stopped:.1f} s to stop")
                    return reason, counters, text[:length].decode()
            self.check_time(now)
            if self.running and self.asked is None and now > self.ask_next and not self.attack.asked:
                self.ask(now)

    def take(self, kind, text, now):
        if kind == RUNNING:
            self.running = True
            self.first = {name: self.machine.descriptors(name) for name in self.machine.processes}
        elif kind == CONSOLE:
            self.text = (self.text + text)[-4096:]
            if not REPORT.search(self.report):
                self.report = self.text
            self.endless |= text.startswith(b"endless ")
            # The stream that nobody takes would keep a machine from its end for a while.
            if b"done " in text and self.attack.name != "stuck-stream":
                self.machine.ours[STUCK].shutdown(socket.SHUT_RDWR)
        elif kind == COUNTERS and self.asked:
            self.slowest = max(self.slowest, now - self.asked)
            self.asked = None
            self.ask_next = now + ASK_SECONDS

    def ask(self, now):
        self.send(COUNT)
        self.asked = now
        self.check_use()
        if not self.stopped and (self.endless and now - self.begin > 0.4 or
                                 STOPPED in self.attack.reasons and now - self.begin > HANG_SECONDS):
            self.send(STOP)
            self.stopped = now

    def send(self, kind):
        try:
            self.machine.monitor.send(PACKET.pack(kind, *[0] * 13, b""), socket.MSG_DONTWAIT)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has said its last word, which is still to be read

    def check_time(self, now):
        limit = STOP_SECONDS if self.stopped or b"done " in self.text else ANSWER_SECONDS
        if self.asked and now - self.asked > limit:
            raise Failure(f"no answer to a question for {now - self.asked:.1f} s; the guest said {self.text[-200:]!r}")
        if now - self.begin > RUN_SECONDS:
            raise Failure(f"no end after {RUN_SECONDS:.0f} s; the guest said {self.text[-200:]!r}")

    def check_use(self):
        """Nothing that the guest does makes a process hold more and more."""
        for name, first in self.first.items():
            more = self.machine.descriptors(name) - first
            if more > (0 if name == "mvagent-vmm" else DESCRIPTORS_MORE):
                raise Failure(f"{name} has opened {more} more descriptors")
        if not self.sanitized and self.machine.private_kib() > PRIVATE_KIB:
            raise Failure(f"mvagent-vmm holds {self.machine.private_kib()} KiB of its own")


def expect_ends(machine):
    """All processes end by themselves, and well."""
    for name, process in machine.processes.items():
        try:
            status = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            raise Failure(f"{name} does not end") from None
        if status != 0:
            raise Failure(f"{name} ended with status {status}: {machine.said()[-1500:]}")


def mix(value):
    """selftest_mix of vmm/wire/selftest.h."""
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    value = (value ^ value >> 27) * 0x94d049bb133111eb % 2**64
    return value ^ value >> 31


def check_report(attack, watch, counters):
    """The guest has said what it did, and mvagent-vmm has seen it."""
    word = b"endless" if attack.stop else b"last" if attack.name in SILENT else b"done"
    report = REPORT.search(watch.report)
    if not report or report[1] != word:
        raise Failure(f"the guest did not say that it was {word.decode()}; it said {watch.text[-200:]!r}")
    *numbers, proof = [int(number, 16) for number in report.groups()[1:]]
    due = watch.machine.nonce
    for number in numbers:
        due = mix((due + number) % 2**64)
    if proof != due:
        raise Failure("the guest's report is not that of this machine")
    if attack.name != "well-behaved" and not numbers[0]:
        raise Failure("the guest tried nothing")
    if counters[1] < numbers[2]:
        raise Failure(f"the guest says that it left for {numbers[2]} ports; mvagent-vmm saw {counters[1]}")


def check_result(attack, watch, reason, counters, sentence):
    if b"bad: " in watch.text:
        raise Failure(watch.text[watch.text.index(b"bad: ") + 5:].split(b"\n")[0].decode(errors="replace"))
    if reason not in attack.reasons:
        raise Failure(f"the machine ended for reason {reason} ({sentence!r}), not {attack.reasons}")
    if not sentence:
        raise Failure("the machine ended without a sentence")
    if not attack.asked:  # the guest's text has no room between so many answers
        check_report(attack, watch, counters)
    if attack.frames:
        seen, due = counters[7:9], [len(attack.frames), sum(attack.frames) - 12 * len(attack.frames)]
        if seen != due:
            raise Failure(f"the network card counted frames and bytes {seen}, not {due}")


def run(attack, programs, guest, place, seed, sanitized):
    machine = Machine(programs, guest, place, attack, seed)
    try:
        watch = Watch(machine, attack, sanitized)
        check_result(attack, watch, *watch.run())
        expect_ends(machine)
        if len(machine.said()) > LOG_BYTES:
            raise Failure(f"the guest makes the host log {len(machine.said())} bytes: {machine.said()[:600]}")
        if place.state() != place.before:
            raise Failure("something outside the share has changed")
        return f"answers within {watch.slowest:.3f} s"
    finally:
        machine.close()


def names_of_guest(programs, guest, place):
    """All attacks that the guest knows."""
    machine = Machine(programs, guest, place, Attack("names"), 1)
    try:
        watch = Watch(machine, Attack("names"), True)
        watch.run()
        return [line for line in watch.text.decode().split("\n")[:-1] if " " not in line]
    finally:
        machine.close()


def check_names(programs, build, guest, place):
    """What the guest can do is what is run here, and what `mvagent selftest` runs."""
    names = sorted(names_of_guest(programs, guest, place))
    listed = subprocess.run([build / "bin/mvagent", "selftest", "--list"], capture_output=True, text=True, check=True)
    if names != sorted({attack.name for attack in ATTACKS}):
        raise Failure(f"the guest has other attacks than this list: {set(names) ^ {a.name for a in ATTACKS}}")
    if names != sorted(listed.stdout.split()):
        raise Failure(f"mvagent selftest has other attacks: {set(names) ^ set(listed.stdout.split())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--machine", type=pathlib.Path, help="another mvagent-vmm than the build's")
    parser.add_argument("--seed", type=int, default=1, help="of the attacks that are random")
    parser.add_argument("--sanitized", action="store_true", help="the build's memory is not its own")
    parser.add_argument("attacks", nargs="*", help="names as in the output; all by default")
    options = parser.parse_args()
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as reason:
        print(f"skip machine: {reason}")
        return 0
    programs, guest = Programs(options.build, options.machine), options.build / "share/mvagent/selftest.elf"
    failed = False
    directory = pathlib.Path(tempfile.mkdtemp(prefix="mvagent-hostile-"))
    try:
        place = Place(directory)
        if not options.attacks:
            try:
                check_names(programs, options.build, guest, place)
                print("ok the_lists_of_attacks_are_one")
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                failed = True
                print(f"not ok the_lists_of_attacks_are_one: {failure}")
        for attack in ATTACKS:
            name = f"{attack.name}-{attack.variant}" if attack.variant else attack.name
            if options.attacks and name not in options.attacks:
                continue
            begin = time.monotonic()
            try:
                note = run(attack, programs, guest, place, options.seed, options.sanitized)
                print(f"ok {name}")
            except (Failure, OSError) as failure:
                note, failed = "", True
                print(f"not ok {name}: {str(failure)}", flush=True)
            print(f"     {name} took {time.monotonic() - begin:.1f} s, {note}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
