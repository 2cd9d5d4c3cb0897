/* SPDX-License-Identifier: BSD-3-Clause */
/* copper/mark.h: marks a program's critical path. Writes events in PerfFlowAspect's format and
 * honors PERFFLOW_OPTIONS. Works with C99 and C++11, gcc and clang; needs only the C library, and
 * -pthread before glibc 2.34. See copper-mark(1).
 *
 *     #include <copper/mark.h>
 *
 *     void solve(int steps)
 *     {
 *             COPPER_CRITICAL_PATH();                        this function, by its own name
 *             for (int i = 0; i < steps; i++) {
 *                     COPPER_CRITICAL_PATH("step");          this scope
 *                     COPPER_MARK_COUNTER("residual", step(i));
 *             }
 *     }
 *
 * Files. A process creates its file when it writes its first event: in log-dir if set, else in
 * $COPPER_JOB_DIR/trace, else in the working directory. Each write ends with the closing bracket,
 * which the next write overwrites, so the file is always valid JSON, even after _exit, exec or a
 * crash. A forked child has a file of its own, without its parent's events.
 *
 * Lost events. An event is written immediately unless its thread wrote less than 1 ms ago (if
 * writes are slow, less than 100 times the duration of the faster of the last two writes, at most 1
 * s). Otherwise, the thread buffers it (32 KiB) until the first event after that interval. A
 * thread's buffer is written when the thread ends, and all buffers at exit(). A crash, _exit or
 * exec loses only the events of each thread's current interval; a thread that calls
 * copper_mark_flush() beforehand loses none.
 *
 * An error is printed once on standard error and never stops the program. Events that cannot be
 * written stay in the buffer. When it is full, further events are dropped and counted, and the
 * count is written once the file is writable again. A mark in a signal handler is also dropped and
 * counted if the handler interrupted another mark of its thread.
 *
 * A program and its shared libraries may each include this header and still share one file. The
 * exception is a library opened with RTLD_LOCAL by a program that does not export its symbols: it
 * has its own file, with a number after the process id. So does a source file that defines
 * COPPER_MARK_PRIVATE before the #include. */
#ifndef COPPER_MARK_H
#define COPPER_MARK_H

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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined __STRICT_ANSI__ && !defined __USE_XOPEN2K8
#error "copper/mark.h needs POSIX: include it first, or compile with -std=gnu99 in place of -std=c99"
#endif
#ifndef __USE_MISC
long syscall(long number, ...);
#endif

#define COPPER_MARK_I_COLD __attribute__((unused, noinline)) static
#define COPPER_MARK_I_TEXT 32768 /* size of a thread's buffer, bytes */
#define COPPER_MARK_I_HEAD 64    /* bytes reserved before it for the start of a file */
#define COPPER_MARK_I_MOST 6000  /* maximum size of one event, with room for the end of the file */
#define COPPER_MARK_I_NAME 255   /* names are truncated to this many bytes */
#define COPPER_MARK_I_MS 1000000LL
#define COPPER_MARK_I_S 1000000000LL

/* ---- shared by all copies in a process; a new layout needs a new suffix ---- */

struct copper_mark_i_thread {
	struct copper_mark_i_thread *next, *previous;
	pthread_mutex_t lock; /* protects the rest; its own thread takes it, and so does exit */
	long tid;
	unsigned hooks;             /* value of the process's hooks when this thread registered */
	unsigned used, events;      /* bytes and events in text, after the head */
	unsigned long long missing; /* dropped events not yet reported */
	long long wrote_ns, pace_ns, took_ns;
	char text[COPPER_MARK_I_HEAD + COPPER_MARK_I_TEXT];
};

/* Lock order: list, thread, file. */
struct copper_mark_i_process {
	int state; /* 0 not initialized, 1 off, 2 on */
	int compact, object, usage, in_job;
	int pid, fd; /* fd 0: not open */
	unsigned hooks;
	int hooked, told;
	pthread_key_t key;
	struct copper_mark_i_thread *first;
	dev_t device;
	ino_t inode;
	long long end; /* size of the file without its closing bracket; 0: no file yet */
	long long retry_ns, finished_ns;
	unsigned long long missing; /* events lost by threads that ended, or for lack of memory */
	char name[1024]; /* of the file; a byte with value 1 marks the place of the process id */
	char dir[4096], path[5200];
};

