/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: user.* in full, and what becomes of the other namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/posix/conform.h"

/* The largest that ext4 keeps in a block beside its own headers. */
#define LARGEST 3000

static bool is_listed(const char *names, ssize_t size, const char *name)
{
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
		if (strcmp(names + at, name) == 0)
			return true;
	return false;
}

/* Values of many sizes: kept byte by byte, and measured. */
static void check_values(struct suite *suite, const char *path)
{
	static const size_t sizes[] = {0, 1, 2, 16, 63, 64, 100, 255, 256, 1000, 1024, LARGEST};
	static char value[LARGEST + 1], got[LARGEST + 1];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t size = sizes[i];

		for (size_t at = 0; at < size; at++)
			value[at] = (char)(at * 13 + size);
		check_result(suite, setxattr(path, "user.value", value, size, 0), 0,
			     "setxattr of %zu bytes on %s", size, path);
		check_equal(suite, getxattr(path, "user.value", NULL, 0), (long)size,
			    "size of a value of %zu bytes on %s", size, path);
		check_equal(suite, getxattr(path, "user.value", got, sizeof(got)), (long)size,
			    "getxattr of %zu bytes on %s", size, path);
		check_bytes(suite, got, value, size, "value of %zu bytes on %s", size, path);
		check_equal(suite, getxattr(path, "user.value", got, size), (long)size,
			    "getxattr into just enough on %s", path);
		if (size > 1)
			check_result(suite, getxattr(path, "user.value", got, size - 1), ERANGE,
				     "getxattr into too little on %s", path);
	}
	check_result(suite, removexattr(path, "user.value"), 0, "removexattr on %s", path);
	check_result(suite, getxattr(path, "user.value", got, sizeof(got)), ENODATA,
		     "getxattr of what was removed on %s", path);
}

static void check_flags(struct suite *suite, const char *path)
{
	char got[8];

	check_result(suite, setxattr(path, "user.a", "1", 1, XATTR_REPLACE), ENODATA,
		     "XATTR_REPLACE of nothing on %s", path);
	check_result(suite, setxattr(path, "user.a", "1", 1, XATTR_CREATE), 0, "XATTR_CREATE on %s",
		     path);
	check_result(suite, setxattr(path, "user.a", "2", 1, XATTR_CREATE), EEXIST,
		     "XATTR_CREATE of what exists on %s", path);
	check_equal(suite, getxattr(path, "user.a", got, sizeof(got)), 1, "getxattr on %s", path);
	check_equal(suite, got[0], '1', "the value after that on %s", path);
	check_result(suite, setxattr(path, "user.a", "33", 2, XATTR_REPLACE), 0,
		     "XATTR_REPLACE on %s", path);
	check_equal(suite, getxattr(path, "user.a", got, sizeof(got)), 2, "getxattr on %s", path);
	check_result(suite, setxattr(path, "user.a", "4", 1, 8), EINVAL, "a bad flag on %s", path);
	check_result(suite, removexattr(path, "user.a"), 0, "removexattr on %s", path);
	check_result(suite, removexattr(path, "user.a"), ENODATA, "removexattr again on %s", path);
}

static void check_list(struct suite *suite, const char *path)
{
	char name[32], names[2048];
	ssize_t size, expected = 0;

	check_equal(suite, listxattr(path, names, sizeof(names)), 0, "listxattr of none on %s",
		    path);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "user.name%d", i);
		expected += (ssize_t)strlen(name) + 1;
		check_result(suite, setxattr(path, name, name, strlen(name), 0), 0,
			     "setxattr %s on %s", name, path);
	}
	size = listxattr(path, names, sizeof(names));
	check_equal(suite, size, expected, "listxattr on %s", path);
	check_equal(suite, listxattr(path, NULL, 0), expected, "size of the list on %s", path);
	check_result(suite, listxattr(path, names, (size_t)expected - 1), ERANGE,
		     "listxattr into too little on %s", path);
	size = listxattr(path, names, sizeof(names));
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "user.name%d", i);
		check_true(suite, is_listed(names, size, name), "%s is listed on %s", name, path);
		check_result(suite, removexattr(path, name), 0, "removexattr %s on %s", name, path);
	}
	check_equal(suite, listxattr(path, names, sizeof(names)), 0, "listxattr after that on %s",
		    path);
}

