/* SPDX-License-Identifier: Apache-2.0 */
/* The EROFS writer, as fsck.erofs and dump.erofs of erofs-utils read what it wrote. */
#include "vmm/root/erofs.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/erofs_image.h"
#include "vmm/base/bytes.h"
#include "vmm/root/erofs_xattr.h"

static char directory[] = "/tmp/mvagent-erofs-XXXXXX";
static char image[64], out[64];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(image, sizeof(image), "%s/image", directory);
	snprintf(out, sizeof(out), "%s/out", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return shell(NULL, "chmod -R u+rwX %s; rm -rf %s", directory, directory);
}

static void extract(void)
{
	assert_int_equal(shell(NULL,
			       "rm -rf %s && mkdir %s && fsck.erofs --extract=%s --force "
			       "--preserve-perms --no-preserve-owner %s >&2",
			       out, out, out, image),
			 0);
}

static void check_file(const char *name, const struct tree *tree, uint32_t index)
{
	const struct tree_node *node = &tree->nodes[tree->nodes[index].same_as];
	char path[512];
	struct stat status;
	uint8_t *bytes = malloc(node->size + 1);
	int fd;

	assert_non_null(bytes);
	snprintf(path, sizeof(path), "%s/%s", out, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, node->size);
	assert_int_equal(status.st_mode & 07777, node->mode);
	assert_int_equal(status.st_mtim.tv_sec, node->mtime);
	assert_int_equal(status.st_mtim.tv_nsec, node->mtime_ns);
	assert_int_equal(fd_read_full(fd, bytes, node->size), 0);
	for (uint64_t i = 0; i < node->size; i++) {
		if (node->kind == TREE_MADE)
			assert_int_equal(bytes[i], (uint8_t)tree->pool[node->text + i]);
		else
			assert_int_equal(bytes[i], content_byte(node->same_as, i));
	}
	close(fd);
	free(bytes);
}

static void files_of_every_size_come_out_as_they_went_in(void **state)
{
	static const uint64_t sizes[] = {0,    1,    511,  4031, 4032,  4033,
					 4095, 4096, 4097, 8192, 100000};
	struct tree tree = {0};
	uint32_t indexes[2 * ARRAY_SIZE(sizes)];
	char name[32];
	static char text[100000];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 31 + i / 100);
	add_node(&tree, 0, TREE_DIRECTORY, "");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "f%06u", (unsigned int)sizes[i]);
		indexes[i] = add_node(&tree, 0, TREE_FILE, name);
		tree.nodes[indexes[i]].size = sizes[i];
		tree.nodes[indexes[i]].mode = (uint16_t)(0400 | (i * 9 & 0377));
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "m%06u", (unsigned int)sizes[i]);
		indexes[ARRAY_SIZE(sizes) + i] =
			add_text(&tree, 0, TREE_MADE, name, text, sizes[i]);
	}
	write_image(&tree, image, UINT64_MAX);
	extract();
	for (size_t i = 0; i < ARRAY_SIZE(indexes); i++)
		check_file(tree_name(&tree, &tree.nodes[indexes[i]]), &tree, indexes[i]);
	tree_free(&tree);
}

static void symlinks_of_every_length(void **state)
{
	static const size_t lengths[] = {1, 60, 4031, 4032, 4033, 4095};
	struct tree tree = {0};
	static char target[4096], found[4096], path[256];
	char name[32];

	(void)state;
	memset(target, 'x', sizeof(target));
	add_node(&tree, 0, TREE_DIRECTORY, "");
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		snprintf(name, sizeof(name), "l%04u", (unsigned int)lengths[i]);
		add_text(&tree, 0, TREE_SYMLINK, name, target, lengths[i]);
	}
	write_image(&tree, image, 0);
	extract();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		snprintf(path, sizeof(path), "%s/l%04u", out, (unsigned int)lengths[i]);
		assert_int_equal(readlink(path, found, sizeof(found)), lengths[i]);
		assert_memory_equal(found, target, lengths[i]);
	}
	tree_free(&tree);
}