#ifdef COPPER_MARK_PRIVATE
#define COPPER_MARK_I_SHARED static
#else
#define COPPER_MARK_I_SHARED __attribute__((weak, visibility("default")))
#endif
#ifdef __cplusplus
extern "C" {
#endif
#ifndef COPPER_MARK_PRIVATE
extern struct copper_mark_i_process copper_mark_i_process_1;
extern pthread_mutex_t copper_mark_i_list_1, copper_mark_i_file_1;
extern __thread struct copper_mark_i_thread *copper_mark_i_self_1;
extern __thread int copper_mark_i_inside_1;
#endif
COPPER_MARK_I_SHARED struct copper_mark_i_process copper_mark_i_process_1;
COPPER_MARK_I_SHARED pthread_mutex_t copper_mark_i_list_1 = PTHREAD_MUTEX_INITIALIZER;
COPPER_MARK_I_SHARED pthread_mutex_t copper_mark_i_file_1 = PTHREAD_MUTEX_INITIALIZER;
COPPER_MARK_I_SHARED __thread struct copper_mark_i_thread *copper_mark_i_self_1;
COPPER_MARK_I_SHARED __thread int copper_mark_i_inside_1;
#ifdef __cplusplus
}
#endif

COPPER_MARK_I_COLD void copper_mark_i_say(const char *what, const char *which, const char *why)
{
	char text[6000];
	int len = snprintf(text, sizeof(text), "copper-mark: %s%s%s\n", what, which, why);
	int old = errno;

	if (len > 0 && write(2, text, len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1) < 0)
		errno = old;
}

/* Installed in this directory. */
#include "mark_i_options.h"

#include "mark_i_file.h"

#include "mark_i_event.h"

#include "mark_i_thread.h"

/* ---- for programs ---- */

/* Whether marks are enabled; check this before computing an expensive argument. */
static inline int copper_mark_enabled(void)
{
	int state = __atomic_load_n(&copper_mark_i_process_1.state, __ATOMIC_ACQUIRE);

	return (state ? state : copper_mark_i_start()) == 2;
}

/* Writes this thread's buffered events; call before exec, _exit and abort. */
COPPER_MARK_I_COLD void copper_mark_flush(void)
{
	struct copper_mark_i_thread *t = copper_mark_i_self_1;

	if (!t || copper_mark_i_inside_1)
		return;
	copper_mark_i_inside_1++;
	copper_mark_i_look();
	pthread_mutex_lock(&t->lock);
	copper_mark_i_drain(&copper_mark_i_process_1, t, copper_mark_i_now(), 1);
	pthread_mutex_unlock(&t->lock);
	copper_mark_i_inside_1--;
}

/* Records an event with this phase and the current time, for phases that have no function of their
 * own here ("s" and "f" of flows, "i"). */
static inline void copper_mark_event(char phase, const char *name, const char *category,
	const char *scope, unsigned long long id)
{
	struct copper_mark_i_event e;

	if (!copper_mark_enabled())
		return;
	copper_mark_i_init(&e, phase, name, strlen(name), category);
	e.with_id = phase != 'B' && phase != 'E' && phase != 'i';
	e.id = id;
	e.scope = scope;
	copper_mark_i_put(&e);
}

/* Begin and end a region of this thread, which need not be a scope. The category is a file or a
 * module. Regions of a thread must nest. Each region is two events, even if log-event is
 * compact. */
static inline void copper_mark_begin(const char *name, const char *category)
{
	copper_mark_event('B', name, category, NULL, 0);
}
static inline void copper_mark_end(const char *name, const char *category)
{
	copper_mark_event('E', name, category, NULL, 0);
}

/* Mark work that may begin in one thread, end in another, and overlap other work of the same name.
 * Its begin and end share name, category, scope (may be NULL) and id. */
static inline void copper_mark_async_begin(
	const char *name, const char *category, const char *scope, unsigned long long id)
{
	copper_mark_event('b', name, category, scope, id);
}
static inline void copper_mark_async_instant(
	const char *name, const char *category, const char *scope, unsigned long long id)
{
	copper_mark_event('n', name, category, scope, id);
}
static inline void copper_mark_async_end(
	const char *name, const char *category, const char *scope, unsigned long long id)
{
	copper_mark_event('e', name, category, scope, id);
}

