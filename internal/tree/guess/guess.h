/* SPDX-License-Identifier: BSD-3-Clause */
/* guess: prefetches objects that programs will probably need, based on their requests so far: small
 * files next to others, listings of subdirectories, symlink targets, files that a file refers to,
 * checks of directories in which programs look up absent names. It decides and then requests
 * through fetch like any caller, so a guess is a flight of its own with its own key. A wrong guess
 * costs a storage operation and free memory; no guess changes an answer.
 *
 * fetch calls guess at five points: a program's request is about to lead a flight (before) and has
 * reserved its bytes (after); a program's request finds an object or a flight (met); a flight has
 * its answer (completed); a program reads a chunk (used). Without conf->bundle all of them are
 * no-ops.
 *
 * Threads: before, after, met, used and looked_for run on the thread of a program's request (a FUSE
 * worker, or the thread that completes the flight it waited for); completed runs on the thread with
 * the answer (progress, or a worker of the origin); is_likely runs where a root begins to read. One
 * lock protects the counters, another the directories of absent names. Both are held briefly;
 * nothing is requested or released under them. */
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

/* conf belongs to fetch and must outlive the result. NULL without memory. */
struct cop_guess *cop_guess_new(struct cop_fetch *fetch, const struct cop_fetch_conf *conf);
void cop_guess_free(struct cop_guess *g);

/* A program's request leads a flight that has not started: decides whether to request the first
 * bytes with an entry (ask->first), and records what the request reveals. */
void cop_guess_before(struct cop_guess *g, struct cop_ask *ask);
/* The flight has started and may have ended. obj is its object; the caller holds a reference and a
 * cork. Prefetches what is probably needed next. */
void cop_guess_after(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj);
/* A program's request found this object or its flight. Returns whether it was a guess and this is
 * its first request by a program. */
bool cop_guess_met(struct cop_guess *g, const struct cop_ask *ask, struct cop_obj *obj);
/* A flight has its answer, which is not yet visible to others. */
void cop_guess_completed(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj,
	const struct cop_completion *completion);
/* A program reads from a chunk; first: for the first time. */
void cop_guess_used(struct cop_guess *g, struct cop_obj *obj, bool first);
/* A program looks up a name (NUL-terminated), which may be absent. The name of a Python extension
 * reveals the naming scheme of the others. */
void cop_guess_looked_for(struct cop_guess *g, const char *name, size_t len);
/* A program looks up a name that is not in this listing. */
void cop_guess_missed(struct cop_guess *g, struct cop_obj *listing);

/* At a root: whether a directory whose listing is a guess may exist. If not, the storage is not
 * consulted. */
bool cop_guess_is_likely(struct cop_guess *g, const char *path);

/* ---- first bytes of a file, with its entry ---- */

/* Whether the waste so far allows the bytes of another file. */
bool cop_guess_may_come(struct cop_guess *g);
/* The bytes of a file arrived with its entry or will follow it; asked: a program requested the
 * entry. */
void cop_guess_came(struct cop_guess *g, const char *path, uint64_t bytes, bool asked);

/* Larger files are prefetched neither next to others nor with their entries. */
#define COP_GUESS_FILE_BYTES ((size_t)256 << 10)

#endif