/* Names that are smaller than "." and "..", of one byte, of 255, and of odd bytes. */
static void names_of_all_kinds(void **state)
{
	static char longest[256], longest2[256];
	const char *const names[] = {"\x01", " ",     "!",      "+x",       "-",        "..-",
				     "...",  ".a",    "0",      "A",        "a",        "ab",
				     "b c",  longest, longest2, "\x80\xff", "\xc3\x84", "\xff"};
	struct tree tree = {0};
	char path[600];

	(void)state;
	memset(longest, 'n', 255);
	memset(longest2, 'n', 255);
	longest2[254] = 'o';
	add_node(&tree, 0, TREE_DIRECTORY, "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		tree.nodes[add_node(&tree, 0, TREE_FILE, names[i])].size = i;
	write_image(&tree, image, UINT64_MAX);
	extract();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat status;

		snprintf(path, sizeof(path), "%s/%s", out, names[i]);
		assert_int_equal(lstat(path, &status), 0);
		assert_int_equal(status.st_size, i);
	}
	assert_int_equal(tree_add_node(&tree, path, 256), -ENAMETOOLONG);
	tree_free(&tree);
}

static void a_directory_of_100000_entries(void **state)
{
	struct tree tree = {0};
	char name[32], line[512];
	uint32_t big;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	big = add_node(&tree, 0, TREE_DIRECTORY, "big");
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "entry-%06d", i);
		add_node(&tree, big, TREE_FILE, name);
	}
	write_image(&tree, image, 0);
	assert_int_equal(shell(NULL, "fsck.erofs %s 2>&1 | grep '<[EW]>'", image), 1);
	assert_int_equal(
		shell(line,
		      "dump.erofs --path=/big --ls %s | grep -o 'entry-[0-9]*' | sort -u | "
		      "wc -l",
		      image),
		0);
	assert_string_equal(line, "100000");
	tree_free(&tree);
}

/* Directories whose size ends at, before and after the end of a block, and of what fits behind an
 * inode. */
static void directories_of_every_size(void **state)
{
	static const unsigned int counts[] = {0,   1,   2,   100, 263, 264, 265, 266, 267,
					      268, 269, 270, 271, 272, 273, 274, 540, 541,
					      542, 543, 544, 545, 546, 547, 548, 900};
	struct tree tree = {0};
	char name[64], line[512];
	uint32_t first;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	first = tree.node_count;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		snprintf(name, sizeof(name), "d%03u", counts[i]);
		add_node(&tree, 0, TREE_DIRECTORY, name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (unsigned int j = 0; j < counts[i]; j++) {
			snprintf(name, sizeof(name), "%03u%.*s", j, j ? 0 : (int)(counts[i] % 24),
				 "xxxxxxxxxxxxxxxxxxxxxxxx");
			add_node(&tree, first + (uint32_t)i, TREE_FILE, name);
		}
	}
	write_image(&tree, image, 0);
	extract();
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		char expected[16];

		assert_int_equal(shell(line, "ls -1 %s/d%03u | wc -l", out, counts[i]), 0);
		snprintf(expected, sizeof(expected), "%u", counts[i]);
		assert_string_equal(line, expected);
	}
	tree_free(&tree);
}

/* To the node that was added last. */
static void add_random_xattrs(struct tree *tree, uint32_t value)
{
	struct tree_node *node = &tree->nodes[tree->node_count - 1];
	struct erofs_xattrs xattrs = {0};
	static const char text[2000] = {'v'};

	for (uint32_t i = 0; i < value / 7 % 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "user.name%u", i);
		/* Some do not fit: those before them stay. */
		(void)erofs_xattr_add(&xattrs, name, text, value / 11 % sizeof(text));
	}
	node->xattrs = (uint32_t)tree_add_text(tree, xattrs.bytes, xattrs.length);
	node->xattr_bytes = xattrs.length;
}

/* As fuzz_erofs.c, with another reader. */
static void random_trees_are_sound(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 150; round++) {
		struct tree tree = {0};
		char name[256];

		add_node(&tree, 0, TREE_DIRECTORY, "");
		for (uint32_t i = 0; i < tree.node_count && tree.node_count < 400; i++) {
			uint32_t count = (seed = seed * 1664525 + 1013904223) >> 20 & 63;

			if (tree.nodes[i].kind != TREE_DIRECTORY)
				continue;
			for (uint32_t j = 0; j < count; j++) {
				uint32_t value = (seed = seed * 1664525 + 1013904223) >> 8;
				int length = (int)(value % 240);

				snprintf(name, sizeof(name), "%02u%0*u", j, length + 1, value % 7);
				if (value % 3 == 0)
					add_node(&tree, i, TREE_DIRECTORY, name);
				else if (value % 3 == 1)
					add_text(&tree, i, TREE_MADE, name, name,
						 (value >> 9) % 200);
				else
					tree.nodes[add_node(&tree, i, TREE_FILE, name)].size =
						value % 20000;
				if (value % 5 == 0)
					add_random_xattrs(&tree, value);
			}
		}
		write_image(&tree, image, UINT64_MAX);
		assert_int_equal(shell(NULL, "fsck.erofs --extract %s 2>&1 | grep '<[EW]>'", image),
				 1);
		tree_free(&tree);
	}
}

