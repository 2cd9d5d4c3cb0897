/* SPDX-License-Identifier: BSD-3-Clause */
/* view: puts a tree's mount in the place of its source, for one process. The process enters the
 * user namespace that the node holds (an ordinary user needs one to mount anything), makes its own
 * mount namespace, and mounts the tree over the source: as an overlay, which keeps ioctl requests
 * from the node, or else as a bind. If namespaces are refused, only its variables are rewritten.
 * Other processes are not affected, and nothing remains when the process and its children have
 * ended, because the namespaces end with them.
 *
 * It knows no node and contacts none: the caller finds the mount, the source and the user
 * namespace. */
#ifndef COP_MOUNT_VIEW_H
#define COP_MOUNT_VIEW_H

#include "base/base/base.h"

enum cop_view_kind {
	COP_VIEW_OVERLAY,
	COP_VIEW_BIND,
	COP_VIEW_ENV, /* rewrites variables and the command's own path */
	COP_VIEW_BEST /* the first of these that works */
};
/* "overlay", "bind", "env" */
const char *cop_view_name(enum cop_view_kind kind);

/* The view of a process. Paths are absolute and real. */
struct cop_view {
	const char *source, *mountpoint;
	int user_ns; /* from cop_view_ns_open, for an ordinary user; -1: the process makes its own,
			and tasks in other namespaces cannot reach it (ptrace, process_vm_readv) */
	enum cop_view_kind kind; /* exactly this kind; or COP_VIEW_BEST */
	const char *const
		*below; /* show only these directories of the source; none: the source itself */
	unsigned belows;
	const char *const *direct; /* directories below the source that stay the storage's own */
	unsigned directs;
	bool writable;            /* allow private changes, kept in an overlay */
	const char *writable_dir; /* where changes are kept; NULL: in memory */
};

struct cop_view_made {
	enum cop_view_kind kind;
	bool alone; /* the process is in a user namespace that no other command of the node enters,
		       because it was in another namespace before: they cannot reach each other */
	bool loses_groups; /* of cop_view_probe: supplementary groups of this user are not mapped */
	char why[1024];    /* why no better view was possible; "" for an overlay */
};

/* Opens a descriptor of a new, empty user namespace that maps this user and group to themselves.
 * -1: the process needs none because it may mount, or it can have none, and the log says why. Call
 * it before the first thread. */
int cop_view_ns_open(void);

/* Changes this process, which must have one thread: its namespaces, its mounts, its working
 * directory if that is below the source, and for COP_VIEW_ENV its environment. After a failure the
 * process must exit; the sentence says why and what to do. */
int cop_view_make(const struct cop_view *v, struct cop_view_made *out, struct cop_err *err);

/* Executes the command, which is found as by execvp(3); with COP_VIEW_ENV command[0] is rewritten.
 * Returns only on failure: the exit status that a shell would use, 127 or 126, with a sentence. */
int cop_view_exec(const struct cop_view *v, const struct cop_view_made *made, char **command,
	struct cop_err *err);

/* Finds the best view that this process can get, by trying in a child that exits at once; user_ns
 * as above. 0, or -errno if the trial itself failed. */
int cop_view_probe(int user_ns, struct cop_view_made *out, struct cop_err *err);

/* Whether path is dir or below it; both without a trailing slash, except "/". */
bool cop_view_is_below(const char *path, const char *dir);

#endif
