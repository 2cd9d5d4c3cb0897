/* SPDX-License-Identifier: BSD-3-Clause */
/* startnote: reports whether a node has started, without using the network, which a node that fails
 * may not have yet: through a pipe to the command that started it in the background, and through a
 * file in the job directory to the nodes of other hosts. It only carries messages: the caller
 * decides which node waits for which, and handles messages that go through the tree. Messages of an
 * earlier start are ignored. */
#ifndef COP_JOB_STARTNOTE_H
#define COP_JOB_STARTNOTE_H

#include "base/base/base.h"

#define COP_STARTNOTE_WHY_SIZE 1024
/* The sentence of a node that did not itself fail begins with this. */
#define COP_STARTNOTE_NOT_READY "the tree is not ready: "

/* ---- to the command ---- */

/* Continues the program in the background, in a new session, with only the first three descriptors
 * and keep_fd (-1: none) still open. Returns 1 there, and *fd is for cop_startnote_say. In the
 * calling process it returns when the outcome is known: 0, or -errno with the sentence, also if the
 * background process ends without a message. */
int cop_startnote_background(int *fd, int keep_fd, struct cop_err *err);
/* Reports a failure, or with NULL that the node is ready. Closes fd. */
void cop_startnote_say(int fd, const struct cop_err *failure);

/* ---- to the nodes of other hosts ---- */

/* Leaves a message that the node of this host and rank did not start. */
void cop_startnote_leave(
	const char *job_dir, const char *host, uint32_t rank, const struct cop_err *failure);

/* For a node that waits for others. */
struct cop_startnote_watch {
	const char *job_dir;
	int64_t began_ns;   /* by the clock of the job directory; 0: no job directory */
	uint64_t looked_ms; /* when it last looked for messages of others */
	bool of_step;       /* other trees of a step have their messages there, too */
};
/* Called when the node of this rank has started and has a log. Removes its own message of an
 * earlier start. The caller keeps job_dir valid. */
void cop_startnote_begin(
	struct cop_startnote_watch *w, const char *job_dir, uint32_t rank, const char *log_path);
/* The same for the directory of a step, which may start several trees. Messages of others count if
 * they are less than a minute older, since a restarted job may use the same directory. Writes
 * nothing. */
void cop_startnote_begin_in(struct cop_startnote_watch *w, const char *dir);
/* Called when all nodes have started: removes all messages, unless they may be those of other
 * trees. */
void cop_startnote_end(const struct cop_startnote_watch *w);
/* How long rank 0 keeps messages. */
enum cop_startnote_stay {
	COP_STARTNOTE_STAY_NOT,
	COP_STARTNOTE_STAY,      /* 2.5 s: all nodes have begun, and look every second */
	COP_STARTNOTE_STAY_LATE, /* up to 7 s: the launcher may start some of them seconds after
				    the others; less if another rank fails as well */
};
/* Removes a directory that belongs to this start alone, with everything in it, after the nodes that
 * look for messages have had the time to find them. */
void cop_startnote_remove(const char *dir, enum cop_startnote_stay stay);
/* Whether a message of another rank is in such a directory. */
bool cop_startnote_is_left(const char *dir, uint32_t rank);

/* For the node of another rank in such a directory: removes what this node left there (wait:
 * after 2.5 s), and the directory if no other node has left anything. */
void cop_startnote_withdraw(const char *dir, uint32_t rank, bool wait);
/* Removes the directory of a step if no tree has anything there. */
void cop_startnote_remove_empty(const char *dir);

/* ---- which nodes have started, if rank 0 has not ---- */

/* Notes that this node has been waiting for rank 0 for a while; dir is a job directory, or one of
 * this start. */
void cop_startnote_come(const char *dir, uint32_t rank);
/* Appends the hosts of the nodes that wait, in order of rank: "n2, n3". */
void cop_startnote_came(const char *dir, struct cop_buf *out);
/* Whether rank 0 is starting a tree of this step other than that of dir. */
bool cop_startnote_is_elsewhere(const char *step_dir, const char *dir);
/* Notes that this node no longer waits; -1: that no node does. */
void cop_startnote_uncome(const char *dir, int64_t rank);

struct cop_startnote_word {
	uint32_t rank; /* the rank of the node that left the message */
	bool of_tree;  /* the node itself did not fail; it reports that the tree is not ready */
	char text[COP_STARTNOTE_WHY_SIZE - 300];
};
/* Checks for a message of this start, at most once a second. */
bool cop_startnote_look(
	struct cop_startnote_watch *w, uint64_t now_ms, struct cop_startnote_word *out);
/* Skips the checks of the next second. */
void cop_startnote_pass(struct cop_startnote_watch *w, uint64_t now_ms);
/* The sentence with which this node reports the failure to others and logs it. */
void cop_startnote_why(
	const struct cop_startnote_word *word, const char *host, char why[COP_STARTNOTE_WHY_SIZE]);

#endif
