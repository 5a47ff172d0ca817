/* SPDX-License-Identifier: Apache-2.0 */
/* How a guest ends, or does not end; the driver of the test knows which is due. */
#include "tests/hostile/guest_virtio.h"
#include "tests/hostile/guest_vsock.h"

static __attribute__((noreturn)) void stay(void)
{
	for (;;)
		__asm__ volatile("" : : : "memory");
}

static void end_well(void)
{
	behave_all();
}

static void end_reset(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	port_out(PORT_KEYBOARD, RESET_COMMAND);
	port_out(PORT_KEYBOARD, RESET_COMMAND);
	stay();
}

/* No interrupt table, and an access that needs one. */
static void end_triple_fault(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	read_32(2UL << 30);
	fail("an address without a mapping can be read");
}

static void end_panic(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	write_8(LAYOUT_PANIC_DEVICE, 1);
	stay();
}

static void end_crash_load(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	write_8(LAYOUT_PANIC_DEVICE, 2);
	stay();
}

/* The first reason is the one that is told. */
static void end_panic_then_reset(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	write_8(LAYOUT_PANIC_DEVICE, 0xff);
	port_out(PORT_KEYBOARD, RESET_COMMAND);
	read_32(2UL << 30);
	stay();
}

/* Runs what the device says: registers are no program. */
static void end_jump_to_device(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	__asm__ volatile("jmp *%0" : : "r"(LAYOUT_DEVICES));
}

static void end_jump_to_nowhere(void)
{
	attempt();
	say_report(SELFTEST_LAST);
	__asm__ volatile("jmp *%0" : : "r"(LAYOUT_HOLE_START + 0x1000000));
}

/* The rest never end: the machine must still stop when it is told to. */
static void endless_loop(void)
{
	attempt();
	say_report(SELFTEST_ENDLESS);
	stay();
}

static void endless_halt(void)
{
	attempt();
	say_report(SELFTEST_ENDLESS);
	for (;;)
		__asm__ volatile("cli; hlt");
}

static void endless_ports(void)
{
	attempt();
	say_report(SELFTEST_ENDLESS);
	for (;;)
		port_in(PORT_KEYBOARD);
}

static void endless_kicks(void)
{
	const uint64_t device = find_device(ID_RNG);
	struct ring ring;

	start_device(&ring, device, 0);
	set_descriptor(&ring, 0, BUFFERS, 65536, WRITE, 0);
	attempt();
	say_report(SELFTEST_ENDLESS);
	for (;;) {
		show_chain(&ring, 0);
		kick_ring(&ring);
	}
}

static void endless_resets(void)
{
	struct ring rings[2];

	attempt();
	say_report(SELFTEST_ENDLESS);
	for (;;)
		start_device(rings, find_device(ID_FS), FEATURE_INDIRECT);
}

static void endless_text(void)
{
	attempt();
	say_report(SELFTEST_ENDLESS);
	for (;;)
		say("endless text\n");
}

/* Stops with a stream full of bytes that nobody takes. */
static void end_with_stuck_stream(void)
{
	struct vsock_link link;

	vsock_start(&link, find_device(ID_VSOCK));
	vsock_send(&link,
		   &(struct vsock_packet){.port = VSOCK_STUCK_PORT, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(&link, VSOCK_STUCK_PORT)->operation == VSOCK_RESPONSE, "it is refused");
	for (unsigned int i = 0; i < 12; i++) {
		vsock_send(&link,
			   &(struct vsock_packet){.port = VSOCK_STUCK_PORT,
						  .operation = VSOCK_DATA,
						  .length = 32768},
			   32768);
		vsock_poll(&link);
	}
}

const struct attack end_attacks[] = {
	{"well-behaved", end_well},
	{"reset", end_reset},
	{"triple-fault", end_triple_fault},
	{"panic", end_panic},
	{"crash-load", end_crash_load},
	{"panic-then-reset", end_panic_then_reset},
	{"jump-to-device", end_jump_to_device},
	{"jump-to-nowhere", end_jump_to_nowhere},
	{"endless-loop", endless_loop},
	{"endless-halt", endless_halt},
	{"endless-ports", endless_ports},
	{"endless-kicks", endless_kicks},
	{"endless-resets", endless_resets},
	{"endless-text", endless_text},
	{"stuck-stream", end_with_stuck_stream},
	{0},
};