static void hard_links_are_one_inode(void **state)
{
	struct tree tree = {0};
	char line[512];
	uint32_t a, b, sub;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	a = add_node(&tree, 0, TREE_FILE, "a");
	tree.nodes[a].size = 5000;
	sub = add_node(&tree, 0, TREE_DIRECTORY, "sub");
	b = add_node(&tree, sub, TREE_FILE, "b");
	tree.nodes[b].size = 5000;
	tree.nodes[b].same_as = a;
	write_image(&tree, image, UINT64_MAX);
	assert_int_equal(tree.nodes[a].link_count, 2);
	assert_int_equal(tree.nodes[sub].link_count, 2);
	assert_int_equal(tree.nodes[0].link_count, 3);
	assert_int_equal(shell(line, "dump.erofs --path=/sub/b %s | grep -c 'Links: 2'", image), 0);
	assert_int_equal(shell(line,
			       "test \"$(dump.erofs --path=/a %s | grep NID:)\" = "
			       "\"$(dump.erofs --path=/sub/b %s | grep NID:)\"",
			       image, image),
			 0);
	extract();
	check_file("a", &tree, a);
	check_file("sub/b", &tree, b);
	tree_free(&tree);
}

static void sizes_have_64_bits(void **state)
{
	const uint64_t size = (5ULL << 30) + 1;
	struct tree tree = {0};
	struct erofs_layout layout;
	char line[512];
	uint32_t huge, next;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	huge = add_node(&tree, 0, TREE_FILE, "huge");
	tree.nodes[huge].size = size;
	next = add_node(&tree, 0, TREE_FILE, "next");
	tree.nodes[next].size = 10;
	layout = write_image(&tree, image, 4096);
	assert_int_equal(tree.nodes[next].first_block,
			 tree.nodes[huge].first_block + (size + 4095) / 4096);
	assert_int_equal(layout.block_count, tree.nodes[next].first_block + 1);
	assert_int_equal(shell(line, "dump.erofs --path=/huge %s | grep -c 'Size: %llu '", image,
			       (unsigned long long)size),
			 0);
	assert_int_equal(shell(line, "dump.erofs --path=/next --cat %s 2>/dev/null | wc -c", image),
			 0);
	/* 16 TiB is the end. */
	tree.nodes[huge].size = 1ULL << 44;
	assert_int_equal(erofs_lay_out(&tree, &layout), -EFBIG);
	tree_free(&tree);
}

static void the_same_tree_gives_the_same_bytes(void **state)
{
	struct tree tree = {0};
	struct erofs_layout layout;
	uint8_t *images[2];

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	add_node(&tree, 0, TREE_FILE, "file");
	add_text(&tree, 0, TREE_SYMLINK, "link", "target", 6);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(erofs_lay_out(&tree, &layout), 0);
		images[i] = malloc(layout.metadata_bytes);
		assert_non_null(images[i]);
		memset(images[i], i, layout.metadata_bytes);
		assert_int_equal(erofs_write(&tree, &layout, images[i]), 0);
	}
	assert_memory_equal(images[0], images[1], layout.metadata_bytes);
	free(images[0]);
	free(images[1]);
	tree_free(&tree);
}

static void owners_modes_and_times(void **state)
{
	struct tree tree = {0};
	char line[512];
	uint32_t file;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	file = add_node(&tree, 0, TREE_FILE, "f");
	tree.nodes[file].uid = 70000;
	tree.nodes[file].gid = 4000000000U;
	tree.nodes[file].mode = 0751;
	tree.nodes[file].mtime = 1700000000;
	tree.nodes[file].mtime_ns = 999999999;
	write_image(&tree, image, 0);
	assert_int_equal(shell(line,
			       "TZ=UTC dump.erofs --path=/f %s | grep -E "
			       "'Uid: 70000 +Gid: (4000000000|-294967296)' | grep 0751",
			       image),
			 0);
	assert_int_equal(
		shell(line, "TZ=UTC dump.erofs --path=/f %s | grep '2023-11-14 22:13:20.999999999'",
		      image),
		0);
	tree_free(&tree);
}

