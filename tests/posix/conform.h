/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of the conformance suite. Each runs in a process and an empty directory of its own. */
#ifndef TESTS_POSIX_CONFORM_H
#define TESTS_POSIX_CONFORM_H

#include "tests/posix/check.h"

typedef void conform_group(struct suite *suite);

conform_group conform_open_flags, conform_open_other;          /* conform_open.c */
conform_group conform_path_operations, conform_trailing_slash; /* conform_path.c */
conform_group conform_create_remove;                           /* conform_create.c */
conform_group conform_rename;                                  /* conform_rename.c */
conform_group conform_link, conform_symlink;                   /* conform_link.c */
conform_group conform_names;                                   /* conform_names.c */
conform_group conform_mode, conform_umask;                     /* conform_mode.c */
conform_group conform_permission, conform_directory_permission, conform_other_users;
/* conform_permission.c */
conform_group conform_owner;                                     /* conform_owner.c */
conform_group conform_times, conform_set_times;                  /* conform_times.c */
conform_group conform_data, conform_append, conform_descriptors; /* conform_data.c */
conform_group conform_size, conform_holes, conform_fallocate;    /* conform_size.c */
conform_group conform_copy;                                      /* conform_copy.c */
conform_group conform_map;                                       /* conform_map.c */
conform_group conform_whole;                                     /* conform_whole.c */
conform_group conform_listing, conform_large_listing;            /* conform_listing.c */
conform_group conform_xattr, conform_xattr_namespaces;           /* conform_xattr.c */
conform_group conform_locks, conform_posix_locks;                /* conform_locks.c */
conform_group conform_special, conform_programs;                 /* conform_special.c */
conform_group conform_unlinked;                                  /* conform_unlinked.c */

#endif
