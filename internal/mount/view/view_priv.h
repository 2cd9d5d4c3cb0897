/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MOUNT_VIEW_PRIV_H
#define COP_MOUNT_VIEW_PRIV_H

#include <limits.h>

#include "mount/view/view.h"

#define COP_VIEW_PLACES 64

/* ---- ns.c ---- */

/* What a new user namespace changes for a process before it executes another program. */
struct cop_view_rights {
	uint64_t bounding; /* capabilities */
	int caps;          /* number of capabilities known to the kernel */
	int securebits;
	int death_signal;
	pid_t parent;
	bool apart; /* the process is in a new user namespace */
	bool alone; /* it created that namespace itself although the node has one */
};
bool cop_view_ns_may_mount(void);
/* False if this process is certainly not in a view of the node with user_ns. */
bool cop_view_ns_may_have_view(int user_ns);
/* Enters the user namespace if the process may not mount without it, and a new mount namespace that
 * receives the machine's mounts and propagates none of its own. -ENOTRECOVERABLE: the process is
 * outside its root directory and must exit. */
int cop_view_ns_enter(int user_ns, struct cop_view_rights *rights, struct cop_err *err);
/* Call it after all mounts: restores exactly the rights the process had before. */
int cop_view_ns_restore(const struct cop_view_rights *rights, struct cop_err *err);

/* ---- place.c ---- */

/* A directory of the mount and where it is shown. */
struct cop_view_place {
	/* Detached copies of the mount and of the directory for changes (-1: in memory). They stay
	 * accessible even after other mounts cover the originals. */
	int tree, changes;
	/* from: the path in the bare mount, for messages; via: the path below the root whose links
	 * are as in the source; at: where to mount it. */
	char from[PATH_MAX], via[PATH_MAX], at[PATH_MAX];
};
/* Each mounts one place, and undoes its mounts on failure. */
int cop_view_place_overlay(
	const struct cop_view *v, const struct cop_view_place *p, struct cop_err *err);
int cop_view_place_bind(const struct cop_view_place *p, struct cop_err *err);
/* A detached copy of all mounts at and below path; -errno. */
int cop_view_tree_open(const char *path);
int cop_view_tree_put(int tree, const char *at);

/* ---- env.c ---- */

/* Rewrites the variables of this process. */
int cop_view_env(const struct cop_view *v, struct cop_err *err);
/* Translates a path below the source to the same path in the mount; other paths give "". */
void cop_view_env_path(const struct cop_view *v, const char *path, char out[PATH_MAX]);
/* Sets PYTHONHOME if the command belongs to a virtual environment, which locates its base by an
 * absolute path. */
void cop_view_env_python(const struct cop_view *v, const char *command);

#endif
