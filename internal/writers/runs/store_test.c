/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "writers/runs/store_priv.h"

static char dir[64], path[96], beside[128];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/store_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/runs.db", dir);
	snprintf(beside, sizeof(beside), "%s.d", path);
	return 0;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static struct cop_runrec record(const char *id, double start_s)
{
	struct cop_runrec r = {.start_s = start_s, .seen_s = start_s, .beat_s = 30, .nodes = 2};

	snprintf(r.id, sizeof(r.id), "%s", id);
	cop_runrec_put(&r, COP_RUNREC_NAME, "name");
	cop_runrec_pair(&r, COP_RUNREC_PARAM, "chunk", "64");
	cop_runrec_next(&r);
	cop_runrec_point(&r, "x", start_s, 1);
	return r;
}

static int put(const struct cop_runrec *r, uint64_t from_step, struct cop_err *err)
{
	return cop_store_put(path, r, from_step, cop_now_ms() + 60000, err);
}

static void put_new(const char *id, double start_s)
{
	struct cop_runrec r = record(id, start_s);
	struct cop_err err = {0};

	if (put(&r, 0, &err))
		fail_msg("%s", err.text);
	cop_runrec_free(&r);
}

static struct cop_store *opened(void)
{
	struct cop_store *s = NULL;
	struct cop_err err = {0};

	if (cop_store_open(path, &s, NULL, &err))
		fail_msg("%s", err.text);
	return s;
}

static size_t count(enum cop_runrec_status status)
{
	struct cop_store_filter f = {.by_status = status != COP_RUNREC_STATUSES, .status = status};
	struct cop_store_runs runs = {0};
	struct cop_store *s = opened();
	struct cop_err err = {0};
	size_t n;

	assert_int_equal(cop_store_runs(s, &f, &runs, &err), 0);
	n = runs.n;
	cop_store_runs_free(&runs);
	cop_store_close(s);
	return n;
}

static struct cop_runrec loaded(const char *ref)
{
	char id[COP_RUNREC_ID_LEN + 1];
	struct cop_runrec r = {0};
	struct cop_store *s = opened();
	struct cop_err err = {0};

	if (cop_store_find(s, ref, id, &err) || cop_store_load(s, id, &r, &err))
		fail_msg("%s", err.text);
	cop_store_close(s);
	return r;
}

/* Executes one statement, as another program would. */
static void execute(const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void write_text(const char *name, const char *text)
{
	assert_int_equal(cop_write_file(name, text, strlen(text), 0644), 0);
}

/* ---- writing and reading ---- */

static void a_run_is_read_as_it_was_written(void **state)
{
	struct cop_runrec r;

	(void)state;
	put_new("00000000000000aa", 100);
	r = loaded("last");
	assert_string_equal(r.id, "00000000000000aa");
	assert_string_equal(cop_runrec_get(&r, COP_RUNREC_NAME), "name");
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_PARAM, "chunk"), "64");
	assert_int_equal(cop_runrec_find(&r, "x")->n, 1);
	cop_runrec_free(&r);
}

static void later_writes_add_what_is_new_and_drop_what_was_thinned(void **state)
{
	struct cop_runrec r = record("00000000000000aa", 100), stored;
	const struct cop_runrec_series *ours = NULL, *theirs;
	struct cop_err err = {0};
	uint64_t from = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		if (cop_runrec_next(&r))
			cop_runrec_point(&r, "x", i, i);
		if (i % 700 == 0) {
			assert_int_equal(put(&r, from, &err), 0);
			from = r.step + 1;
		}
	}
	cop_runrec_last(&r);
	cop_runrec_point(&r, "x", 1e6, 1e6);
	assert_int_equal(put(&r, from, &err), 0);
	stored = loaded("00");
	ours = cop_runrec_find(&r, "x");
	theirs = cop_runrec_find(&stored, "x");
	assert_int_equal(theirs->n, ours->n);
	assert_memory_equal(theirs->point, ours->point, ours->n * sizeof(*ours->point));
	cop_runrec_free(&r);
	cop_runrec_free(&stored);
}

static void an_older_record_changes_nothing(void **state)
{
	struct cop_runrec r = record("00000000000000aa", 100), stored;
	struct cop_err err = {0};

	(void)state;
	r.seen_s = 200;
	r.status = COP_RUNREC_FINISHED;
	assert_int_equal(put(&r, 0, &err), 0);
	r.seen_s = 150;
	r.status = COP_RUNREC_RUNNING;
	assert_int_equal(put(&r, 0, &err), 0);
	stored = loaded("last");
	assert_int_equal(stored.status, COP_RUNREC_FINISHED);
	cop_runrec_free(&r);
	cop_runrec_free(&stored);
}

