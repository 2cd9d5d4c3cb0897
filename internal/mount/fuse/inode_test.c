/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mount/fuse/fuse_priv.h"

static struct cop_fuse *new_fs(void)
{
	struct cop_fuse *fs = calloc(1, sizeof(*fs));

	assert_int_equal(cop_fuse_inodes_init(fs), 0);
	return fs;
}

static void free_fs(struct cop_fuse *fs)
{
	cop_fuse_inodes_fini(fs);
	free(fs);
}

static struct inode *get_inode(
	struct cop_fuse *fs, struct inode *dir, const char *name, uint32_t mode, uint64_t version)
{
	struct cop_attr attr = {.mode = mode, .version = version, .ino = version};

	return cop_fuse_inode_get(fs, dir, name, strlen(name), &attr, PLACE_TREE);
}

static void a_path_is_built_from_the_names_above(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *a = get_inode(fs, fs->root, "a", S_IFDIR, 1),
		     *b = get_inode(fs, a, "bc", S_IFDIR, 2);
	char path[PATH_BYTES];

	(void)state;
	assert_int_equal(cop_fuse_path(fs->root, "", 0, path), 0);
	assert_string_equal(path, "");
	assert_int_equal(cop_fuse_path(fs->root, "x", 1, path), 1);
	assert_string_equal(path, "x");
	assert_int_equal(cop_fuse_path(b, "", 0, path), 4);
	assert_string_equal(path, "a/bc");
	assert_int_equal(cop_fuse_path(b, "d", 1, path), 6);
	assert_string_equal(path, "a/bc/d");
	free_fs(fs);
}

static void a_path_that_is_too_long_is_an_error_not_a_cut(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *dir = fs->root;
	char name[256], path[PATH_BYTES];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	for (int i = 0; i < 15; i++)
		dir = get_inode(fs, dir, name, S_IFDIR, 1);
	assert_int_equal(cop_fuse_path(dir, name, 255, path), 16 * 256 - 1);
	dir = get_inode(fs, dir, name, S_IFDIR, 1);
	assert_int_equal(cop_fuse_path(dir, "x", 1, path), -ENAMETOOLONG);
	free_fs(fs);
}

static void the_same_name_and_version_is_the_same_inode(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *a = get_inode(fs, fs->root, "f", S_IFREG, 7);

	(void)state;
	assert_ptr_equal(get_inode(fs, fs->root, "f", S_IFREG, 7), a);
	assert_int_equal(atomic_load(&a->refs), 2);
	cop_fuse_inode_put(fs, a, 2);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
	free_fs(fs);
}

static void a_new_version_of_a_file_is_a_new_inode_and_the_old_one_stays(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *old = get_inode(fs, fs->root, "f", S_IFREG, 7);
	struct inode *new = get_inode(fs, fs->root, "f", S_IFREG, 8);

	(void)state;
	assert_ptr_not_equal(old, new);
	assert_int_equal(cop_fuse_inode_attr(fs, old).version, 7);
	assert_ptr_equal(get_inode(fs, fs->root, "f", S_IFREG, 8), new);
	cop_fuse_inode_put(fs, old, 1);
	assert_ptr_equal(get_inode(fs, fs->root, "f", S_IFREG, 8), new);
	free_fs(fs);
}

static void a_directory_keeps_its_inode_and_takes_new_attributes(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *a = get_inode(fs, fs->root, "d", S_IFDIR, 7);

	(void)state;
	assert_ptr_equal(get_inode(fs, fs->root, "d", S_IFDIR, 8), a);
	assert_int_equal(cop_fuse_inode_attr(fs, a).version, 8);
	free_fs(fs);
}

static void a_directory_lives_as_long_as_something_below_it(void **state)
{
	struct cop_fuse *fs = new_fs();
	struct inode *d = get_inode(fs, fs->root, "d", S_IFDIR, 1),
		     *f = get_inode(fs, d, "f", S_IFREG, 2);
	char path[PATH_BYTES];

	(void)state;
	cop_fuse_inode_put(fs, d, 1);
	assert_int_equal(cop_fuse_inode_count(fs), 2);
	assert_int_equal(cop_fuse_path(f, "", 0, path), 3);
	assert_string_equal(path, "d/f");
	cop_fuse_inode_put(fs, f, 1);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
	free_fs(fs);
}

static void *look_up_and_forget(void *arg)
{
	struct cop_fuse *fs = arg;
	char name[8];

	for (int i = 0; i < 30000; i++) {
		struct inode *d, *f;

		snprintf(name, sizeof(name), "%d", i % 7);
		d = get_inode(fs, fs->root, name, S_IFDIR, 1);
		f = get_inode(fs, d, "f", S_IFREG, (uint64_t)i % 3 + 1);
		cop_fuse_inode_put(fs, d, 1);
		cop_fuse_inode_put(fs, f, 1);
	}
	return NULL;
}

static void two_threads_may_look_up_and_forget_the_same_names(void **state)
{
	struct cop_fuse *fs = new_fs();
	pthread_t t[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(cop_thread_start(&t[i], "lookup", look_up_and_forget, fs), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
	free_fs(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_built_from_the_names_above),
		cmocka_unit_test(a_path_that_is_too_long_is_an_error_not_a_cut),
		cmocka_unit_test(the_same_name_and_version_is_the_same_inode),
		cmocka_unit_test(a_new_version_of_a_file_is_a_new_inode_and_the_old_one_stays),
		cmocka_unit_test(a_directory_keeps_its_inode_and_takes_new_attributes),
		cmocka_unit_test(a_directory_lives_as_long_as_something_below_it),
		cmocka_unit_test(two_threads_may_look_up_and_forget_the_same_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
