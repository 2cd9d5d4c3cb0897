/* SPDX-License-Identifier: BSD-3-Clause */
/* view: a process in which a tree's mount stands in the place of its source. The process enters the
 * user namespace that the node holds (an ordinary user needs one to mount anything), gets a mount
 * namespace of its own, and puts the mount over the source: as an overlay, which keeps ioctl from
 * the node, or else by a bind; where namespaces are refused, only its variables are rewritten. What
 * other processes see does not change, and nothing is left when the process and its children have
 * ended: the namespaces end with them.
 *
 * It knows no node and asks none: which mount, which source and which user namespace are the
 * caller's to find. */
#ifndef COP_VIEW_H
#define COP_VIEW_H

#include "base/base.h"

enum cop_view_kind {
	COP_VIEW_OVERLAY,
	COP_VIEW_BIND,
	COP_VIEW_ENV, /* variables are rewritten, and the command's own path */
	COP_VIEW_BEST /* the first of these that works here */
};
/* "overlay", "bind", "env" */
const char *cop_view_name(enum cop_view_kind kind);

/* What a process is to see. Paths are absolute and real. */
struct cop_view {
	const char *source, *mountpoint;
	int user_ns; /* of cop_view_ns_open, for an ordinary user; -1: the process makes its own, in
			which tasks of other namespaces cannot reach it (ptrace, process_vm_readv)
		      */
	enum cop_view_kind kind; /* this one or none; COP_VIEW_BEST */
	const char *const
		*below; /* only these directories of the source; none: the source itself */
	unsigned belows;
	const char *const
		*direct; /* directories below the source that are to be the storage's own */
	unsigned directs;
	bool writable;            /* changes are kept privately, in an overlay */
	const char *writable_dir; /* there; NULL: in memory */
};

struct cop_view_made {
	enum cop_view_kind kind;
	char why[1024]; /* why it is no better one; "" of an overlay */
};

/* A descriptor of a new user namespace in which this user and group are themselves, and nobody is
 * yet. -ENOSYS without a sentence where the process needs none, since it may mount; else -errno
 * with one. Before the first thread. */
int cop_view_ns_open(struct cop_err *err);

/* Changes this process, which has one thread: its namespaces, its mounts, its working directory
 * where that is below the source, and for COP_VIEW_ENV its environment. After a failure the
 * process is good for nothing but its end; the sentence says why and the way out. */
int cop_view_make(const struct cop_view *v, struct cop_view_made *out, struct cop_err *err);

/* Becomes the command, as execvp(3) finds it; command[0] is rewritten in COP_VIEW_ENV. Returns the
 * exit status of a shell that could not run it, 127 or 126, and a sentence. */
int cop_view_exec(const struct cop_view *v, const struct cop_view_made *made, char **command,
	struct cop_err *err);

/* The best view that this process could get, tried out in a child that ends at once; user_ns as
 * above. 0 or -errno of the trial itself. */
int cop_view_probe(int user_ns, struct cop_view_made *out, struct cop_err *err);

/* Whether path is dir or lies below it; both without a slash at the end, but for "/". */
bool cop_view_is_below(const char *path, const char *dir);

#endif
