/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of inodes and handles: ids, generations, counts, and descriptors that come and go. */
#include "vmm/fs/inode.h"

#include "tests/unit/fs_harness.h"
#include "vmm/fs/handle.h"
#include "vmm/fs/identity_set.h"

static int null_fd(void)
{
	int fd = open("/dev/null", O_PATH | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct inode_identity identity_of(uint64_t number)
{
	return (struct inode_identity){.device = 1, .number = number, .type = S_IFREG};
}

static struct inode *add(struct inode_table *table, uint64_t number)
{
	struct inode_identity identity = identity_of(number);
	struct inode *inode;

	assert_int_equal(inode_reserve_fd(table), 0);
	assert_int_equal(inode_add(table, &identity, null_fd(), &inode), 0);
	inode->lookups = 1;
	inode_set_place(table, inode, FUSE_ROOT_ID, "name");
	return inode;
}

static struct inode_table *make_table(unsigned int fd_limit)
{
	struct inode_table *table = calloc(1, sizeof(*table));
	struct inode_identity identity = identity_of(1);

	assert_non_null(table);
	assert_int_equal(inode_table_create(table, null_fd(), &identity, fd_limit), 0);
	return table;
}

static void free_table(struct inode_table *table)
{
	inode_table_destroy(table);
	free(table);
}

static void test_ids_are_not_reused(void **state)
{
	struct inode_table *table = make_table(64);
	uint64_t previous = 0;

	(void)state;
	assert_int_equal(inode_find(table, FUSE_ROOT_ID)->id, FUSE_ROOT_ID);
	for (int i = 0; i < 100; i++) {
		struct inode *inode = add(table, 10);
		uint64_t id = inode->id;

		assert_true(id > FUSE_ROOT_ID && id != previous);
		assert_int_equal((uint32_t)id, 2);
		assert_ptr_equal(inode_find(table, id), inode);
		assert_null(inode_find(table, previous));
		inode_forget(table, inode, 1);
		assert_null(inode_find(table, id));
		previous = id;
	}
	assert_int_equal(table->inode_count, 1);
	assert_int_equal(table->fd_used, 1);
	free_table(table);
}

static void test_forged_ids(void **state)
{
	static const uint64_t ids[] = {
		0, 2, 3, 1ULL << 32, (1ULL << 32) + 1, UINT64_MAX, UINT32_MAX, (2ULL << 32) + 2};
	struct inode_table *table = make_table(64);

	(void)state;
	add(table, 10); /* (1 << 32) + 2 */
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_null(inode_find(table, ids[i]));
	assert_non_null(inode_find(table, (1ULL << 32) + 2));
	free_table(table);
}

static void test_forget_saturates(void **state)
{
	struct inode_table *table = make_table(64);
	struct inode *inode = add(table, 10);
	uint64_t id = inode->id;

	(void)state;
	inode->lookups = 3;
	inode_forget(table, inode, 2);
	assert_int_equal(inode->lookups, 1);
	inode_forget(table, inode, UINT64_MAX);
	assert_null(inode_find(table, id));
	inode_forget(table, inode_find(table, FUSE_ROOT_ID), UINT64_MAX);
	assert_non_null(inode_find(table, FUSE_ROOT_ID));
	free_table(table);
}

static void test_identity(void **state)
{
	struct inode_table *table = make_table(64);
	struct inode_identity identity = identity_of(10);
	struct inode *inode = add(table, 10);

	(void)state;
	assert_ptr_equal(inode_find_identity(table, &identity), inode);
	identity.birth_ns = 5;
	assert_null(inode_find_identity(table, &identity));
	identity = identity_of(10);
	identity.type = S_IFDIR;
	assert_null(inode_find_identity(table, &identity));
	identity = identity_of(10);
	identity.device = 2;
	assert_null(inode_find_identity(table, &identity));
	free_table(table);
}

static void test_many_inodes(void **state)
{
	struct inode_table *table = make_table(64);
	struct inode_identity identity;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		add(table, 100 + i);
	assert_int_equal(table->inode_count, 5001);
	assert_int_equal(table->fd_used, 64);
	for (uint64_t i = 0; i < 5000; i += 3) {
		identity = identity_of(100 + i);
		inode_forget(table, inode_find_identity(table, &identity), 1);
	}
	for (uint64_t i = 0; i < 5000; i++) {
		identity = identity_of(100 + i);
		assert_int_equal(inode_find_identity(table, &identity) != NULL, i % 3 != 0);
	}
	inode_table_reset(table);
	assert_int_equal(table->inode_count, 1);
	assert_int_equal(table->fd_used, 1);
	free_table(table);
}

static void test_oldest_descriptor_goes_first(void **state)
{
	struct inode_table *table = make_table(4); /* the root and three more */
	struct inode *a = add(table, 10), *b = add(table, 11), *c = add(table, 12);
	struct inode *d;

	(void)state;
	inode_touch(table, a);
	d = add(table, 13);
	assert_true(a->fd >= 0 && c->fd >= 0 && d->fd >= 0);
	assert_int_equal(b->fd, -1);
	assert_int_equal(table->fd_used, 4);
	/* The two used last are never closed. */
	assert_int_equal(inode_reserve_fd(table), 0);
	assert_int_equal(inode_reserve_fd(table), -ENFILE);
	assert_true(a->fd >= 0 && d->fd >= 0);
	inode_return_fd(table);
	c = add(table, 14);
	/* What has no place keeps its descriptor; when all are such, there is no room. */
	inode_clear_place(table, a);
	inode_clear_place(table, c);
	inode_clear_place(table, d);
	assert_int_equal(inode_reserve_fd(table), -ENFILE);
	inode_forget(table, c, 1);
	assert_int_equal(inode_reserve_fd(table), 0);
	inode_return_fd(table);
	free_table(table);
}

static void test_handles(void **state)
{
	struct handle_table table;
	struct handle *handle;
	uint64_t id;

	(void)state;
	handle_table_create(&table);
	assert_null(handle_find(&table, 0, HANDLE_FILE));
	assert_int_equal(handle_add(&table, HANDLE_FILE, null_fd(), 7, &handle), 0);
	id = handle->id;
	assert_ptr_equal(handle_find(&table, id, HANDLE_FILE), handle);
	assert_null(handle_find(&table, id, HANDLE_DIRECTORY));
	assert_null(handle_find(&table, id, HANDLE_FREE));
	assert_null(handle_find(&table, id + 1, HANDLE_FILE));
	assert_null(handle_find(&table, id + (1ULL << 32), HANDLE_FILE));
	handle_remove(&table, handle);
	assert_null(handle_find(&table, id, HANDLE_FILE));
	assert_null(handle_find(&table, id, HANDLE_FREE));
	assert_int_equal(handle_add(&table, HANDLE_FILE, null_fd(), 7, &handle), 0);
	assert_true(handle->id != id);
	handle_table_destroy(&table);
}

static void test_directory_handles_are_bounded(void **state)
{
	struct handle_table table;
	struct handle *handle;

	(void)state;
	handle_table_create(&table);
	for (int i = 0; i < LIMIT_FS_DIRECTORY_HANDLES; i++)
		assert_int_equal(handle_add(&table, HANDLE_DIRECTORY, -1, 7, &handle), 0);
	assert_int_equal(handle_add(&table, HANDLE_DIRECTORY, -1, 7, &handle), -ENFILE);
	assert_int_equal(handle_add(&table, HANDLE_FILE, -1, 7, &handle), 0);
	assert_int_equal(handle_table_reset(&table), LIMIT_FS_DIRECTORY_HANDLES + 1);
	for (int i = 0; i < LIMIT_FS_HANDLES; i++)
		assert_int_equal(handle_add(&table, HANDLE_FILE, -1, 7, &handle), 0);
	assert_int_equal(handle_add(&table, HANDLE_FILE, -1, 7, &handle), -ENFILE);
	handle_table_destroy(&table);
}

/* A set that is full takes no more, but still changes what it has. */
static void test_full_set_of_identities(void **state)
{
	struct inode_identity identity = {.device = 1, .type = S_IFREG};
	struct identity_set set = {0};

	(void)state;
	for (identity.number = 1; identity_set_put(&set, &identity, 2) == 0; identity.number++)
		assert_in_range(identity.number, 1, LIMIT_FS_REMEMBERED);
	assert_int_equal(set.inodes.count, LIMIT_FS_REMEMBERED);
	identity.number = 7;
	assert_int_equal(identity_set_put(&set, &identity, 1), 0);
	assert_int_equal(identity_set_value(&set, &identity), 1);
	identity_set_remove(&set, &identity);
	assert_false(identity_set_has(&set, &identity));
	identity.number = 8;
	assert_int_equal(identity_set_value(&set, &identity), 2);
	identity_set_destroy(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_are_not_reused),
		cmocka_unit_test(test_forged_ids),
		cmocka_unit_test(test_forget_saturates),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_many_inodes),
		cmocka_unit_test(test_oldest_descriptor_goes_first),
		cmocka_unit_test(test_full_set_of_identities),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_directory_handles_are_bounded),
	};

	return cmocka_run_group_tests_name("fs_inode", tests, NULL, NULL);
}
