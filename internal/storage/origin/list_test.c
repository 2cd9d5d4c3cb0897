/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "storage/origin/origin_testing.h"

static void put_files(struct fixture *f, const char *dir, int count)
{
	char path[128];

	put_dir(f, dir);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/f%d", dir, i);
		put_file(f, path, "x");
	}
}

static void an_empty_directory_is_a_complete_empty_listing(void **state)
{
	struct fixture *f = *state;
	struct cop_attr dir;
	struct stat st;
	int rc;
	void *l = ask_list(f->o, "", &rc);

	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(l), 0);
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	cop_listing_dir(l, &dir);
	assert_int_equal(stat(f->source, &st), 0);
	assert_int_equal(dir.ino, st.st_ino);
	assert_int_equal(dir.mtime_s, st.st_mtim.tv_sec);
	assert_int_equal(dir.mtime_nsec, st.st_mtim.tv_nsec);
	free(l);
}

static void a_listing_has_types_attributes_and_targets(void **state)
{
	struct fixture *f = *state;
	struct cop_listing_entry e;
	struct stat st;
	void *l;
	int rc;

	put_file(f, "file", "12345");
	put_dir(f, "dir");
	assert_int_equal(symlink("../nowhere", in_source(f, "link")), 0);
	assert_int_equal(mkfifo(in_source(f, "fifo"), 0600), 0);
	l = ask_list(f->o, "", &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(l), 4);
	assert_true(cop_listing_find(l, "file", 4, &e));
	assert_int_equal(e.type, DT_REG);
	assert_true(e.has_attr);
	assert_int_equal(stat(in_source(f, "file"), &st), 0);
	assert_int_equal(e.attr.size, 5);
	assert_int_equal(e.attr.ino, st.st_ino);
	assert_int_equal(e.attr.nlink, st.st_nlink);
	assert_int_equal(e.attr.mode, st.st_mode);
	assert_true(cop_version_same(e.attr.version, cop_attr_version(&e.attr)));
	assert_true(cop_listing_find(l, "link", 4, &e));
	assert_int_equal(e.target_len, 10);
	assert_memory_equal(e.target, "../nowhere", 10);
	assert_true(cop_listing_find(l, "dir", 3, &e));
	assert_int_equal(e.type, DT_DIR);
	assert_true(cop_listing_find(l, "fifo", 4, &e));
	assert_int_equal(e.type, DT_FIFO);
	free(l);
}

static void names_of_any_bytes_are_listed(void **state)
{
	struct fixture *f = *state;
	struct cop_listing_entry e;
	char longest[256];
	void *l;
	int rc;

	memset(longest, '\xff', 255);
	longest[255] = '\0';
	put_file(f, longest, "");
	put_file(f, "new\nline", "");
	put_file(f, "...", "");
	l = ask_list(f->o, "", &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(l), 3);
	assert_true(cop_listing_find(l, longest, 255, &e));
	assert_true(cop_listing_find(l, "new\nline", 8, &e));
	assert_true(cop_listing_find(l, "...", 3, &e));
	free(l);
}

static void attributes_end_above_listing_attrs_and_listings_above_listing_max(void **state)
{
	struct fixture *f = *state;
	struct cop_listing_entry e;
	struct stat st;
	void *l;
	int rc;

	open_origin(f, 4, 20, 10);
	put_files(f, "ten", 10);
	put_files(f, "eleven", 11);
	put_files(f, "twenty", 20);
	put_files(f, "more", 21);
	l = ask_list(f->o, "ten", &rc);
	assert_true(cop_listing_find(l, "f9", 2, &e) && e.has_attr);
	free(l);
	l = ask_list(f->o, "eleven", &rc);
	assert_true(cop_listing_find(l, "f9", 2, &e) && !e.has_attr && e.type == DT_REG);
	free(l);
	assert_int_equal(stat(in_source(f, "eleven/f9"), &st), 0);
	assert_int_equal(e.ino, st.st_ino);
	l = ask_list(f->o, "twenty", &rc);
	assert_int_equal(cop_listing_count(l), 20);
	free(l);
	assert_null(ask_list(f->o, "more", &rc));
	assert_int_equal(rc, -E2BIG);
	l = ask_names(f->o, "more", &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(l), 21);
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	assert_true(cop_listing_find(l, "f20", 3, &e) && !e.has_attr && e.type == DT_REG);
	assert_int_equal(stat(in_source(f, "more/f20"), &st), 0);
	assert_int_equal(e.ino, st.st_ino);
	free(l);
}

