/* SPDX-License-Identifier: BSD-3-Clause */
/* waker: a node's main thread sleeps here until another thread wakes it, a signal comes, the
 * command that started the node ends, or its mount ends. It decides nothing: the caller knows what
 * follows from each of these. */
#ifndef COP_WAKER_H
#define COP_WAKER_H

#include <stdatomic.h>

#include "base/base/base.h"

/* The reasons, as bits. */
enum cop_waker_reason {
	COP_WAKER_WOKEN = 1,
	COP_WAKER_SIGNAL = 2,    /* persists: the signal stays pending */
	COP_WAKER_DESERTED = 4,  /* persists: nobody reads from the start's pipe any more */
	COP_WAKER_UNMOUNTED = 8, /* persists */
};

/* Lives in the caller's memory; its fields belong to this module. */
struct cop_waker {
	int wake_fd, signal_fd, report_fd, gone_fd;
	_Atomic bool ending;
};

/* Main thread, before it starts others: blocks the signals that end a node, in all threads from
 * here on, and ignores those that must not end it. report_fd: the write end of a pipe to the
 * process that waits for the start, which stays the caller's; -1: there is none. 0, or -errno with
 * a sentence; call cop_waker_fini in any case. */
int cop_waker_init(struct cop_waker *w, int report_fd, struct cop_err *err);
/* Nothing may wake it any more. */
void cop_waker_fini(struct cop_waker *w);

/* Main thread. The start has ended, and report_fd is about to be closed. */
void cop_waker_started(struct cop_waker *w);
/* Main thread. gone_fd becomes readable when the mount is gone; the caller keeps it open. */
void cop_waker_watch_mount(struct cop_waker *w, int gone_fd);
/* Main thread. Sleeps until one of these reasons exists, at most timeout_ms (-1: no limit). Returns
 * the reasons that exist; 0: none, or the sleep was interrupted. A wake is consumed. */
unsigned cop_waker_wait(struct cop_waker *w, unsigned reasons, int timeout_ms);
/* Main thread. What has interrupted this start, in words that follow the node's name; NULL: nothing
 * has. */
const char *cop_waker_interrupted(struct cop_waker *w);

/* Any thread; the argument is a struct cop_waker. */
void cop_waker_wake(void *waker);
/* The same, and the node must end. */
void cop_waker_end(void *waker);
bool cop_waker_is_ending(const struct cop_waker *w);

#endif
