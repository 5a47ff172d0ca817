/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/told.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool told_is_new(struct told *told, const struct relay_event *event)
{
	for (unsigned int i = 0; i < told->count; i++) {
		if (told->sentences[i].port == event->port &&
		    strcmp(told->sentences[i].host, event->host) == 0 &&
		    strcmp(told->sentences[i].text, event->text) == 0)
			return false;
	}
	if (told->count < LIMIT_RELAY_DENIALS)
		return true;
	told->untold++;
	return false;
}

void told_add(struct told *told, const struct relay_event *event)
{
	snprintf(told->sentences[told->count].host, sizeof(told->sentences[0].host), "%s",
		 event->host);
	snprintf(told->sentences[told->count].text, sizeof(told->sentences[0].text), "%s",
		 event->text);
	told->sentences[told->count++].port = event->port;
}

void told_end(const struct told *told, int event_fd, int flags)
{
	struct relay_event event = {
		.type = RELAY_EVENT_UNTOLD, .sent = told->untold, .received = told->ends_untold};

	if (told->untold || told->ends_untold)
		send(event_fd, &event, sizeof(event), MSG_NOSIGNAL | flags);
}
