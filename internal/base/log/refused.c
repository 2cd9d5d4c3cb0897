/* SPDX-License-Identifier: BSD-3-Clause */
/* Attempts from outside that were refused. An attacker can make a thousand attempts per second from
 * any number of addresses; they must neither flood the log nor go unnoticed. So all attempts share
 * one time window and a table of the kinds seen in it. The first attempt of a kind is logged, and
 * repeats are counted. When the table is full, all further kinds share one count. */
#include <stdatomic.h>

#include "base/log/log.h"
#include "base/log/log_priv.h"

struct attempt {
	const char *what, *why; /* string literals */
	char from[64];
	unsigned long long more; /* beyond the one that was logged */
};

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t began_ms; /* 0: no attempts */
	unsigned count;
	struct attempt attempt[COP_LOG_REFUSED_MAX];
	unsigned long long others;
} window = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Called with the lock held. Returns whether to log the attempt. */
static bool note_attempt(const char *what, const char *why, const char *from)
{
	struct attempt *a = window.attempt;

	for (unsigned i = 0; i < window.count; i++, a++)
		if (!strcmp(a->what, what) && !strcmp(a->why, why) && !strcmp(a->from, from)) {
			a->more++;
			return false;
		}
	if (window.count == COP_LOG_REFUSED_MAX) {
		window.others++;
		return false;
	}
	*a = (struct attempt){.what = what, .why = why};
	snprintf(a->from, sizeof(a->from), "%s", from);
	window.count++;
	return true;
}

void cop_log_refused(const char *what, const char *why, const char *from)
{
	bool first;

	cop_log_refused_due();
	pthread_mutex_lock(&window.lock);
	if (!window.count)
		atomic_store(&window.began_ms, cop_now_ms());
	first = note_attempt(what, why, from);
	pthread_mutex_unlock(&window.lock);
	if (first)
		cop_log_write(COP_LOG_WARNING, "refused", "refused what=%s from=%s why=\"%s\"",
			what, from, why);
}

void cop_log_refused_due(void)
{
	uint64_t began_ms = atomic_load_explicit(&window.began_ms, memory_order_relaxed);

	if (began_ms && cop_now_ms() - began_ms >= COP_LOG_WINDOW_MS)
		cop_log_refused_end();
}

void cop_log_refused_end(void)
{
	struct attempt attempt[COP_LOG_REFUSED_MAX];
	unsigned long long others;
	unsigned count;

	pthread_mutex_lock(&window.lock);
	count = window.count;
	others = window.others;
	memcpy(attempt, window.attempt, count * sizeof(attempt[0]));
	window.count = 0;
	window.others = 0;
	atomic_store(&window.began_ms, 0);
	pthread_mutex_unlock(&window.lock);
	for (unsigned i = 0; i < count; i++)
		if (attempt[i].more)
			cop_log_write(COP_LOG_WARNING, "refused",
				"refused what=%s from=%s why=\"%s\" more=%llu", attempt[i].what,
				attempt[i].from, attempt[i].why, attempt[i].more);
	if (others)
		cop_log_write(COP_LOG_WARNING, "refused", "refused from others more=%llu", others);
}
