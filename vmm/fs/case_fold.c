/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/case_fold.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/fs/path.h"

/* From statfs(2), and Linux's fs/smb and fs/fuse: not all headers have them. */
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342U
#endif
#define EXFAT_MAGIC 0x2011bab0U
#define NTFS_MAGIC  0x5346544eU
#define NTFS3_MAGIC 0x7366746eU
#define CIFS_MAGIC  0xff534d42U
#define SMB2_MAGIC  0xfe534d42U
#define FUSE_MAGIC  0x65735546U

/* Letters and marks of scripts that have nothing in common with ASCII, nor are ignored: Unicode's
 * Latin-1 Supplement to Thai, Japanese, Chinese and Korean, without the few that fold into ASCII.
 */
static const struct {
	uint32_t first, last;
} distinct[] = {
	{0x00c0, 0x00de}, {0x00e0, 0x012f}, {0x0132, 0x0148}, {0x014a, 0x017e}, {0x0300, 0x034e},
	{0x0386, 0x03ff}, {0x0400, 0x052f}, {0x0531, 0x0556}, {0x0561, 0x0586}, {0x05d0, 0x05ea},
	{0x0621, 0x064a}, {0x0905, 0x0939}, {0x0e01, 0x0e30}, {0x3041, 0x3096}, {0x30a1, 0x30fa},
	{0x4e00, 0x9fff}, {0xac00, 0xd7a3},
};

static bool is_distinct(uint32_t character)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(distinct); i++)
		if (character >= distinct[i].first && character <= distinct[i].last)
			return true;
	return false;
}

/* Takes one character of UTF-8 that is not ASCII. Its length, or 0: it is none. */
static size_t take_character(const unsigned char *at, uint32_t *character)
{
	size_t length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;

	if (*at < 0xc2 || *at > 0xf4)
		return 0;
	*character = *at & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0; /* the end of the name, too */
		*character = *character << 6 | (at[i] & 0x3f);
	}
	return length;
}

static bool may_be_ascii(const char *name)
{
	const unsigned char *at = (const unsigned char *)name;

	while (*at) {
		uint32_t character;
		size_t length = 1;

		if (*at >= 0x80) {
			length = take_character(at, &character);
			if (!length || !is_distinct(character))
				return true;
		}
		at += length;
	}
	return false;
}

/* "~" and a digit, or a dot or space at the end. */
static bool may_be_dos(const char *name)
{
	const char *tilde = strchr(name, '~');
	size_t length = strlen(name);

	for (; tilde; tilde = strchr(tilde + 1, '~'))
		if (tilde[1] >= '0' && tilde[1] <= '9')
			return true;
	return length && (name[length - 1] == '.' || name[length - 1] == ' ');
}

unsigned int case_fold_of_name(const char *name)
{
	return (may_be_ascii(name) ? CASE_FOLD_UNICODE : 0U) |
	       (may_be_dos(name) ? CASE_FOLD_DOS : 0U) |
	       (strchr(name, ':') ? CASE_FOLD_STREAM : 0U);
}

/* chattr(1) +F; a directory that does not know the question has no such flag. */
static unsigned int ask_flags(int proc_fd, int fd)
{
	FD_CLEANUP int opened = path_reopen(proc_fd, fd, O_RDONLY | O_DIRECTORY);
	int flags = 0;

	if (opened < 0)
		return CASE_FOLD_UNICODE;
	return ioctl(opened, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL)
		       ? CASE_FOLD_UNICODE
		       : 0;
}

unsigned int case_fold_of_directory(int proc_fd, int fd)
{
	struct statfs status;

	if (fd < 0 || fstatfs(fd, &status))
		return CASE_FOLD_UNICODE | CASE_FOLD_DOS | CASE_FOLD_STREAM;
	switch ((uint32_t)status.f_type) {
	case BTRFS_SUPER_MAGIC:
	case XFS_SUPER_MAGIC: /* ASCII alone, if at all */
		return 0;
	case EXT4_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return ask_flags(proc_fd, fd);
	case MSDOS_SUPER_MAGIC:
	case EXFAT_MAGIC:
	case V9FS_MAGIC: /* Windows may be behind it */
	case FUSE_MAGIC:
		return CASE_FOLD_UNICODE | CASE_FOLD_DOS;
	case NTFS_MAGIC:
	case NTFS3_MAGIC:
	case SMB_SUPER_MAGIC:
	case CIFS_MAGIC:
	case SMB2_MAGIC:
		return CASE_FOLD_UNICODE | CASE_FOLD_DOS | CASE_FOLD_STREAM;
	default:
		return CASE_FOLD_UNICODE;
	}
}
