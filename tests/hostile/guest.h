/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hostile guest: a program without an operating system that attacks its machine. The command
 * line names one attack; what it says on the serial port is its result (vmm/wire/selftest.h).
 *
 * Under a KVM that emulates, an instruction takes about 0.6 us: loops are short, and instructions
 * are plain ones.
 */
#ifndef MVAGENT_TESTS_GUEST_H
#define MVAGENT_TESTS_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/machine/layout.h"
#include "vmm/wire/selftest.h"

#define PORT_SERIAL   0x3f8U
#define PORT_KEYBOARD 0x64U
#define RESET_COMMAND 0xfeU

/* Guest memory: the program is at 2 MiB; all of it is smaller than 64 MiB. */
#define RAM_BYTES    ((uint64_t)SELFTEST_MEMORY_MIB << 20)
#define RINGS        0x1000000UL /* a ring of each queue of each device */
#define BUFFERS      0x2000000UL
#define BUFFER_BYTES (16UL << 20)

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline void port_out(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline uint8_t port_in(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void write_8(uint64_t address, uint8_t value)
{
	__asm__ volatile("movb %0, (%1)" : : "q"(value), "r"(address) : "memory");
}

static inline void write_16(uint64_t address, uint16_t value)
{
	__asm__ volatile("movw %0, (%1)" : : "r"(value), "r"(address) : "memory");
}

static inline void write_32(uint64_t address, uint32_t value)
{
	__asm__ volatile("movl %0, (%1)" : : "r"(value), "r"(address) : "memory");
}

static inline void write_64(uint64_t address, uint64_t value)
{
	__asm__ volatile("movq %0, (%1)" : : "r"(value), "r"(address) : "memory");
}

static inline uint32_t read_32(uint64_t address)
{
	uint32_t value;

	__asm__ volatile("movl (%1), %0" : "=r"(value) : "r"(address) : "memory");
	return value;
}

static inline uint64_t read_64(uint64_t address)
{
	uint64_t value;

	__asm__ volatile("movq (%1), %0" : "=r"(value) : "r"(address) : "memory");
	return value;
}

static inline uint64_t read_clock(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* What gcc calls by itself. */
void *memset(void *target, int value, size_t length);
void *memcpy(void *target, const void *source, size_t length);
int strings_equal(const char *left, const char *right);

void random_seed(uint64_t seed);
uint64_t random_64(void);
uint32_t random_below(uint32_t limit);

/* The serial port. */
void say(const char *text);
void say_number(uint64_t number);

/* What is counted of this machine; the first processor's. */
extern struct selftest_report report;

/* One more thing is tried that no good driver does. */
static inline void attempt(void)
{
	report.tries++;
}

/* Says the report; once, and last. @word: SELFTEST_LAST or SELFTEST_ENDLESS. */
void say_report(const char *word);

/* Ends the run: all is well, or it is not. */
__attribute__((noreturn)) void finish(void);
__attribute__((noreturn)) void fail(const char *why);
__attribute__((noreturn)) void fail_number(const char *why, uint64_t number);

static inline void need(bool condition, const char *why)
{
	if (!condition)
		fail(why);
	report.checks++;
}

/* Lets the host work: leaves the guest @count times. */
void pause_guest(unsigned int count);

/* For loops that wait for what must come: false when ten seconds or so have gone by. */
struct patience {
	uint64_t begin;
};
struct patience patience_begin(void);
bool patience_left(const struct patience *patience);

/* From now on it is always true. */
void be_patient(void);

/* The attacks, by name. */
struct attack {
	const char *name;
	void (*run)(void);
};
extern const struct attack register_attacks[];
extern const struct attack chain_attacks[];
extern const struct attack vsock_attacks[];
extern const struct attack device_attacks[];
extern const struct attack fuse_attacks[];
extern const struct attack end_attacks[];
extern const struct attack race_attacks[];
extern const struct attack processor_attacks[];
extern const struct attack negotiate_attacks[];
extern const struct attack probe_attacks[];

/* What it does in place of the kernel of `mvagent run`: guest_work.c. */
__attribute__((noreturn)) void work(void);

#endif
