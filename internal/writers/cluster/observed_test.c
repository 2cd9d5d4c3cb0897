/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/walk/dir_testing.h"
#include "writers/cluster/observed_testing.h"

static void write_table(const char *name, const char *text)
{
	assert_int_equal(cop_write_file(name, text, strlen(text), 0600), 0);
}

static struct cop_observed *read_dir(int want)
{
	static struct cop_observed o;

	cop_observed_init(&o);
	assert_int_equal(cop_observed_read(&o, dir, NULL, NULL), want);
	return &o;
}

/* More files than are read at a time, and a set that grows while other threads hash into it. */
static void many_ranks_are_read_at_once(void **state)
{
	enum { RANKS = 2100, OWN = 7, SHARED = 11 };
	struct cop_observed *o;
	const struct cop_observed_path *p;

	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct cop_buf text = {0};
		char name[64];

		cop_buf_str(&text, "md_cache_event_table {\n");
		for (unsigned k = 0; k < OWN + SHARED; k++)
			cop_buf_printf(&text,
				"/%u/%u {\ncache hits: 1,\ncache misses: 1,\nneg: 1\n}\n",
				k < OWN ? i : RANKS, k);
		cop_buf_str(&text, "}\n");
		snprintf(name, sizeof(name), "host-%u-md_table_cache_event.output", i);
		write_table(name, text.data);
		cop_buf_free(&text);
	}
	o = read_dir(0);
	assert_int_equal(o->files, RANKS);
	assert_int_equal(o->paths, RANKS * (OWN + SHARED));
	assert_int_equal(o->set.table.count, RANKS * OWN + SHARED);
	assert_int_equal(o->faults.count, 0);
	p = find_in_set(&o->set, "/2100/12", 8);
	assert_non_null(p);
	assert_int_equal(p->events, 3 * RANKS);
	assert_int_equal(p->absent, RANKS);
	cop_observed_free(o);
}

static void only_tables_count(void **state)
{
	struct cop_observed *o;

	(void)state;
	cop_observed_free(read_dir(-ENOENT));
	write_table("notes.txt", "t {\n/a {\n}\n}\n");
	write_table(".output", "t {\n/a {\n}\n}\n");
	write_table("x.output.old", "t {\n/a {\n}\n}\n");
	cop_observed_free(read_dir(-ENOENT));
	write_table("x.output", "nothing\n");
	assert_int_equal(mkfifo("pipe.output", 0600), 0);
	assert_int_equal(symlink("/dev/zero", "zero.output") | symlink("nowhere", "gone.output") |
				 mkdir("dir.output", 0700),
		0);
	o = read_dir(-ENODATA);
	assert_int_equal(o->faults.count, 5);
	cop_observed_free(o);
	write_table("y.output", "t {\n/a {\n}\n}\n");
	o = read_dir(0);
	assert_int_equal(o->files, 1);
	assert_int_equal(o->faults.count, 5);
	cop_observed_free(o);
}

static void a_missing_directory_is_an_error(void **state)
{
	struct cop_observed o;

	(void)state;
	cop_observed_init(&o);
	assert_int_equal(cop_observed_read(&o, "/none/at/all", NULL, NULL), -ENOENT);
	cop_observed_free(&o);
}

int main(void)
{
#define each(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		each(many_ranks_are_read_at_once),
		each(only_tables_count),
		cmocka_unit_test(a_missing_directory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
