# SPDX-License-Identifier: Apache-2.0
"""The network card that leads nowhere: what programs see of it, what a hostile guest can do with it, and what of that the
host notices: nothing but the record."""

import contextlib
import os
import pathlib
import signal
import socket
import threading

import harness
import inject
from harness import expect, expect_equal, expect_in, run_json, run_ok

# Every connection and every question must fail at once: in the lab a second is long.
NO_ROUTE = r"""
import errno, socket, struct, time
def attempt(what, call):
    begin = time.monotonic()
    try:
        call()
        result = 'worked'
    except socket.gaierror as error:
        result = {socket.EAI_NONAME: 'EAI_NONAME'}.get(error.errno, str(error))
    except OSError as error:
        result = errno.errorcode[error.errno]
    seconds = time.monotonic() - begin
    print(what, result, 'slow' if seconds > 2 else 'fast')
for family, address in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET, '10.0.0.1'), (socket.AF_INET, '169.254.169.254'),
                        (socket.AF_INET, '224.0.0.251'), (socket.AF_INET6, '2001:db8::1'), (socket.AF_INET6, 'fd00::1')):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(address, lambda: socket.socket(family, kind).connect((address, 443)))
attempt('broadcast', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.255', 1)))
for name in ('api.example.com', 'printer.local', 'x', 'a' * 60 + '.example'):
    attempt('name', lambda: socket.getaddrinfo(name, 443))
attempt('localhost', lambda: socket.getaddrinfo('localhost', 443))
attempt('reverse', lambda: socket.gethostbyaddr('192.0.2.1'))
"""


def test_no_route():
    """Programs find an interface that is up, no route, and names that do not exist; nothing ever waits."""
    result = run_ok("--", "python3", "-c", NO_ROUTE)
    lines = [line.split() for line in result.out.splitlines()]
    expect_equal(len(lines), 19, f"answers: {result.out}{result.err}")
    for what, outcome, speed in lines:
        expect_equal(speed, "fast", f"{what} {outcome}")
        wanted = {"name": "EAI_NONAME", "localhost": "worked"}.get(what, "ENETUNREACH")
        if what != "reverse":
            expect_equal(outcome, wanted, what)
    result = run_ok("--", "sh", "-c", "cat /sys/class/net/eth0/operstate /sys/class/net/eth0/carrier; tail -n +2 /proc/net/route;"
                    "grep -vw lo /proc/net/ipv6_route; grep -vw lo /proc/net/if_inet6; cat /etc/resolv.conf")
    expect_equal(result.out, "up\n1\nnameserver 127.0.0.1\n", "interface, routes, resolver")


# A resolver as musl's libc has it: from a socket that is not connected, so that it hears of no error.
RAW_QUESTION = r"""
import socket
for kind in (1, 28, 65, 15):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.sendto(b'\x12\x34\1\0\0\1\0\0\0\0\0\0\3api\7example\3com\0' + bytes([0, kind, 0, 1]), ('127.0.0.1', 53))
    answer = s.recv(512)
    print(answer[:2].hex(), answer[3] & 15, answer[7])
"""


def test_names_are_answered():
    result = run_ok("--", "python3", "-c", RAW_QUESTION)
    expect_equal(result.out, "1234 3 0\n" * 4, "identifier, NXDOMAIN, no answers")


