/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/exits.h"

#include <string.h>

#include "vmm/base/log.h"
#include "vmm/machine/layout.h"

void exits_create(struct exits *exits)
{
	memset(exits, 0, sizeof(*exits));
	pthread_mutex_init(&exits->lock, NULL);
}

void exits_count_port(struct exits *exits, uint16_t port)
{
	pthread_mutex_lock(&exits->lock);
	exits->counters.exits++;
	exits->counters.port_io++;
	for (unsigned int i = 0; i < EXITS_PORTS; i++) {
		if (exits->ports[i].count && exits->ports[i].port != port)
			continue;
		exits->ports[i].port = port;
		exits->ports[i].count++;
		break;
	}
	pthread_mutex_unlock(&exits->lock);
}

void exits_count_mmio(struct exits *exits, uint64_t gpa, bool is_write)
{
	uint64_t device = (gpa - LAYOUT_DEVICES) / LAYOUT_DEVICE_SIZE;
	uint64_t word = (gpa % LAYOUT_DEVICE_SIZE) / 4;

	pthread_mutex_lock(&exits->lock);
	exits->counters.exits++;
	if (is_write)
		exits->counters.mmio_writes++;
	else
		exits->counters.mmio_reads++;
	if (gpa >= LAYOUT_DEVICES && device < LIMIT_MMIO_DEVICES) {
		uint32_t *registers =
			is_write ? exits->device_writes[device] : exits->device_reads[device];

		registers[word < EXITS_REGISTERS ? word : EXITS_REGISTERS - 1]++;
	}
	pthread_mutex_unlock(&exits->lock);
}

void exits_count_interrupted(struct exits *exits)
{
	pthread_mutex_lock(&exits->lock);
	exits->counters.interrupted++;
	pthread_mutex_unlock(&exits->lock);
}

void exits_count_other(struct exits *exits)
{
	pthread_mutex_lock(&exits->lock);
	exits->counters.exits++;
	exits->counters.other++;
	pthread_mutex_unlock(&exits->lock);
}

struct monitor_counters exits_read(struct exits *exits)
{
	struct monitor_counters counters;

	pthread_mutex_lock(&exits->lock);
	counters = exits->counters;
	pthread_mutex_unlock(&exits->lock);
	return counters;
}

static void exits_log_registers(const char *what, unsigned int device, const uint32_t *counts)
{
	for (unsigned int word = 0; word < EXITS_REGISTERS; word++) {
		if (counts[word])
			log_info("exits: device %u register 0x%03x %s %u", device, word * 4, what,
				 counts[word]);
	}
}

void exits_log(struct exits *exits)
{
	pthread_mutex_lock(&exits->lock);
	for (unsigned int device = 0; device < LIMIT_MMIO_DEVICES; device++) {
		exits_log_registers("write", device, exits->device_writes[device]);
		exits_log_registers("read", device, exits->device_reads[device]);
	}
	for (unsigned int i = 0; i < EXITS_PORTS && exits->ports[i].count; i++)
		log_info("exits: port 0x%x %u", exits->ports[i].port, exits->ports[i].count);
	pthread_mutex_unlock(&exits->lock);
}