static void one_worker_is_enough_for_many_large_directories(void **state)
{
	struct fixture *f = *state;
	struct answer *a[20];
	size_t len;
	int rc;

	open_origin(f, 1, 1000, 1000);
	put_files(f, "many", 500);
	for (int i = 0; i < 20; i++)
		cop_origin_list(f->o, "many", answered, a[i] = new_answer());
	for (int i = 0; i < 20; i++) {
		void *l = take_answer(a[i], &rc, &len);

		assert_int_equal(rc, 0);
		assert_int_equal(cop_listing_count(l), 500);
		free(l);
	}
}

static void expect_same_entries(const void *a, const void *b, unsigned count)
{
	assert_int_equal(cop_listing_count(a), count);
	assert_int_equal(cop_listing_count(b), count);
	for (unsigned i = 0; i < count; i++) {
		struct cop_listing_entry x, y;
		char name[16];
		size_t len = (size_t)snprintf(name, sizeof(name), "f%u", i);

		assert_true(cop_listing_find(a, name, len, &x));
		assert_true(cop_listing_find(b, name, len, &y));
		assert_true(x.has_attr && y.has_attr);
		assert_int_equal(x.attr.ino, y.attr.ino);
		assert_true(cop_version_same(x.attr.version, y.attr.version));
	}
}

static void a_slow_storage_gets_small_batches_and_the_same_listing(void **state)
{
	static const uint64_t ages_ns = (uint64_t)1 << 60;
	struct fixture *f = *state;
	void *slow, *fast;
	int rc;

	put_files(f, "d", 99);
	fast = ask_list(f->o, "d", &rc);
	real(f->o)->stat_ns = ages_ns;
	slow = ask_list(f->o, "d", &rc);
	/* Each batch takes a quarter off the mean, and there were at least a dozen. */
	assert_true(real(f->o)->stat_ns < ages_ns / 30);
	expect_same_entries(slow, fast, 99);
	free(slow);
	free(fast);
}

static void system_calls_are_counted_exactly(void **state)
{
	struct fixture *f = *state;
	int rc;

	put_files(f, "d", 50);
	free(ask_list(f->o, "d", &rc));
	/* open, statx, getdents twice, 50 statx, statfs for the device, statx */
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS), 56);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_LISTS), 1);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_STATS), 50);
	assert_true(cop_stats_get(&f->stats, COP_ORIGIN_TIME_US) > 0);
	free(ask_list(f->o, "d", &rc));
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS), 56 + 55);
	assert_null(ask_list(f->o, "gone", &rc));
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_ERRORS), 0);
	assert_null(ask_list(f->o, "d/f1", &rc));
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_ERRORS), 1);
}

static void errors_come_back_as_the_system_gives_them(void **state)
{
	struct fixture *f = *state;
	int rc;

	put_file(f, "file", "");
	assert_int_equal(symlink(".", in_source(f, "link")), 0);
	ask_list(f->o, "none", &rc);
	assert_int_equal(rc, -ENOENT);
	ask_list(f->o, "file", &rc);
	assert_int_equal(rc, -ENOTDIR);
	ask_list(f->o, "file/x", &rc);
	assert_int_equal(rc, -ENOTDIR);
	ask_list(f->o, "link", &rc);
	assert_true(rc == -ELOOP || rc == -ENOTDIR);
	ask_list(f->o, "..", &rc);
	assert_int_equal(rc, -EINVAL);
}

static void a_directory_that_changed_in_this_tick_has_a_young_version(void **state)
{
	struct timespec times[2];
	struct fixture *f = *state;
	struct cop_attr young, old;
	void *l;
	int rc;

	put_dir(f, "d");
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_nsec = 0;
	times[1] = times[0];
	/* As on a storage whose timestamps are whole seconds. */
	assert_int_equal(utimensat(AT_FDCWD, in_source(f, "d"), times, 0), 0);
	l = ask_list(f->o, "d", &rc);
	cop_listing_dir(l, &young);
	assert_true(cop_version_is_young(young.version));
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	free(l);
	while (clock_gettime(CLOCK_REALTIME, &times[0]), times[0].tv_sec < times[1].tv_sec + 2)
		usleep(10000);
	l = ask_list(f->o, "d", &rc);
	cop_listing_dir(l, &old);
	assert_false(cop_version_is_young(old.version));
	assert_true(cop_version_same(old.version, young.version));
	free(l);
}

/* The wall clock of the test. It stands still: no time passes between a change and its listing,
 * however busy the machine is. */
static int64_t wall_ns;

static int64_t standing_wall(void)
{
	return wall_ns;
}

