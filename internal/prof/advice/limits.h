/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a healthy job; copper-guide(7) tells users the same. Bytes and shares are of all
 * nodes together, so that a large job is judged like a small one. */
#ifndef COP_PROF_ADVICE_LIMITS_H
#define COP_PROF_ADVICE_LIMITS_H

/* Any storage delivers this in a moment. An import of numpy reads about twice as much. */
#define LEAST_BYTES (16 * COP_MIB)

/* One command is enough: it may be the whole job, and nothing else in its outputs says so. */
#define VIEW_FALLBACKS_MIN 1u

/* For each node: this many files, or this many bytes in them. Every job starts its programs with
 * files from outside the mount, often from the same source: a shell and its tools, mpiexec with
 * dozens of libraries. A Python that has imported something has more files open and mapped than
 * that. As long as these bytes are less than a tenth of what programs read through the mount, the
 * tree still does its work. */
#define PAST_FILES_MIN 64u
#define PAST_BYTES_MIN (32 * COP_MIB)
#define PAST_SHARE 10u

/* A changed file may have caused an error in a program: each one is worth a warning. */
#define CHANGED_MIN 1u

/* For each node that fell back. A parent that is late once costs a few requests; a dead one costs
 * all that follow. */
#define FALLBACKS_MIN 100u

/* A tenth of what programs read: below it, the tree still does its work. */
#define BYPASS_SHARE 10u

/* A tenth of what was fetched: a full cache fetches some objects again without harm. */
#define REFETCHED_SHARE 10u

/* An operation takes less than a millisecond on a healthy file system, and a few milliseconds on a
 * busy one; six busy processes on two processors make it half a millisecond. Only some operations
 * ask the server: with 20 ms for each that does, the mean over small files is 11. The time that the
 * bytes take at 100 MB/s is not counted. The storage must also be ten times slower than a hop, if
 * there are enough samples: on a machine that is itself overloaded both are slow, and no option of
 * Copper helps. Both means need this many samples; a storage that served fewer operations cost less
 * than two seconds. */
#define STORAGE_US 8000u
#define STORAGE_BYTES_PER_US 100u
#define STORAGE_HOPS 10u
#define STORAGE_SAMPLES 200u
#define HELD_SAMPLES 50u

/* More than half: some read-ahead is always wasted, and files up to 4 MiB are fetched whole. */
#define UNUSED_SHARE 2u

/* More than half of what programs used was fetched only after the prefetch, which should have
 * fetched it. */
#define LATER_SHARE 2u

/* For each node. A check is a request to the root; two thousand take about a second. A job of a few
 * minutes checks some hundred directories a few times. If one check in twenty finds something new,
 * the checks are needed. */
#define EXPIRES_MIN 2000u
#define CLEARS_SHARE 20u

#endif
