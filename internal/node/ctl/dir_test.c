/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/ctl/ctl.h"

static char scratch[64];

static int setup(void **state)
{
	(void)state;
	snprintf(scratch, sizeof(scratch), "/tmp/cop-ctl-XXXXXX");
	unsetenv("XDG_RUNTIME_DIR");
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_scratch(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static void a_missing_folder_is_made_for_us_alone(void **state)
{
	char out[256];
	struct stat st;
	mode_t old = umask(0);

	(void)state;
	assert_int_equal(cop_ctl_dir(in_scratch("new"), out, sizeof(out), NULL), 0);
	umask(old);
	assert_string_equal(out, in_scratch("new"));
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(cop_ctl_dir(in_scratch("new"), out, sizeof(out), NULL), 0);
}

static void folders_that_are_open_to_others_or_links_or_files_are_refused(void **state)
{
	struct cop_err err = {0};
	char out[256], target[256];
	FILE *f;

	(void)state;
	assert_int_equal(mkdir(in_scratch("open"), 0700), 0);
	assert_int_equal(chmod(in_scratch("open"), 0710), 0);
	assert_int_equal(cop_ctl_dir(in_scratch("open"), out, sizeof(out), &err), -EACCES);
	assert_non_null(strstr(err.text, "chmod 700"));
	assert_int_equal(mkdir(in_scratch("good"), 0700), 0);
	snprintf(target, sizeof(target), "%s", in_scratch("good"));
	assert_int_equal(symlink(target, in_scratch("link")), 0);
	assert_int_equal(cop_ctl_dir(in_scratch("link"), out, sizeof(out), &err), -ENOTDIR);
	f = fopen(in_scratch("file"), "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(cop_ctl_dir(in_scratch("file"), out, sizeof(out), &err), -ENOTDIR);
	assert_int_equal(cop_ctl_dir(in_scratch("no/such"), out, sizeof(out), &err), -ENOENT);
	assert_int_equal(cop_ctl_dir(in_scratch("good"), out, 10, &err), -ENAMETOOLONG);
}

static void a_folder_of_someone_else_is_refused(void **state)
{
	struct cop_err err = {0};
	char out[256];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(in_scratch("other"), 0700), 0);
	assert_int_equal(chown(in_scratch("other"), 65534, 65534), 0);
	assert_int_equal(cop_ctl_dir(in_scratch("other"), out, sizeof(out), &err), -EACCES);
	assert_non_null(strstr(err.text, "belongs to user 65534"));
}

static void the_runtime_folder_comes_before_tmp(void **state)
{
	char out[256];

	(void)state;
	setenv("XDG_RUNTIME_DIR", scratch, 1);
	assert_int_equal(cop_ctl_dir(NULL, out, sizeof(out), NULL), 0);
	assert_string_equal(out, in_scratch("copper"));
	unsetenv("XDG_RUNTIME_DIR");
}

#define LOGIN "/run/user/64123"

/* Runs in a child with an unused user id, so that /tmp/copper-UID does not exist. */
static int fall_back(void)
{
	char out[256], want[64];

	if (setgid(64123) || setuid(64123))
		return 1;
	snprintf(want, sizeof(want), "/tmp/copper-64123");
	setenv("XDG_RUNTIME_DIR", scratch, 1); /* belongs to root */
	if (cop_ctl_dir(NULL, out, sizeof(out), NULL) || strcmp(out, want))
		return 2;
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	if (cop_ctl_dir(NULL, out, sizeof(out), NULL) || strcmp(out, want))
		return 3;
	setenv("XDG_RUNTIME_DIR", LOGIN, 1);
	if (cop_ctl_dir(NULL, out, sizeof(out), NULL) || strcmp(out, want))
		return 4;
	return rmdir(want) ? 5 : 0;
}

static void a_runtime_folder_of_someone_else_is_passed_over(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	mkdir("/run/user", 0755);
	assert_int_equal(mkdir(LOGIN, 0700), 0);
	pid = fork();
	if (pid == 0)
		_exit(chown(LOGIN, 64123, 64123) ? 9 : fall_back());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(LOGIN "/copper");
	assert_int_equal(rmdir(LOGIN), 0);
	assert_int_equal(status, 0);
}

static void paths_depend_on_the_key_alone_and_fit_a_socket_address(void **state)
{
	char a[COP_CTL_PATH_SIZE], b[COP_CTL_PATH_SIZE], key[5000], deep[200];

	(void)state;
	assert_int_equal(cop_ctl_path("/d", "/mnt/x", a, sizeof(a)), 0);
	assert_int_equal(cop_ctl_path("/d", "/mnt/x", b, sizeof(b)), 0);
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), strlen("/d/0123456789abcdef.sock"));
	assert_int_equal(cop_ctl_path("/d", "/mnt/y", b, sizeof(b)), 0);
	assert_string_not_equal(a, b);
	memset(key, 'k', sizeof(key));
	key[4999] = '\0';
	assert_int_equal(cop_ctl_path("/d", key, a, sizeof(a)), -EINVAL);
	assert_int_equal(cop_ctl_path("/d", "", a, sizeof(a)), -EINVAL);
	assert_int_equal(cop_ctl_path("/d", "k", a, 24), -ENAMETOOLONG);
	memset(deep, 'd', sizeof(deep));
	deep[86] = '\0';
	assert_int_equal(cop_ctl_path(deep, "k", deep + 100, 100), -ENAMETOOLONG);
	deep[86] = '\0';
	assert_int_equal(cop_ctl_path(deep, "k", a, sizeof(a)), -ENAMETOOLONG);
	deep[85] = '\0';
	assert_int_equal(cop_ctl_path(deep, "k", a, sizeof(a)), 0);
	assert_int_equal(strlen(a), 107);
}

