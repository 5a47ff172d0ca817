/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the network card: the input is a list of a length's two bytes and a frame. What is said
 * of one must be text and of a known class, and the table of kinds must stay what it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/virtio/net_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct frame_summary *summary)
{
	size_t length = strnlen(summary->name, sizeof(summary->name));

	if (summary->frame_class >= FRAME_CLASSES || length == sizeof(summary->name))
		abort();
	if ((summary->frame_class == FRAME_NAME) != (length > 0))
		abort();
	for (size_t i = 0; i < length; i++) {
		char byte = summary->name[i];

		if (byte <= ' ' || byte >= 0x7f || (byte >= 'A' && byte <= 'Z'))
			abort();
	}
	for (size_t i = length; i < sizeof(summary->name); i++) {
		if (summary->name[i])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct net_frames_seen seen;
	uint64_t now = 1;

	memset(&seen, 0, sizeof(seen));
	while (size >= 2) {
		size_t length = (size_t)(data[0] | data[1] << 8);
		struct frame_summary summary;
		enum net_frame_news news;
		uint8_t *exact;

		data += 2;
		size -= 2;
		length = length < size ? length : size;
		exact = malloc(length ? length : 1);
		if (!exact)
			return 0;
		memcpy(exact, data, length);
		net_frame_summarize(&summary, exact, length);
		free(exact);
		check(&summary);
		news = net_frames_add(&seen, &summary, now += 50000000);
		if (news == NET_FRAME_NEW &&
		    net_frames_add(&seen, &summary, now) != NET_FRAME_KNOWN)
			abort();
		data += length;
		size -= length;
	}
	for (unsigned int i = 0; i < FRAME_CLASSES; i++) {
		if (seen.counts[i] > LIMIT_FRAMES_OF_A_CLASS)
			abort();
	}
	return 0;
}
