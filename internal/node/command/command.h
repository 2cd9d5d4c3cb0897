/* SPDX-License-Identifier: BSD-3-Clause */
/* command: the requests that a user can send to a running node, one line on its control socket, and
 * the sentences and exit statuses of the replies:
 *
 *     stats [all] | table [all] | watch [all] | lines | stop [local] | snapshot [local] |
 *     reset [all] | sizes | process | view [KEY] | offer NUMBER | release | invalidate PATH
 *
 * "view" is answered with the source and, if views need one, a descriptor of the user namespace.
 * With a KEY (16 hexadecimal digits) it asks for the view of an earlier command, too: the answer is
 * "NUMBER\nSOURCE", with two more descriptors if there is such a view, or else the number under
 * which the command may offer its own (0: it may not). "offer" brings the descriptors of a finished
 * view (spare/spare.h), and its client waits for no answer.
 *
 * Most of them are operations on the tree (treeop); the status of this node comes from struct
 * cop_command_ops. It refuses lines that it does not know, and all lines while the node ends. It
 * has no thread of its own. */
#ifndef COP_NODE_COMMAND_H
#define COP_NODE_COMMAND_H

#include <sys/types.h>

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "node/ctl/ctl.h"
#include "base/loop/loop.h"
#include "node/place/place.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* What copper run needs for this node's tree. */
struct cop_command_view {
	const char *source;
	/* The user namespace of this node's views, unless they need none; after it, if an earlier
	 * command has made the same view, the mount namespace of that and its root. The caller
	 * closes them. */
	struct cop_ctl_fds fds;
	uint64_t offer; /* the number for an offer; 0: none is wanted */
};

/* ctx comes from the configuration. */
struct cop_command_ops {
	/* Any thread. The status of this node: a JSON object, lines for people, and the counters
	 * as cop_stats_lines has them before the head of these lines. */
	void (*status)(void *ctx, struct cop_buf *out);
	void (*table)(void *ctx, struct cop_buf *out);
	void (*watch)(void *ctx, struct cop_buf *out);
	/* Any thread. key 0: no view of another command is wanted. False while the tree is not
	 * ready. */
	bool (*view)(void *ctx, uint64_t key, struct cop_command_view *out);
	/* Any thread. A command has made a view and offers it; owns the descriptors. 0, or -errno
	 * if it is not kept. */
	int (*offer)(void *ctx, uint64_t number, struct cop_ctl_fds *fds);
	/* Main thread. Lists what the node's cache holds. */
	void (*sizes)(void *ctx, struct cop_buf *out);
	/* Main thread. Writes the sum of a stop of the whole tree whose root is dead, and adds to
	 * its text what the root would have. 0; else files could not be written, and err has a
	 * sentence. */
	int (*write_late)(void *ctx, struct cop_op_sum *sum, struct cop_err *err);
	/* Any thread. A stop was answered, so cop_command_stops has changed. */
	void (*wake)(void *ctx);
};

struct cop_command_conf {
	struct cop_topo topo;
	uint32_t rank;
	const char *host; /* of this node */
	const char *tree; /* a text that only the nodes of one tree share; "-" for a node alone */
	pid_t last_pid;   /* the last process of this node to end */
	const char *job_dir; /* absolute, or "" */
	bool counts;         /* the job was started with a profile */
	enum cop_conf_rank_files rank_files;
	const struct cop_command_ops *ops;
	void *ctx;
	struct cop_op *treeop;
	struct cop_gate *gate;
	struct cop_defer *deferred;
};

struct cop_command;

/* NULL: out of memory. What conf points to must outlive the object. */
struct cop_command *cop_command_new(const struct cop_command_conf *conf);
/* Call it when no more commands can arrive and the gate is drained. NULL is fine. */
void cop_command_free(struct cop_command *c);
/* Main thread. Opens the node's control socket for these commands, and writes a note about the tree
 * and the mount beside it, for the process that finds the socket of a killed node. 0, or -errno
 * with a sentence. cop_command_stop_listening sends the pending replies and closes the socket; NULL
 * is fine. */
int cop_command_listen(struct cop_command *c, const struct cop_ctl_place *at,
	const struct cop_place *mounted_at, struct cop_err *err);
void cop_command_stop_listening(struct cop_command *c);
/* A cop_ctl_handler whose ctx is the cop_command. The reply's status is 0 or -errno. */
void cop_command_handle(void *ctx, struct cop_ctl_conn *conn, char *line);
/* Any thread. The number of stops that arrived here and are not answered yet. */
unsigned cop_command_stops(const struct cop_command *c);

#endif
