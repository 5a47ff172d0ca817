/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest_attacks.h"

#include <string.h>

#include "vmm/wire/selftest.h"

#define RESET   SELFTEST_REASON(MONITOR_REASON_RESET)
#define STOPPED SELFTEST_REASON(MONITOR_REASON_STOPPED)
#define PANIC   SELFTEST_REASON(MONITOR_REASON_PANIC)
#define TRIPLE  SELFTEST_REASON(MONITOR_REASON_TRIPLE_FAULT)
/* A KVM that emulates gives up where another one has the guest fault. */
#define FAULT (TRIPLE | SELFTEST_REASON(MONITOR_REASON_INTERNAL_ERROR))

#define SERVES "all devices still serve, and answer right"

/* An attack that the guest outlives. */
#define OUTLIVED(name_, tries_, cpus_, tried_, held_, ...)                                  \
	{                                                                                   \
		.name = (name_), .tried = (tried_), .held = (held_), .word = SELFTEST_DONE, \
		.reasons = RESET, .cpus = (cpus_), .tries = (tries_), __VA_ARGS__           \
	}
/* One that ends it. */
#define ENDING(name_, reasons_, cpus_, tried_, held_)                                       \
	{                                                                                   \
		.name = (name_), .tried = (tried_), .held = (held_), .word = SELFTEST_LAST, \
		.reasons = (reasons_), .cpus = (cpus_), .tries = 1                          \
	}
/* One that does not end by itself. */
#define ENDLESS(name_, tried_)                                                            \
	{                                                                                 \
		.name = (name_), .tried = (tried_),                                       \
		.held = "the machine stops when it is told to", .word = SELFTEST_ENDLESS, \
		.reasons = STOPPED, .cpus = 1, .tries = 1                                 \
	}

