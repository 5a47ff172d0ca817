/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary as a picture: this host on the left, the machine on the right, and between them a
 * door for each way that this policy has. Open ones are arrows, closed ones are dashed with a bar.
 */
#include <stdarg.h>
#include <string.h>

#include "vmm/checklist/page.h"

#define WIDTH       560
#define HEIGHT      114
#define LEFT_END    158 /* of the box of what stays outside */
#define RIGHT_BEGIN 392 /* of the machine's */
#define FIRST_DOOR  28
#define DOORS       8
#define DOOR_STEP   15 /* of up to six */
#define SMALL_STEP  11
#define LABEL       46U /* characters of a door's label */

enum door { DOOR_CLOSED, DOOR_IN, DOOR_OUT, DOOR_BOTH };

struct picture {
	FILE *stream;
	int count;
	struct {
		enum door door;
		char label[256];
	} doors[DOORS];
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

__attribute__((format(printf, 3, 4))) static void add_door(struct picture *picture, enum door door,
							   const char *format, ...)
{
	va_list arguments;

	if (picture->count == DOORS)
		return;
	picture->doors[picture->count].door = door;
	va_start(arguments, format);
	vsnprintf(picture->doors[picture->count++].label, sizeof(picture->doors[0].label), format,
		  arguments);
	va_end(arguments);
}

static void draw_door(const struct picture *picture, int index, int y)
{
	const enum door door = picture->doors[index].door;
	const int middle = (LEFT_END + RIGHT_BEGIN) / 2;

	write_text(picture, middle, y - 3, "m", picture->doors[index].label);
	fprintf(picture->stream, "<path d=\"M%d %dH%d\" class=\"%s\"/>", LEFT_END + 3, y,
		RIGHT_BEGIN - 3, door == DOOR_CLOSED ? "c" : "o");
	if (door == DOOR_CLOSED)
		fprintf(picture->stream, "<path d=\"M%d %dv6\" class=\"b\"/>", middle, y - 2);
	if (door == DOOR_IN || door == DOOR_BOTH)
		fprintf(picture->stream, "<path d=\"M%d %dl-7 -3v6z\"/>", RIGHT_BEGIN - 1, y);
	if (door == DOOR_OUT || door == DOOR_BOTH)
		fprintf(picture->stream, "<path d=\"M%d %dl7 -3v6z\"/>", LEFT_END + 1, y);
}

/* Of a text cut to so many bytes, those that are whole characters. */
static int whole_length(const char *text, size_t limit)
{
	size_t length = strnlen(text, limit);

	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return (int)length;
}

/* Half a name must not be taken for another one. */
static const char *cut_mark(const char *text, size_t limit)
{
	return strlen(text) > limit ? "\xe2\x80\xa6" : "";
}

static enum door door_of(const cJSON *share)
{
	return strcmp(page_text(share, "mode"), "rw") == 0 ? DOOR_BOTH : DOOR_IN;
}

static void add_shares(struct picture *picture, const cJSON *policy)
{
	const cJSON *shares = cJSON_GetObjectItem(policy, "shares");
	const int count = cJSON_GetArraySize(shares);
	enum door others = DOOR_IN;

	for (int i = 0; i < count; i++) {
		const cJSON *share = cJSON_GetArrayItem(shares, i);
		const char *path = page_text(share, "host");
		const char *end = strlen(path) > 30 ? path + strlen(path) - 28 : path;

		if (i >= 2) {
			others = door_of(share) == DOOR_BOTH ? DOOR_BOTH : others;
			continue;
		}
		while (((unsigned char)*end & 0xc0) == 0x80) /* within a character */
			end++;
		add_door(picture, door_of(share), "%s%s (%s)", end == path ? "" : "\xe2\x80\xa6",
			 end, page_text(share, "mode"));
	}
	if (count > 2)
		add_door(picture, others, "%d more shares", count - 2);
	if (!count)
		add_door(picture, DOOR_CLOSED, "files: no share");
}

static void add_network(struct picture *picture, const cJSON *policy)
{
	const cJSON *network = cJSON_GetObjectItem(policy, "network");
	const int published = cJSON_GetArraySize(cJSON_GetObjectItem(network, "published"));
	const char *first = "";
	const cJSON *rule;
	int allowed = 0;

	cJSON_ArrayForEach(rule, cJSON_GetObjectItem(network, "rules"))
	{
		if (!cJSON_IsTrue(cJSON_GetObjectItem(rule, "deny")) && !allowed++)
			first = page_text(rule, "by");
	}
	if (allowed > 1)
		add_door(picture, DOOR_OUT, "%.*s%s and %d more", whole_length(first, 33), first,
			 cut_mark(first, 33), allowed - 1);
	else
		add_door(picture, allowed ? DOOR_OUT : DOOR_CLOSED, "%s",
			 allowed ? first : "network: no route");
	if (published)
		add_door(picture, DOOR_IN, "%d published port%s", published,
			 published == 1 ? "" : "s");
}

static void add_credentials(struct picture *picture, const cJSON *policy)
{
	const cJSON *names = cJSON_GetObjectItem(policy, "environment");
	const cJSON *hosts = cJSON_GetObjectItem(policy, "ssh_agent");
	const int count = cJSON_GetArraySize(names), host_count = cJSON_GetArraySize(hosts);
	const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(names, 0));
	const char *host = cJSON_GetStringValue(cJSON_GetArrayItem(hosts, 0));

