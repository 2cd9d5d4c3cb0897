/* SPDX-License-Identifier: BSD-3-Clause */
/* A storage that does not answer for some names, or says wrongly that they do not exist. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/stat.h>
#include <sys/syscall.h>

#include "storage/origin/origin_testing.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool hangs, denies;
static unsigned hung, asked; /* hanging now; asked for in total */

static void set_hangs(bool on)
{
	pthread_mutex_lock(&lock);
	hangs = on;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

static unsigned now_hung(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = hung;
	pthread_mutex_unlock(&lock);
	return n;
}

static unsigned now_asked(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = asked;
	pthread_mutex_unlock(&lock);
	return n;
}

static void wait_hung(unsigned n)
{
	for (int i = 0; i < 10000 && now_hung() != n; i++)
		usleep(1000);
	assert_int_equal(now_hung(), n);
}

/* Replaces the C library's function. */
int statx(int fd, const char *name, int flags, unsigned mask, struct statx *st)
{
	if (strncmp(name, "hung", 4) == 0) {
		pthread_mutex_lock(&lock);
		hung++;
		asked++;
		while (hangs)
			pthread_cond_wait(&released, &lock);
		hung--;
		pthread_mutex_unlock(&lock);
	}
	if (strcmp(name, "denied") == 0 && denies) {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_statx, fd, name, flags, mask, st);
}

static int start(void **state)
{
	hangs = denies = false;
	asked = 0;
	return setup(state);
}

static int stop(void **state)
{
	set_hangs(false);
	return teardown(state);
}

static void put_names(struct fixture *f, const char *word, int count)
{
	char path[64];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/%s%d", word, i);
		put_file(f, path, "x");
	}
}

/* How many of these names, all of which are listed, have attributes. */
static int with_attr(const void *listing, const char *word, int count)
{
	struct cop_listing_entry e;
	char name[32];
	int n = 0;

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%d", word, i);
		assert_true(cop_listing_find(listing, name, strlen(name), &e));
		assert_int_equal(e.type, DT_REG);
		n += e.has_attr;
	}
	return n;
}

static void list_with_one_hung(struct fixture *f, unsigned max_ops, int least)
{
	void *l;
	int rc;

	open_origin(f, max_ops, 1000, 100);
	put_dir(f, "d");
	put_names(f, "hung", 1);
	put_names(f, "f", 40);
	set_hangs(true);
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(rc, 0);
	assert_true(with_attr(l, "f", 40) >= least);
	assert_int_equal(with_attr(l, "hung", 1), 0);
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	assert_int_equal(now_hung(), 1);
	free(l);
}

static void a_name_that_is_not_answered_does_not_hold_its_directory(void **state)
{
	struct fixture *f = *state;
	void *l;
	int rc;

	list_with_one_hung(f, 4, 40);
	/* A name that hangs is not asked for again. */
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(with_attr(l, "f", 40), 40);
	assert_int_equal(with_attr(l, "hung", 1), 0);
	free(l);
	assert_int_equal(asked, 1);
	set_hangs(false);
	for (int i = 0; i < 10000 && real(f->o)->unanswered.count; i++)
		usleep(1000);
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(with_attr(l, "hung", 1), 1);
	free(l);
}

/* The page is sent without the name, and the next page does not wait for it. */
static void a_name_that_is_not_answered_does_not_hold_its_page(void **state)
{
	struct cop_listing_page all = {.pages = 1};
	struct cop_listing_entry e;
	struct fixture *f = *state;
	struct cop_attr dir;
	void *names, *page;
	int rc;

	open_origin(f, 4, 1000, 0);
	put_dir(f, "d");
	put_names(f, "hung", 1);
	put_names(f, "f", 40);
	set_hangs(true);
	names = ask_names(f->o, "d", &rc);
	cop_listing_dir(names, &dir);
	all.version = dir.version;
	for (int again = 0; again < 2; again++) {
		page = ask_page(f->o, "d", all, names, &rc);
		assert_int_equal(rc, 0);
		assert_int_equal(with_attr(page, "f", 40), 40);
		assert_false(cop_listing_find(page, "hung0", 5, &e));
		assert_int_equal(now_asked(), 1);
		free(page);
	}
	set_hangs(false);
	wait_hung(0);
	free(names);
}

static void a_name_that_is_not_answered_does_not_hold_the_only_worker(void **state)
{
	struct fixture *f = *state;
	struct cop_attr attr;

	list_with_one_hung(f, 1, 0);
	assert_int_equal(ask_stat(f->o, "d/f7", &attr, NULL), 0);
}

static void a_listing_waits_for_only_a_few_of_many_unanswered_names(void **state)
{
	struct fixture *f = *state;
	void *l;
	int rc;

	open_origin(f, 2, 1000, 100);
	put_dir(f, "d");
	put_names(f, "hung", 90);
	set_hangs(true);
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(with_attr(l, "hung", 90), 0);
	free(l);
	assert_true(now_hung() <= 4);
	set_hangs(false);
	wait_hung(0);
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(with_attr(l, "hung", 90), 90);
	free(l);
}

/* As many threads as there may be wait for names, before one of them is late by what a name has
 * taken so far: what ends the listing needs a thread, too. */
