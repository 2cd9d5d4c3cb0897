/* SPDX-License-Identifier: BSD-3-Clause */
/* view: mounts a tree over its own source, for one process. The process enters the user namespace
 * that the node holds (an ordinary user needs one to mount anything), creates its own mount
 * namespace, and mounts the tree over the source: as an overlay, which keeps ioctl requests away
 * from the node, or else as a bind mount. If the kernel refuses namespaces, only its environment
 * variables are rewritten. Other processes are not affected, and the namespaces end with the
 * process and its children.
 *
 * It does not contact the node: the caller supplies the mount, the source and the user
 * namespace. */
#ifndef COP_MOUNT_VIEW_H
#define COP_MOUNT_VIEW_H

#include "base/base/base.h"

enum cop_view_kind {
	COP_VIEW_OVERLAY,
	COP_VIEW_BIND,
	COP_VIEW_ENV, /* rewrites variables and the command's own path */
	COP_VIEW_BEST /* the first of the above that works */
};
/* "overlay", "bind", "env" */
const char *cop_view_name(enum cop_view_kind kind);

/* The view of a process. Paths are absolute and real. */
struct cop_view {
	const char *source, *mountpoint;
	int user_ns; /* from cop_view_ns_open, for an ordinary user; -1: the process creates its
			own, and tasks in other namespaces cannot reach it (ptrace,
			process_vm_readv) */
	enum cop_view_kind kind; /* exactly this kind, or COP_VIEW_BEST */
	const char *const
		*below; /* show only these directories of the source; none: the whole source */
	unsigned belows;
	const char *const
		*direct; /* directories below the source to show directly from the storage */
	unsigned directs;
	bool writable;            /* allow private changes, which an overlay keeps */
	const char *writable_dir; /* directory for changes; NULL: in memory */
};

struct cop_view_made {
	enum cop_view_kind kind;
	bool alone; /* the process does not share a user namespace with the node's other commands,
		       because it was in a different one before; they cannot reach each other */
	bool loses_groups; /* from cop_view_probe: some supplementary groups are not mapped
			    */
	char why[1024];    /* why no better view is possible; "" for an overlay */
};

/* Opens a descriptor of a new, empty user namespace that maps this user and group to themselves.
 * -1: not needed, because the process may mount, or impossible, with the reason in the log. Call it
 * before the first thread. */
int cop_view_ns_open(void);

/* Changes this process, which must be single-threaded: its namespaces, its mounts, its working
 * directory if that is below the source, and for COP_VIEW_ENV its environment. After a failure the
 * process must exit; err has the reason and the remedy. */
int cop_view_make(const struct cop_view *v, struct cop_view_made *out, struct cop_err *err);

/* Executes the command, found as execvp(3) does; with COP_VIEW_ENV command[0] is rewritten. Returns
 * only on failure: 127 or 126, as a shell would exit, with a sentence. */
int cop_view_exec(const struct cop_view *v, const struct cop_view_made *made, char **command,
	struct cop_err *err);

/* Determines the best view possible for this process by trying in a short-lived child; user_ns as
 * above. 0, or -errno if the trial itself failed. */
int cop_view_probe(int user_ns, struct cop_view_made *out, struct cop_err *err);

/* Whether path is dir or below it; both without a trailing slash, except "/". */
bool cop_view_is_below(const char *path, const char *dir);

#endif
