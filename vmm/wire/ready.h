/* SPDX-License-Identifier: Apache-2.0 */
/* What mvagent-blk says to the supervisor through a pipe, once, when the root can be served, after
 * the numbers that show its progress, of which none is zero. */
#ifndef MVAGENT_WIRE_READY_H
#define MVAGENT_WIRE_READY_H

#include <stdint.h>

struct ready_message {
	uint32_t zero;
	uint8_t walls; /* enum jail_wall */
	uint8_t has_metadata_hash;
	uint8_t metadata_hash[32]; /* SHA-256 of the metadata of --root host */
};

#endif