/* Records a value that changes over time; infinities and NaN become null. */
COPPER_MARK_I_COLD void copper_mark_counter(const char *name, const char *category, double value)
{
	struct copper_mark_i_event e;

	if (!copper_mark_enabled())
		return;
	copper_mark_i_init(&e, 'C', name, strlen(name), category);
	e.key = "value";
	e.value = value;
	copper_mark_i_put(&e);
}

/* ---- scopes ---- */

struct copper_mark_scope {
	const char *name, *category; /* name NULL: marks are off */
	size_t name_len;
	long long begin_ns, cpu_ns;
};

/* Begins a region called name, or by the function's name if name is "". It is written as two
 * events, or as one at its end if log-event is compact. */
static inline void copper_mark_scope_begin(
	struct copper_mark_scope *s, const char *name, const char *function, const char *category)
{
	struct copper_mark_i_event e;

	s->name = NULL;
	if (!copper_mark_enabled())
		return;
	s->category = category;
	s->name_len = strlen(name);
	s->name = *name ? name : copper_mark_i_function(function, &s->name_len);
	s->cpu_ns = copper_mark_i_process_1.usage ? copper_mark_i_cpu() : 0;
	copper_mark_i_init(&e, 'B', s->name, s->name_len, category);
	s->begin_ns = e.ts_ns;
	if (!copper_mark_i_process_1.compact)
		copper_mark_i_put(&e);
}

static inline void copper_mark_scope_end(struct copper_mark_scope *s)
{
	struct copper_mark_i_event e;

	if (!s->name || !copper_mark_enabled())
		return;
	copper_mark_i_init(&e, 'E', s->name, s->name_len, s->category);
	if (copper_mark_i_process_1.usage)
		copper_mark_i_usage(e, s->begin_ns, copper_mark_i_cpu() - s->cpu_ns);
	if (copper_mark_i_process_1.compact) {
		e.phase = 'X';
		e.dur_ns = e.ts_ns > s->begin_ns ? e.ts_ns - s->begin_ns : 0;
		e.ts_ns = s->begin_ns;
	}
	copper_mark_i_put(&e);
}

#define COPPER_MARK_I_JOIN(a, b) a##b
#define COPPER_MARK_I_VARIABLE(line) COPPER_MARK_I_JOIN(copper_mark_i_scope_, line)

#ifdef __cplusplus
struct copper_mark_i_scope : copper_mark_scope {
	copper_mark_i_scope(const char *its_name, const char *function, const char *file)
	{
		copper_mark_scope_begin(this, its_name, function, file);
	}
	~copper_mark_i_scope()
	{
		copper_mark_scope_end(this);
	}
	copper_mark_i_scope(const copper_mark_i_scope &) = delete;
	copper_mark_i_scope &operator=(const copper_mark_i_scope &) = delete;
};
#define COPPER_MARK_I_SCOPE(name)                                                                  \
	copper_mark_i_scope COPPER_MARK_I_VARIABLE(__LINE__)(name, __PRETTY_FUNCTION__, __FILE__)
#else
#define COPPER_MARK_I_SCOPE(name)                                                                  \
	__attribute__((cleanup(copper_mark_scope_end))) struct copper_mark_scope                   \
		COPPER_MARK_I_VARIABLE(__LINE__);                                                  \
	copper_mark_scope_begin(&COPPER_MARK_I_VARIABLE(__LINE__), name, __func__, __FILE__)
#endif

/* Marks the code from here to the end of the scope, on every exit path except longjmp and process
 * exit. The name must be a literal, as in COPPER_CRITICAL_PATH("step"); the default is the
 * function's name. */
#define COPPER_CRITICAL_PATH(...) COPPER_MARK_I_SCOPE("" __VA_ARGS__)

/* The functions above, with this file as the category. */
#define COPPER_MARK_BEGIN(name) copper_mark_begin(name, __FILE__)
#define COPPER_MARK_END(name) copper_mark_end(name, __FILE__)
#define COPPER_MARK_ASYNC_BEGIN(name, scope, id) copper_mark_async_begin(name, __FILE__, scope, id)
#define COPPER_MARK_ASYNC_INSTANT(name, scope, id)                                                 \
	copper_mark_async_instant(name, __FILE__, scope, id)
#define COPPER_MARK_ASYNC_END(name, scope, id) copper_mark_async_end(name, __FILE__, scope, id)
#define COPPER_MARK_COUNTER(name, value) copper_mark_counter(name, __FILE__, value)

#endif
