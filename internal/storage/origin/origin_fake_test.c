/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/origin/origin.h"

struct got {
	int calls, rc;
	void *data;
	size_t len;
};

static void done(void *arg, int rc, void *data, size_t len)
{
	struct got *g = arg;

	free(g->data);
	g->calls++;
	g->rc = rc;
	g->data = data;
	g->len = len;
}

static int setup(void **state)
{
	struct cop_origin *o = cop_origin_fake_new();

	cop_origin_fake_put(o, "a/b/file", S_IFREG | 0644, "hello", 5);
	cop_origin_fake_put(o, "a/link", S_IFLNK | 0777, "b", 1);
	cop_origin_fake_put(o, "ab", S_IFDIR | 0755, NULL, 0);
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	cop_origin_close(*state);
	return 0;
}

static int stat_rc(struct cop_origin *o, const char *path, struct cop_attr *attr)
{
	struct got g = {0};

	cop_origin_stat(o, path, done, &g);
	assert_int_equal(g.calls, 0);
	assert_int_equal(cop_origin_fake_run(o, 10), 1);
	assert_int_equal(g.calls, 1);
	if (!g.rc) {
		assert_int_equal(cop_entry_check(g.data, g.len), 0);
		cop_entry_get(g.data, attr, NULL, NULL);
	}
	free(g.data);
	return g.rc;
}

static void a_listing_has_the_direct_children_only(void **state)
{
	struct cop_listing_entry e;
	struct got g = {0};

	cop_origin_list(*state, "", done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.rc, 0);
	assert_int_equal(cop_listing_check(g.data, g.len), 0);
	assert_int_equal(cop_listing_count(g.data), 2);
	cop_origin_list(*state, "a", done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(cop_listing_count(g.data), 2);
	assert_true(cop_listing_find(g.data, "b", 1, &e) && e.type == DT_DIR);
	assert_true(cop_listing_find(g.data, "link", 4, &e) && e.target_len == 1);
	cop_origin_names(*state, "a", done, &g);
	cop_origin_fake_run(*state, 1);
	assert_true(cop_listing_find(g.data, "link", 4, &e) && !e.has_attr && !e.target);
	free(g.data);
}

static void errors_are_those_of_the_real_one(void **state)
{
	struct cop_attr attr;
	struct got g = {0};

	assert_int_equal(stat_rc(*state, "none", &attr), -ENOENT);
	assert_int_equal(stat_rc(*state, "a/b/file/x", &attr), -ENOTDIR);
	assert_int_equal(stat_rc(*state, "a/link/file", &attr), -ELOOP);
	assert_int_equal(stat_rc(*state, "../x", &attr), -EINVAL);
	cop_origin_list(*state, "a/b/file", done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.rc, -ENOTDIR);
	cop_origin_read(*state, "a", 0, 0, 0, NULL, 0, done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.rc, -EISDIR);
}

static void a_file_that_is_put_again_has_a_new_version_and_one_that_is_removed_none(void **state)
{
	struct cop_attr before, after, dir, dir_after;
	struct got g = {0};
	char out[8] = "";
	struct iovec iov[2] = {{out, 2}, {out + 2, 6}};

	assert_int_equal(stat_rc(*state, "a/b/file", &before), 0);
	assert_int_equal(stat_rc(*state, "a/b", &dir), 0);
	cop_origin_fake_put(*state, "a/b/file", S_IFREG | 0644, "other!", 6);
	assert_int_equal(stat_rc(*state, "a/b/file", &after), 0);
	assert_int_equal(before.ino, after.ino);
	assert_int_not_equal(before.version, after.version);
	cop_origin_read(*state, "a/b/file", before.version, before.size, 0, iov, 2, done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.rc, -ESTALE);
	cop_origin_read(*state, "a/b/file", after.version, after.size, 1, iov, 2, done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.rc, 0);
	assert_int_equal(g.len, 5);
	assert_string_equal(out, "ther!");
	assert_int_equal(stat_rc(*state, "a/b", &dir_after), 0);
	assert_int_equal(dir.version, dir_after.version);
	cop_origin_fake_put(*state, "a/b/file", S_IFREG, NULL, 0);
	assert_int_equal(stat_rc(*state, "a/b/file", &after), -ENOENT);
	assert_int_equal(stat_rc(*state, "a/b", &dir_after), 0);
	assert_int_not_equal(dir.version, dir_after.version);
}

static void a_forced_error_stays_until_it_is_lifted(void **state)
{
	struct cop_attr attr;

	cop_origin_fake_fail(*state, "a/link", EIO);
	assert_int_equal(stat_rc(*state, "a/link", &attr), -EIO);
	assert_int_equal(stat_rc(*state, "a/link", &attr), -EIO);
	cop_origin_fake_fail(*state, "a/link", 0);
	assert_int_equal(stat_rc(*state, "a/link", &attr), 0);
	cop_origin_fake_fail(*state, "never", -EACCES);
	assert_int_equal(stat_rc(*state, "never", &attr), -EACCES);
}

static void jobs_wait_finish_in_order_and_are_counted_when_asked(void **state)
{
	struct got g[3] = {0};
	unsigned queued, running;

	for (int i = 0; i < 3; i++)
		cop_origin_stat(*state, "a", done, &g[i]);
	cop_origin_load(*state, &queued, &running);
	assert_int_equal(queued, 3);
	assert_int_equal(cop_origin_fake_counts(*state).stats, 3);
	assert_int_equal(cop_origin_fake_counts(*state).lists, 0);
	assert_int_equal(cop_origin_fake_run(*state, 2), 2);
	assert_int_equal(g[0].calls + g[1].calls, 2);
	assert_int_equal(g[2].calls, 0);
	assert_int_equal(cop_origin_fake_run(*state, 10), 1);
	assert_int_equal(cop_origin_fake_run(*state, 10), 0);
	for (int i = 0; i < 3; i++)
		free(g[i].data);
}

static void closing_cancels_what_waits(void **state)
{
	struct cop_origin *o = cop_origin_fake_new();
	struct got g = {0};

	(void)state;
	cop_origin_statfs(o, done, &g);
	cop_origin_close(o);
	assert_int_equal(g.calls, 1);
	assert_int_equal(g.rc, -ECANCELED);
}

static void holes_and_statfs_have_their_records(void **state)
{
	struct got g = {0};

	cop_origin_holes(*state, "a/b/file", 0, done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.len, sizeof(struct cop_extent));
	assert_int_equal(((struct cop_extent *)g.data)->end, 5);
	cop_origin_statfs(*state, done, &g);
	cop_origin_fake_run(*state, 1);
	assert_int_equal(g.len, sizeof(struct cop_statfs));
	free(g.data);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_listing_has_the_direct_children_only),
		T(errors_are_those_of_the_real_one),
		T(a_file_that_is_put_again_has_a_new_version_and_one_that_is_removed_none),
		T(a_forced_error_stays_until_it_is_lifted),
		T(jobs_wait_finish_in_order_and_are_counted_when_asked),
		T(closing_cancels_what_waits),
		T(holes_and_statfs_have_their_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
