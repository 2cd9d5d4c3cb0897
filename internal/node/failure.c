/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that could not start, as the job directory tells (outcome), taken by a node that waits. */
#include "node/node_priv.h"

/* A second process of a node that is ready fails, too, and nobody waits for that. Whoever does not
 * hear from above takes any word, for the last to speak is often not the one that failed first. */
static bool is_missed(struct cop_node *n, const struct cop_outcome_word *word)
{
	bool missed;

	pthread_mutex_lock(&n->lock);
	missed = word->rank < n->topo.nodes && word->rank != n->rank &&
		 (!n->ready_rank[word->rank] || word->of_tree);
	pthread_mutex_unlock(&n->lock);
	return missed;
}

bool cop_node_failure_heard(struct cop_node *n, char why[COP_OUTCOME_WHY_SIZE])
{
	struct cop_outcome_word word;

	if (!cop_outcome_look(&n->others, cop_now_ms(), &word) || !is_missed(n, &word))
		return false;
	cop_outcome_why(&word, cop_node_host(n, word.rank), why);
	/* What the root has heard it says again, as its own word: those below the node that did not
	 * start may not reach it before it ends, and the word of a root is taken back before the
	 * next start asks for it. */
	atomic_store(&n->no_news, cop_topo_root(&n->topo, 0) != n->rank);
	return true;
}
