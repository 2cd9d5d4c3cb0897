/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/walk/dir_testing.h"
#include "base/walk/walk_priv.h"

static void put_file(const char *path, size_t bytes)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static bool no_openat2;

static struct cop_walk_tree *walk_roots(
	const char *const *roots, size_t n, unsigned threads, bool sizes)
{
	struct cop_walk_conf conf = {.root = roots,
		.roots = n,
		.threads = threads,
		.sizes = sizes,
		.no_openat2 = no_openat2};
	struct cop_walk_tree *t = NULL;
	struct cop_err err = {0};

	assert_int_equal(cop_walk(&conf, &t, &err), 0);
	return t;
}

/* One line per path, relative to dir. */
static int add_line(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	size_t n = strlen(dir);

	(void)e;
	assert_int_equal(strlen(path), len);
	if (strncmp(path, dir, n) == 0)
		path += n;
	cop_buf_printf(arg, "%s\n", path);
	return 0;
}

static void assert_list(const struct cop_walk_tree *t, const char *want)
{
	struct cop_buf got = {0};

	assert_int_equal(cop_walk_tree_each(t, add_line, &got), 0);
	assert_string_equal(got.data ? got.data : "", want);
	cop_buf_free(&got);
}

static void paths_come_in_the_order_of_their_bytes(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;

	(void)state;
	assert_int_equal(mkdir("lib", 0700), 0);
	assert_int_equal(mkdir("lib-x", 0700), 0);
	assert_int_equal(mkdir("lib-x-y", 0700), 0);
	assert_int_equal(mkdir("lib64", 0700), 0);
	put_file("lib/a", 1);
	put_file("lib-x/a", 10);
	put_file("lib-x-y/a", 100);
	put_file("lib64/a", 1000);
	put_file("lib.so", 10000);
	put_file("lib-", 0);
	t = walk_roots(roots, 1, 3, true);
	assert_list(t,
		"\n/lib\n/lib-\n/lib-x\n/lib-x-y\n/lib-x-y/a\n/lib-x/a\n/lib.so\n/lib/a\n/lib64\n/lib64/a\n");
	assert_int_equal(t->files, 6);
	assert_int_equal(t->dirs, 5);
	assert_int_equal(t->bytes, 11111);
	cop_walk_tree_free(t);
}

static void two_roots_interleave_as_their_paths_do(void **state)
{
	char a[80], b[80];
	const char *roots[] = {a, b};
	struct cop_walk_tree *t;

	(void)state;
	snprintf(a, sizeof(a), "%s/r", dir);
	snprintf(b, sizeof(b), "%s/r-s", dir);
	assert_int_equal(mkdir("r", 0700) | mkdir("r-s", 0700), 0);
	put_file("r/x", 0);
	put_file("r-s/x", 0);
	t = walk_roots(roots, 2, 2, false);
	assert_list(t, "/r\n/r-s\n/r-s/x\n/r/x\n");
	cop_walk_tree_free(t);
}

static void links_are_entries_and_are_not_followed(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;
	char path[80];

	(void)state;
	assert_int_equal(mkdir("real", 0700), 0);
	put_file("real/x", 5);
	assert_int_equal(
		symlink("real", "link") | symlink("..", "real/up") | symlink("nowhere", "dangling"),
		0);
	t = walk_roots(roots, 1, 0, true);
	assert_list(t, "\n/dangling\n/link\n/real\n/real/up\n/real/x\n");
	assert_int_equal(t->files, 4);
	assert_int_equal(t->bytes, 5);
	snprintf(path, sizeof(path), "%s/link/x", dir);
	bool absent = true;
	assert_null(cop_walk_tree_find(t, path, strlen(path), &absent));
	assert_false(absent);
	cop_walk_tree_free(t);
}

static void a_root_may_be_a_link_or_a_file_or_nothing(void **state)
{
	char a[80], b[80], c[80];
	const char *roots[] = {a, b, c};
	struct cop_walk_tree *t;

	(void)state;
	snprintf(a, sizeof(a), "%s/absent", dir);
	snprintf(b, sizeof(b), "%s/file", dir);
	snprintf(c, sizeof(c), "%s/link", dir);
	assert_int_equal(mkdir("real", 0700), 0);
	put_file("file", 7);
	put_file("real/x", 5);
	assert_int_equal(symlink("real", "link"), 0);
	t = walk_roots(roots, 3, 2, true);
	assert_list(t, "/file\n/link\n/link/x\n");
	assert_int_equal(t->bytes, 12);
	cop_walk_tree_free(t);
}

