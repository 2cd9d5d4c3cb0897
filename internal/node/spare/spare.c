/* SPDX-License-Identifier: BSD-3-Clause */
/* A view begins to age when its command asks, before it exists: whatever the command or a later one
 * has found absent in it, it has found since then. So neither a command that is slow to make its
 * view nor one whose offer waits on the control socket makes the time longer. */
#include "node/spare/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/base/base.h"

/* How long one command has the right to offer its view, since it may never do so. */
#define CLAIM_MS 1000
/* How often the mounts are looked at while a view is kept: it holds mounts that somebody may want
 * to be gone. */
#define LOOK_MS 250

void cop_spare_init(struct cop_spare *s, uint32_t keep_ms)
{
	*s = (struct cop_spare){.keep_ms = keep_ms, .fd = {-1, -1, -1, -1}};
	pthread_mutex_init(&s->lock, NULL);
}

void cop_spare_fini(struct cop_spare *s)
{
	cop_spare_stop(s);
	pthread_mutex_destroy(&s->lock);
}

/* ---- under the lock ---- */

static bool is_good(const struct cop_spare *s, const struct cop_spare_claim *c,
	const struct cop_spare_tree *tree)
{
	return c->changes == tree->changes && cop_now_ms() - c->since_ms < s->keep_ms;
}

static bool have_mounts_changed(const int fd[COP_SPARE_FDS])
{
	struct pollfd p[] = {{.fd = fd[COP_SPARE_MOUNTS], .events = POLLPRI},
		{.fd = fd[COP_SPARE_BEFORE], .events = POLLPRI}};

	return poll(p, COP_ARRAY_SIZE(p), 0) != 0;
}

/* Moves what is kept to fd, to be closed outside of the lock. */
static void take_kept(struct cop_spare *s, int fd[COP_SPARE_FDS])
{
	for (int i = 0; i < COP_SPARE_FDS; i++) {
		fd[i] = s->fd[i];
		s->fd[i] = -1;
	}
	s->kept.number = 0;
}

static void drop_if_over(
	struct cop_spare *s, const struct cop_spare_tree *tree, int dropped[COP_SPARE_FDS])
{
	if (s->kept.number && (!is_good(s, &s->kept, tree) || have_mounts_changed(s->fd)))
		take_kept(s, dropped);
}

static bool copy_kept(const struct cop_spare *s, int given[COP_SPARE_GIVEN])
{
	for (int i = 0; i < COP_SPARE_GIVEN; i++) {
		given[i] = fcntl(s->fd[i], F_DUPFD_CLOEXEC, 3);
		if (given[i] < 0) {
			while (i-- > 0)
				close(given[i]);
			return false;
		}
	}
	return true;
}

/* One command at a time, since the others would offer theirs in vain. A view that knows a name when
 * the kernel looks it up again gives ESTALE if it is another file by then (copper-run(1)). That may
 * happen to a name that the kernel had before the view; those that it gets later stay for longer
 * than the view is kept. */
static uint64_t claim(struct cop_spare *s, uint64_t key, const struct cop_spare_tree *tree)
{
	uint64_t now_ms = cop_now_ms();

	if (s->stopped || !s->keep_ms || tree->young_ms > now_ms ||
		(s->claim.number && s->claim.key == key && now_ms - s->claim.since_ms < CLAIM_MS))
		return 0;
	s->claim = (struct cop_spare_claim){
		.number = ++s->numbers, .key = key, .since_ms = now_ms, .changes = tree->changes};
	return s->claim.number;
}

/* ---- outside ---- */

static void close_all(const int fd[COP_SPARE_FDS])
{
	for (int i = 0; i < COP_SPARE_FDS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

bool cop_spare_ask(struct cop_spare *s, uint64_t key, const struct cop_spare_tree *tree,
	int given[COP_SPARE_GIVEN], uint64_t *offer)
{
	int dropped[COP_SPARE_FDS] = {-1, -1, -1, -1};
	bool found;

	*offer = 0;
	pthread_mutex_lock(&s->lock);
	drop_if_over(s, tree, dropped);
	found = s->kept.number && s->kept.key == key && copy_kept(s, given);
	if (!found)
		*offer = claim(s, key, tree);
	pthread_mutex_unlock(&s->lock);
	close_all(dropped);
	return found;
}

int cop_spare_offer(struct cop_spare *s, uint64_t number, const int fd[COP_SPARE_FDS],
	const struct cop_spare_tree *tree)
{
	int dropped[COP_SPARE_FDS] = {-1, -1, -1, -1};
	bool good;

	pthread_mutex_lock(&s->lock);
	good = number && number == s->claim.number && !s->stopped && is_good(s, &s->claim, tree) &&
	       !have_mounts_changed(fd);
	if (good) {
		take_kept(s, dropped);
		s->kept = s->claim;
		for (int i = 0; i < COP_SPARE_FDS; i++)
			s->fd[i] = fd[i];
	}
	if (number == s->claim.number)
		s->claim.number = 0;
	pthread_mutex_unlock(&s->lock);
	close_all(good ? dropped : fd);
	return good ? 0 : -ESTALE;
}

int cop_spare_tend(struct cop_spare *s, const struct cop_spare_tree *tree)
{
	int dropped[COP_SPARE_FDS] = {-1, -1, -1, -1}, next_ms = -1;

	pthread_mutex_lock(&s->lock);
	drop_if_over(s, tree, dropped);
	if (s->kept.number) {
		uint64_t age_ms = cop_now_ms() - s->kept.since_ms;

		next_ms = age_ms < s->keep_ms ? (int)COP_MIN(s->keep_ms - age_ms, LOOK_MS) : 0;
	}
	pthread_mutex_unlock(&s->lock);
	close_all(dropped);
	return next_ms;
}

void cop_spare_stop(struct cop_spare *s)
{
	int dropped[COP_SPARE_FDS] = {-1, -1, -1, -1};

	pthread_mutex_lock(&s->lock);
	s->stopped = true;
	if (s->kept.number)
		take_kept(s, dropped);
	pthread_mutex_unlock(&s->lock);
	close_all(dropped);
}
