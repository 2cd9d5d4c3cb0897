/* SPDX-License-Identifier: BSD-3-Clause */
/* socket: finds the node that a command is meant for. */
#ifndef COP_CMD_SOCKET_H
#define COP_CMD_SOCKET_H

#include "base/base/base.h"

/* The control socket of the node at this mount point, or of the only node of this user if it is
 * NULL. -ENOENT if there is none; -EINVAL, with their names, if there are several. path has
 * COP_CTL_PATH_SIZE bytes. */
int cop_cmd_socket(
	const char *mountpoint, const char *runtime_dir, char *path, struct cop_err *err);
/* Writes the mount point of the only node that has a socket here, whether or not it answers, into
 * out of PATH_MAX bytes. -ENOENT. */
int cop_cmd_only_mount(const char *runtime_dir, char *out);
/* The real path of a mount point, even if its node is dead. out has PATH_MAX bytes. */
int cop_cmd_realpath(const char *mountpoint, char *out);

#endif