static void the_socket_of_a_node_is_found_by_its_mount_or_by_host_and_port(void **state)
{
	struct cop_ctl_place place = {in_scratch("run"), "/mnt/x", "n1", 7720};
	char path[COP_CTL_PATH_SIZE], want[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1], deep[200];
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_ctl_place(&place, path, key, &err), 0);
	assert_string_equal(key, "/mnt/x");
	assert_int_equal(cop_ctl_path(place.runtime_dir, key, want, sizeof(want)), 0);
	assert_string_equal(path, want);
	place.mountpoint = "";
	assert_int_equal(cop_ctl_place(&place, path, key, &err), 0);
	assert_string_equal(key, "serve:n1:7720");
	snprintf(deep, sizeof(deep), "%s/%.90s", scratch,
		"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd");
	place.runtime_dir = deep;
	assert_int_equal(cop_ctl_place(&place, path, key, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "--runtime-dir"));
}

/* ---- listing ---- */

struct seen {
	int count;
	char key[64], path[COP_CTL_PATH_SIZE];
};

static void see(void *ctx, const char *key, const char *path)
{
	struct seen *s = ctx;

	s->count++;
	snprintf(s->key, sizeof(s->key), "%s", key);
	snprintf(s->path, sizeof(s->path), "%s", path);
}

static void make_socket_file(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(sa.sun_path, path, sizeof(sa.sun_path) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
}

static void put_key(const char *sock_path, const char *text)
{
	char path[COP_CTL_PATH_SIZE];

	snprintf(path, sizeof(path), "%.*s.key", (int)strlen(sock_path) - 5, sock_path);
	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
}

static void only_true_keys_with_a_socket_are_listed(void **state)
{
	struct seen seen = {0};
	char path[COP_CTL_PATH_SIZE];

	(void)state;
	assert_int_equal(cop_ctl_list(in_scratch("none"), see, &seen), -ENOENT);
	assert_int_equal(cop_ctl_list(scratch, see, &seen), 0);
	cop_ctl_path(scratch, "no socket", path, sizeof(path));
	put_key(path, "no socket");
	cop_ctl_path(scratch, "lie", path, sizeof(path));
	make_socket_file(path);
	put_key(path, "/another/key");
	cop_write_file(in_scratch("0123.key"), "x", 1, 0600);
	cop_write_file(in_scratch("0123456789ABCDEF.key"), "x", 1, 0600);
	assert_int_equal(cop_ctl_list(scratch, see, &seen), 0);
	cop_ctl_path(scratch, "/mnt/a", path, sizeof(path));
	make_socket_file(path);
	put_key(path, "/mnt/a");
	assert_int_equal(cop_ctl_list(scratch, see, &seen), 1);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.key, "/mnt/a");
	assert_string_equal(seen.path, path);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_missing_folder_is_made_for_us_alone),
		T(folders_that_are_open_to_others_or_links_or_files_are_refused),
		T(a_folder_of_someone_else_is_refused),
		T(the_runtime_folder_comes_before_tmp),
		T(a_runtime_folder_of_someone_else_is_passed_over),
		T(paths_depend_on_the_key_alone_and_fit_a_socket_address),
		T(the_socket_of_a_node_is_found_by_its_mount_or_by_host_and_port),
		T(only_true_keys_with_a_socket_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
