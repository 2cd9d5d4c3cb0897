/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of failure in the job directory (outcome). The root looks for them, and whoever hears
 * nothing from upstream; all others hear it from the root, as the end of the barrier. When the tree
 * is ready the words go. */
#include "join/join_priv.h"

void cop_join_use_dir(struct cop_join *j, const char *job_dir, const char *log_path)
{
	j->job_dir = job_dir;
	cop_outcome_begin(&j->others, job_dir, j->conf.rank, log_path);
}

/* A second process of a node that is ready fails, too, and nobody waits for that. Whoever does not
 * hear from upstream takes any word, for the last to speak is often not the one that failed first.
 */
static bool is_missed(struct cop_join *j, const struct cop_outcome_word *word)
{
	bool missed;

	pthread_mutex_lock(&j->lock);
	missed = word->rank < j->conf.topo.nodes && word->rank != j->conf.rank &&
		 (!j->root || !j->arrival[word->rank].ready || word->of_tree);
	pthread_mutex_unlock(&j->lock);
	return missed;
}

bool cop_join_failure_heard(struct cop_join *j, uint64_t now_ms, char why[COP_OUTCOME_WHY_SIZE])
{
	struct cop_outcome_word word;

	if (!cop_outcome_look(&j->others, now_ms, &word) || !is_missed(j, &word))
		return false;
	cop_outcome_why(&word, cop_join_host(j, word.rank), why);
	/* What the root has heard it says again, as its own word: those below the node that did not
	 * start may not reach it before it ends, and the word of a root is taken back before the
	 * next start asks for it. */
	pthread_mutex_lock(&j->lock);
	if (j->end == END_OPEN)
		j->secondhand = !j->root;
	pthread_mutex_unlock(&j->lock);
	return true;
}
