/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential [--seed N] [--steps N] [--check N] ONE OTHER: random operations on names and files,
 * each done in both directories. What they return, and what they leave, must be the same.
 */
#include "tests/posix/differential.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define STEPS_OF_A_TREE 10000

struct world {
	struct random_numbers numbers;
	struct journal journal;
	struct side sides[2];
	struct answer answers[2];
	unsigned long succeeded;
	bool no_attributes; /* one of the two has no user attributes */
};

static void choose_path(struct random_numbers *numbers, char path[16])
{
	static const char *const shapes[] = {"a", "a", "a", "a/b", "a/b", "a/b/c"};
	const char *shape = shapes[random_below(numbers, 6)];
	size_t length = strlen(shape);

	for (size_t at = 0; at <= length; at++)
		path[at] = shape[at] == '/' || !shape[at] ? shape[at]
							  : (char)('a' + random_below(numbers, 5));
}

static mode_t choose_mode(struct random_numbers *numbers)
{
	static const mode_t usual[] = {0755, 0644, 0600, 0700, 0777, 01777};
	uint64_t kind = random_below(numbers, 8);

	return kind < 6 ? usual[kind] : (mode_t)random_below(numbers, 01000);
}

static int choose_flags(struct random_numbers *numbers)
{
	static const int access_modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
	static const int others[] = {O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW};
	int flags = access_modes[random_below(numbers, 4)];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (random_below(numbers, 6) == 0)
			flags |= others[i];
	return flags;
}

static bool needs_attributes(const struct operation *operation)
{
	return strstr(operation->name, "xattr") != NULL;
}

static const struct operation *choose_operation(struct world *world)
{
	unsigned int total = 0, chosen;
	size_t index;

	for (size_t i = 0; i < differential_operation_count; i++)
		total += differential_operations[i].weight;
	do {
		index = 0;
		chosen = (unsigned int)random_below(&world->numbers, total);
		while (chosen >= differential_operations[index].weight)
			chosen -= differential_operations[index++].weight;
	} while (world->no_attributes && needs_attributes(&differential_operations[index]));
	return &differential_operations[index];
}

static struct choice choose(struct world *world)
{
	struct random_numbers *numbers = &world->numbers;
	struct choice choice = {.operation = choose_operation(world)};

	choose_path(numbers, choice.path);
	choose_path(numbers, choice.other_path);
	choice.slot = (int)random_below(numbers, SLOTS);
	choice.other_slot = (int)random_below(numbers, SLOTS);
	choice.flags = choose_flags(numbers);
	choice.mode = choose_mode(numbers);
	choice.offset = (off_t)random_below(numbers, random_below(numbers, 2) ? 20000 : 5000);
	choice.length = random_below(numbers, random_below(numbers, 4) ? 5000 : DATA_BYTES);
	choice.content = random_next(numbers);
	return choice;
}

static void run_side(struct world *world, int side, const struct choice *choice)
{
	struct answer *answer = &world->answers[side];

	answer->size = 0;
	errno = 0;
	answer->value = choice->operation->run(&world->sides[side], choice, answer);
	answer->error = answer->value == -1 ? errno : 0;
}

/* Whether the step did the same on both sides, and left the same at its paths. */
static bool compare(struct world *world, const struct choice *choice)
{
	const struct answer *one = &world->answers[0], *other = &world->answers[1];
	char texts[2][256];

	if (one->value != other->value || one->error != other->error) {
		printf("returned %ld (%s), and %ld (%s)\n", one->value, strerrorname_np(one->error),
		       other->value, strerrorname_np(other->error));
		return false;
	}
	if (one->size != other->size || memcmp(one->data, other->data, one->size) != 0) {
		printf("the data differs: %.*s\nand\n%.*s\n", (int)one->size, one->data,
		       (int)other->size, other->data);
		return false;
	}
	for (int path = 0; path < 2; path++) {
		const char *name = path ? choice->other_path : choice->path;

		for (int side = 0; side < 2; side++)
			differential_describe(world->sides[side].directory, name, texts[side],
					      sizeof(texts[side]));
		if (strcmp(texts[0], texts[1]) != 0) {
			printf("%s is now %s, and %s\n", name, texts[0], texts[1]);
			return false;
		}
	}
	return true;
}

/* From empty directories again: what renames have moved below the third level no step reaches. */
static void start_over(struct world *world)
{
	for (int side = 0; side < 2; side++) {
		for (int slot = 0; slot < SLOTS; slot++) {
			if (world->sides[side].slots[slot] >= 0)
				close(world->sides[side].slots[slot]);
			world->sides[side].slots[slot] = -1;
		}
		differential_clear(world->sides[side].directory);
	}
}

static bool step(struct world *world, unsigned long check)
{
	struct choice choice = choose(world);

	journal_note(&world->journal,
		     "%s %s %s slots %d %d flags %#o mode %o offset %ld length %zu content %lu",
		     choice.operation->name, choice.path, choice.other_path, choice.slot,
		     choice.other_slot, choice.flags, choice.mode, (long)choice.offset,
		     choice.length, (unsigned long)choice.content);
	for (int side = 0; side < 2; side++)
		run_side(world, side, &choice);
	world->succeeded += world->answers[0].value != -1;
	return compare(world, &choice) &&
	       (world->journal.step % check ||
		differential_same_tree(world->sides[0].directory, world->sides[1].directory));
}

/* A directory of one's own in @path. Returns its descriptor, or -1. */
static int open_side(struct world *world, int side, const char *path, char *place, size_t size)
{
	int fd;

	snprintf(place, size, "%s/differential.%d", path, getpid());
	if (mkdir(place, 0755))
		return -1;
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	world->sides[side].directory = fd;
	for (int slot = 0; slot < SLOTS; slot++)
		world->sides[side].slots[slot] = -1;
	if (fd >= 0 && setxattr(place, "user.test", "", 0, 0) && errno == EOPNOTSUPP)
		world->no_attributes = true;
	return fd;
}

static void close_side(struct side *side, const char *place)
{
	close(side->directory);
	if (rmdir(place))
		fprintf(stderr, "differential: %s: %s\n", place, strerror(errno));
}

int main(int argc, char **argv)
{
	static struct world world;
	struct random_options options;
	int first = random_take_options(&options, argc, argv);
	char places[2][4096];
	bool same = true;

	if (first < 0 || first + 1 >= argc) {
		fputs("usage: differential [--seed N] [--steps N] [--check N] ONE OTHER\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	world.numbers.state = options.seed;
	for (int side = 0; side < 2; side++)
		if (open_side(&world, side, argv[first + side], places[side], sizeof(places[0])) <
		    0) {
			fprintf(stderr, "differential: %s: %s\n", argv[first + side],
				strerror(errno));
			return 2;
		}
	if (world.no_attributes)
		printf("differential: one of the two has no user attributes: none are tried\n");
	while (same && world.journal.step < options.steps) {
		if (world.journal.step % STEPS_OF_A_TREE == 0)
			start_over(&world);
		same = step(&world, options.check);
	}
	if (!same) {
		printf("FAIL differential --seed %llu\n", (unsigned long long)options.seed);
		journal_print(&world.journal);
	} else {
		printf("differential: %lu steps passed, %lu of them operations that succeeded, "
		       "seed %llu\n",
		       world.journal.step, world.succeeded, (unsigned long long)options.seed);
	}
	start_over(&world);
	for (int side = 0; side < 2; side++)
		close_side(&world.sides[side], places[side]);
	return same ? 0 : 1;
}
