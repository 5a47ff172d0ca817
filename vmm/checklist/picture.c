/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary as a picture: this host on the left, the machine on the right, and between them a
 * door for each way that this policy has. Open ones are arrows, closed ones are dashed with a bar.
 */
#include <string.h>

#include "vmm/checklist/page.h"

#define WIDTH       560
#define HEIGHT      114
#define LEFT_END    158 /* of the box of what stays outside */
#define RIGHT_BEGIN 392 /* of the machine's */
#define FIRST_DOOR  22
#define DOOR_STEP   15
#define DOORS       6
#define LABEL       46U /* characters of a door's label */

struct picture {
	FILE *stream;
	int doors;
};

void page_escape(FILE *stream, const char *text, size_t limit)
{
	for (size_t count = 0; *text; text++) {
		/* The first byte of a character: those that follow it are 10xxxxxx. */
		if (((unsigned char)*text & 0xc0) != 0x80 && count++ == limit) {
			fputs("\xe2\x80\xa6", stream);
			return;
		}
		switch (*text) {
		case '<':
			fputs("&lt;", stream);
			break;
		case '>':
			fputs("&gt;", stream);
			break;
		case '&':
			fputs("&amp;", stream);
			break;
		case '"':
			fputs("&quot;", stream);
			break;
		default:
			fputc(*text, stream);
		}
	}
}

static void write_text(const struct picture *picture, int x, int y, const char *class,
		       const char *text)
{
	fprintf(picture->stream, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
	page_escape(picture->stream, text, LABEL);
	fputs("</text>", picture->stream);
}

enum door { DOOR_CLOSED, DOOR_IN, DOOR_OUT, DOOR_BOTH };

static void draw_door(struct picture *picture, enum door door, const char *label)
{
	const int y = FIRST_DOOR + DOOR_STEP * picture->doors++ + 6;
	const int middle = (LEFT_END + RIGHT_BEGIN) / 2;

	if (picture->doors > DOORS)
		return;
	write_text(picture, middle, y - 3, "m", label);
	fprintf(picture->stream, "<path d=\"M%d %dH%d\" class=\"%s\"/>", LEFT_END + 3, y,
		RIGHT_BEGIN - 3, door == DOOR_CLOSED ? "c" : "o");
	if (door == DOOR_CLOSED)
		fprintf(picture->stream, "<path d=\"M%d %dv6\" class=\"b\"/>", middle, y - 2);
	if (door == DOOR_IN || door == DOOR_BOTH)
		fprintf(picture->stream, "<path d=\"M%d %dl-7 -3v6z\"/>", RIGHT_BEGIN - 1, y);
	if (door == DOOR_OUT || door == DOOR_BOTH)
		fprintf(picture->stream, "<path d=\"M%d %dl7 -3v6z\"/>", LEFT_END + 1, y);
}

static void draw_shares(struct picture *picture, const cJSON *policy)
{
	const cJSON *shares = cJSON_GetObjectItem(policy, "shares");
	const int count = cJSON_GetArraySize(shares);
	char label[512];

	for (int i = 0; i < count && i < 2; i++) {
		const cJSON *share = cJSON_GetArrayItem(shares, i);
		const char *path = page_text(share, "host"), *mode = page_text(share, "mode");
		const char *end = strlen(path) > 30 ? path + strlen(path) - 28 : path;

		while (((unsigned char)*end & 0xc0) == 0x80) /* within a character */
			end++;
		snprintf(label, sizeof(label), "%s%s (%s)", end == path ? "" : "\xe2\x80\xa6", end,
			 mode);
		draw_door(picture, strcmp(mode, "rw") == 0 ? DOOR_BOTH : DOOR_IN, label);
	}
	if (count > 2) {
		snprintf(label, sizeof(label), "%d more shares", count - 2);
		draw_door(picture, DOOR_BOTH, label);
	}
	if (!count)
		draw_door(picture, DOOR_CLOSED, "files: no share");
}

/* Of a text cut to so many bytes, those that are whole characters. */
static int whole_length(const char *text, size_t limit)
{
	size_t length = strnlen(text, limit);

	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return (int)length;
}

static void draw_network(struct picture *picture, const cJSON *policy)
{
	const cJSON *network = cJSON_GetObjectItem(policy, "network");
	const cJSON *rules = cJSON_GetObjectItem(network, "rules");
	const int published = cJSON_GetArraySize(cJSON_GetObjectItem(network, "published"));
	char label[512];
	int allowed = 0;
	const char *first = "";
	const cJSON *rule;

	cJSON_ArrayForEach(rule, rules)
	{
		const char *origin = cJSON_GetStringValue(rule);

		if (!origin || strncmp(origin, "--deny ", 7) == 0)
			continue;
		if (!allowed++)
			first = origin;
	}
	if (allowed > 1)
		snprintf(label, sizeof(label), "%.*s and %d more", whole_length(first, 30), first,
			 allowed - 1);
	else
		snprintf(label, sizeof(label), "%s", allowed ? first : "network: no route");
	draw_door(picture, allowed ? DOOR_OUT : DOOR_CLOSED, label);
	snprintf(label, sizeof(label), "%d published ports", published);
	if (published)
		draw_door(picture, DOOR_IN, label);
}

static void draw_environment(struct picture *picture, const cJSON *policy)
{
	const cJSON *names = cJSON_GetObjectItem(policy, "environment");
	const int count = cJSON_GetArraySize(names);
	const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(names, 0));
	char label[512];

	if (count > 1)
		snprintf(label, sizeof(label), "--env %.24s and %d more", first ? first : "",
			 count - 1);
	else
		snprintf(label, sizeof(label), "%s%s",
			 count ? "--env " : "environment: none of yours",
			 count && first ? first : "");
	draw_door(picture, count ? DOOR_IN : DOOR_CLOSED, label);
	draw_door(picture, DOOR_OUT, "output: filtered for the terminal");
}

