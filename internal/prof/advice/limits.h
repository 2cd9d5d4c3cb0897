/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a healthy job, as documented in copper-guide(7). Bytes and shares are totals over
 * all nodes, so small and large jobs are judged alike. */
#ifndef COP_PROF_ADVICE_LIMITS_H
#define COP_PROF_ADVICE_LIMITS_H

/* Any storage delivers this quickly. An import of numpy reads about twice as much. */
#define LEAST_BYTES (16 * COP_MIB)

/* One command is enough: it may be the whole job, and no other output mentions it. */
#define VIEW_FALLBACKS_MIN 1u

/* Per node: number of files, or bytes in them. Every job starts its programs with files from
 * outside the mount, often from the same source: a shell and its tools, mpiexec with dozens of
 * libraries. A Python with imports has more files open and mapped than that. If these bytes are
 * less than a tenth of the bytes that programs read through the mount, the tree is still effective.
 * */
#define PAST_FILES_MIN 64u
#define PAST_BYTES_MIN (32 * COP_MIB)
#define PAST_SHARE 10u

/* A changed file may have caused an error in a program: each one deserves a warning. */
#define CHANGED_MIN 1u

/* Per node that fell back. A single delay of a parent costs a few requests; a dead parent costs all
 * that follow. */
#define FALLBACKS_MIN 100u

/* A tenth of the bytes read by programs: below that, the tree is still effective. */
#define BYPASS_SHARE 10u

/* A tenth of the bytes fetched: a full cache refetches some objects without harm. */
#define REFETCHED_SHARE 10u

/* An operation takes less than a millisecond on a healthy file system, and a few milliseconds on a
 * busy one; six busy processes on two processors increase it to half a millisecond. Only some
 * operations reach the server: with 20 ms for each of these, the mean over small files is 11 ms.
 * The transfer time at 100 MB/s is subtracted. The storage must also be ten times slower than a
 * hop, given enough samples: on an overloaded machine both are slow, and no option of Copper helps.
 * Both means require this many samples; a storage that served fewer operations cost less than two
 * seconds. */
#define STORAGE_US 8000u
#define STORAGE_BYTES_PER_US 100u
#define STORAGE_HOPS 10u
#define STORAGE_SAMPLES 200u
#define HELD_SAMPLES 50u

/* More than half: some read-ahead is always wasted, and files up to 4 MiB are fetched whole. */
#define UNUSED_SHARE 2u

/* More than half of the used bytes were fetched after the prefetch, which should have covered them.
 * */
#define LATER_SHARE 2u

/* Per node. A check is a request to the root; two thousand take about a second. A job of a few
 * minutes checks some hundred directories a few times. If one check in twenty finds a new name, the
 * checks are justified. */
#define EXPIRES_MIN 2000u
#define CLEARS_SHARE 20u

#endif
