/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the real origin: a scratch source, and blocking requests. Each test has a
 * new source, which is removed afterwards. */
#ifndef COP_STORAGE_ORIGIN_TESTING_H
#define COP_STORAGE_ORIGIN_TESTING_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/origin/origin_priv.h"

struct fixture {
	char source[64];
	struct cop_stats stats;
	struct cop_origin *o;
};

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool there;
	int rc;
	void *data;
	size_t len;
};

static inline void answered(void *arg, int rc, void *data, size_t len)
{
	struct answer *a = arg;

	pthread_mutex_lock(&a->lock);
	a->there = true;
	a->rc = rc;
	a->data = data;
	a->len = len;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

static inline struct answer *new_answer(void)
{
	struct answer *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->cond, NULL);
	return a;
}

static inline bool is_there(struct answer *a)
{
	bool there;

	pthread_mutex_lock(&a->lock);
	there = a->there;
	pthread_mutex_unlock(&a->lock);
	return there;
}

/* Takes the data, which may be NULL, with *rc and *len. */
static inline void *take_answer(struct answer *a, int *rc, size_t *len)
{
	void *data;

	pthread_mutex_lock(&a->lock);
	while (!a->there)
		pthread_cond_wait(&a->cond, &a->lock);
	pthread_mutex_unlock(&a->lock);
	data = a->data;
	*rc = a->rc;
	*len = a->len;
	free(a);
	if (*rc)
		assert_null(data);
	return data;
}

static inline void *ask_list(struct cop_origin *o, const char *path, int *rc)
{
	struct answer *a = new_answer();
	size_t len;
	void *blob;

	cop_origin_list(o, path, answered, a);
	blob = take_answer(a, rc, &len);
	if (!*rc)
		assert_int_equal(cop_listing_check(blob, len), 0);
	return blob;
}

static inline void *ask_names(struct cop_origin *o, const char *path, int *rc)
{
	struct answer *a = new_answer();
	size_t len;
	void *blob;

	cop_origin_names(o, path, answered, a);
	blob = take_answer(a, rc, &len);
	if (!*rc)
		assert_int_equal(cop_listing_check(blob, len), 0);
	return blob;
}

/* A page of the directory in this version; names as for cop_origin_page. */
static inline void *ask_page(struct cop_origin *o, const char *path, struct cop_listing_page page,
	const void *names, int *rc)
{
	struct answer *a = new_answer();
	size_t len;
	void *blob;

	cop_origin_page(o, path, &page, names, answered, a);
	blob = take_answer(a, rc, &len);
	if (!*rc)
		assert_int_equal(cop_listing_page_check(blob, len, &page), 0);
	return blob;
}

/* target may be NULL; otherwise it has room for 4096 bytes. */
static inline int ask_stat(
	struct cop_origin *o, const char *path, struct cop_attr *attr, char *target)
{
	struct answer *a = new_answer();
	const char *text;
	size_t len, text_len;
	void *blob;
	int rc;

	cop_origin_stat(o, path, answered, a);
	blob = take_answer(a, &rc, &len);
	if (rc)
		return rc;
	assert_int_equal(cop_entry_check(blob, len), 0);
	cop_entry_get(blob, attr, &text, &text_len);
	if (target && text) {
		memcpy(target, text, text_len);
		target[text_len] = '\0';
	}
	free(blob);
	return 0;
}

/* Returns the bytes read, or -errno. */
static inline ssize_t ask_read_of_size(struct cop_origin *o, const char *path, uint64_t version,
	uint64_t size, uint64_t offset, const struct iovec *iov, int n_iov)
{
	struct answer *a = new_answer();
	size_t len;
	int rc;

	cop_origin_read(o, path, version, size, offset, iov, n_iov, answered, a);
	assert_null(take_answer(a, &rc, &len));
	return rc ? rc : (ssize_t)len;
}

/* Reads with the file's current size. */
static inline ssize_t ask_read(struct cop_origin *o, const char *path, uint64_t version,
	uint64_t offset, const struct iovec *iov, int n_iov)
{
	struct stat st = {.st_size = 0};

	fstatat(cop_origin_dirfd(o), path, &st, AT_SYMLINK_NOFOLLOW);
	return ask_read_of_size(o, path, version, (uint64_t)st.st_size, offset, iov, n_iov);
}

static inline struct cop_extent *ask_holes(
	struct cop_origin *o, const char *path, uint64_t version, int *rc, size_t *count)
{
	struct answer *a = new_answer();
	void *data;

	cop_origin_holes(o, path, version, answered, a);
	data = take_answer(a, rc, count);
	assert_int_equal(*count % sizeof(struct cop_extent), 0);
	*count /= sizeof(struct cop_extent);
	return data;
}

static inline struct cop_origin_real *real(struct cop_origin *o)
{
	return COP_CONTAINER_OF(o, struct cop_origin_real, base);
}

static inline const char *in_source(const struct fixture *f, const char *path)
{
	static __thread char full[8192];

	snprintf(full, sizeof(full), "%s/%s", f->source, path);
	return full;
}

static inline void put_file(const struct fixture *f, const char *path, const char *text)
{
	int fd = open(in_source(f, path), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cop_write_full(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline void put_dir(const struct fixture *f, const char *path)
{
	assert_int_equal(mkdir(in_source(f, path), 0755), 0);
}

static inline void open_origin(
	struct fixture *f, unsigned max_ops, uint32_t listing_max, uint32_t listing_attrs)
{
	struct cop_origin_conf conf = {.source = f->source,
		.max_ops = max_ops,
		.listing_max = listing_max,
		.listing_attrs = listing_attrs,
		.stats = &f->stats};
	struct cop_err err = {0};

	cop_origin_close(f->o);
	assert_int_equal(cop_origin_open(&conf, &f->o, &err), 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->source, sizeof(f->source), "/tmp/cop-origin-XXXXXX");
	if (!mkdtemp(f->source))
		return -1;
	chmod(f->source, 0755);
	open_origin(f, 4, 1000, 100);
	*state = f;
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	cop_origin_close(f->o);
	nftw(f->source, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(f);
	return 0;
}

#endif
