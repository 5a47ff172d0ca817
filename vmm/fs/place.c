/* SPDX-License-Identifier: Apache-2.0 */
/* Names of requests, checked, with the directories they are in. */
#include <errno.h>

#include "vmm/fs/operation.h"

int fs_take_place(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
		  struct fs_place *place)
{
	int error;

	if (wire_take_string(reader, &place->name))
		return -EINVAL;
	error = path_check_name(place->name);
	if (error)
		return error;
	place->fd = fs_node_fd(server, node_id, S_IFDIR, &place->directory);
	return place->fd < 0 ? place->fd : 0;
}

int fs_settle_places(struct fs_server *server, struct fs_place *first, struct fs_place *second)
{
	first->fd = path_inode_fd(&server->inodes, first->directory);
	if (first->fd < 0 || !second)
		return first->fd < 0 ? first->fd : 0;
	second->fd = path_inode_fd(&server->inodes, second->directory);
	if (second->fd < 0)
		return second->fd;
	/* A share so deep, and so few descriptors, that the two cannot be open at once. */
	return first->directory->fd < 0 ? -ENFILE : 0;
}

int fs_begin_new(struct fs_server *server, struct fs_place *place, mode_t type, struct fs_new *new)
{
	int error = guard_make(server, place->directory, place->fd, place->name, type);

	new->name = place->name;
	if (error || !server->layer)
		return error;
	return layer_begin_new(server, place, &new->layer, &new->name);
}

int fs_finish_new(struct fs_server *server, const struct fs_place *place, const struct fs_new *new)
{
	int error = server->layer ? layer_finish_new(server, place, &new->layer) : 0;

	if (!error)
		journal_made(server, place);
	if (!error)
		guard_note_made(server, place->directory, place->fd, place->name);
	return error;
}

int fs_take_last_place(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
		       struct fs_place *place)
{
	int error = fs_take_place(server, reader, node_id, place);

	return !error && !wire_at_end(reader) ? -EINVAL : error;
}
