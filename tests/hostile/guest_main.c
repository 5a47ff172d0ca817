/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest.h"

#include <asm/bootparam.h>

#define PAGE_PRESENT_WRITE 0x3UL
#define PAGE_LARGE         0x80UL
#define STACK_BYTES        65536

static uint64_t random_state;
static uint64_t nonce;
static bool endless_patience;
struct selftest_report report;
uint8_t guest_stack[STACK_BYTES] __attribute__((aligned(16)));

__attribute__((noreturn, used)) void guest_main(const struct boot_params *parameters);

/* The boot protocol's entry: RSI is the address of boot_params; its stack is a small one. */
__attribute__((naked, noreturn, used, section(".text.entry"))) void guest_entry(void)
{
	__asm__ volatile("movq %rsi, %rdi\n\t"
			 "movq $guest_stack + 65536, %rsp\n\t"
			 "call guest_main");
}

void *memset(void *target, int value, size_t length)
{
	void *start = target;

	__asm__ volatile("rep stosb" : "+D"(target), "+c"(length) : "a"(value) : "memory");
	return start;
}

void *memcpy(void *target, const void *source, size_t length)
{
	void *start = target;

	__asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(length) : : "memory");
	return start;
}

int strings_equal(const char *left, const char *right)
{
	while (*left && *left == *right) {
		left++;
		right++;
	}
	return *left == *right;
}

void random_seed(uint64_t seed)
{
	random_state = seed;
}

uint64_t random_64(void)
{
	random_state = random_state * 6364136223846793005UL + 1442695040888963407UL;
	return random_state ^ random_state >> 29;
}

uint32_t random_below(uint32_t limit)
{
	return (uint32_t)(((random_64() & 0xffffffffUL) * limit) >> 32);
}

void say(const char *text)
{
	for (; *text; text++, report.ports++)
		port_out(PORT_SERIAL, (uint8_t)*text);
}

void say_number(uint64_t number)
{
	for (int shift = 60; shift >= 0; shift -= 4, report.ports++)
		port_out(PORT_SERIAL, (uint8_t) "0123456789abcdef"[number >> shift & 15]);
}

void say_report(const char *word)
{
	const struct selftest_report told = report;
	const uint64_t numbers[] = {told.tries, told.checks, told.ports,
				    selftest_proof(nonce, &told)};

	say(word);
	for (unsigned int i = 0; i < ARRAY_COUNT(numbers); i++) {
		say(" ");
		say_number(numbers[i]);
	}
	say("\n");
}

static __attribute__((noreturn)) void reset_machine(void)
{
	for (;;)
		port_out(PORT_KEYBOARD, RESET_COMMAND);
}

void finish(void)
{
	say_report(SELFTEST_DONE);
	reset_machine();
}

void fail(const char *why)
{
	say(SELFTEST_BAD);
	say(why);
	say("\n");
	reset_machine();
}

void fail_number(const char *why, uint64_t number)
{
	say(SELFTEST_BAD);
	say(why);
	say(" 0x");
	say_number(number);
	say("\n");
	reset_machine();
}

void pause_guest(unsigned int count)
{
	for (; count; count--, report.ports++)
		port_in(PORT_KEYBOARD);
}

struct patience patience_begin(void)
{
	return (struct patience){.begin = read_clock()};
}

bool patience_left(const struct patience *patience)
{
	pause_guest(1);
	return endless_patience ||
	       read_clock() - patience->begin < 30000000000UL; /* at some 3 GHz */
}

void be_patient(void)
{
	endless_patience = true;
}

/* The machine starts with the first GiB mapped; adds the fourth, where devices are, and the fifth,
 * where there is nothing. Never changes what is mapped, so nothing is to be flushed. */
static void map_more(void)
{
	static uint64_t directories[2][512] __attribute__((aligned(4096)));
	volatile uint64_t *pointers = (volatile uint64_t *)LAYOUT_PAGE_DIRECTORY_POINTERS;

	for (uint64_t gib = 0; gib < 2; gib++) {
		for (uint64_t i = 0; i < 512; i++)
			directories[gib][i] =
				(gib + 3) << 30 | i << 21 | PAGE_LARGE | PAGE_PRESENT_WRITE;
		pointers[gib + 3] = (uint64_t)directories[gib] | PAGE_PRESENT_WRITE;
	}
}

/* A decimal number and the space after it. */
static uint64_t take_number(const char **text)
{
	uint64_t number = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		number = number * 10 + (uint64_t)(**text - '0');
	if (**text == ' ')
		(*text)++;
	return number;
}

/* `mvagent run` has words for a Linux. */
static bool is_for_linux(const char *line)
{
	static const char first[] = "loglevel=";

	for (unsigned int i = 0; i < sizeof(first) - 1; i++)
		if (line[i] != first[i])
			return false;
	return true;
}

/* "names" is no attack: it says the names of all, for a test that compares lists. */
static void say_names(const struct attack *const *tables, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		for (const struct attack *attack = tables[i]; attack->name; attack++) {
			say(attack->name);
			say("\n");
		}
	}
	finish();
}

void guest_main(const struct boot_params *parameters)
{
	static const struct attack *const tables[] = {
		register_attacks,  chain_attacks, vsock_attacks, device_attacks,
		fuse_attacks,      end_attacks,   race_attacks,  processor_attacks,
		negotiate_attacks, probe_attacks};
	const char *name = (const char *)(uint64_t)parameters->hdr.cmd_line_ptr;

	random_state = take_number(&name);
	nonce = take_number(&name);
	map_more();
	if (is_for_linux(name))
		work();
	if (strings_equal(name, "names"))
		say_names(tables, ARRAY_COUNT(tables));
	for (unsigned int i = 0; i < ARRAY_COUNT(tables); i++) {
		for (const struct attack *attack = tables[i]; attack->name; attack++) {
			if (!strings_equal(attack->name, name))
				continue;
			attack->run();
			finish();
		}
	}
	fail("there is no such attack");
}