static void check_names(struct suite *suite, const char *path)
{
	static const char large[65537];
	char name[257] = "user.", got[8];

	memset(name + 5, 'n', 250);
	check_result(suite, setxattr(path, name, "v", 1, 0), 0, "a name of 255 bytes on %s", path);
	check_equal(suite, getxattr(path, name, got, sizeof(got)), 1, "getxattr of it on %s", path);
	check_result(suite, removexattr(path, name), 0, "removexattr of it on %s", path);
	name[255] = 'n';
	check_result(suite, setxattr(path, name, "v", 1, 0), ERANGE, "a name of 256 bytes on %s",
		     path);
	check_result(suite, getxattr(path, name, got, sizeof(got)), ERANGE,
		     "getxattr of 256 bytes on %s", path);
	check_result(suite, removexattr(path, name), ERANGE, "removexattr of 256 bytes on %s",
		     path);
	check_result(suite, setxattr(path, "", "v", 1, 0), ERANGE, "an empty name on %s", path);
	check_result(suite, setxattr(path, "user.", "v", 1, 0), EINVAL, "no name but user. on %s",
		     path);
	check_result(suite, setxattr(path, "user.v", large, 65537, 0), E2BIG,
		     "a value of 65537 bytes on %s", path);
	check_result(suite, setxattr(path, "none", "v", 1, 0), EOPNOTSUPP, "no namespace on %s",
		     path);
	check_result(suite, setxattr(path, "other.a", "v", 1, 0), EOPNOTSUPP,
		     "an unknown namespace on %s", path);
	check_result(suite, getxattr(path, "other.a", got, sizeof(got)), EOPNOTSUPP,
		     "getxattr of an unknown namespace on %s", path);
	check_result(suite, setxattr(path, "USER.a", "v", 1, 0), EOPNOTSUPP,
		     "a namespace in capitals on %s", path);
	check_result(suite, setxattr(path, "user.UTF \xc3\xa9\n", "v", 1, 0), 0,
		     "a name of any bytes on %s", path);
	check_result(suite, removexattr(path, "user.UTF \xc3\xa9\n"), 0, "its removal on %s", path);
}

/* Attributes follow the file: by descriptor, by another link, through a rename, after unlink. */
static void check_follow(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR), "open");
	char got[8] = "";

	check_result(suite, fsetxattr(fd, "user.a", "1", 1, 0), 0, "fsetxattr");
	must(suite, link("f", "g"), "link");
	check_equal(suite, getxattr("g", "user.a", got, sizeof(got)), 1,
		    "getxattr by another link");
	must(suite, rename("g", "h"), "rename");
	check_equal(suite, getxattr("h", "user.a", got, sizeof(got)), 1, "getxattr after rename");
	check_result(suite, setxattr("h", "user.a", "2", 1, 0), 0, "setxattr by another link");
	check_equal(suite, fgetxattr(fd, "user.a", got, sizeof(got)), 1, "fgetxattr");
	check_equal(suite, got[0], '2', "what fgetxattr got");
	unlink("f");
	unlink("h");
	check_equal(suite, fgetxattr(fd, "user.a", got, sizeof(got)), 1, "fgetxattr after unlink");
	check_result(suite, fsetxattr(fd, "user.b", "1", 1, 0), 0, "fsetxattr after unlink");
	check_equal(suite, flistxattr(fd, NULL, 0), 14, "flistxattr after unlink");
	check_result(suite, fremovexattr(fd, "user.a"), 0, "fremovexattr after unlink");
	close(fd);
	check_result(suite, fgetxattr(fd, "user.a", got, sizeof(got)), EBADF,
		     "fgetxattr of a closed descriptor");
}

void conform_xattr(struct suite *suite)
{
	static const char *const paths[] = {"f", "d"};

	close(must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file"));
	must(suite, mkdir("d", 0755), "mkdir");
	for (int i = 0; i < 2; i++) {
		check_values(suite, paths[i]);
		check_flags(suite, paths[i]);
		check_list(suite, paths[i]);
		check_names(suite, paths[i]);
	}
	if (!suite->privileged) {
		must(suite, chmod("f", 0400), "chmod");
		check_result(suite, setxattr("f", "user.a", "1", 1, 0), EACCES,
			     "setxattr on a file of mode 0400");
		must(suite, chmod("f", 0200), "chmod");
		check_result(suite, getxattr("f", "user.a", NULL, 0), EACCES,
			     "getxattr on a file of mode 0200");
		must(suite, chmod("f", 0644), "chmod");
	}
	check_follow(suite);
	rmdir("d");
}

/* An ordinary user may not set these anywhere; root may on a local file system. */
void conform_xattr_namespaces(struct suite *suite)
{
	static const char *const names[] = {"trusted.mvagent", "security.mvagent"};
	const int refused = EOPNOTSUPP;
	char got[8];

	close(must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file"));
	for (int i = 0; i < 2; i++) {
		const char *name = names[i];

		check_result(suite, setxattr("f", name, "v", 1, 0),
			     suite->privileged ? expect_unless(suite, DEVIATION_XATTR, 0, refused)
					       : EPERM,
			     "setxattr %s", name);
		if (suite->privileged && !suite->share)
			check_equal(suite, getxattr("f", name, got, sizeof(got)), 1, "getxattr %s",
				    name);
		else if (i == 0 && !suite->privileged)
			check_result(suite, getxattr("f", name, got, sizeof(got)), ENODATA,
				     "getxattr %s", name);
		else
			check_result(suite, getxattr("f", name, got, sizeof(got)),
				     expect_unless(suite, DEVIATION_XATTR, ENODATA, refused),
				     "getxattr %s", name);
		check_result(suite, removexattr("f", name),
			     suite->privileged ? expect_unless(suite, DEVIATION_XATTR, 0, refused)
					       : EPERM,
			     "removexattr %s", name);
	}
	check_result(suite, getxattr("f", "system.posix_acl_access", got, sizeof(got)),
		     suite->share ? expect_unless(suite, DEVIATION_XATTR, ENODATA, refused)
				  : ENODATA,
		     "getxattr of an access list");
	check_equal(suite, listxattr("f", NULL, 0), 0, "names listed");
}
