/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: creates a job directory with a profile, and compares its files. Include after
 * <cmocka.h>. */
#ifndef COP_PROF_PROFILE_TESTING_H
#define COP_PROF_PROFILE_TESTING_H

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prof/profile/profile_priv.h"

static char job[64];

static inline int make_job(void **state)
{
	(void)state;
	strcpy(job, "/tmp/cop-prof-XXXXXX");
	return mkdtemp(job) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int remove_job(void **state)
{
	(void)state;
	return nftw(job, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline struct cop_prof *profile(enum cop_prof_level level, uint32_t top_n)
{
	struct cop_prof_conf conf = {
		.level = level,
		.top_n = top_n,
		.job_dir = job,
		.host = "nid-01.site",
		.pid = 4711,
		.enoent_ttl_ms = 2000,
		.source = "/soft/",
	};
	struct cop_prof *p = cop_prof_new(&conf);

	assert_non_null(p);
	return p;
}

/* Compares the sorted names in JOB/folder, each followed by a space. */
static inline void check_names(const char *folder, const char *want)
{
	struct cop_buf path = {0}, names = {0};
	struct dirent **entry;
	int n;

	cop_buf_printf(&path, "%s/%s", job, folder);
	n = scandir(path.data, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (entry[i]->d_name[0] != '.')
			cop_buf_printf(&names, "%s ", entry[i]->d_name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	assert_string_equal(n < 0 ? "none" : names.data ? names.data : "", want);
	cop_buf_free(&path);
	cop_buf_free(&names);
}

static inline void check_file(const char *name, const char *want)
{
	struct cop_buf path = {0};
	char *data;
	size_t len;

	cop_buf_printf(&path, "%s/%s", job, name);
	assert_int_equal(cop_read_file(path.data, COP_MIB, &data, &len), 0);
	assert_string_equal(data, want);
	assert_int_equal(len, strlen(want));
	free(data);
	cop_buf_free(&path);
}

static inline char *read_job(const char *name)
{
	struct cop_buf path = {0};
	char *data;
	size_t len;

	cop_buf_printf(&path, "%s/%s", job, name);
	assert_int_equal(cop_read_file(path.data, COP_MIB, &data, &len), 0);
	cop_buf_free(&path);
	return data;
}

static inline void snapshot(struct cop_prof *p, const char *tag, const struct cop_prof_sizes *sizes)
{
	struct cop_err err = {0};

	assert_int_equal(cop_prof_snapshot(p, tag, sizes, &err), 0);
	assert_int_equal(err.code, 0);
}

static inline void check_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_job, remove_job)

#endif