static void names_are_found_and_absences_proven(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;
	struct cop_walk_entry *e;
	char path[200];
	bool absent;

	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	put_file("d/f", 5);
	t = walk_roots(roots, 1, 2, true);
	snprintf(path, sizeof(path), "%s/d/f", dir);
	e = cop_walk_tree_find(t, path, strlen(path), &absent);
	assert_non_null(e);
	assert_int_equal(e->size, 5);
	assert_false(absent);
	strcat(path, "/below");
	assert_null(cop_walk_tree_find(t, path, strlen(path), &absent));
	assert_true(absent);
	snprintf(path, sizeof(path), "%s/d/none/below", dir);
	assert_null(cop_walk_tree_find(t, path, strlen(path), &absent));
	assert_true(absent);
	assert_null(cop_walk_tree_find(t, "/elsewhere", 10, &absent));
	assert_false(absent);
	e = cop_walk_tree_find(t, dir, strlen(dir), NULL);
	assert_ptr_equal(e, &t->top.entry[0]);
	cop_walk_tree_free(t);
}

static void many_names_with_any_byte_are_walked_by_many(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;
	char name[64];

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(mkdir(name, 0700), 0);
		for (unsigned k = 0; k < (i == 7 ? 3000u : 30u); k++) {
			snprintf(name, sizeof(name), "d%u/%c%c %u", i, (char)(k % 46 + 1),
				(char)(k % 128 + 127), k);
			put_file(name, k);
		}
	}
	t = walk_roots(roots, 1, 8, true);
	assert_int_equal(t->files, 39 * 30 + 3000);
	assert_int_equal(t->dirs, 41);
	assert_int_equal(t->bytes, 39 * (30 * 29 / 2) + 3000 * 2999 / 2);
	cop_walk_tree_free(t);
}

static void a_tree_without_end_is_refused(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_conf conf = {.root = roots, .roots = 1, .max_entries = 4, .sizes = true};
	struct cop_walk_tree *t = NULL;
	struct cop_err err = {0};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		put_file(name, 0);
		conf.max_entries = 4;
		assert_int_equal(cop_walk(&conf, &t, &err), i < 4 ? 0 : -E2BIG);
		if (i < 4)
			cop_walk_tree_free(t);
	}
	assert_non_null(strstr(err.text, "more than 4 names"));
}

static void walk_deep_tree(void)
{
	const char *roots[] = {dir};
	bool by_path = !no_openat2 && cop_has_openat2(AT_FDCWD);
	struct cop_walk_tree *t = walk_roots(roots, 1, 2, true);

	assert_int_equal(t->unreadable, by_path);
	if (by_path)
		assert_int_equal(t->fault[0].error, ENAMETOOLONG);
	assert_in_range(t->dirs, by_path ? 20 : 26, by_path ? 22 : 26);
	cop_walk_tree_free(t);
}

/* openat2 takes whole paths; without it, each directory is opened relative to its parent. */
static void deep_trees_end_where_the_kernel_says(void **state)
{
	char name[201];

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	for (unsigned i = 0; i < 25; i++)
		assert_int_equal(mkdir(name, 0700) | chdir(name), 0);
	assert_int_equal(chdir(dir), 0);
	walk_deep_tree();
	no_openat2 = true;
	walk_deep_tree();
	no_openat2 = false;
	for (unsigned i = 0; i < 25; i++)
		assert_int_equal(chdir(name), 0);
	for (unsigned i = 0; i < 25; i++)
		assert_int_equal(chdir("..") | rmdir(name), 0);
}