static void a_listing_ends_though_every_thread_waits(void **state)
{
	struct answer *a = new_answer();
	struct fixture *f = *state;
	size_t len;
	void *l;
	int rc;

	open_origin(f, 2, 1000, 100);
	put_dir(f, "d");
	put_names(f, "hung", 30);
	real(f->o)->stat_ns = 500 * COP_NS_PER_MS;
	set_hangs(true);
	cop_origin_list(f->o, "d", answered, a);
	wait_hung(4);
	for (int i = 0; i < 3000 && !is_there(a); i++)
		usleep(10000);
	assert_int_equal(now_hung(), 4);
	set_hangs(false);
	l = take_answer(a, &rc, &len);
	assert_int_equal(rc, 0);
	assert_int_equal(with_attr(l, "hung", 30), 0);
	free(l);
}

/* A directory of 32 names: whether this many are asked for at the same time. */
static bool are_asked_at_once(struct fixture *f, uint64_t stat_ns, unsigned want)
{
	struct answer *a = new_answer();
	size_t len;
	unsigned n;
	int rc;

	open_origin(f, 64, 1000, 100);
	real(f->o)->stat_ns = stat_ns;
	set_hangs(true);
	cop_origin_list(f->o, "d", answered, a);
	for (int i = 0; i < 5000 && now_hung() < want; i++)
		usleep(1000);
	n = now_hung();
	set_hangs(false);
	free(take_answer(a, &rc, &len));
	assert_int_equal(rc, 0);
	wait_hung(0);
	return n >= want;
}

/* Before anything is known of the storage, it is asked for a few names in a row, not for all; one
 * that takes a millisecond for a name, for each at once. */
static void a_slow_storage_is_asked_for_many_names_at_once(void **state)
{
	struct fixture *f = *state;

	put_dir(f, "d");
	put_names(f, "hung", 32);
	assert_true(are_asked_at_once(f, 0, 8));
	assert_true(are_asked_at_once(f, COP_NS_PER_MS, 32));
}

static unsigned threads_of(struct cop_origin_pool *p)
{
	unsigned n;

	pthread_mutex_lock(&p->lock);
	n = p->threads;
	pthread_mutex_unlock(&p->lock);
	return n;
}

static void hang_request(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	struct cop_attr attr;

	if (!rc)
		cop_origin_statx(t->o, t->o->base.dirfd, "hung", &attr, NULL);
	free(t);
}

static void hang_a_worker(struct fixture *f)
{
	struct cop_origin_request *t = calloc(1, sizeof(*t));

	t->o = real(f->o);
	t->job.fn = hang_request;
	t->job.patience_ms = COP_ORIGIN_ATTR_MS;
	cop_origin_pool_submit(&t->o->pool, &t->job, false);
}

static void workers_that_are_not_answered_leave_their_places_to_others(void **state)
{
	struct fixture *f = *state;
	struct cop_attr attr;

	open_origin(f, 2, 1000, 100);
	put_file(f, "file", "x");
	set_hangs(true);
	hang_a_worker(f);
	hang_a_worker(f);
	wait_hung(2);
	assert_int_equal(ask_stat(f->o, "file", &attr, NULL), 0);
	/* At most twice as many threads. */
	for (int i = 0; i < 6; i++)
		hang_a_worker(f);
	wait_hung(4);
	usleep(1500000);
	assert_int_equal(now_hung(), 4);
	assert_int_equal(threads_of(&real(f->o)->pool), 4);
	/* Workers that come back find that there are enough of them, and end. */
	set_hangs(false);
	wait_hung(0);
	assert_int_equal(ask_stat(f->o, "file", &attr, NULL), 0);
	for (int i = 0; i < 10000 && threads_of(&real(f->o)->pool) > 2; i++)
		usleep(1000);
	assert_true(threads_of(&real(f->o)->pool) <= 2);
	assert_int_equal(asked, 8);
}

/* ---- answers that contradict each other ---- */

static void list_denied(struct fixture *f, bool young, struct cop_listing_entry *e, bool *found)
{
	struct timespec now[2];
	void *l;
	int rc;

	put_dir(f, "d");
	put_file(f, "d/denied", "x");
	put_file(f, "d/other", "x");
	clock_gettime(CLOCK_REALTIME, &now[0]);
	now[0].tv_nsec = 0;
	now[1] = now[0];
	if (young)
		assert_int_equal(utimensat(AT_FDCWD, in_source(f, "d"), now, 0), 0);
	else
		usleep(50000);
	denies = true;
	l = ask_list(f->o, "d", &rc);
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	*found = cop_listing_find(l, "denied", 6, e);
	free(l);
}

static void a_name_that_is_denied_where_nothing_changed_is_left_to_be_asked_for(void **state)
{
	struct cop_listing_entry e;
	bool found;

	list_denied(*state, false, &e, &found);
	assert_true(found);
	assert_false(e.has_attr);
	assert_int_equal(e.type, DT_REG);
}

static void a_name_that_is_denied_where_something_may_have_changed_is_gone(void **state)
{
	struct cop_listing_entry e;
	bool found;

	list_denied(*state, true, &e, &found);
	assert_false(found);
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_name_that_is_not_answered_does_not_hold_its_directory),
		T(a_name_that_is_not_answered_does_not_hold_its_page),
		T(a_name_that_is_not_answered_does_not_hold_the_only_worker),
		T(a_listing_waits_for_only_a_few_of_many_unanswered_names),
		T(a_listing_ends_though_every_thread_waits),
		T(a_slow_storage_is_asked_for_many_names_at_once),
		T(workers_that_are_not_answered_leave_their_places_to_others),
		T(a_name_that_is_denied_where_nothing_changed_is_left_to_be_asked_for),
		T(a_name_that_is_denied_where_something_may_have_changed_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