	first = first ? first : "";
	host = host ? host : "";
	if (count > 1)
		add_door(picture, DOOR_IN, "--env %.*s%s and %d more", whole_length(first, 24),
			 first, cut_mark(first, 24), count - 1);
	else
		add_door(picture, count ? DOOR_IN : DOOR_CLOSED, "%s%s",
			 count ? "--env " : "environment: none of yours", first);
	if (host_count > 1)
		add_door(picture, DOOR_OUT, "--ssh-agent %.*s%s and %d more",
			 whole_length(host, 20), host, cut_mark(host, 20), host_count - 1);
	else if (host_count)
		add_door(picture, DOOR_OUT, "log-ins: --ssh-agent %s", host);
}

static void draw_doors(struct picture *picture, const cJSON *policy)
{
	const bool passes = cJSON_IsTrue(cJSON_GetObjectItem(policy, "terminal_passthrough"));
	int step;

	add_shares(picture, policy);
	add_network(picture, policy);
	add_credentials(picture, policy);
	add_door(picture, DOOR_OUT,
		 passes ? "output: not filtered" : "output: filtered for the terminal");
	step = picture->count > 6 ? SMALL_STEP : DOOR_STEP;
	for (int i = 0; i < picture->count; i++)
		draw_door(picture, i, FIRST_DOOR + step * i);
}

/* What is kept outside, each with the line of the review that says so, and what it says when that
 * is open. */
static void draw_outside(const struct picture *picture, const cJSON *page)
{
	static const struct {
		const char *text, *id;
	} all[] = {
		{"ssh and GPG keys, keyrings", "keys"},
		{"cloud configuration, history", "keys"},
		{"other repositories", "projects"},
		{"ssh-agent, Docker, desktop", "sockets"},
		{"this host, internal network", "inside"},
		{"metadata of a cloud", "cloud"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const cJSON *line;
		bool open = false;
		char text[64];

		cJSON_ArrayForEach(line, cJSON_GetObjectItem(page, "lines"))
		{
			open |= strcmp(page_text(line, "id"), all[i].id) == 0 &&
				strcmp(page_text(line, "answer"), "OPEN") == 0;
		}
		snprintf(text, sizeof(text), "%s%s", all[i].text, open ? ": OPEN" : "");
		write_text(picture, 12, 29 + 14 * (int)i, open ? "t" : "s", text);
	}
}

void page_picture(const cJSON *page, FILE *stream)
{
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
	draw_outside(&picture, page);
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
	draw_doors(&picture, policy);
	fputs("</svg>\n", stream);
}
