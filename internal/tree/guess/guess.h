/* SPDX-License-Identifier: BSD-3-Clause */
/* guess: prefetches objects that programs will probably need, based on their requests so far: small
 * files next to others, listings of subdirectories, symlink targets, files that a file refers to,
 * checks of directories in which programs look up absent names. It decides what to request and then
 * calls fetch like any other caller, so each guess is a separate flight with its own key. A wrong
 * guess costs a storage operation and some free memory, but no guess ever changes an answer.
 *
 * fetch calls guess at five points: when a program's request is about to lead a flight (before) and
 * has reserved its bytes (after), when a program's request finds an object or a flight (met), when
 * a flight has its answer (completed), and when a program reads a chunk (used). Without
 * conf->bundle, all five are no-ops.
 *
 * Threads: before, after, met, used and looked_for run on the thread of a program's request (a FUSE
 * worker, or the thread that completes the flight it waited for); completed runs on the thread that
 * has the answer (progress, or an origin worker); is_likely runs on the thread where a root begins
 * to read. One lock protects the counters, another the directories of absent names. Both are held
 * only briefly, and no object is requested or released under them. */
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

/* conf belongs to fetch and must outlive the result. NULL: out of memory. */
struct cop_guess *cop_guess_new(struct cop_fetch *fetch, const struct cop_fetch_conf *conf);
void cop_guess_free(struct cop_guess *g);

/* A program's request leads a flight that has not started: decides whether to request the first
 * bytes with an entry (ask->first), and records what the request reveals. */
void cop_guess_before(struct cop_guess *g, struct cop_ask *ask);
/* The flight has started and may have ended. obj is its object; the caller holds a reference and a
 * cork. Prefetches what is probably needed next. */
void cop_guess_after(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj);
/* A program's request found this object or its flight. Returns whether the object was a guess that
 * a program now requests for the first time. */
bool cop_guess_met(struct cop_guess *g, const struct cop_ask *ask, struct cop_obj *obj);
/* A flight has its answer, which no other thread can see yet. */
void cop_guess_completed(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj,
	const struct cop_completion *completion);
/* A program reads from a chunk. first: it has not been read before. */
void cop_guess_used(struct cop_guess *g, struct cop_obj *obj, bool first);
/* A program looks up a name (NUL-terminated), which may be absent. The name of one Python extension
 * module reveals how the others are named. */
void cop_guess_looked_for(struct cop_guess *g, const char *name, size_t len);
/* A program looks up a name that is not in this listing. */
void cop_guess_missed(struct cop_guess *g, struct cop_obj *listing);

/* At a root: whether the directory of a guessed listing may exist. If not, the storage is not
 * consulted. */
bool cop_guess_is_likely(struct cop_guess *g, const char *path);

/* ---- first bytes of a file, with its entry ---- */

/* Whether the bytes of another file may be fetched, given the waste so far. */
bool cop_guess_may_come(struct cop_guess *g);
/* The bytes of a file arrived with its entry or will follow it. asked: a program requested the
 * entry. */
void cop_guess_came(struct cop_guess *g, const char *path, uint64_t bytes, bool asked);

/* Larger files are never prefetched, neither along with other files nor with their entries. */
#define COP_GUESS_FILE_BYTES ((size_t)256 << 10)

#endif
