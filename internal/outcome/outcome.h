/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome: how the start of a node went, on its way to those who wait for it and are not asked over
 * the network: the command that started it in the background, by a pipe; and the nodes of other
 * hosts, by a word in the job directory, for a node that fails may have no network, or not even get
 * so far. It carries sentences and decides nothing: who waits for whom is the caller's business,
 * and so is every word that goes through the tree. Words of an earlier start are not taken. */
#ifndef COP_OUTCOME_H
#define COP_OUTCOME_H

#include "base/base.h"

#define COP_OUTCOME_WHY_SIZE 1024
/* Begins the sentence of a node that was otherwise well. */
#define COP_OUTCOME_NOT_READY "the tree is not ready: "

/* ---- to the command ---- */

/* The program goes on in the background, in a session of its own, with no descriptor of before but
 * the first three and keep_fd (-1: none): 1 is returned there, and *fd is to be given to
 * cop_outcome_say. In the process that called, this returns when that is said: 0, or -errno with
 * the sentence; also when the background ends without a word. */
int cop_outcome_background(int *fd, int keep_fd, struct cop_err *err);
/* failure NULL: the node is ready. Closes fd. */
void cop_outcome_say(int fd, const struct cop_err *failure);

/* ---- to the nodes of other hosts ---- */

/* The node of this host and rank does not start. */
void cop_outcome_leave(
	const char *job_dir, const char *host, uint32_t rank, const struct cop_err *failure);

/* A node that waits for others. */
struct cop_outcome_watch {
	const char *job_dir;
	int64_t began_ns;   /* by the clock of the job directory; 0: there is none to look in */
	uint64_t looked_ms; /* when others' words were last looked for */
};
/* The node of this rank has begun: its log is there. Its own word of an earlier start is taken
 * back. job_dir stays the caller's. */
void cop_outcome_begin(
	struct cop_outcome_watch *w, const char *job_dir, uint32_t rank, const char *log_path);
/* All have started: no word is left. */
void cop_outcome_end(const struct cop_outcome_watch *w);

struct cop_outcome_word {
	uint32_t rank; /* whose */
	bool of_tree;  /* it was well, and the tree is not ready, as it says */
	char text[COP_OUTCOME_WHY_SIZE - 300];
};
/* Looks, at most every second: whether there is a word of this start. */
bool cop_outcome_look(struct cop_outcome_watch *w, uint64_t now_ms, struct cop_outcome_word *out);
/* Nothing is to be looked for in the next second. */
void cop_outcome_pass(struct cop_outcome_watch *w, uint64_t now_ms);
/* What this node says of it to others, and in the end itself. */
void cop_outcome_why(
	const struct cop_outcome_word *word, const char *host, char why[COP_OUTCOME_WHY_SIZE]);

#endif
