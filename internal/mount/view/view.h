/* SPDX-License-Identifier: BSD-3-Clause */
/* view: puts a tree's mount in the place of its source, for one process. The process enters the
 * user namespace that the node holds (an ordinary user needs one to mount anything), creates its
 * own mount namespace, and mounts the tree over the source: as an overlay, which keeps ioctl
 * requests away from the node, or else as a bind mount. If namespaces are refused, only its
 * variables are rewritten. Other processes are not affected, and the namespaces end with the
 * process and its children.
 *
 * It does not contact the node: the caller finds the mount, the source and the user namespace. */
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
	int user_ns; /* from cop_view_ns_open, for an ordinary user; -1: the process creates its
			own, unreachable from tasks in other namespaces (ptrace, process_vm_readv)
		      */
	enum cop_view_kind kind; /* exactly this kind; or COP_VIEW_BEST */
	const char *const
		*below; /* show only these directories of the source; none: the source itself */
	unsigned belows;
	const char *const
		*direct; /* directories below the source shown directly from the storage */
	unsigned directs;
	bool writable;            /* allow private changes, kept in an overlay */
	const char *writable_dir; /* directory for changes; NULL: in memory */
};

struct cop_view_made {
	enum cop_view_kind kind;
	bool alone; /* the process is in a user namespace not shared with the node's other commands,
		       because it was in another namespace before: they cannot reach each other */
	bool loses_groups; /* from cop_view_probe: some supplementary groups are not mapped
			    */
	char why[1024];    /* why no better view is possible; "" for an overlay */
};

/* Opens a descriptor of a new, empty user namespace that maps this user and group to themselves.
 * -1: not needed because the process may mount, or impossible, with the reason in the log. Call
 * it before the first thread. */
int cop_view_ns_open(void);

/* Changes this process, which must be single-threaded: its namespaces, its mounts, its working
 * directory if that is below the source, and for COP_VIEW_ENV its environment. After a failure
 * the process must exit; the sentence has the reason and the remedy. */
int cop_view_make(const struct cop_view *v, struct cop_view_made *out, struct cop_err *err);

/* Executes the command, searched as by execvp(3); with COP_VIEW_ENV command[0] is rewritten.
 * Returns only on failure: a shell's exit status, 127 or 126, with a sentence. */
int cop_view_exec(const struct cop_view *v, const struct cop_view_made *made, char **command,
	struct cop_err *err);

/* Determines the best possible view for this process with a trial in a short-lived child;
 * user_ns as above. 0, or -errno if the trial itself failed. */
int cop_view_probe(int user_ns, struct cop_view_made *out, struct cop_err *err);

/* Whether path is dir or below it; both without a trailing slash, except "/". */
bool cop_view_is_below(const char *path, const char *dir);

#endif
