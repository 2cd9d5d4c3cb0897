/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures how long programs wait for objects that this node does not have yet. Requests that are
 * answered immediately are not counted and do not read the clock. */
#include "mount/fuse/fuse_priv.h"

void cop_fuse_wait_begin(struct waits *w, uint64_t now_us)
{
	pthread_mutex_lock(&w->lock);
	w->waiting++;
	w->begun_us += (int64_t)now_us;
	pthread_mutex_unlock(&w->lock);
}

void cop_fuse_wait_end(struct waits *w, uint64_t now_us)
{
	pthread_mutex_lock(&w->lock);
	w->waiting--;
	w->begun_us -= (int64_t)now_us;
	pthread_mutex_unlock(&w->lock);
}

/* While an end is recorded but its beginning is not, the sum is too small. */
void cop_fuse_waits_at(struct waits *w, uint64_t now_us, uint64_t *waiting, uint64_t *wait_us)
{
	int64_t n, us;

	pthread_mutex_lock(&w->lock);
	n = w->waiting;
	us = n * (int64_t)now_us - w->begun_us;
	pthread_mutex_unlock(&w->lock);
	*waiting = (uint64_t)COP_MAX(n, 0);
	*wait_us = (uint64_t)COP_MAX(us, 0);
}

void cop_fuse_waits(struct cop_fuse *fs, uint64_t *waiting, uint64_t *wait_us)
{
	cop_fuse_waits_at(&fs->waits, cop_fuse_now_us(), waiting, wait_us);
}