static void a_run_whose_telemetry_stopped_is_lost(void **state)
{
	struct cop_runrec r = record("00000000000000aa", 100);
	struct cop_err err = {0};

	(void)state;
	put_new("00000000000000bb", 100);
	r.seen_s = (double)cop_wall_ns() / 1e9;
	assert_int_equal(put(&r, 0, &err), 0);
	assert_int_equal(count(COP_RUNREC_LOST), 1);
	assert_int_equal(count(COP_RUNREC_RUNNING), 1);
	cop_runrec_free(&r);
}

static void runs_are_found_by_few_characters(void **state)
{
	char id[COP_RUNREC_ID_LEN + 1];
	struct cop_err err = {0};
	struct cop_store *s;

	(void)state;
	put_new("aa00000000000000", 100);
	put_new("ab00000000000000", 200);
	s = opened();
	assert_int_equal(cop_store_find(s, "aa", id, &err), 0);
	assert_string_equal(id, "aa00000000000000");
	assert_int_equal(cop_store_find(s, "AB", id, &err), 0);
	assert_int_equal(cop_store_find(s, "last", id, &err), 0);
	assert_string_equal(id, "ab00000000000000");
	assert_int_equal(cop_store_find(s, "last~1", id, &err), 0);
	assert_string_equal(id, "aa00000000000000");
	assert_int_equal(cop_store_find(s, "a", id, &err), -EINVAL);
	assert_int_equal(cop_store_find(s, "", id, &err), -ENOENT);
	assert_int_equal(cop_store_find(s, "last~2", id, &err), -ENOENT);
	assert_int_equal(cop_store_find(s, "' OR 1", id, &err), -ENOENT);
	cop_store_close(s);
}

/* ---- files that are not stores ---- */

static void refused(int code, const char *sentence)
{
	struct cop_runrec r = record("00000000000000aa", 100);
	struct cop_store *s = NULL;
	struct cop_err err = {0};

	assert_int_equal(put(&r, 0, &err), code);
	assert_non_null(strstr(err.text, sentence));
	err = (struct cop_err){0};
	assert_int_equal(cop_store_open(path, &s, NULL, &err), code);
	assert_non_null(strstr(err.text, sentence));
	assert_null(s);
	cop_runrec_free(&r);
}

static void other_files_stay_as_they_are(void **state)
{
	char *text;
	size_t len;

	(void)state;
	write_text(path,
		"#!/bin/sh\necho this is a script and no database at all, however long it is made for a test; it has more than a hundred bytes\n");
	refused(-EMEDIUMTYPE, "not an SQLite database");
	assert_int_equal(cop_read_file(path, 4096, &text, &len), 0);
	assert_memory_equal(text, "#!/bin/sh\n", 10);
	free(text);
	unlink(path);
	execute("CREATE TABLE run (id)");
	refused(-EMEDIUMTYPE, "another program");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EISDIR, "is a directory");
}

static void a_later_form_is_refused(void **state)
{
	(void)state;
	put_new("00000000000000aa", 100);
	execute("PRAGMA user_version = 2");
	refused(-EPROTO, "format 2");
}

static void a_reader_makes_no_file(void **state)
{
	struct cop_store *s;
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_store_open(path, &s, NULL, &err), -ENOENT);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(beside, F_OK), -1);
}

/* ---- locks ---- */

