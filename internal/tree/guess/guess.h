/* SPDX-License-Identifier: BSD-3-Clause */
/* guess: what a node requests before a program asks for it, because of what programs have asked for
 * so far: small files beside others, listings of directories below, the targets of links, what a
 * file mentions, checks of directories in which programs look for absent names. It decides, and
 * requests through fetch like anybody else, so a guess is a flight of its own with a key of its
 * own. A wrong guess costs the storage a look and memory that was free; no guess changes an answer.
 *
 * fetch calls this at five moments: a program's request is about to lead a flight (before) and its
 * bytes are reserved (after); a program's request meets something (met); a flight has its answer
 * (completed); a program reads a chunk (used). Without conf->bundle all of them do nothing.
 *
 * Threads: before, after, met, used and looked_for run on the thread that asks for a program (a
 * FUSE worker, or whoever completes the flight that its request waited for); completed runs on the
 * thread that has the answer (progress, or a worker of the origin); is_likely runs where a root
 * begins to read. The counts have one lock, and the directories of absent names another; both are
 * held for some instructions, and nothing is requested or released under them. */
#ifndef COP_TREE_GUESS_H
#define COP_TREE_GUESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cop_ask;
struct cop_completion;
struct cop_fetch;
struct cop_fetch_conf;
struct cop_guess;
struct cop_key;
struct cop_obj;

/* conf is fetch's own and must stay. NULL without memory. */
struct cop_guess *cop_guess_new(struct cop_fetch *fetch, const struct cop_fetch_conf *conf);
void cop_guess_free(struct cop_guess *g);

/* A program's request leads a flight, which has not begun: decides whether an entry brings the
 * first bytes of its file along (ask->first), and notes what else the request tells. */
void cop_guess_before(struct cop_guess *g, struct cop_ask *ask);
/* The flight has begun, and may be over. obj is its object, with a reference of the caller's.
 * Requests what is probably needed next; the caller holds a cork. */
void cop_guess_after(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj);
/* A program's request found this object or its flight. Returns whether that had been guessed and
 * this is the first program's request for it. */
bool cop_guess_met(struct cop_guess *g, const struct cop_ask *ask, struct cop_obj *obj);
/* A flight has its answer, which nobody can see yet. */
void cop_guess_completed(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj,
	const struct cop_completion *completion);
/* A program reads from a chunk; first: for the first time. */
void cop_guess_used(struct cop_guess *g, struct cop_obj *obj, bool first);
/* A program looks for a name (NUL-terminated), which may be absent: an extension of Python tells
 * what others are called. */
void cop_guess_looked_for(struct cop_guess *g, const char *name, size_t len);
/* A program looks for a name that this listing does not have. */
void cop_guess_missed(struct cop_guess *g, struct cop_obj *listing);

/* At a root: whether a directory whose listing was guessed may exist, so that the storage is asked
 * for it. */
bool cop_guess_is_likely(struct cop_guess *g, const char *path);

/* ---- bytes that come with an entry ---- */

/* Whether the waste so far allows the bytes of one more file. */
bool cop_guess_may_come(struct cop_guess *g);
/* A file's bytes came with its entry, or follow it; asked: a program had asked for the entry. */
void cop_guess_came(struct cop_guess *g, const char *path, uint64_t bytes, bool asked);

/* Larger files are neither fetched beside others nor with their entries. */
#define COP_GUESS_FILE_BYTES ((size_t)256 << 10)

#endif
