/* SPDX-License-Identifier: BSD-3-Clause */
/* copper/run.h: records a program's parameters, tags, metrics and status next to Copper's own
 * measurements of its run. For C99 and C++11, with gcc or clang. Needs only the C library, plus
 * -pthread before glibc 2.34. See copper-runs(1).
 *
 *     #include <copper/run.h>
 *
 *     copper_run_param("lr", "0.01");
 *     for (int epoch = 0; epoch < epochs; epoch++)
 *             copper_run_metric("train_loss", train(), epoch);
 *     copper_run_status("FINISHED", "");
 *
 * Each process appends lines to its own file, one write per line. The file is in
 * $COPPER_JOB_DIR/runs if that variable is set, as copper run does, and otherwise in
 * $COPPER_STORE.d. Rank 0 of the job, or the next copper runs command, imports the lines into the
 * run store. A forked child gets its own file.
 *
 * Only the first error is printed on standard error, and none stops the program: without a writable
 * directory nothing is recorded, and on a full disk lines are lost. All functions are thread-safe,
 * but not async-signal-safe. A source file that defines COPPER_RUN_PRIVATE before the #include
 * writes its own file. */
#ifndef COPPER_RUN_H
#define COPPER_RUN_H

#if defined __STRICT_ANSI__ && !defined _POSIX_C_SOURCE && !defined _GNU_SOURCE &&                 \
	!defined _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined __STRICT_ANSI__ && !defined __USE_XOPEN2K8
#error "copper/run.h needs POSIX: include it first, or compile with -std=gnu99 in place of -std=c99"
#endif

#define COPPER_RUN_I_COLD __attribute__((unused, noinline)) static
#define COPPER_RUN_I_KEY 255    /* maximum bytes in a key; the rest is cut off */
#define COPPER_RUN_I_VALUE 4095 /* the same for a value */
#define COPPER_RUN_I_LINE 12000 /* the longest line, escaped */

/* ---- shared by all copies in a process; a new layout needs a new suffix ---- */

struct copper_run_i {
	int state;  /* 0 not initialized, 1 off, 2 on */
	int shared; /* all commands of this user on this host share the file */
	int fd;     /* 0: none; negative: -errno from open */
	int told, torn, hooked;
	long long checked_ns, size, most; /* most: RLIMIT_FSIZE */
	unsigned long long random;        /* inherited by forked children */
	dev_t device;
	ino_t inode;
	char id[17]; /* of the run; "-": the job's run */
	char host[65];
	char dir[4096], path[4300];
};

#ifdef COPPER_RUN_PRIVATE
#define COPPER_RUN_I_SHARED static
#else
#define COPPER_RUN_I_SHARED __attribute__((weak, visibility("default")))
#endif
#ifdef __cplusplus
extern "C" {
#endif
#ifndef COPPER_RUN_PRIVATE
extern struct copper_run_i copper_run_i_1;
extern pthread_mutex_t copper_run_i_lock_1;
#endif
COPPER_RUN_I_SHARED struct copper_run_i copper_run_i_1;
COPPER_RUN_I_SHARED pthread_mutex_t copper_run_i_lock_1 = PTHREAD_MUTEX_INITIALIZER;
#ifdef __cplusplus
}
#endif

/* Installed in the same directory. */
#include "run_i_file.h"

#include "run_i_number.h"

#include "run_i_line.h"

/* ---- for programs ---- */

/* Records a parameter of the run: an input chosen before it starts. */
static inline void copper_run_param(const char *key, const char *value)
{
	copper_run_i_pair("param", key, value);
}

/* Records a tag: a fact about the run. The keys "name" and "group" set the run's name and group. */
static inline void copper_run_tag(const char *key, const char *value)
{
	copper_run_i_pair("tag", key, value);
}

/* Records a value at a step >= 0. If a step has several values, the last one wins. */
static inline void copper_run_metric(const char *key, double value, long long step)
{
	struct copper_run_i_text t;

	copper_run_i_begin(&t);
	copper_run_i_point(&t, key, value, step);
	copper_run_i_put(&t);
}

/* Records n metrics at one step, in one write where possible. */
COPPER_RUN_I_COLD void copper_run_metrics(
	const char *const *keys, const double *values, size_t n, long long step)
{
	struct copper_run_i_text t;
	size_t i;

	copper_run_i_begin(&t);
	for (i = 0; i < n; i++) {
		copper_run_i_point(&t, keys[i], values[i], step);
		if (i + 1 == n || t.len > COPPER_RUN_I_LINE - 1000) {
			copper_run_i_put(&t);
			t.len = 0;
		}
	}
}

/* Records the final status: "FINISHED", or "FAILED" with a reason (or ""). */
COPPER_RUN_I_COLD void copper_run_status(const char *word, const char *reason)
{
	struct copper_run_i_text t;

	copper_run_i_begin(&t);
	copper_run_i_word(&t, "status", word);
	copper_run_i_time(&t);
	copper_run_i_add(&t, reason, COPPER_RUN_I_VALUE);
	t.text[t.len++] = '\n';
	copper_run_i_put(&t);
}

/* The run's identifier; "-": the run of a job without a store; "": nothing is recorded. */
COPPER_RUN_I_COLD const char *copper_run_id(void)
{
	const char *id;

	pthread_mutex_lock(&copper_run_i_lock_1);
	id = copper_run_i_on() ? copper_run_i_1.id : "";
	pthread_mutex_unlock(&copper_run_i_lock_1);
	return id;
}

#endif
