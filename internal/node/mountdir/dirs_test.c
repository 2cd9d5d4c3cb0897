/* SPDX-License-Identifier: BSD-3-Clause */
/* The remains of killed nodes. scripts/t/t0830-own-place.sh and the following tests cover the other
 * directories. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/ctl/ctl.h"
#include "node/mountdir/mountdir_priv.h"

static char dir[64], folder[96], place[128], other[96];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-place-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/" COP_MOUNTDIR_FOLDER "1234", dir);
	snprintf(place, sizeof(place), "%s/soft", folder);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(mkdir(folder, 0700) | mkdir(place, 0700) | mkdir(other, 0700), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rmdir(place);
	rmdir(folder);
	rmdir(other);
	return rmdir(dir);
}

static void age(const char *path)
{
	struct timespec at[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 60}};

	assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void an_empty_place_that_nobody_has_is_removed(void **state)
{
	(void)state;
	age(folder);
	age(other);
	cop_mountdir_sweep(dir);
	assert_false(is_there(folder));
	assert_true(is_there(other));
}

static void a_place_that_a_node_has_stays(void **state)
{
	int fd;

	(void)state;
	age(folder);
	fd = cop_mountdir_lock(folder, NULL);
	assert_true(fd >= 0);
	cop_mountdir_sweep(dir);
	assert_true(is_there(place));
	close(fd);
}

static void a_place_that_is_just_being_made_stays(void **state)
{
	(void)state;
	cop_mountdir_sweep(dir);
	assert_true(is_there(place));
}

static void a_place_with_something_in_it_stays(void **state)
{
	char inside[160];

	(void)state;
	snprintf(inside, sizeof(inside), "%s/file", place);
	close(open(inside, O_CREAT | O_WRONLY, 0600));
	age(folder);
	cop_mountdir_sweep(dir);
	assert_true(is_there(inside));
	unlink(inside);
}

/* ---- a killed node whose process has not exited yet ---- */

/* Starts a process that holds the lock of the folder, as a node does, and exits a while after it is
 * told to. */
static pid_t start_slow_to_end(void)
{
	int ready[2];
	char word;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (cop_mountdir_lock(folder, NULL) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		usleep(300000);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void note(const char *socket, pid_t pid)
{
	struct stat st;
	char words[COP_CTL_NOTE_SIZE];

	assert_int_equal(stat(place, &st), 0);
	snprintf(words, sizeof(words), "- 0 2 %ju %ju %d", (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino, (int)pid);
	assert_int_equal(cop_ctl_note(socket, words), 0);
}

static void a_place_is_removed_when_the_process_of_its_killed_node_has_ended(void **state)
{
	pid_t pid = start_slow_to_end();
	char socket[COP_CTL_PATH_SIZE];

	(void)state;
	assert_int_equal(cop_ctl_path(dir, place, socket, sizeof(socket)), 0);
	note(socket, pid);
	cop_mountdir_wait_ended(socket);
	assert_int_equal(cop_mountdir_remove_dead(place, socket), 0);
	assert_false(is_there(folder));
	cop_ctl_clear(socket, NULL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void its_guard_waits_for_that_too(void **state)
{
	struct cop_conf conf = {.runtime_dir = dir};
	struct cop_mountdir p = {.conf = &conf, .folder_fd = -1, .made = 2};
	pid_t pid = start_slow_to_end();
	char socket[COP_CTL_PATH_SIZE], run[128];

	(void)state;
	assert_int_equal(cop_ctl_dir(dir, run, sizeof(run), NULL), 0);
	assert_int_equal(cop_ctl_path(run, place, socket, sizeof(socket)), 0);
	note(socket, pid);
	snprintf(p.path, sizeof(p.path), "%s", place);
	cop_mountdir_remember(&p);
	cop_mountdir_clear(&p);
	assert_false(is_there(folder));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	rmdir(run);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_place_that_nobody_has_is_removed),
		T(a_place_that_a_node_has_stays),
		T(a_place_that_is_just_being_made_stays),
		T(a_place_with_something_in_it_stays),
		T(a_place_is_removed_when_the_process_of_its_killed_node_has_ended),
		T(its_guard_waits_for_that_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
