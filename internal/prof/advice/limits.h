/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a healthy job, documented in copper-guide(7). Bytes and shares are totals over all
 * nodes, so that small and large jobs are judged alike. */
#ifndef COP_PROF_ADVICE_LIMITS_H
#define COP_PROF_ADVICE_LIMITS_H

/* Any storage delivers this much quickly. Importing numpy reads about twice as much. */
#define LEAST_BYTES (16 * COP_MIB)

/* One command is enough: it may be the whole job, and nothing else reports it. */
#define VIEW_FALLBACKS_MIN 1u

/* Files per node, and bytes in them. Every job starts its programs from files outside the mount,
 * often from the same source: a shell and its tools, mpiexec with dozens of libraries. Python with
 * a few imports opens and maps more files than that. If these bytes are less than a tenth of what
 * programs read through the mount, the tree is effective. */
#define PAST_FILES_MIN 64u
#define PAST_BYTES_MIN (32 * COP_MIB)
#define PAST_SHARE 10u

/* A changed file may have caused an error in a program, so each one deserves a warning. */
#define CHANGED_MIN 1u

/* Per node that fell back. A parent that is briefly slow costs a few requests; a dead one costs all
 * later requests. */
#define FALLBACKS_MIN 100u

/* A tenth of the bytes read by programs: below that, the tree is effective. */
#define BYPASS_SHARE 10u

/* A tenth of the bytes fetched: refetching a few objects does no harm. */
#define REFETCHED_SHARE 10u

/* Mean time of a storage operation, minus the transfer time at 100 MB/s. It is below a millisecond
 * on a healthy file system and a few milliseconds on a busy one; six busy processes on two
 * processors bring it to half a millisecond. Not every operation reaches the server: if each one
 * that does takes 20 ms, the mean over small files is 11 ms. Given enough samples, the storage must
 * also be ten times slower than a hop: on an overloaded machine both are slow, and no Copper option
 * helps. Each mean needs this many samples; with fewer operations, the storage cost less than two
 * seconds. */
#define STORAGE_US 8000u
#define STORAGE_BYTES_PER_US 100u
#define STORAGE_HOPS 10u
#define STORAGE_SAMPLES 200u
#define HELD_SAMPLES 50u

/* Half of the bytes: some read-ahead is always wasted, and files up to 4 MiB are fetched whole. */
#define UNUSED_SHARE 2u

/* Half of the used bytes: the prefetch should have fetched most of them. */
#define LATER_SHARE 2u

/* Per node. A check is a request to the root, and two thousand of them take about a second. A job
 * of a few minutes checks a few hundred directories a few times. If one check in twenty finds a new
 * name, the checks are justified. */
#define EXPIRES_MIN 2000u
#define CLEARS_SHARE 20u

#endif
