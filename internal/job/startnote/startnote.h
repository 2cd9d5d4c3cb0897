/* SPDX-License-Identifier: BSD-3-Clause */
/* startnote: reports whether a node has started. It does not use the network, which a failing node
 * may not have yet, but a pipe to the command that started the node in the background, and a file
 * in the job directory for nodes on other hosts. It only transports messages: the caller decides
 * which node waits for which, and sends messages through the tree. Messages from an earlier start
 * are ignored. */
#ifndef COP_JOB_STARTNOTE_H
#define COP_JOB_STARTNOTE_H

#include "base/base/base.h"

#define COP_STARTNOTE_WHY_SIZE 1024
/* How the message from a node that did not itself fail begins. */
#define COP_STARTNOTE_NOT_READY "the tree is not ready: "

/* ---- to the command ---- */

/* Continues the program in the background, in a new session, with only the first three descriptors
 * and keep_fd (-1: none) still open. In the background process, returns 1 and sets *fd for
 * cop_startnote_say. In the calling process, returns when the result is known: 0, or -errno with
 * err set, also if the background process exits without a message. */
int cop_startnote_background(int *fd, int keep_fd, struct cop_err *err);
/* Reports a failure, or readiness if failure is NULL. Closes fd. */
void cop_startnote_say(int fd, const struct cop_err *failure);

/* ---- to the nodes of other hosts ---- */

/* Leaves a message that the node with this host and rank did not start. */
void cop_startnote_leave(
	const char *job_dir, const char *host, uint32_t rank, const struct cop_err *failure);

/* State of a node that waits for others. */
struct cop_startnote_watch {
	const char *job_dir;
	int64_t began_ns;   /* start time on the job directory's clock; 0: no job directory */
	uint64_t looked_ms; /* when we last checked for messages from others */
	bool of_step;       /* other trees of the step leave their messages there too */
};
/* Call this when the node of this rank has started and opened its log. Removes any message this
 * rank left in an earlier start. job_dir must stay valid. */
void cop_startnote_begin(
	struct cop_startnote_watch *w, const char *job_dir, uint32_t rank, const char *log_path);
/* Same, for the directory of a step, which may start several trees. Ignores messages from others
 * that are over a minute old, because a restarted job may use the same directory. Writes
 * nothing. */
void cop_startnote_begin_in(struct cop_startnote_watch *w, const char *dir);
/* Call this when all nodes have started. Removes all messages, unless some may belong to other
 * trees. */
void cop_startnote_end(const struct cop_startnote_watch *w);
/* How long rank 0 keeps messages. */
enum cop_startnote_stay {
	COP_STARTNOTE_STAY_NOT,
	COP_STARTNOTE_STAY,      /* 2.5 s: all nodes have started, and they check every second */
	COP_STARTNOTE_STAY_LATE, /* up to 7 s, because the launcher may start some of them seconds
				    later; less if another rank fails as well */
};
/* Removes a directory that belongs to this start alone, with its contents, once waiting nodes have
 * had time to find the messages in it. */
void cop_startnote_remove(const char *dir, enum cop_startnote_stay stay);
/* Whether such a directory holds a message from another rank. */
bool cop_startnote_is_left(const char *dir, uint32_t rank);

/* For a node of another rank: removes its files from such a directory (after 2.5 s if wait is set),
 * then the directory if it is empty. */
void cop_startnote_withdraw(const char *dir, uint32_t rank, bool wait);
/* Removes the directory of a step if no tree has files in it. */
void cop_startnote_remove_empty(const char *dir);

/* ---- nodes that wait for a missing rank 0 ---- */

/* Records that this node has been waiting for rank 0 for a while. dir is a job directory or the
 * directory of this start. */
void cop_startnote_come(const char *dir, uint32_t rank);
/* Appends the hosts of the waiting nodes in order of rank: "n2, n3". */
void cop_startnote_came(const char *dir, struct cop_buf *out);
/* Whether rank 0 is starting a tree of this step other than the one that uses dir. */
bool cop_startnote_is_elsewhere(const char *step_dir, const char *dir);
/* Removes the record that this rank's node is waiting; -1: the records of all ranks. */
void cop_startnote_uncome(const char *dir, int64_t rank);

struct cop_startnote_word {
	uint32_t rank; /* rank of the sender */
	bool of_tree;  /* the sender itself did not fail, but reports that the tree is not ready */
	char text[COP_STARTNOTE_WHY_SIZE - 300];
};
/* Checks for a message of this start, at most once per second. */
bool cop_startnote_look(
	struct cop_startnote_watch *w, uint64_t now_ms, struct cop_startnote_word *out);
/* Skips checks for the next second. */
void cop_startnote_pass(struct cop_startnote_watch *w, uint64_t now_ms);
/* Words the failure as this node logs it and reports it to others. */
void cop_startnote_why(
	const struct cop_startnote_word *word, const char *host, char why[COP_STARTNOTE_WHY_SIZE]);

#endif
