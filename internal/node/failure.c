/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that cannot start tells the others, who else would wait for it until the time is up. It
 * may be that it has no network, or does not even get so far; so it says so in the job directory.
 * The root looks there, and whoever hears nothing from above; all others hear it from the root, as
 * the answer to their question for the go. When the tree is ready the file goes. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 1000

void cop_node_failure_begin(struct cop_node *n, const char *log_path)
{
	n->began_ns = cop_job_file_time(log_path);
	/* Without a log of its own; this machine's clock may be another than the file system's. */
	if (!n->began_ns)
		n->began_ns = cop_job_dir_time(n->job_dir);
	n->failure_looked_ms = cop_now_ms();
	cop_job_failure_clear(n->job_dir, n->rank);
}

void cop_node_failure_tell(struct cop_node *n, const struct cop_err *err)
{
	char text[COP_NODE_WHY_SIZE];

	/* Only a node that had started and waited for the others is interrupted. */
	if (err->code == EINTR)
		snprintf(text, sizeof(text), COP_NODE_NOT_READY "%.250s (rank %" PRIu32 ") %.700s",
			cop_node_host(n, n->rank), n->rank, err->text);
	else
		snprintf(text, sizeof(text), "%s", err->text);
	if (n->hosts.count > 1 && n->conf->job_dir && !atomic_load(&n->no_news))
		cop_job_failure_write(n->conf->job_dir, n->rank, text);
}

/* That the tree is not ready is said by a node that was otherwise well. */
static const char *of_the_tree(const char *text)
{
	size_t len = strlen(COP_NODE_NOT_READY);

	return strncmp(text, COP_NODE_NOT_READY, len) == 0 ? text + len : NULL;
}

/* A second process of a node that is ready fails, too, and nobody waits for that. Whoever does not
 * hear from above takes any word, for the last to speak is often not the one that failed first. */
static bool is_missed(struct cop_node *n, uint32_t rank, const char *text)
{
	bool missed;

	pthread_mutex_lock(&n->lock);
	missed = rank < n->topo.nodes && rank != n->rank &&
		 (!n->ready_rank[rank] || of_the_tree(text));
	pthread_mutex_unlock(&n->lock);
	return missed;
}

bool cop_node_failure_heard(struct cop_node *n, char why[COP_NODE_WHY_SIZE])
{
	char text[COP_NODE_WHY_SIZE - 300];
	uint64_t now = cop_now_ms();
	uint32_t rank;

	if (!n->began_ns || now - n->failure_looked_ms < LOOK_MS)
		return false;
	n->failure_looked_ms = now;
	if (!cop_job_failure_read(n->job_dir, n->began_ns, &rank, text, sizeof(text)) ||
		!is_missed(n, rank, text))
		return false;
	if (of_the_tree(text))
		snprintf(why, COP_NODE_WHY_SIZE, "%s", of_the_tree(text));
	else
		snprintf(why, COP_NODE_WHY_SIZE, "%.250s (rank %" PRIu32 ") did not start: %s",
			cop_node_host(n, rank), rank, text);
	/* What the root has heard it says again, as its own word: those below the node that did not
	 * start may not reach it before it ends, and the word of a root is taken back before the
	 * next start asks for it. */
	atomic_store(&n->no_news, cop_topo_root(&n->topo, 0) != n->rank);
	return true;
}
