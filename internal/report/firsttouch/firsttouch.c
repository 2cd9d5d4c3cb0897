/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a job's manifest from its ranks' first-touch files. Memory use grows with the number of
 * distinct paths, not of ranks. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "report/firsttouch/firsttouch_priv.h"

#define SUFFIX "-profiling_first_touch.csv"
#define SET_BYTES COP_GIB

struct making {
	struct cop_firsttouch *out;
	struct first_touch touched;
	struct cop_observed_faults faults;
	struct cop_csv csv;
	int fd;
	uint64_t left; /* bytes left of the file's size when it was opened */
	int source_fd;
	struct cop_buf text;
};

/* ---- one rank ---- */

static ssize_t read_some(void *arg, void *data, size_t len)
{
	struct making *m = arg;
	ssize_t n = cop_read_full(m->fd, data, COP_MIN(len, m->left));

	m->left -= n > 0 ? (uint64_t)n : 0;
	return n;
}

static int read_rank(struct making *m, int dir, const char *name)
{
	struct cop_buf why = {0};
	int rc;

	m->fd = cop_observed_open_file(dir, name, &m->left, &why);
	rc = m->fd < 0 ? m->fd : cop_csv_open(&m->csv, read_some, m);
	if (!rc)
		rc = cop_firsttouch_read(&m->touched, &m->csv, &why);
	if (m->fd >= 0)
		close(m->fd);
	m->out->ranks += rc == 0;
	if (rc && rc != -ENOMEM) {
		cop_observed_faults_add(&m->faults, name, why.data ? why.data : strerror(-rc));
		rc = 0;
	}
	cop_buf_free(&why);
	return rc;
}

static int read_ranks(struct making *m, struct cop_err *err)
{
	DIR *d = opendir(m->out->input);
	const struct dirent *e;
	uint64_t found = 0;
	int rc = 0, failed = 0;

	if (!d)
		return cop_err_set(
			err, errno, "cannot read %s: %s", m->out->input, strerror(errno));
	while (!rc && (errno = 0, e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len <= strlen(SUFFIX) || strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		found++;
		rc = read_rank(m, dirfd(d), e->d_name);
	}
	if (!rc && errno)
		failed = errno;
	closedir(d);
	if (failed)
		return cop_err_set(
			err, failed, "cannot read %s: %s", m->out->input, strerror(failed));
	if (rc)
		return cop_err_set(err, ENOMEM, "no memory for the paths of %s", m->out->input);
	if (!found)
		return cop_err_set(err, ENOENT,
			"no *%s under %s: the order in which a job touches its paths is written by 'copper mount -A', when the job is stopped",
			&SUFFIX[1], m->out->input);
	return 0;
}

/* ---- the manifest ---- */

/* Sets the current size and mtime; false if the file no longer exists. */
static bool stat_item(struct making *m, struct cop_manifest_item *item)
{
	struct stat st;

	if (m->source_fd < 0) {
		item->size = item->ranges ? item->range[item->ranges - 1].end : 0;
		return true;
	}
	if (fstatat(m->source_fd, item->path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	item->size = (uint64_t)st.st_size;
	item->mtime_s = st.st_mtim.tv_sec;
	item->mtime_nsec = (uint32_t)st.st_mtim.tv_nsec;
	return true;
}

static int write_item(void *arg, struct cop_manifest_item *item)
{
	struct making *m = arg;
	struct cop_firsttouch *out = m->out;
	bool file = item->kind == COP_MANIFEST_FILE;

	if (file && !stat_item(m, item)) {
		out->gone++;
		return 0;
	}
	if (m->text.len + 2 * item->len + COP_KIB > COP_MANIFEST_BYTES_MAX) {
		out->left_out++;
		return 0;
	}
	cop_manifest_add(&m->text, item);
	out->items++;
	out->directories += item->kind == COP_MANIFEST_DIR;
	out->files += file;
	for (unsigned i = 0; i < item->ranges; i++)
		out->bytes += COP_MIN(item->range[i].end, item->size) -
			      COP_MIN(item->range[i].start, item->size);
	return m->text.failed ? -ENOMEM : 0;
}

static int write_manifest(struct making *m, const char *file, struct cop_err *err)
{
	int rc;

	if (!m->out->ranks || !m->touched.source)
		return cop_err_set(
			err, ENODATA, "none of the files under %s can be used", m->out->input);
	m->source_fd = open(
		*m->touched.source ? m->touched.source : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	m->out->unseen = m->source_fd < 0;
	cop_manifest_begin(&m->text, *m->touched.source ? m->touched.source : "/");
	rc = cop_manifest_set_each(m->touched.set, write_item, m);
	cop_manifest_end(&m->text, m->out->items);
	if (m->source_fd >= 0)
		close(m->source_fd);
	if (rc || m->text.failed)
		return cop_err_set(err, ENOMEM, "no memory for the manifest");
	rc = cop_write_file(file, m->text.data, m->text.len, 0644);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", file, strerror(-rc)) : 0;
}

static int find_input(const char *job_dir, char **input, struct cop_err *err)
{
	struct stat st;

	if (asprintf(input, "%s/profiling/final", job_dir) < 0) {
		*input = NULL;
		return cop_err_set(err, ENOMEM, "no memory");
	}
	if (stat(*input, &st) && errno == ENOENT)
		(*input)[strlen(job_dir)] = '\0';
	return 0;
}

int cop_firsttouch_manifest(
	const char *job_dir, const char *file, struct cop_firsttouch *out, struct cop_err *err)
{
	struct making m = {
		.out = out, .source_fd = -1, .touched.set = cop_manifest_set_new(SET_BYTES)};
	int rc = find_input(job_dir, &out->input, err);

	cop_observed_faults_init(&m.faults);
	if (!rc && !m.touched.set)
		rc = cop_err_set(err, ENOMEM, "no memory");
	if (!rc)
		rc = read_ranks(&m, err);
	if (!rc)
		rc = write_manifest(&m, file, err);
	out->faults = m.faults.count;
	cop_observed_faults_list(&m.faults, &out->named);
	cop_observed_faults_fini(&m.faults);
	cop_manifest_set_free(m.touched.set);
	cop_csv_free(&m.csv);
	cop_buf_free(&m.text);
	free(m.touched.source);
	return rc;
}

void cop_firsttouch_free(struct cop_firsttouch *m)
{
	free(m->input);
	cop_buf_free(&m->named);
}