static void the_mounts_of_pseudo_file_systems_are_known(void **state)
{
	static const char *const all[][2] = {{"/sys", "sysfs"},
		{"/tmp/with blank\\", "fuse.copper"}, {"/home", "ext4"}, {"/a/b/proc", "proc"}};
	struct mounts m = {0};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
		assert_int_equal(cop_walk_mounts_add(&m, all[i][0], all[i][1]), 0);
	assert_int_equal(m.n, 3);
	assert_true(cop_walk_mounts_in(&m, "/", 1));
	assert_true(cop_walk_mounts_is(&m, "/", 1, "sys", 3));
	assert_false(cop_walk_mounts_is(&m, "/", 1, "home", 4));
	assert_true(cop_walk_mounts_is(&m, "/tmp", 4, "with blank\\", 11));
	assert_true(cop_walk_mounts_in(&m, "/a/b", 4));
	assert_false(cop_walk_mounts_in(&m, "/a", 2));
	assert_false(cop_walk_mounts_in(&m, "/a/b/proc", 9));
	cop_walk_mounts_free(&m);
}

/* Runs in a mount namespace of its own, because the test must not walk through other mounts. */
static int walk_past_proc(void)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;
	struct cop_walk_entry *e;
	char proc[PATH_MAX], inside[PATH_MAX + 2];
	bool well;

	snprintf(proc, sizeof(proc), "%s/proc", dir);
	snprintf(inside, sizeof(inside), "%s/1", proc);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mkdir(proc, 0700) || mount("proc", proc, "proc", 0, NULL))
		return 77;
	t = walk_roots(roots, 1, 0, false);
	e = cop_walk_tree_find(t, proc, strlen(proc), NULL);
	well = e && e->dir->state == COP_WALK_SKIPPED && t->skipped == 1 &&
	       !cop_walk_tree_find(t, inside, strlen(inside), NULL);
	cop_walk_tree_free(t);
	umount(proc);
	return well ? 0 : 1;
}

static void proc_is_not_entered(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(walk_past_proc());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_same_is_found_without_openat2(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t[2];
	struct cop_buf list[2] = {{0}};

	(void)state;
	assert_int_equal(mkdir("a", 0700) | mkdir("a/b", 0700) | mkdir("a/b/c", 0700), 0);
	assert_int_equal(symlink("a", "to-a") | symlink("/usr", "a/away"), 0);
	put_file("a/b/c/file", 4321);
	for (int i = 0; i < 2; i++) {
		no_openat2 = i;
		t[i] = walk_roots(roots, 1, 2, true);
		assert_int_equal(cop_walk_tree_each(t[i], add_line, &list[i]), 0);
		assert_int_equal(t[i]->unreadable, 0);
		assert_int_equal(t[i]->dirs, 4);
		assert_int_equal(t[i]->bytes, 4321);
		cop_walk_tree_free(t[i]);
	}
	no_openat2 = false;
	assert_string_equal(list[0].data, list[1].data);
	assert_string_equal(list[0].data, "\n/a\n/a/away\n/a/b\n/a/b/c\n/a/b/c/file\n/to-a\n");
	cop_buf_free(&list[0]);
	cop_buf_free(&list[1]);
}

static void an_unreadable_directory_is_named(void **state)
{
	const char *roots[] = {dir};
	struct cop_walk_tree *t;
	char path[80];
	bool absent = true;

	(void)state;
	if (!geteuid())
		assert_int_equal(chmod(dir, 0711) | seteuid(65534), 0);
	if (geteuid() == 65534) {
		t = walk_roots(roots, 1, 2, true);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(t->unreadable, 1);
		assert_int_equal(t->fault[0].error, EACCES);
		assert_string_equal(t->fault[0].path, dir);
		snprintf(path, sizeof(path), "%s/x", dir);
		assert_null(cop_walk_tree_find(t, path, strlen(path), &absent));
		assert_false(absent);
		cop_walk_tree_free(t);
	}
}

int main(void)
{
#define each(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		each(paths_come_in_the_order_of_their_bytes),
		each(two_roots_interleave_as_their_paths_do),
		each(links_are_entries_and_are_not_followed),
		each(a_root_may_be_a_link_or_a_file_or_nothing),
		each(names_are_found_and_absences_proven),
		each(many_names_with_any_byte_are_walked_by_many),
		each(a_tree_without_end_is_refused),
		each(deep_trees_end_where_the_kernel_says),
		each(an_unreadable_directory_is_named),
		each(the_same_is_found_without_openat2),
		cmocka_unit_test(the_mounts_of_pseudo_file_systems_are_known),
		each(proc_is_not_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
