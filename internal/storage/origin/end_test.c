/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory says only by an operation of its own that there are no more names. */
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

#define PIECE 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
	bool in_pieces;        /* no block has more than PIECE bytes */
	bool fails;            /* the second block of a directory is an error, */
	unsigned waits;        /* or comes once this many names are asked for, */
	bool hangs;            /* or no more hangs */
	bool names_hang;       /* and so do the attributes of names */
	unsigned blocks;       /* that were asked for, */
	unsigned asked, hung;  /* names, and those that hang now */
	unsigned asked_before; /* when the second block came */
} is;

static void await(const bool *hangs)
{
	is.hung++;
	while (*hangs)
		pthread_cond_wait(&changed, &lock);
	is.hung--;
}

static void await_names(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	while (is.asked < is.waits && !pthread_cond_timedwait(&changed, &lock, &until))
		;
}

/* These two replace the C library's functions. */
ssize_t getdents64(int fd, void *buffer, size_t size)
{
	bool fails = false;

	pthread_mutex_lock(&lock);
	if (is.in_pieces)
		size = COP_MIN(size, PIECE);
	if (++is.blocks == 2) {
		await_names();
		await(&is.hangs);
		is.asked_before = is.asked;
		fails = is.fails;
	}
	pthread_mutex_unlock(&lock);
	if (fails) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_getdents64, fd, buffer, size);
}

int statx(int fd, const char *name, int flags, unsigned mask, struct statx *st)
{
	if (*name == 'f') {
		pthread_mutex_lock(&lock);
		is.asked++;
		pthread_cond_broadcast(&changed);
		await(&is.names_hang);
		pthread_mutex_unlock(&lock);
	}
	return (int)syscall(SYS_statx, fd, name, flags, mask, st);
}

static void set(bool *flag, bool on)
{
	pthread_mutex_lock(&lock);
	*flag = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int start(void **state)
{
	memset(&is, 0, sizeof(is));
	return setup(state);
}

static int stop(void **state)
{
	set(&is.hangs, false);
	set(&is.names_hang, false);
	return teardown(state);
}

/* A directory d of this many names. */
static void put_names(struct fixture *f, int count, uint64_t stat_ns)
{
	char path[64];

	open_origin(f, 8, 1000, 1000);
	real(f->o)->stat_ns = stat_ns;
	put_dir(f, "d");
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		put_file(f, path, "x");
	}
}

static void expect_all(const void *listing, int count)
{
	struct cop_listing_entry e;
	char name[32];

	assert_int_equal(cop_listing_count(listing), count);
	assert_true(cop_listing_flags(listing) & COP_LISTING_COMPLETE);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_true(cop_listing_find(listing, name, strlen(name), &e));
		assert_true(e.has_attr);
		assert_int_equal(e.attr.size, 1);
	}
}

static void list_all(struct fixture *f, int count)
{
	void *l;
	int rc;

	l = ask_list(f->o, "d", &rc);
	assert_int_equal(rc, 0);
	expect_all(l, count);
	free(l);
}

static void a_slow_storage_is_asked_for_attributes_before_the_end_is_known(void **state)
{
	struct fixture *f = *state;

	put_names(f, 20, COP_NS_PER_MS);
	is.waits = 1;
	list_all(f, 20);
	assert_true(is.asked_before > 0);
	assert_int_equal(is.blocks, 2);
	assert_int_equal(is.asked, 20);
}

static void a_fast_storage_is_asked_for_attributes_once_all_names_are_known(void **state)
{
	struct fixture *f = *state;

	put_names(f, 20, COP_NS_PER_MS / 100);
	list_all(f, 20);
	assert_int_equal(is.asked_before, 0);
	assert_int_equal(is.blocks, 2);
}

/* That the first block was not full means nothing here, which is found out once. */
static void names_that_come_in_small_blocks_are_all_there(void **state)
{
	struct fixture *f = *state;
	unsigned blocks;

	put_names(f, 300, COP_NS_PER_MS);
	is.in_pieces = true;
	list_all(f, 300);
	blocks = is.blocks;
	assert_true(blocks > 5);
	real(f->o)->stat_ns = COP_NS_PER_MS;
	list_all(f, 300);
	assert_int_equal(is.blocks, 2 * blocks - 2);
}

static void an_error_at_the_end_is_the_answer(void **state)
{
	struct fixture *f = *state;
	int rc;

	put_names(f, 20, COP_NS_PER_MS);
	is.fails = true;
	assert_null(ask_list(f->o, "d", &rc));
	assert_int_equal(rc, -EIO);
	list_all(f, 20);
}

static void an_empty_directory_has_an_end(void **state)
{
	struct fixture *f = *state;

	put_names(f, 0, COP_NS_PER_MS);
	list_all(f, 0);
	assert_int_equal(is.blocks, 2);
}

static unsigned now_hung(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = is.hung;
	pthread_mutex_unlock(&lock);
	return n;
}

/* Attributes that do not come are given up, but not the question whether there are more names. */
static void no_listing_goes_out_before_its_end_is_known(void **state)
{
	struct answer *a = new_answer();
	struct cop_listing_entry e;
	struct fixture *f = *state;
	size_t len;
	void *l;
	int rc;

	put_names(f, 30, COP_NS_PER_MS);
	is.hangs = is.names_hang = true;
	cop_origin_list(f->o, "d", answered, a);
	for (int i = 0; i < 10000 && now_hung() < 4; i++)
		usleep(1000);
	put_file(f, "d/late", "x");
	/* By then the names have been looked at often enough to be given up. */
	for (int i = 0; i < 600 && !is_there(a); i++)
		usleep(10000);
	assert_false(is_there(a));
	set(&is.names_hang, false);
	set(&is.hangs, false);
	l = take_answer(a, &rc, &len);
	assert_int_equal(rc, 0);
	assert_true(cop_listing_find(l, "late", 4, &e) ||
		    !(cop_listing_flags(l) & COP_LISTING_COMPLETE));
	free(l);
}

/* An error that says so is not forgotten when attributes that do not come are given up. */
static void an_error_at_the_end_stays_the_answer_when_names_hang(void **state)
{
	struct fixture *f = *state;
	int rc;

	put_names(f, 30, COP_NS_PER_MS);
	is.fails = is.names_hang = true;
	is.waits = 6;
	assert_null(ask_list(f->o, "d", &rc));
	assert_int_equal(rc, -EIO);
}

static void closing_ends_a_listing_whose_end_is_not_known(void **state)
{
	struct answer *a = new_answer();
	struct fixture *f = *state;
	size_t len;
	int rc;

	put_names(f, 2, COP_NS_PER_MS);
	is.hangs = true;
	cop_origin_list(f->o, "d", answered, a);
	for (int i = 0; i < 10000 && !now_hung(); i++)
		usleep(1000);
	set(&is.hangs, false);
	cop_origin_close(f->o);
	f->o = NULL;
	free(take_answer(a, &rc, &len));
	assert_true(rc == 0 || rc == -ECANCELED || rc == -ESHUTDOWN);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		T(a_slow_storage_is_asked_for_attributes_before_the_end_is_known),
		T(a_fast_storage_is_asked_for_attributes_once_all_names_are_known),
		T(names_that_come_in_small_blocks_are_all_there),
		T(an_error_at_the_end_is_the_answer),
		T(an_empty_directory_has_an_end),
		T(no_listing_goes_out_before_its_end_is_known),
		T(an_error_at_the_end_stays_the_answer_when_names_hang),
		T(closing_ends_a_listing_whose_end_is_not_known),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
