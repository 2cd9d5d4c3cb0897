/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MOUNT_VIEW_PRIV_H
#define COP_MOUNT_VIEW_PRIV_H

#include <limits.h>

#include "mount/view/view.h"

#define COP_VIEW_PLACES 64

/* ---- ns.c ---- */

/* What a new user namespace changes for a process that is about to execute another program. */
struct cop_view_rights {
	uint64_t bounding; /* capabilities */
	int caps;          /* how many the kernel knows */
	int securebits;
	int death_signal;
	pid_t parent;
	bool apart; /* it is in a user namespace that it was not in before */
	bool alone; /* and that namespace is one that it made itself although the node has one */
};
bool cop_view_ns_may_mount(void);
/* False if this process is certainly not in a view of the node that holds user_ns. */
bool cop_view_ns_may_have_view(int user_ns);
/* Enters the user namespace if the process may not mount without it, and a mount namespace that
 * receives the machine's mounts and passes on none of its own. -ENOTRECOVERABLE: the process is
 * outside of its root directory, and must end. */
int cop_view_ns_enter(int user_ns, struct cop_view_rights *rights, struct cop_err *err);
/* Call it when everything is mounted: gives the process back exactly the rights that it had
 * before. */
int cop_view_ns_restore(const struct cop_view_rights *rights, struct cop_err *err);

/* ---- place.c ---- */

/* A directory of the mount and where it is shown. */
struct cop_view_place {
	/* Detached copies of the mount and of the directory that keeps changes (-1: in memory).
	 * They give access even to what is covered by then. */
	int tree, changes;
	/* from: in the bare mount, for messages; via: where its links are as in the source. */
	char from[PATH_MAX], via[PATH_MAX], at[PATH_MAX];
};
/* Each mounts one place; on failure it unmounts what it has mounted. */
int cop_view_place_overlay(
	const struct cop_view *v, const struct cop_view_place *p, struct cop_err *err);
int cop_view_place_bind(const struct cop_view_place *p, struct cop_err *err);
/* A detached copy of everything mounted at and below path; -errno. */
int cop_view_tree_open(const char *path);
int cop_view_tree_put(int tree, const char *at);

/* ---- env.c ---- */

/* Rewrites the variables of this process. */
int cop_view_env(const struct cop_view *v, struct cop_err *err);
/* The path through the mount to one below the source; "" for other paths. */
void cop_view_env_path(const struct cop_view *v, const char *path, char out[PATH_MAX]);
/* Sets PYTHONHOME if the command belongs to a virtual environment, which finds its base by an
 * absolute path. */
void cop_view_env_python(const struct cop_view *v, const char *command);

#endif
