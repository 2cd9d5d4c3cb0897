/* SPDX-License-Identifier: BSD-3-Clause */
/* What the measuring programs share: a clock, an end with a sentence, and sides: processes that
 * start together, meet at barriers and tell each other their addresses. Everything is static: each
 * program is one file. */
#ifndef COP_BENCH_H
#define COP_BENCH_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_SIDES_MAX 3
/* No measurement takes longer; a side that hangs must not stay. */
#define BENCH_LIMIT_S 120

/* Memory that all sides see. */
struct bench_shared {
	pthread_barrier_t barrier;
	char address[BENCH_SIDES_MAX][256];
};

static inline double bench_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline double bench_wall(void)
{
	return bench_now(CLOCK_MONOTONIC);
}

/* Of the whole process, including threads that have ended. */
static inline double bench_cpu(void)
{
	return bench_now(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void __attribute__((noreturn, format(printf, 1, 2))) bench_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline void bench_check(int rc, const char *what)
{
	if (rc < 0)
		bench_die("%s: %s", what, strerror(-rc));
}

/* Has the kernel hold `bytes` of free memory that was used a moment ago. A virtual machine may have
 * less memory from its host than it shows; the rest costs six times as much when it is first
 * touched, and would be paid by whoever touches it. Call it just before the sides start. */
static inline void bench_use_memory(size_t bytes)
{
	char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (data == MAP_FAILED)
		bench_die("no memory for %zu bytes", bytes);
	munmap(data, bytes);
}

static inline void bench_meet(struct bench_shared *s)
{
	pthread_barrier_wait(&s->barrier);
}

static inline struct bench_shared *bench_share(unsigned sides)
{
	pthread_barrierattr_t attr;
	struct bench_shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		bench_die("no shared memory");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&s->barrier, &attr, sides);
	return s;
}

/* Runs fn(shared, arg, side) in a process of its own for each side; 0 if all of them returned 0. If
 * one fails, the others are ended too, because they would wait at a barrier. */
static inline int bench_sides(
	unsigned sides, void (*fn)(struct bench_shared *, void *, unsigned), void *arg)
{
	struct bench_shared *s = bench_share(sides);
	pid_t pid[BENCH_SIDES_MAX];
	int status, bad = 0;

	fflush(stdout);
	for (unsigned i = 0; i < sides; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			bench_die("cannot fork");
		if (pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(BENCH_LIMIT_S);
			fn(s, arg, i);
			exit(0);
		}
	}
	for (unsigned i = 0; i < sides; i++) {
		if (wait(&status) < 0 || status == 0)
			continue;
		if (!bad && WIFSIGNALED(status))
			fprintf(stderr, "a side ended by signal %d\n", WTERMSIG(status));
		bad = 1;
		for (unsigned k = 0; k < sides; k++)
			kill(pid[k], SIGKILL);
	}
	return bad;
}

/* A size argument in bytes; ends the program if it is none. */
static inline size_t bench_size(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*end || n == 0)
		bench_die("not a size in bytes: %s", text);
	return (size_t)n;
}

#endif
