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
#include <sys/wait.h>

#include "storage/origin/origin_testing.h"

static void *ask_known(struct cop_origin *o, const char *path, const void *known, int *rc)
{
	struct answer *a = new_answer();
	size_t len;
	void *blob;

	cop_origin_list_known(o, path, known, answered, a);
	blob = take_answer(a, rc, &len);
	if (!*rc)
		assert_int_equal(cop_listing_check(blob, len), 0);
	return blob;
}

/* What a pack would have of the directory: attributes for `has` alone. */
static void *trim(const void *from, const char *has)
{
	struct cop_listing_builder b = {0};
	struct cop_listing_entry e;
	struct cop_attr dir;
	void *blob;
	size_t len;

	for (uint32_t i = 0; i < cop_listing_count(from); i++) {
		cop_listing_at(from, i, &e);
		if (e.name_len == strlen(has) && !memcmp(e.name, has, e.name_len))
			cop_listing_add(
				&b, e.name, e.name_len, e.type, &e.attr, e.target, e.target_len);
		else
			cop_listing_add_bare(&b, e.name, e.name_len, e.type, e.ino);
	}
	cop_listing_dir(from, &dir);
	assert_int_equal(cop_listing_build(&b, &dir, cop_listing_flags(from), &blob, &len), 0);
	return blob;
}

/* Three files and a link in "d", no longer young. */
static void *make_known(struct fixture *f, const char *has)
{
	void *whole, *known;
	int rc;

	put_dir(f, "d");
	put_file(f, "d/a", "1");
	put_file(f, "d/b", "22");
	put_file(f, "d/c", "333");
	assert_int_equal(symlink("a", in_source(f, "d/l")), 0);
	usleep(200000);
	whole = ask_list(f->o, "d", &rc);
	assert_int_equal(rc, 0);
	known = trim(whole, has);
	free(whole);
	return known;
}

static void move(struct fixture *f, const char *from, const char *to)
{
	int dir = cop_origin_dirfd(f->o);

	assert_int_equal(renameat(dir, from, dir, to), 0);
}

static uint64_t operations(struct fixture *f)
{
	return cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS);
}

static bool has_attr(const void *listing, const char *name)
{
	struct cop_listing_entry e;

	assert_true(cop_listing_find(listing, name, strlen(name), &e));
	return e.has_attr;
}

static void known_names_are_not_read_again(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b"), *l;
	struct cop_listing_entry e;
	uint64_t before;
	int rc;

	put_file(f, "d/b", "changed in place");
	before = operations(f);
	l = ask_known(f->o, "d", known, &rc);
	assert_int_equal(rc, 0);
	/* The descriptor, the directory before and after, and one name. */
	assert_int_equal(operations(f) - before, 4);
	assert_int_equal(cop_listing_count(l), 4);
	assert_int_equal(cop_listing_flags(l), COP_LISTING_COMPLETE);
	assert_true(cop_listing_find(l, "b", 1, &e));
	assert_int_equal(e.attr.size, 16);
	assert_false(has_attr(l, "a"));
	assert_false(has_attr(l, "l"));
	free(l);
	free(known);
}

static void a_wanted_link_has_its_target_of_now(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "l"), *l;
	struct cop_listing_entry e;
	int rc;

	l = ask_known(f->o, "d", known, &rc);
	assert_int_equal(rc, 0);
	assert_true(cop_listing_find(l, "l", 1, &e));
	assert_int_equal(e.target_len, 1);
	free(l);
	free(known);
}

static void expect_read_again(struct fixture *f, const void *known, unsigned count)
{
	void *l;
	int rc;

	l = ask_known(f->o, "d", known, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(l), count);
	assert_true(has_attr(l, "a"));
	free(l);
}

static void a_directory_that_changed_is_read_again(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b");

	put_file(f, "d/new", "4");
	expect_read_again(f, known, 5);
	assert_int_equal(unlink(in_source(f, "d/new")), 0);
	expect_read_again(f, known, 4);
	free(known);
}

/* Its ctime tells, although names, size and mtime are those of before. */
static void a_directory_that_was_touched_back_is_read_again(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b");
	struct timespec times[2];
	struct stat st;

	assert_int_equal(stat(in_source(f, "d"), &st), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	move(f, "d/c", "d/z");
	assert_int_equal(utimensat(AT_FDCWD, in_source(f, "d"), times, 0), 0);
	expect_read_again(f, known, 4);
	free(known);
}

static void another_directory_of_the_same_name_is_read_again(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b");

	move(f, "d", "old");
	put_dir(f, "d");
	put_file(f, "d/a", "1");
	expect_read_again(f, known, 1);
	free(known);
}

static void a_directory_that_is_gone_or_a_file_is_an_error(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b");
	int rc;

	move(f, "d", "old");
	assert_null(ask_known(f->o, "d", known, &rc));
	assert_int_equal(rc, -ENOENT);
	put_file(f, "d", "no directory");
	assert_null(ask_known(f->o, "d", known, &rc));
	assert_int_equal(rc, -ENOTDIR);
	assert_int_equal(unlink(in_source(f, "d")), 0);
	assert_int_equal(symlink("old", in_source(f, "d")), 0);
	assert_null(ask_known(f->o, "d", known, &rc));
	assert_true(rc == -ELOOP || rc == -ENOTDIR);
	free(known);
}

/* The directory's stamps say nothing of it: its own names are those of before. */
static void a_wanted_name_that_is_gone_proves_a_change(void **state)
{
	struct fixture *f = *state;
	void *known = make_known(f, "b");

	assert_int_equal(unlink(in_source(f, "d/b")), 0);
	expect_read_again(f, known, 3);
	free(known);
}

/* In a mount namespace of its own, so that nothing is left if the test fails. */
static void a_mount_on_a_known_name_is_seen(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		struct cop_origin_conf conf = {.source = f->source, .listing_attrs = 64};
		struct cop_origin *o;
		struct cop_listing_entry e;
		struct stat st;
		void *known, *l;
		int rc;

		put_dir(f, "d");
		put_dir(f, "d/sub");
		put_file(f, "d/b", "1");
		usleep(200000);
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			cop_origin_open(&conf, &o, NULL))
			_exit(1);
		l = ask_list(o, "d", &rc);
		known = trim(l, "b");
		if (mount("none", in_source(f, "d/sub"), "tmpfs", 0, NULL) ||
			stat(in_source(f, "d/sub"), &st))
			_exit(2);
		l = ask_known(o, "d", known, &rc);
		if (rc || !cop_listing_find(l, "sub", 3, &e) || !e.has_attr ||
			e.attr.mtime_nsec != st.st_mtim.tv_nsec)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(known_names_are_not_read_again),
		T(a_wanted_link_has_its_target_of_now),
		T(a_directory_that_changed_is_read_again),
		T(a_directory_that_was_touched_back_is_read_again),
		T(another_directory_of_the_same_name_is_read_again),
		T(a_directory_that_is_gone_or_a_file_is_an_error),
		T(a_wanted_name_that_is_gone_proves_a_change),
		T(a_mount_on_a_known_name_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