void page_picture(const cJSON *page, FILE *stream)
{
	static const char *const outside[] = {
		"ssh and GPG keys, keyrings", "cloud configuration and roles",
		"shell history, browser",     "other repositories",
		"ssh-agent, Docker, desktop", "internal network, metadata",
	};
	const cJSON *policy = cJSON_GetObjectItem(page, "policy");
	const cJSON *host = cJSON_GetObjectItem(page, "host");
	struct picture picture = {.stream = stream};

	fprintf(stream,
		"<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"The boundary\">"
		"<rect x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" class=\"h\"/>",
		WIDTH, HEIGHT, WIDTH - 2, HEIGHT - 2);
	fprintf(stream, "<rect x=\"6\" y=\"16\" width=\"%d\" height=\"%d\" class=\"i\"/>",
		LEFT_END - 6, HEIGHT - 22);
	fprintf(stream, "<rect x=\"%d\" y=\"16\" width=\"%d\" height=\"%d\" class=\"g\"/>",
		RIGHT_BEGIN, WIDTH - RIGHT_BEGIN - 6, HEIGHT - 22);
	write_text(&picture, 8, 11, "t", "This host, and what stays outside:");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		write_text(&picture, 12, 29 + 14 * (int)i, "s", outside[i]);
	write_text(&picture, RIGHT_BEGIN + 6, 11, "t", "The machine (KVM):");
	write_text(&picture, RIGHT_BEGIN + 6, 29, "s", "the agent, its tools, guest root");
	write_text(&picture, RIGHT_BEGIN + 6, 43, "s", "a Linux kernel of its own");
	write_text(&picture, RIGHT_BEGIN + 6, 57, "s",
		   strcmp(page_text(cJSON_GetObjectItem(policy, "root"), "kind"), "image") == 0
			   ? "root: an image, read-only"
			   : "root: this host's tools, read-only");
	write_text(&picture, RIGHT_BEGIN + 6, 71, "s", "all else in memory, gone at the end");
	write_text(&picture, RIGHT_BEGIN + 6, 99, "s", page_text(host, "processor"));
	write_text(&picture, (LEFT_END + RIGHT_BEGIN) / 2, 11, "mt", "doors");
	draw_shares(&picture, policy);
	draw_network(&picture, policy);
	draw_environment(&picture, policy);
	fputs("</svg>\n", stream);
}