/* Starts a process that keeps the store locked until it is killed. */
static pid_t hold(void)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		sqlite3 *db = NULL;

		if (sqlite3_open(path, &db) ||
			sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void a_locked_store_is_given_up_at_the_deadline(void **state)
{
	struct cop_runrec r = record("00000000000000bb", 100);
	struct cop_err err = {0};
	pid_t pid;

	(void)state;
	put_new("00000000000000aa", 100);
	pid = hold();
	assert_int_equal(cop_store_put(path, &r, 0, cop_now_ms() + 50, &err), -EBUSY);
	assert_non_null(strstr(err.text, "locked by another process"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(put(&r, 0, &err), 0);
	assert_int_equal(count(COP_RUNREC_STATUSES), 2);
	cop_runrec_free(&r);
}

static void write_one(unsigned i)
{
	char id[COP_RUNREC_ID_LEN + 1];
	struct cop_runrec r;
	struct cop_err err = {0};

	snprintf(id, sizeof(id), "%016x", i);
	r = record(id, i);
	_exit(put(&r, 0, &err) ? 1 : 0);
}

static void of_64_writers_at_once_none_is_lost(void **state)
{
	int status, good = 0;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		if (fork() == 0)
			write_one(i);
	while (wait(&status) > 0)
		good += status == 0;
	assert_int_equal(good, 64);
	assert_int_equal(count(COP_RUNREC_STATUSES), 64);
}

/* ---- STORE.d ---- */

static void the_next_reader_takes_in_what_is_beside(void **state)
{
	struct cop_runrec r = record("00000000000000bb", 100);
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_store_put_beside(path, &r, &err), 0);
	assert_int_equal(count(COP_RUNREC_STATUSES), 1);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(beside, F_OK), -1);
	cop_runrec_free(&r);
}

static void a_store_that_cannot_be_changed_is_read_with_what_is_beside(void **state)
{
	struct cop_runrec r = record("00000000000000bb", 100);
	struct cop_err err = {0};
	struct rlimit limit;

	(void)state;
	put_new("00000000000000aa", 100);
	assert_int_equal(cop_store_put_beside(path, &r, &err), 0);
	/* From here on, no file can grow. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(count(COP_RUNREC_STATUSES), 2);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(access(beside, F_OK), 0);
	assert_int_equal(count(COP_RUNREC_STATUSES), 2);
	assert_int_equal(access(beside, F_OK), -1);
	cop_runrec_free(&r);
}

/* Makes the kernel refuse locks to this process, like a network file system without a lock
 * service. */
static void refuse_locks(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = COP_ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(77);
}

static void write_without_locks(void)
{
	struct cop_runrec r = record("00000000000000bb", 100);
	struct cop_err err = {0};

	refuse_locks();
	if (put(&r, 0, &err) != -ENOLCK || !strstr(err.text, "refuses locks"))
		_exit(1);
	if (cop_store_put_beside(path, &r, &err) || count(COP_RUNREC_STATUSES) != 2)
		_exit(2);
	_exit(access(beside, F_OK) ? 3 : 0);
}

static void where_locks_are_refused_runs_are_kept_beside_and_read(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	put_new("00000000000000aa", 100);
	pid = fork();
	if (pid == 0)
		write_without_locks();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no seccomp filter can be set here, so locks cannot be refused\n");
		skip();
	}
	assert_int_equal(status, 0);
	assert_int_equal(count(COP_RUNREC_STATUSES), 2);
	assert_int_equal(access(beside, F_OK), -1);
}

static void damaged_records_beside_are_named_and_stay(void **state)
{
	struct cop_buf notes = {0};
	struct cop_store *s = NULL;
	struct cop_err err = {0};
	char file[192];

	(void)state;
	put_new("00000000000000aa", 100);
	assert_int_equal(mkdir(beside, 0700), 0);
	snprintf(file, sizeof(file), "%s/00000000000000bb.run", beside);
	write_text(file, "copper-run 1\n");
	snprintf(file, sizeof(file), "%s/notes", beside);
	write_text(file, "mine");
	assert_int_equal(cop_store_open(path, &s, &notes, &err), 0);
	assert_non_null(strstr(notes.data, "00000000000000bb.run: its end is missing"));
	cop_store_close(s);
	cop_buf_free(&notes);
	assert_int_equal(access(file, F_OK), 0);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		EACH(a_run_is_read_as_it_was_written),
		EACH(later_writes_add_what_is_new_and_drop_what_was_thinned),
		EACH(an_older_record_changes_nothing),
		EACH(a_run_whose_telemetry_stopped_is_lost),
		EACH(runs_are_found_by_few_characters),
		EACH(other_files_stay_as_they_are),
		EACH(a_later_form_is_refused),
		EACH(a_reader_makes_no_file),
		EACH(a_locked_store_is_given_up_at_the_deadline),
		EACH(of_64_writers_at_once_none_is_lost),
		EACH(the_next_reader_takes_in_what_is_beside),
		EACH(a_store_that_cannot_be_changed_is_read_with_what_is_beside),
		EACH(where_locks_are_refused_runs_are_kept_beside_and_read),
		EACH(damaged_records_beside_are_named_and_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