const struct selftest_attack selftest_attacks[] = {
	OUTLIVED("well-behaved", 10, 1, "nothing: each device used as a good driver does", SERVES),
	OUTLIVED("registers", 6000, 1,
		 "registers, reserved ones too, with each width, aligned or not, and odd values",
		 SERVES, .random = true),
	OUTLIVED("read-only-registers", 120, 1, "writes to what can only be read",
		 "it reads as before"),
	OUTLIVED("ports", 65536, 1, "each of 65536 ports, read and written with each width",
		 "a device still serves"),
	OUTLIVED("serial", 500, 1, "the serial port's registers, 20000 bytes in one line",
		 "a device still serves", .random = true),
	OUTLIVED("address-space", 4000, 1, "addresses without memory behind them, up to 5 GiB",
		 SERVES),
	OUTLIVED("queue-places", 250, 1,
		 "queues in registers, past the end of memory, over the end of all addresses, "
		 "misaligned, of sizes that are none",
		 "the device says that it needs a reset"),
	OUTLIVED("queue-overlaps", 60, 1, "queues on top of each other and of the page tables",
		 "each device still serves"),
	OUTLIVED("status", 4, 1,
		 "set-up in the wrong order, features never offered, a queue moved while in use",
		 "the device keeps to the order"),
	OUTLIVED(
		"broken-chains", 700, 1,
		"24 kinds of broken descriptor chains: loops, tables in tables, lengths that wrap, "
		"addresses of nobody, an index that jumps",
		"each is refused, none is answered"),
	OUTLIVED("odd-chains", 150, 1, "chains that are odd and keep the rules",
		 "each is served, in its place"),
	OUTLIVED("ring-as-buffer", 200, 1, "the ring itself as the buffer that a device writes to",
		 "each device still serves"),
	OUTLIVED("random-rings", 800, 1, "rings filled at random", SERVES, .random = true),
	OUTLIVED("kick-storm", 10000, 2, "kicks without work, by the thousand",
		 "each device still serves"),
	OUTLIVED("reset-storm", 2500, 1, "resets with work in the queue, and kicks around them",
		 "each device still serves", .random = true),
	OUTLIVED("vsock-forged", 1400, 1, "packets from others' addresses, of any kind and length",
		 "a connection still works", .random = true),
	OUTLIVED("vsock-no-buffers", 300, 1, "packets that need an answer, and no room for it",
		 "the host stops taking them, and loses none"),
	OUTLIVED("vsock-credit", 20, 1, "more data than there is credit for",
		 "the connection is reset"),
	OUTLIVED("vsock-credit-lies", 600, 1, "room for everything, bytes read that never came",
		 "a connection still works", .random = true),
	OUTLIVED("vsock-half-open", 200, 1, "answers never asked for, second connections, floods",
		 "each is refused"),
	OUTLIVED("vsock-lengths", 60, 1, "lengths beyond the packet, packets without a header",
		 "each is refused"),
	OUTLIVED("vsock-reset-in-flight", 200, 1, "a reset while data flows both ways",
		 "a connection still works"),
	OUTLIVED("blk", 60, 1, "reads beyond the disk, writes to it, requests cut short",
		 "each fails, and the disk is as it was"),
	OUTLIVED("blk-in-flight", 180, 1, "a reset while large reads are on their way",
		 "no read goes on after the reset", .random = true, .cold = true),
	OUTLIVED("net", 40, 1, "frames from none to 8 MiB", "none comes in, each sent is taken"),
	OUTLIVED("rng", 100, 1, "random numbers by the MiB", "no more than there is room for"),
	OUTLIVED("balloon", 20, 1, "pages of nobody given to the balloon",
		 "the balloon still works"),
	OUTLIVED("reports", 100, 1, "parts of pages, huge ones, and the ring itself called free",
		 "only whole pages are taken"),
	OUTLIVED("fuse", 60, 1, "names that lead out of the share",
		 "none is found, made or removed"),
	OUTLIVED("fuse-ids", 400, 1, "FUSE requests for files that were never found",
		 "the share still serves", .random = true),
	OUTLIVED("features", 300, 1, "features never offered, none, all, and the halves beyond",
		 "each is refused"),
	OUTLIVED("lied-features", 40, 1, "a feature used that was not agreed on, or too late",
		 "the device says that it needs a reset"),
	OUTLIVED("moved-rings", 120, 1, "queues moved, resized and closed while in use",
		 "they stay as they were, and serve"),
	OUTLIVED("queue-sizes", 200, 1, "queues of 18 sizes that are none", "each is refused"),
	OUTLIVED("net-sizes", 1700, 1, "frames of every size up to 1615", "each sent is taken"),
	OUTLIVED("register-widths", 1600, 1,
		 "each byte of the registers with every width but the right one",
		 "nothing happens"),
	OUTLIVED("memory-slots", 300, 1, "the edges of memory and registers, from both sides",
		 "memory is as it was"),
	OUTLIVED("all-addresses", 65536, 1, "all of the hole, and all there is above, by doubling",
		 SERVES),
	OUTLIVED("device-tree", 50000, 1, "the boot data, looked through and overwritten", SERVES,
		 .random = true),
	OUTLIVED("msr", 5000, 1, "8000 registers of the processor, read and written", SERVES,
		 .random = true),
	OUTLIVED("kvm-msr", 500, 1, "addresses of registers and of nobody where KVM is to write",
		 "the registers are as they were"),
	OUTLIVED("tsc", 1000, 1, "a clock that jumps, timers that are over before they begin",
		 SERVES, .random = true),
	OUTLIVED("exceptions", 500, 1, "every exception that a program can raise",
		 "each is the guest's own"),
	OUTLIVED("interrupts", 2000, 1, "interrupts by the thousand, and a timer without a pause",
		 SERVES, .random = true),
	OUTLIVED("interrupt-controllers", 5000, 1, "anything in the interrupt controllers", SERVES,
		 .random = true),
	OUTLIVED("kick-race", 2000, 2, "one processor kicks what the other resets", SERVES,
		 .random = true),
	OUTLIVED("stuck-stream", 20, 1, "an end with a stream full of bytes that nobody takes",
		 "the machine ends all the same", .stuck = true),
	OUTLIVED("race", 2000, 2, "two processors at the registers of the same devices", SERVES,
		 .random = true),
	ENDING("reset", RESET, 1, "a reset, twice", "the machine ends once"),
	ENDING("triple-fault", FAULT, 1, "a fault without a handler",
	       "it ends as the guest's fault"),
	ENDING("panic", PANIC, 1, "a panic", "it ends as a panic"),
	ENDING("crash-load", PANIC, 1, "a crash", "it ends as a panic"),
	ENDING("panic-then-reset", PANIC, 1, "a panic, a reset and a fault at once",
	       "the first is the reason that is told"),
	ENDING("jump-to-device", FAULT | RESET, 1, "a jump into registers",
	       "it ends as the guest's fault"),
	ENDING("jump-to-nowhere", FAULT | RESET, 1, "a jump to where there is no memory",
	       "it ends as the guest's fault"),
	ENDING("second-dies", FAULT, 2, "a fault of one processor while the other works",
	       "it ends as the guest's fault"),
	ENDING("processor-storm", FAULT | RESET, 2,
	       "processors stopped and started without end, and ones that do not exist",
	       "it ends as the guest's fault, or the devices still serve"),
	ENDING("software-interrupts", FAULT | RESET, 1, "interrupts that a program raises",
	       "it ends as the guest's fault, or goes on"),
	ENDING("page-tables", FAULT | RESET | STOPPED, 1,
	       "page tables in registers and where nothing is",
	       "it ends as the guest's fault, or hangs alone until it is stopped"),
	ENDLESS("endless-loop", "a loop"),
	ENDLESS("endless-halt", "a halt with interrupts off"),
	ENDLESS("endless-ports", "reads of a port without end"),
	ENDLESS("endless-kicks", "requests without end"),
	ENDLESS("endless-resets", "set-ups and resets without end"),
	ENDLESS("endless-text", "text without end"),
	{0},
};

const struct selftest_attack *selftest_attack_find(const char *name)
{
	for (const struct selftest_attack *attack = selftest_attacks; attack->name; attack++) {
		if (strcmp(attack->name, name) == 0)
			return attack;
	}
	return NULL;
}
