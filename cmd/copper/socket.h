/* SPDX-License-Identifier: BSD-3-Clause */
/* socket: finds the node that a command refers to. */
#ifndef COP_CMD_SOCKET_H
#define COP_CMD_SOCKET_H

#include "base/base/base.h"

/* The local nodes of this user that a command without a mount point refers to. Inside a
 * scheduler's job these are the nodes of the job or, if it has none here, those started outside
 * any job. Outside a job they are all nodes. */
struct cop_cmd_nodes {
	unsigned count;       /* how often found was called */
	struct cop_buf other; /* the names of other jobs' nodes if count is 0 */
};
/* Calls found for each of them, as cop_ctl_list does. Returns 0 or -errno; the caller frees
 * out->other. */
int cop_cmd_nodes_find(const char *dir, struct cop_cmd_nodes *out,
	void (*found)(void *ctx, const char *key, const char *path), void *ctx);
/* Sets the message for a missing node. start: how to start one; option: how to specify one. Returns
 * -ENOENT. */
int cop_cmd_nodes_none(
	const struct cop_cmd_nodes *n, const char *start, const char *option, struct cop_err *err);

/* Finds the control socket of the node at this mount point or, if that is NULL, of the only node
 * that the command can refer to. -ENOENT if there is none; -EINVAL with their names if there are
 * several. path has COP_CTL_PATH_SIZE bytes. */
int cop_cmd_socket(
	const char *mountpoint, const char *runtime_dir, char *path, struct cop_err *err);
/* Writes the mount point of that node into out, which has PATH_MAX bytes, whether or not the node
 * replies. -ENOENT if there is none. */
int cop_cmd_only_mount(const char *runtime_dir, char *out);
/* Resolves the path of a mount point, even if its node is dead. out has PATH_MAX bytes. */
int cop_cmd_realpath(const char *mountpoint, char *out);

#endif
