/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/file.h>

#include "node/ctl/ctl_priv.h"
#include "node/ctl/ctl_testing.h"

static struct cop_ctl_socket s;

static int set_up(void **state)
{
	char dir[] = "/tmp/cop-keep-XXXXXX", path[COP_CTL_PATH_SIZE];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(cop_ctl_path(dir, "/mnt", path, sizeof(path)), 0);
	assert_int_equal(cop_ctl_socket_open(&s, path, "/mnt", NULL), 0);
	assert_int_equal(cop_ctl_socket_note(&s, "words"), 0);
	return 0;
}

static int tear_down(void **state)
{
	char dir[COP_CTL_PATH_SIZE];

	(void)state;
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(s.path, '/') - s.path), s.path);
	cop_ctl_socket_close(&s);
	/* The directory is empty. */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static int keep_now(void)
{
	s.look_ms = 0;
	return cop_ctl_keep(&s);
}

static bool is_found(const char *key)
{
	char dir[COP_CTL_PATH_SIZE], words[COP_CTL_NOTE_SIZE], file[COP_CTL_PATH_SIZE], *text;
	size_t len;
	bool found;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(s.path, '/') - s.path), s.path);
	cop_ctl_key_path(s.path, file);
	if (cop_read_file(file, COP_CTL_KEY_MAX, &text, &len))
		return false;
	found = strcmp(text, key) == 0;
	free(text);
	cop_ctl_noted(s.path, words);
	return found && strcmp(words, "words") == 0 && access(s.path, F_OK) == 0;
}

static bool answers(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer = -1;

	memcpy(sa.sun_path, s.path, strlen(s.path) + 1);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		peer = accept(s.fd, NULL, NULL);
	close(fd);
	if (peer >= 0)
		close(peer);
	return peer >= 0;
}

static void key_and_note_come_back(void **state)
{
	char file[COP_CTL_PATH_SIZE];

	(void)state;
	cop_ctl_key_path(s.path, file);
	unlink(file);
	assert_int_equal(cop_ctl_keep(&s), 0);
	assert_int_not_equal(access(file, F_OK), 0); /* the last check was a moment ago */
	assert_int_equal(keep_now(), 0);
	assert_true(is_found("/mnt"));
	cop_ctl_note_path(s.path, file);
	unlink(file);
	assert_int_equal(keep_now(), 0);
	assert_true(is_found("/mnt"));
}

static void a_socket_and_its_folder_come_back_under_the_same_descriptor(void **state)
{
	char dir[COP_CTL_PATH_SIZE], file[COP_CTL_PATH_SIZE];
	int fd = s.fd;

	(void)state;
	unlink(s.path);
	assert_int_equal(keep_now(), 1);
	assert_int_equal(s.fd, fd);
	assert_true(is_found("/mnt") && answers());
	cop_ctl_key_path(s.path, file);
	unlink(file);
	cop_ctl_note_path(s.path, file);
	unlink(file);
	unlink(s.path);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(s.path, '/') - s.path), s.path);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(keep_now(), 1);
	assert_true(is_found("/mnt") && answers());
	assert_int_equal(keep_now(), 0);
}

static void the_files_are_touched_in_time(void **state)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat st;

	(void)state;
	utimensat(AT_FDCWD, s.path, old, 0);
	assert_int_equal(keep_now(), 0);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	s.touch_ms = 0;
	assert_int_equal(keep_now(), 0);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000);
}

/* Tries the lock as a cleaner does. Other nodes can still start here. */
static void the_folder_is_locked_against_cleaners_and_open_to_other_nodes(void **state)
{
	char dir[COP_CTL_PATH_SIZE], path[COP_CTL_PATH_SIZE];
	struct cop_ctl_socket other;
	int fd;

	(void)state;
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(s.path, '/') - s.path), s.path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(cop_ctl_path(dir, "/other", path, sizeof(path)), 0);
	assert_int_equal(cop_ctl_socket_open(&other, path, "/other", NULL), 0);
	cop_ctl_socket_close(&other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(key_and_note_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_socket_and_its_folder_come_back_under_the_same_descriptor, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(the_files_are_touched_in_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_folder_is_locked_against_cleaners_and_open_to_other_nodes, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