static uint64_t version_of_listed(struct fixture *f, const char *dir)
{
	struct cop_attr attr;
	void *l;
	int rc;

	l = ask_list(f->o, dir, &rc);
	assert_int_equal(rc, 0);
	cop_listing_dir(l, &attr);
	free(l);
	return attr.version;
}

/* The clock decides whether a version is young, but not which version it is. */
static void a_wall_clock_that_jumps_a_day_makes_no_other_version(void **state)
{
	static const int64_t day_ns = 86400 * (int64_t)COP_NS_PER_S;
	struct fixture *f = *state;
	uint64_t before, behind, ahead, back;
	int64_t made_ns;
	struct stat st;

	put_dir(f, "d");
	assert_int_equal(stat(in_source(f, "d"), &st), 0);
	made_ns = st.st_mtim.tv_sec * (int64_t)COP_NS_PER_S + st.st_mtim.tv_nsec;
	cop_clocks_for_test(NULL, standing_wall);
	wall_ns = made_ns;
	before = version_of_listed(f, "d");
	wall_ns = made_ns - day_ns;
	behind = version_of_listed(f, "d");
	wall_ns = made_ns + day_ns;
	ahead = version_of_listed(f, "d");
	wall_ns = made_ns;
	back = version_of_listed(f, "d");
	cop_clocks_for_test(NULL, NULL);
	assert_true(cop_version_is_young(before));
	assert_false(cop_version_is_young(behind) || cop_version_is_young(ahead));
	assert_true(cop_version_same(before, behind) && cop_version_same(before, ahead) &&
		    cop_version_same(before, back));
}

/* ---- a directory that changes ---- */

struct mutator {
	struct fixture *f;
	_Atomic bool stop;
};

static void *mutate(void *arg)
{
	struct mutator *m = arg;

	while (!m->stop) {
		put_file(m->f, "d/comes", "");
		unlink(in_source(m->f, "d/comes"));
	}
	return NULL;
}

static void a_directory_that_keeps_changing_is_not_called_complete(void **state)
{
	struct fixture *f = *state;
	struct mutator m = {.f = f};
	struct cop_listing_entry e;
	uint64_t end = cop_now_ms() + 60000;
	bool incomplete = false;
	pthread_t t;
	int rc;

	/* Large, so that every pass takes long enough to be disturbed. */
	open_origin(f, 4, 1000, 1000);
	put_files(f, "d", 900);
	assert_int_equal(cop_thread_start(&t, "mutator", mutate, &m), 0);
	while (!incomplete && cop_now_ms() < end) {
		void *l = ask_list(f->o, "d", &rc);

		assert_int_equal(rc, 0);
		assert_true(cop_listing_count(l) >= 900);
		assert_true(cop_listing_find(l, "f899", 4, &e));
		incomplete = !(cop_listing_flags(l) & COP_LISTING_COMPLETE);
		free(l);
	}
	m.stop = true;
	pthread_join(t, NULL);
	assert_true(incomplete);
}

/* ---- as an ordinary user, and with mounts of our own: in a child ---- */

#define SKIP_CODE 77

