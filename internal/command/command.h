/* SPDX-License-Identifier: BSD-3-Clause */
/* command: what a user can ask of a running node, one line on its control socket, and the sentences
 * and exit statuses that come back:
 *
 *     stats [all] | table [all] | stop [local] | snapshot [local] | reset [all] | sizes | process |
 *     view | invalidate PATH
 *
 * Most of them are operations on the tree (treeop); what this node says of itself comes from
 * struct cop_command_ops. It refuses lines that it does not know, and all of them while the node
 * ends. It has no socket and no thread of its own. */
#ifndef COP_COMMAND_H
#define COP_COMMAND_H

#include <sys/types.h>

#include "base/base.h"
#include "conf/conf.h"
#include "ctl/ctl.h"
#include "defer/defer.h"
#include "gate/gate.h"
#include "topo/topo.h"
#include "treeop/treeop.h"

/* ctx is that of the configuration. */
struct cop_command_ops {
	/* Any thread. What this node says of itself: a JSON object, and lines for people. */
	void (*status)(void *ctx, struct cop_buf *out);
	void (*table)(void *ctx, struct cop_buf *out);
	/* Any thread. Where copper run finds this node's tree: the source, and a descriptor of the
	 * user namespace of its views, which stays the node's (-1: they need none). False while
	 * the tree is not ready. */
	bool (*view)(void *ctx, const char **source, int *user_ns);
	/* Main thread. What its cache holds. */
	void (*sizes)(void *ctx, struct cop_buf *out);
	/* Main thread. A stop of the whole tree has this sum, and no root that could write it. 0;
	 * else files could not be written, and err has a sentence. */
	int (*write_late)(void *ctx, const struct cop_treeop_sum *sum, struct cop_err *err);
	/* Any thread. A stop was answered: cop_command_stops has changed. */
	void (*wake)(void *ctx);
};

struct cop_command_conf {
	struct cop_topo topo;
	uint32_t rank;
	const char *host; /* of this node */
	const char *tree; /* what only the nodes of one tree have in common; "-" of a node alone */
	pid_t last_pid;   /* the process with whose end all of this node is gone */
	const char *job_dir; /* absolute, or "" */
	bool counts;         /* the job was started with a profile */
	enum cop_conf_rank_files rank_files;
	const struct cop_command_ops *ops;
	void *ctx;
	struct cop_treeop *treeop;
	struct cop_gate *gate;
	struct cop_defer *deferred;
};

struct cop_command;

/* NULL: out of memory. What conf points to outlives it. */
struct cop_command *cop_command_new(const struct cop_command_conf *conf);
/* When no command can come any more, and the gate was drained. NULL is fine. */
void cop_command_free(struct cop_command *c);
/* A cop_ctl_handler, whose ctx is the cop_command. The reply's status is 0 or -errno. */
void cop_command_handle(void *ctx, struct cop_ctl_conn *conn, char *line);
/* Any thread. Stops that came here and are not answered. */
unsigned cop_command_stops(const struct cop_command *c);

#endif
