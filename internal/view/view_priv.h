/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_VIEW_PRIV_H
#define COP_VIEW_PRIV_H

#include <limits.h>

#include "view/view.h"

#define COP_VIEW_PLACES 64

/* ---- ns.c ---- */

/* What a new user namespace changes of a process that is to become another program. */
struct cop_view_rights {
	uint64_t bounding; /* capabilities */
	int caps;          /* that the kernel knows */
	int securebits;
	int death_signal;
	bool apart; /* it is in a user namespace that it was not in before */
};
/* Enters the user namespace if the process may not mount without, and gets a mount namespace that
 * hears of the machine's mounts and tells nobody of its own. */
int cop_view_ns_enter(int user_ns, struct cop_view_rights *rights, struct cop_err *err);
/* Nothing more is to be mounted: the process may again do what it could do before, and no more. */
int cop_view_ns_settle(const struct cop_view_rights *rights, struct cop_err *err);

/* ---- place.c ---- */

/* A directory of the mount and where it is to be seen. */
struct cop_view_place {
	/* Detached copies, which also reach what is covered by then: of the mount, and of the
	 * directory that keeps changes (-1: memory does). */
	int tree, changes;
	char from[PATH_MAX], at[PATH_MAX];
};
/* Each puts one place; what it has mounted before a failure it takes away. */
int cop_view_place_overlay(
	const struct cop_view *v, const struct cop_view_place *p, struct cop_err *err);
int cop_view_place_bind(const struct cop_view_place *p, struct cop_err *err);
/* A detached copy of what is mounted at path and below; -errno. */
int cop_view_tree_open(const char *path);
int cop_view_tree_put(int tree, const char *at);

/* ---- env.c ---- */

/* Rewrites the variables of this process. */
int cop_view_env(const struct cop_view *v, struct cop_err *err);
/* The path through the mount of one below the source, or "" */
void cop_view_env_path(const struct cop_view *v, const char *path, char out[PATH_MAX]);
/* A virtual environment finds its base by an absolute path: PYTHONHOME, where the command is of
 * one. */
void cop_view_env_python(const struct cop_view *v, const char *command);

#endif
