/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the indexes of several files in parallel: decides which files need one and where it
 * goes. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/base/safedir.h"
#include "trace/read/index_priv.h"

/* Smaller files read just as fast without an index. */
#define SMALL_BYTES (256 * COP_KIB)

struct work {
	struct cop_trace_files *files;
	const struct cop_trace_index_conf *conf;
	_Atomic size_t next;
	pthread_mutex_t lock; /* protects rc and serializes calls of done */
	int rc;
};

/* Only users who can read the file may read its index. */
static mode_t mode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0600 : st.st_mode & 0666;
}

/* Writes an index to path atomically. */
static int make_at(char *path, struct source *s, const struct index_key *key, const struct work *w,
	struct cop_trace_index_result *out)
{
	struct index_key after;
	struct cop_dir at;
	char *tmp = NULL;
	int rc = cop_dir_of(path, &at), fd = rc ? rc : cop_open_temp(&at, &tmp);

	if (fd < 0) {
		cop_dir_done(&at);
		return -EACCES;
	}
	rc = fchmod(fd, mode_of(s->fd)) ? -errno : cop_index_build(s, fd, key, w->conf, out);
	if (!rc && (cop_index_key(s->fd, &after) || memcmp(&after, key, sizeof(after))))
		rc = -EBUSY;
	close(fd);
	if (!rc && renameat(at.fd, tmp, at.fd, at.name))
		rc = -errno;
	if (rc)
		unlinkat(at.fd, tmp, 0);
	free(tmp);
	cop_dir_done(&at);
	return rc;
}

static char *make_parents(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash && slash != path) {
		*slash = '\0';
		cop_make_dirs(path, 0700);
		*slash = '/';
	}
	return path;
}

static const char *sentence(int rc)
{
	switch (rc) {
	case -EACCES:
		return "neither its directory nor the cache directory can be written";
	case -E2BIG:
		return "its index would be more than 5 % of it";
	case -EBUSY:
		return "it changed while it was read";
	case -ENODATA:
		return "it has no events";
	default:
		return strerror(-rc);
	}
}

static void refuse(struct cop_trace_index_result *out, const char *why)
{
	out->what = COP_TRACE_INDEX_REFUSED;
	out->why = why;
}

/* Whether the file has an up-to-date index. */
static bool is_current(
	const struct file *file, int fd, struct cop_trace_index_result *out, char **path)
{
	enum index_fault fault;
	struct index *x = cop_index_open(file->name, fd, path, &fault);
	struct stat st;

	if (!x)
		return false;
	out->what = COP_TRACE_INDEX_CURRENT;
	out->bytes = fstat(x->fd, &st) ? 0 : (uint64_t)st.st_size;
	out->chunks = x->chunks;
	for (size_t i = 0; i < x->chunks; i++)
		for (unsigned k = 0; k < COP_TRACE_KINDS; k++)
			out->events += x->chunk[i].events[k];
	cop_index_free(x);
	return true;
}

/* Writes the index to the first place that is writable. The caller owns *path. */
static int make(const struct file *file, struct source *s, const struct index_key *key,
	const struct work *w, struct cop_trace_index_result *out, char **path)
{
	int rc = -EACCES;

	for (unsigned i = 0; i < INDEX_PLACES && rc == -EACCES; i++) {
		free(*path);
		*path = cop_index_place(file->name, i);
		if (*path)
			rc = make_at(i ? make_parents(*path) : *path, s, key, w, out);
	}
	return rc;
}

static int one_file(struct work *w, size_t index)
{
	const struct file *file = &w->files->file[index];
	struct cop_trace_index_result out = {.source = index};
	uint64_t small = w->conf->small_bytes ? w->conf->small_bytes : SMALL_BYTES;
	struct index_key key;
	char *path = NULL;
	const char *why = NULL;
	int rc = 0;
	struct source *s = cop_trace_source_open(file, index, &why, &rc);
	bool told = s || file->meant || rc;

	if (!s)
		refuse(&out, why ? why : strerror(-rc));
	else if (file->fd >= 0)
		refuse(&out, "it is a pipe");
	else if (!cop_inflate_is_plain(s->in) && !cop_inflate_is_gzip(s->in))
		refuse(&out, "a zip file can have none");
	else if ((rc = cop_index_key(s->fd, &key)))
		refuse(&out, strerror(-rc));
	else if (out.file_bytes = key.size, key.size < small)
		out.what = COP_TRACE_INDEX_SMALL;
	else if (!is_current(file, s->fd, &out, &path) &&
		 (rc = make(file, s, &key, w, &out, &path)))
		refuse(&out, sentence(rc));
	out.path = path;
	cop_trace_source_free(s);
	pthread_mutex_lock(&w->lock);
	if (told)
		w->conf->done(w->conf->arg, &out);
	pthread_mutex_unlock(&w->lock);
	free(path);
	return rc == -ENOMEM ? rc : 0;
}

static void *work(void *arg)
{
	struct work *w = arg;
	size_t i;
	int rc = 0;

	while (!rc && (i = atomic_fetch_add(&w->next, 1)) < w->files->n)
		rc = one_file(w, i);
	pthread_mutex_lock(&w->lock);
	w->rc = w->rc ? w->rc : rc;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int cop_trace_index(
	struct cop_trace_files *f, const struct cop_trace_index_conf *conf, struct cop_err *err)
{
	struct work w = {.files = f, .conf = conf};
	pthread_t thread[THREADS_MAX];
	unsigned started = 0,
		 threads = (unsigned)COP_MIN((size_t)cop_trace_threads(conf->threads), f->n);

	pthread_mutex_init(&w.lock, NULL);
	while (started + 1 < threads && !cop_thread_start(&thread[started], "index", work, &w))
		started++;
	work(&w);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&w.lock);
	return w.rc ? cop_err_set(err, -w.rc, "no memory to make the indexes") : 0;
}
