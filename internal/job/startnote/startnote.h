/* SPDX-License-Identifier: BSD-3-Clause */
/* startnote: reports whether a node has started, without the network, which a failing node may not
 * have yet: through a pipe to the command that started it in the background, and through a file in
 * the job directory to the nodes of other hosts. It only transports messages: the caller decides
 * which node waits for which, and handles messages sent through the tree. Messages of an earlier
 * start are ignored. */
#ifndef COP_JOB_STARTNOTE_H
#define COP_JOB_STARTNOTE_H

#include "base/base/base.h"

#define COP_STARTNOTE_WHY_SIZE 1024
/* Prefix of the sentence of a node that did not itself fail. */
#define COP_STARTNOTE_NOT_READY "the tree is not ready: "

/* ---- to the command ---- */

/* Continues the program in the background, in a new session, with only the first three descriptors
 * and keep_fd (-1: none) still open. Returns 1 there, with *fd for cop_startnote_say. In the
 * calling process it returns when the result is known: 0, or -errno with the sentence, also if the
 * background process exits without a message. */
int cop_startnote_background(int *fd, int keep_fd, struct cop_err *err);
/* Reports a failure, or with NULL readiness. Closes fd. */
void cop_startnote_say(int fd, const struct cop_err *failure);

/* ---- to the nodes of other hosts ---- */

/* Stores a message that the node of this host and rank did not start. */
void cop_startnote_leave(
	const char *job_dir, const char *host, uint32_t rank, const struct cop_err *failure);

/* For a node that waits for others. */
struct cop_startnote_watch {
	const char *job_dir;
	int64_t began_ns;   /* on the job directory's clock; 0: no job directory */
	uint64_t looked_ms; /* last check for messages of others */
	bool of_step;       /* other trees of a step store their messages there too */
};
/* Call it when the node of this rank has started and has a log. Removes the rank's message of an
 * earlier start. The caller keeps job_dir valid. */
void cop_startnote_begin(
	struct cop_startnote_watch *w, const char *job_dir, uint32_t rank, const char *log_path);
/* The same for the directory of a step, which may start several trees. Messages of others that are
 * over a minute older do not count, because a restarted job may use the same directory. Writes
 * nothing. */
void cop_startnote_begin_in(struct cop_startnote_watch *w, const char *dir);
/* Call it when all nodes have started: removes all messages, unless they may belong to other
 * trees. */
void cop_startnote_end(const struct cop_startnote_watch *w);
/* How long rank 0 keeps messages. */
enum cop_startnote_stay {
	COP_STARTNOTE_STAY_NOT,
	COP_STARTNOTE_STAY,      /* 2.5 s: all nodes have started, and check every second */
	COP_STARTNOTE_STAY_LATE, /* up to 7 s: the launcher may start some of them seconds later;
				    less if another rank fails as well */
};
/* Removes a directory of this start alone, with its contents, after the nodes that check for
 * messages have had time to find them. */
void cop_startnote_remove(const char *dir, enum cop_startnote_stay stay);
/* Whether a message of another rank is in such a directory. */
bool cop_startnote_is_left(const char *dir, uint32_t rank);

/* For another rank's node in such a directory: removes its files there (wait: after 2.5 s), and the
 * directory if that is empty then. */
void cop_startnote_withdraw(const char *dir, uint32_t rank, bool wait);
/* Removes the directory of a step if no tree has files there. */
void cop_startnote_remove_empty(const char *dir);

/* ---- nodes that wait for a missing rank 0 ---- */

/* Records that this node has been waiting for rank 0 for a while; dir is a job directory, or one of
 * this start. */
void cop_startnote_come(const char *dir, uint32_t rank);
/* Appends the hosts of waiting nodes, in order of rank: "n2, n3". */
void cop_startnote_came(const char *dir, struct cop_buf *out);
/* Whether rank 0 is starting another tree of this step than the one with dir. */
bool cop_startnote_is_elsewhere(const char *step_dir, const char *dir);
/* Removes the record that this node waits; -1: of all nodes. */
void cop_startnote_uncome(const char *dir, int64_t rank);

struct cop_startnote_word {
	uint32_t rank; /* rank of the sender */
	bool of_tree;  /* the sender itself did not fail; it reports that the tree is not ready */
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