# Root brings up what it can and sends what it likes. Of each, the first is in the report.
HOSTILE = r"""
import ctypes, fcntl, os, socket, struct, subprocess, time
def quiet(call, *arguments):
    try: return call(*arguments)
    except OSError: return None
def netlink(kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack('=IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
    return struct.unpack_from('=i', s.recv(4096), 16)[0]
def attribute(kind, data): return struct.pack('=HH', 4 + len(data), kind) + data
index = socket.if_nametoindex('eth0')
open('/proc/sys/net/ipv6/conf/eth0/disable_ipv6', 'w').write('0')
# Addresses and default routes, both families.
print(netlink(20, 0x600, struct.pack('=BBBBI', socket.AF_INET, 24, 0, 0, index) + attribute(2, socket.inet_aton('10.9.8.7'))))
print(netlink(24, 0x600, struct.pack('=BBBBBBBBI', socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0) + attribute(4, struct.pack('=I', index))))
print(netlink(24, 0x600, struct.pack('=BBBBBBBBI', socket.AF_INET6, 0, 0, 0, 254, 3, 0, 1, 0) + attribute(4, struct.pack('=I', index))))
time.sleep(2)  # duplicate address detection
packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
packet.bind(('eth0', 0))
broadcast = b'\xff' * 6 + b'\2\0\0\0\0\1'
def ip(protocol, to, data):
    return b'\x45\0' + struct.pack('>H', 20 + len(data)) + b'\0\0\0\0\x40' + bytes([protocol]) + b'\0\0' + b'\x0a\x09\x08\x07' + socket.inet_aton(to) + data
def udp(source, to, data): return struct.pack('>HHHH', source, to, 8 + len(data), 0) + data
question = b'\0\1\1\0\0\1\0\0\0\0\0\0\6secret\7example\3org\0\0\1\0\1'
frames = [
    broadcast + b'\x08\x06' + b'\0\1\x08\0\6\4\0\1\2\0\0\0\0\1\x0a\x09\x08\7' + bytes(6) + b'\x0a\x09\x08\1',
    broadcast + b'\x08\0' + ip(17, '255.255.255.255', udp(68, 67, bytes(240))),
    broadcast + b'\x08\0' + ip(17, '10.9.8.1', udp(40000, 53, question)),
    broadcast + b'\x08\0' + ip(17, '224.0.0.251', udp(5353, 5353, question)),
    broadcast + b'\x08\0' + ip(17, '224.0.0.252', udp(40001, 5355, question)),
    broadcast + b'\x08\0' + ip(6, '192.0.2.1', struct.pack('>HHIIHHHH', 40000, 443, 1, 0, 0x5002, 65535, 0, 0)),
    broadcast + b'\x08\0' + ip(1, '127.0.0.1', b'\x08\0\0\0\0\0\0\0'),
    broadcast + b'\x08\0' + ip(47, '192.0.2.2', bytes(8)),
    broadcast + b'\x86\xdd' + b'\x60\0\0\0\0\x10\x3a\xff' + bytes(15) + b'\1' + socket.inet_pton(socket.AF_INET6, 'ff02::1') + b'\x86' + bytes(15),
    broadcast + b'\x88\xcc' + bytes(46), broadcast + b'\x12\x34' + bytes(46), broadcast + b'\0\x20' + bytes(46),
]
for frame in frames: packet.send(frame)
# By the kernel's own stack, now that there is a route.
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for address in (('198.51.100.1', 123), ('239.1.2.3', 5), ('255.255.255.255', 67)): quiet(u.sendto, b'x', address)
u6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for address in (('ff02::fb', 5353, 0, index), ('2001:db8::2', 53)): quiet(u6.sendto, b'x', address)
t = socket.socket(); t.settimeout(1)
try: t.connect(('203.0.113.5', 80)); print('connected')
except OSError: pass
# vsock: nothing but the ports that init uses, whatever the address.
opened = 0
for cid in (0, 1, 2, 3, 4, 1000, 0xfffffffe, 0xffffffff):
    for port in list(range(0, 1023)) + [1024, 1025, 1026, 1027, 1040, 2375, 9999, 0xfffffffe]:
        if cid != 2 and port > 40: continue
        v = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); v.settimeout(2)
        try: v.connect((cid, port)); opened += 1; print('vsock', cid, port)
        except OSError: pass
        v.close()
# A flood, and then a scan.
packet.setblocking(False)
end = time.monotonic() + 2
while time.monotonic() < end: quiet(packet.send, frames[0])
for port in range(1, 2000): quiet(packet.send, broadcast + b'\x08\0' + ip(6, '192.0.2.1', struct.pack('>HHIIHHHH', 40000, port, 1, 0, 0x5002, 0, 0, 0)))
packet.setblocking(True); packet.settimeout(0.5)
try:
    while True:
        data, address = packet.recvfrom(2000)
        if address[2] != socket.PACKET_OUTGOING: print('a frame came in')
except TimeoutError: print('silence')
"""


class Watch:
    """All that the host's network stack sees meanwhile: every frame on every interface, sockets, abstract names."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.settimeout(0.1)
        self.frames = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.capture)

    def capture(self):
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                self.frames.append(self.socket.recvfrom(2048))

    @staticmethod
    def sockets():
        """Those that have a name or an address somewhere; mvagent's own pairs have neither."""
        found = set()
        for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet", "vsock", "sctp/eps"):
            with contextlib.suppress(FileNotFoundError):
                for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
                    found.add((table, *line.split()[1:3]))
        for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
            if len(line.split()) > 7:
                found.add(("unix", line.split()[7]))
        return found

    def __enter__(self):
        self.before = self.sockets()
        self.interfaces = set(os.listdir("/sys/class/net"))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.socket.close()


def kinds(outcome):
    return {(frame["kind"], frame.get("destination"), frame.get("destination_port"), frame.get("name"))
            for frame in outcome["network"]["first_frames"]}