/* fsck.erofs goes through attributes, and our own eyes through their bytes. */
static void extended_attributes_lie_behind_the_inode(void **state)
{
	static const char big[3800] = {'b'};
	struct tree tree = {0};
	struct erofs_xattrs xattrs = {0};
	uint32_t nodes[3];

	(void)state;
	assert_true(erofs_xattr_is_kept("user.colour"));
	assert_true(erofs_xattr_is_kept("security.capability"));
	assert_false(erofs_xattr_is_kept("user."));
	assert_false(erofs_xattr_is_kept("security.selinux"));
	assert_false(erofs_xattr_is_kept("trusted.overlay.redirect"));
	assert_false(erofs_xattr_is_kept("system.posix_acl_access"));
	assert_int_equal(erofs_xattr_add(&xattrs, "user.colour", "blue", 4), 0);
	assert_int_equal(erofs_xattr_add(&xattrs, "security.capability", "\1\0\0\2\0", 5), 0);
	assert_memory_equal(xattrs.bytes, "\x06\x01\x04\0colourblue\0\0\x0a\x06\x05\0capability",
			    30);
	assert_int_equal(xattrs.length, 36);
	add_node(&tree, 0, TREE_DIRECTORY, "");
	nodes[0] = add_node(&tree, 0, TREE_FILE, "a");
	nodes[1] = add_text(&tree, 0, TREE_SYMLINK, "b", "target", 6);
	nodes[2] = add_node(&tree, 0, TREE_DIRECTORY, "c");
	for (int i = 0; i < 3; i++) {
		tree.nodes[nodes[i]].xattrs =
			(uint32_t)tree_add_text(&tree, xattrs.bytes, xattrs.length);
		tree.nodes[nodes[i]].xattr_bytes = xattrs.length;
	}
	write_image(&tree, image, UINT64_MAX);
	extract();
	assert_int_equal(
		shell(NULL, "test \"$(readlink %s/b)\" = target && test -d %s/c", out, out), 0);
	assert_int_equal(shell(NULL, "grep -a -q colourblue %s", image), 0);
	assert_int_equal(erofs_xattr_add(&xattrs, "user.big", big, sizeof(big)), 0);
	assert_int_equal(erofs_xattr_add(&xattrs, "user.big2", big, sizeof(big)), -E2BIG);
	tree_free(&tree);
}

/* A superblock whose checksum is wrong is refused: so ours was right. */
static void the_checksum_is_checked(void **state)
{
	struct tree tree = {0};
	int fd;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	write_image(&tree, image, 0);
	assert_int_equal(shell(NULL, "fsck.erofs %s 2>&1 | grep chksum", image), 1);
	fd = open(image, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 4000), 1);
	close(fd);
	assert_int_equal(shell(NULL, "fsck.erofs %s 2>&1 | grep chksum", image), 0);
	tree_free(&tree);
}

static void paths_lead_from_any_ancestor(void **state)
{
	struct tree tree = {0};
	static char path[PATH_MAX], name[256];
	uint32_t usr, bin, file, deep;

	(void)state;
	add_node(&tree, 0, TREE_DIRECTORY, "");
	usr = add_node(&tree, 0, TREE_DIRECTORY, "usr");
	bin = add_node(&tree, usr, TREE_DIRECTORY, "bin");
	file = add_node(&tree, bin, TREE_FILE, "git");
	assert_int_equal(tree_path(&tree, file, 0, path), 0);
	assert_string_equal(path, "usr/bin/git");
	assert_int_equal(tree_path(&tree, file, usr, path), 0);
	assert_string_equal(path, "bin/git");
	assert_int_equal(tree_path(&tree, file, file, path), 0);
	assert_string_equal(path, "");
	memset(name, 'n', 255);
	deep = bin;
	for (int i = 0; i < 15; i++)
		deep = (uint32_t)tree_add_node(&tree, name, 255),
		tree.nodes[deep].parent = deep - 1;
	assert_int_equal(tree_path(&tree, deep, 0, path), 0);
	deep = (uint32_t)tree_add_node(&tree, name, 255);
	tree.nodes[deep].parent = deep - 1;
	assert_int_equal(tree_path(&tree, deep, 0, path), -ENAMETOOLONG);
	tree_free(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_every_size_come_out_as_they_went_in),
		cmocka_unit_test(symlinks_of_every_length),
		cmocka_unit_test(names_of_all_kinds),
		cmocka_unit_test(a_directory_of_100000_entries),
		cmocka_unit_test(directories_of_every_size),
		cmocka_unit_test(random_trees_are_sound),
		cmocka_unit_test(hard_links_are_one_inode),
		cmocka_unit_test(sizes_have_64_bits),
		cmocka_unit_test(the_same_tree_gives_the_same_bytes),
		cmocka_unit_test(owners_modes_and_times),
		cmocka_unit_test(extended_attributes_lie_behind_the_inode),
		cmocka_unit_test(the_checksum_is_checked),
		cmocka_unit_test(paths_lead_from_any_ancestor),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