static void in_child(struct fixture *f, int (*fn)(struct fixture *f))
{
	int status;
	pid_t pid;

	cop_origin_close(f->o);
	f->o = NULL;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(fn(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP_CODE)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int list_as_nobody(struct fixture *f)
{
	struct cop_attr attr;
	int rc;
	void *l;

	if (setgid(65534) || setuid(65534))
		return 1;
	open_origin(f, 2, 100, 100);
	if (ask_list(f->o, "search", &rc) || rc != -EACCES)
		return 2;
	if (ask_stat(f->o, "search/known", &attr, NULL) || attr.size != 2)
		return 3;
	if (ask_list(f->o, "closed/sub", &rc) || rc != -EACCES)
		return 4;
	l = ask_list(f->o, "readable", &rc);
	if (rc || cop_listing_count(l) != 1)
		return 5;
	/* A directory that may be read but not searched: names without attributes. */
	free(l);
	l = ask_list(f->o, "names", &rc);
	if (rc || cop_listing_count(l) != 1)
		return 6;
	struct cop_listing_entry e;

	if (!cop_listing_find(l, "n", 1, &e) || e.has_attr || e.type != DT_REG)
		return 7;
	free(l);
	if (!real(f->o)->no_noatime)
		return 8;
	cop_origin_close(f->o);
	return 0;
}

static void an_ordinary_user_gets_what_the_modes_allow(void **state)
{
	struct fixture *f = *state;

	put_dir(f, "search");
	put_file(f, "search/known", "ab");
	assert_int_equal(chmod(in_source(f, "search"), 0711), 0);
	put_dir(f, "closed");
	put_dir(f, "closed/sub");
	assert_int_equal(chmod(in_source(f, "closed"), 0700), 0);
	put_dir(f, "readable");
	put_file(f, "readable/x", "");
	put_dir(f, "names");
	put_file(f, "names/n", "");
	assert_int_equal(chmod(in_source(f, "names"), 0744), 0);
	in_child(f, list_as_nobody);
}

static int list_mounts(struct fixture *f)
{
	struct cop_listing_entry e;
	struct cop_attr attr;
	struct stat st;
	int rc;
	void *l;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return SKIP_CODE;
	if (mount("none", in_source(f, "m"), "tmpfs", 0, NULL))
		return SKIP_CODE;
	put_file(f, "m/inside", "");
	open_origin(f, 2, 100, 100);
	l = ask_list(f->o, "", &rc);
	if (rc || !cop_listing_find(l, "m", 1, &e) || stat(in_source(f, "m"), &st))
		return 2;
	/* The mount's root has an inode number that the tree made, not its own (which is 1 on
	 * tmpfs). */
	if (e.attr.ino == st.st_ino || e.attr.ino >> 63 != 1)
		return 3;
	if (ask_stat(f->o, "m", &attr, NULL) || attr.ino != e.attr.ino)
		return 4;
	free(l);
	l = ask_list(f->o, "m", &rc);
	if (rc || !cop_listing_find(l, "inside", 6, &e) || e.attr.ino >> 63 != 1)
		return 5;
	free(l);
	/* The same for a listing without attributes. */
	open_origin(f, 2, 100, 1);
	put_files(f, "files", 2);
	l = ask_list(f->o, "", &rc);
	if (rc || !cop_listing_find(l, "files", 5, &e) || e.has_attr ||
		!cop_listing_find(l, "m", 1, &e) || e.ino != attr.ino || e.type != DT_DIR)
		return 6;
	free(l);
	cop_origin_close(f->o);
	return 0;
}

static void inode_numbers_of_mounts_below_the_source_do_not_collide(void **state)
{
	put_dir(*state, "m");
	in_child(*state, list_mounts);
}

/* The kernel takes this process for the automounter, whose own lookups trigger no mount. */
static int list_autofs(struct fixture *f)
{
	char options[128];
	int fd[2], rc;
	void *l;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || pipe(fd))
		return SKIP_CODE;
	snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", fd[1],
		(int)getpgrp());
	if (mount("auto", in_source(f, "m"), "autofs", 0, options))
		return SKIP_CODE;
	open_origin(f, 2, 100, 100);
	l = ask_list(f->o, "m", &rc);
	if (rc || (cop_listing_flags(l) & COP_LISTING_COMPLETE))
		return 2;
	free(l);
	l = ask_list(f->o, "", &rc);
	if (rc || !(cop_listing_flags(l) & COP_LISTING_COMPLETE))
		return 3;
	free(l);
	cop_origin_close(f->o);
	return 0;
}

static void an_autofs_directory_is_never_called_complete(void **state)
{
	put_dir(*state, "m");
	in_child(*state, list_autofs);
}

static void closing_ends_waiting_listings_with_a_cancellation(void **state)
{
	struct fixture *f = *state;
	struct answer *a[30];
	int rc, ended = 0;
	size_t len;

	open_origin(f, 1, 1000, 1000);
	put_files(f, "d", 300);
	for (int i = 0; i < 30; i++)
		cop_origin_list(f->o, "d", answered, a[i] = new_answer());
	cop_origin_close(f->o);
	f->o = NULL;
	for (int i = 0; i < 30; i++) {
		free(take_answer(a[i], &rc, &len));
		assert_true(rc == 0 || rc == -ECANCELED);
		ended += rc == -ECANCELED;
	}
	assert_true(ended > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_directory_is_a_complete_empty_listing),
		T(a_listing_has_types_attributes_and_targets),
		T(names_of_any_bytes_are_listed),
		T(attributes_end_above_listing_attrs_and_listings_above_listing_max),
		T(one_worker_is_enough_for_many_large_directories),
		T(a_slow_storage_gets_small_batches_and_the_same_listing),
		T(system_calls_are_counted_exactly),
		T(errors_come_back_as_the_system_gives_them),
		T(a_directory_that_changed_in_this_tick_has_a_young_version),
		T(a_wall_clock_that_jumps_a_day_makes_no_other_version),
		T(a_directory_that_keeps_changing_is_not_called_complete),
		T(an_ordinary_user_gets_what_the_modes_allow),
		T(inode_numbers_of_mounts_below_the_source_do_not_collide),
		T(an_autofs_directory_is_never_called_complete),
		T(closing_ends_waiting_listings_with_a_cancellation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
