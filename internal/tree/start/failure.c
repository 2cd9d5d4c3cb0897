/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure notes in the job directory (startnote). The root reads them, and so does a rank that
 * receives no answer from upstream; all other ranks receive the reason from the root with the end
 * of the barrier. The notes are removed when the tree is ready. */
#include "tree/start/start_priv.h"

void cop_start_use_dir(struct cop_start *j, const char *job_dir, const char *log_path)
{
	j->job_dir = job_dir;
	cop_startnote_begin(&j->others, job_dir, j->conf.rank, log_path);
}

void cop_start_hear_in(struct cop_start *j, const char *dir)
{
	cop_startnote_begin_in(&j->others, dir);
}

/* The note of a second process on a ready node is ignored: the tree does not need that process. A
 * rank that receives no answer from upstream accepts any note, because the last node to write one
 * is often not the one that failed first. */
static bool is_missed(struct cop_start *j, const struct cop_startnote_word *word)
{
	bool missed;

	pthread_mutex_lock(&j->lock);
	missed = word->rank < j->conf.topo.nodes && word->rank != j->conf.rank &&
		 (!j->root || !j->arrival[word->rank].ready || word->of_tree);
	pthread_mutex_unlock(&j->lock);
	return missed;
}

/* The root may have given up because this rank could not reach it. Called with the lock held. */
static void add_blocked(const struct cop_start *j, char why[COP_STARTNOTE_WHY_SIZE])
{
	size_t len = strlen(why);

	if (j->root || !cop_start_is_blocked(j) || len + 3 > COP_STARTNOTE_WHY_SIZE)
		return;
	strcpy(why + len, "; ");
	cop_start_say_blocked(j, why + len + 2, COP_STARTNOTE_WHY_SIZE - len - 2);
}

bool cop_start_failure_heard(struct cop_start *j, uint64_t now_ms, char why[COP_STARTNOTE_WHY_SIZE])
{
	struct cop_startnote_word word;

	if (!cop_startnote_look(&j->others, now_ms, &word) || !is_missed(j, &word))
		return false;
	cop_startnote_why(&word, cop_start_host(j, word.rank), why);
	/* The root repeats the reason in its own note, because ranks below the failed node may not
	 * reach the root before it exits. The root's note is removed before the next start can read
	 * it. */
	pthread_mutex_lock(&j->lock);
	if (word.of_tree)
		add_blocked(j, why);
	if (j->end == END_OPEN)
		j->secondhand = !j->root;
	pthread_mutex_unlock(&j->lock);
	return true;
}