def test_hostile_guest_reaches_nothing():
    if os.getuid() != 0:
        raise harness.Skip("needs root to watch the host's interfaces")
    during = set()
    with Watch() as watch:
        timer = threading.Timer(6, lambda: during.update(watch.sockets()))
        timer.start()
        result, outcome = run_json("--user", "root", "--", "python3", "-c", HOSTILE)
        timer.join()
    expect_equal((result.status, result.out), (0, "0\n0\n0\nsilence\n"), result.err[-600:])
    expect_equal(watch.frames, [], "frames on the host's interfaces")
    expect_equal(during - watch.before, set(), "sockets with a name or an address")
    expect_equal(set(os.listdir("/sys/class/net")), watch.interfaces, "the host's interfaces")
    network = outcome["network"]
    expect(network["frames_dropped"] > 2000, f"{network['frames_dropped']} frames were counted")
    expect(network["frames_untold"] > 0, "the scan was told in full")
    seen = kinds(outcome)
    for wanted in (("arp", "10.9.8.1", None, None), ("udp", "255.255.255.255", 67, None),
                   ("dns", "10.9.8.1", 53, "secret.example.org"), ("mdns", "224.0.0.251", 5353, "secret.example.org"),
                   ("llmnr", "224.0.0.252", 5355, "secret.example.org"), ("tcp", "192.0.2.1", 443, None),
                   ("icmp", "127.0.0.1", 8, None), ("ip", "192.0.2.2", None, None), ("icmpv6", "ff02::1", 134, None)):
        expect(wanted in seen, f"{wanted} is not in the record: {sorted(map(str, seen))}")
    ethertypes = {frame["ethertype"] for frame in network["first_frames"] if frame["kind"] == "other"}
    expect({"0x88cc", "0x1234", "0x0020"} <= ethertypes, f"ethertypes told: {ethertypes}")
    expect(len(network["first_frames"]) <= 7 * 16, "more frames were told than there is room for")


def test_verbose_says_what_was_tried():
    program = ("import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0));"
               "s.send(bytes(12) + b'\\x88\\xcc' + bytes(46))")
    result = run_ok("-v", "--user", "root", "--", "python3", "-c", program)
    expect_in("network: 1 frames dropped by the card, which leads nowhere", result.err)
    expect_in("network: first of its kind: ethertype 0x88cc", result.err)


def run_with_call(name, number, arguments):
    """What becomes of a run when its process @name makes a system call; the call's result, or the signal that it died of."""
    process = harness.start("--", "sh", "-c", "echo begun; sleep 1000")
    try:
        expect_equal(process.stdout.readline(), b"begun\n", "start")
        pid = next(pid for pid, line in harness.processes().items() if os.path.basename(line.split()[0]) == name)
        return inject.call(pid, number, arguments)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        harness.expect_nothing_left()


SOCKET, CONNECT, BIND = 41, 42, 49


@harness.kills
def test_no_process_can_make_a_socket():
    """The call itself, made from inside: the device processes are killed for it, the supervisor is refused."""
    if os.getuid() != 0:
        raise harness.Skip("needs root to trace the processes")
    calls = [(SOCKET, (family, kind, 0)) for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_PACKET,
                                                        socket.AF_NETLINK, socket.AF_VSOCK, 0xffffffff)
             for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)]
    for name in ("mvagent-vmm", "mvagent-blk"):
        for number, arguments in (calls[0], calls[7], (CONNECT, (0, 0, 0))):
            expect_equal(run_with_call(name, number, arguments), ("killed", signal.SIGSYS), f"{name}: call {number} {arguments}")
    process = harness.start("--", "sh", "-c", "echo begun; sleep 1000")
    try:
        expect_equal(process.stdout.readline(), b"begun\n", "start")
        for number, arguments in [*calls, (CONNECT, (0, 0, 0)), (BIND, (0, 0, 0))]:
            expect_equal(inject.call(process.pid, number, arguments), ("returned", -13), f"mvagent: call {number} {arguments}")
        expect_equal(inject.call(process.pid, 39, (0, 0, 0)), ("returned", process.pid), "getpid, to see that calls are made")
    finally:
        process.kill()
        process.communicate()


@harness.kills
def test_no_process_can_make_a_socket_with_a_share():
    if os.getuid() != 0:
        raise harness.Skip("needs root to trace the processes")
    with harness.directory() as place:
        for family in (socket.AF_INET, socket.AF_UNIX):
            process = harness.start("--share", str(place), "--", "sh", "-c", "echo begun; sleep 1000")
            try:
                expect_equal(process.stdout.readline(), b"begun\n", "start")
                pid = next(pid for pid, line in harness.processes().items() if "mvagent-fs" in line.split()[0])
                expect_equal(inject.call(pid, SOCKET, (family, socket.SOCK_STREAM, 0)), ("killed", signal.SIGSYS), "mvagent-fs")
            finally:
                process.kill()
                process.communicate()


if __name__ == "__main__":
    harness.main(globals())
