/* SPDX-License-Identifier: BSD-3-Clause */
/* Which flights get the bytes that are freed, and how deep the recursion goes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache/cache.h"

#define LIMIT (16 * COP_MIB)
#define CHUNK COP_MIB
#define STREAMS 9

static struct cop_obj *lead(struct cop_cache *c, const char *path, uint64_t index)
{
	struct cop_key key = {.table = COP_TABLE_DATA,
		.path = path,
		.path_len = strlen(path),
		.version = 7,
		.index = index};
	struct cop_obj *obj;

	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
	return obj;
}

static uint64_t used(struct cop_cache *c)
{
	struct cop_cache_usage u;

	cop_cache_usage(c, &u);
	return u.used_bytes;
}

/* ---- streams that always want more ---- */

/* Started flights complete in their order, as if one link brought all of them. */
struct link {
	struct cop_cache *c;
	unsigned started, completed;
	struct want *up[4096]; /* a ring */
};

/* A requester that keeps several flights of `bytes` each under way. */
struct stream {
	struct link *link;
	char name[8];
	bool local;
	size_t bytes;
	unsigned asked, started, completed;
};

struct want {
	struct stream *s;
	struct cop_obj *obj;
};

static void started(void *arg)
{
	struct want *w = arg;
	struct link *l = w->s->link;

	w->s->started++;
	l->up[l->started++ % COP_ARRAY_SIZE(l->up)] = w;
}

static void want(struct stream *s)
{
	struct want *w = malloc(sizeof(*w));

	w->s = s;
	w->obj = lead(s->link->c, s->name, s->asked++);
	cop_cache_reserve(s->link->c, w->obj, s->bytes, s->local, started, w);
}

static void begin_flight(
	struct stream *s, struct link *l, unsigned number, bool local, size_t bytes, unsigned depth)
{
	*s = (struct stream){.link = l, .local = local, .bytes = bytes};
	snprintf(s->name, sizeof(s->name), "s%u", number);
	while (s->asked < depth)
		want(s);
}

/* Completes the next flight; if more is true, its stream asks for another one. False: none has
 * started. */
static bool complete_one(struct link *l, bool more)
{
	struct want *w;

	if (l->completed == l->started)
		return false;
	w = l->up[l->completed++ % COP_ARRAY_SIZE(l->up)];
	w->s->completed++;
	cop_cache_complete(l->c, w->obj, &(struct cop_completion){.rc = -EIO});
	if (more)
		want(w->s);
	free(w);
	assert_true(used(l->c) <= LIMIT);
	return true;
}

static void drain(struct link *l, const struct stream *s, unsigned n)
{
	while (complete_one(l, false))
		;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(s[i].completed, s[i].asked);
	assert_int_equal(used(l->c), 0);
	cop_cache_free(l->c);
}

/* children: how many of the streams belong to other nodes. Returns the percentage of bytes that the
 * local streams got. */
static unsigned share_of_local(
	unsigned children, size_t child_bytes, size_t local_bytes, unsigned local_depth)
{
	struct link l = {.c = cop_cache_new(LIMIT, NULL)};
	struct stream s[STREAMS];
	uint64_t of_local = 0, all = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		begin_flight(&s[i], &l, i, i >= children, i < children ? child_bytes : local_bytes,
			i < children ? 16 : local_depth);
	for (unsigned i = 0; i < 5000; i++)
		assert_true(complete_one(&l, true));
	for (unsigned i = 0; i < STREAMS; i++) {
		all += s[i].completed * s[i].bytes;
		of_local += i >= children ? s[i].completed * s[i].bytes : 0;
	}
	drain(&l, s, STREAMS);
	return (unsigned)(of_local * 100 / all);
}

static void a_local_reader_gets_its_share_beside_eight_busy_children(void **state)
{
	(void)state;
	assert_in_range(share_of_local(8, CHUNK, CHUNK, 4), 25, 60);
}

static void a_child_gets_its_share_beside_eight_busy_local_readers(void **state)
{
	(void)state;
	assert_in_range(share_of_local(1, CHUNK, CHUNK, 16), 30, 75);
}

static void small_flights_do_not_keep_a_large_one_out(void **state)
{
	(void)state;
	assert_in_range(share_of_local(8, 4 * COP_KIB, 4 * CHUNK, 2), 20, 99);
	assert_in_range(share_of_local(8, 4 * CHUNK, 4 * COP_KIB, 64), 0, 80);
}

static void a_flight_larger_than_its_share_gets_its_turn(void **state)
{
	struct link l = {.c = cop_cache_new(LIMIT, NULL)};
	struct stream s[STREAMS];

	(void)state;
	for (unsigned i = 0; i < STREAMS - 1; i++)
		begin_flight(&s[i], &l, i, i % 2, CHUNK, 8);
	begin_flight(&s[STREAMS - 1], &l, STREAMS - 1, true, LIMIT / 8 * 7, 1);
	for (unsigned i = 0; i < 1000 && s[STREAMS - 1].started == 0; i++)
		assert_true(complete_one(&l, true));
	assert_int_equal(s[STREAMS - 1].started, 1);
	drain(&l, s, STREAMS);
}

/* ---- many that wait ---- */

#define MANY 100000

struct crowd {
	struct cop_cache *c;
	struct cop_obj *first;
	unsigned failed;
};

struct one {
	struct crowd *crowd;
	struct cop_obj *obj;
};

static void begun(void *arg)
{
	(void)arg;
}

/* Like a flight that starts while the node stops. */
static void start_and_fail(void *arg)
{
	struct one *o = arg;

	o->crowd->failed++;
	cop_cache_complete(o->crowd->c, o->obj, &(struct cop_completion){.rc = -ESHUTDOWN});
	free(o);
}

static void *complete_first(void *arg)
{
	struct crowd *crowd = arg;

	cop_cache_complete(crowd->c, crowd->first, &(struct cop_completion){.rc = -ESHUTDOWN});
	return NULL;
}

static void a_crowd_that_fails_as_it_starts_needs_no_deep_stack(void **state)
{
	struct crowd crowd = {.c = cop_cache_new(256 * COP_MIB, NULL)};
	pthread_attr_t attr;
	pthread_t thread;

	(void)state;
	crowd.first = lead(crowd.c, "first", 0);
	cop_cache_reserve(crowd.c, crowd.first, 192 * COP_MIB, false, begun, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		struct one *o = malloc(sizeof(*o));

		*o = (struct one){&crowd, lead(crowd.c, "crowd", i)};
		cop_cache_reserve(crowd.c, o->obj, COP_MIB, false, start_and_fail, o);
	}
	assert_int_equal(crowd.failed, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, COP_MAX((size_t)PTHREAD_STACK_MIN, (size_t)128 * COP_KIB));
	assert_int_equal(pthread_create(&thread, &attr, complete_first, &crowd), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(crowd.failed, MANY);
	assert_int_equal(used(crowd.c), 0);
	cop_cache_free(crowd.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_local_reader_gets_its_share_beside_eight_busy_children),
		cmocka_unit_test(a_child_gets_its_share_beside_eight_busy_local_readers),
		cmocka_unit_test(small_flights_do_not_keep_a_large_one_out),
		cmocka_unit_test(a_flight_larger_than_its_share_gets_its_turn),
		cmocka_unit_test(a_crowd_that_fails_as_it_starts_needs_no_deep_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
