/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of kernel requests: the operations table without a kernel, on top of a real
 * tree/fetch and cache and a fake origin. Replaces libfuse's reply functions with ones that record.
 * Each test has a fresh mount. */
#ifndef COP_MOUNT_FUSE_TESTING_H
#define COP_MOUNT_FUSE_TESTING_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "mount/fuse/fuse_priv.h"

#define CHUNK (64 * COP_KIB)

struct fuse_req {
	struct cop_fuse *fs;
	unsigned replies;
	int lost; /* what a reply returns: -ENOENT for an interrupted request */
	int error;
	struct fuse_entry_param entry;
	struct stat attr;
	double attr_s;
	struct fuse_file_info opened;
	struct statvfs space;
	off_t found;
	char *data;
	size_t len;
};

/* The requesting process. */
static struct fuse_ctx asker;

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	(void)req;
	return &asker;
}

void *fuse_req_userdata(fuse_req_t req)
{
	return req->fs;
}

/* A real origin replies on its own threads. */
static pthread_mutex_t reply_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reply_here = PTHREAD_COND_INITIALIZER;

static inline int replied(fuse_req_t req, int error)
{
	int lost;

	pthread_mutex_lock(&reply_lock);
	req->replies++;
	req->error = error;
	lost = req->lost;
	pthread_cond_signal(&reply_here);
	pthread_mutex_unlock(&reply_lock);
	return lost;
}

int fuse_reply_err(fuse_req_t req, int err)
{
	return replied(req, err);
}

void fuse_reply_none(fuse_req_t req)
{
	replied(req, 0);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	req->entry = *e;
	return replied(req, 0);
}

int fuse_reply_attr(fuse_req_t req, const struct stat *attr, double timeout)
{
	req->attr = *attr;
	req->attr_s = timeout;
	return replied(req, 0);
}

int fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
	free(req->data);
	req->data = NULL;
	req->len = 0;
	for (int i = 0; i < count; i++) {
		req->data = realloc(req->data, req->len + iov[i].iov_len + 1);
		memcpy(req->data + req->len, iov[i].iov_base, iov[i].iov_len);
		req->len += iov[i].iov_len;
	}
	return replied(req, 0);
}

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
	return fuse_reply_iov(req, &(struct iovec){(void *)(uintptr_t)buf, size}, size ? 1 : 0);
}

int fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	req->opened = *fi;
	return replied(req, 0);
}

int fuse_reply_statfs(fuse_req_t req, const struct statvfs *stbuf)
{
	req->space = *stbuf;
	return replied(req, 0);
}

int fuse_reply_lseek(fuse_req_t req, off_t off)
{
	req->found = off;
	return replied(req, 0);
}

int fuse_reply_readlink(fuse_req_t req, const char *link)
{
	return fuse_reply_buf(req, link, strlen(link));
}

/* ---- a mount of one node ---- */

static struct cop_stats stats;
static struct cop_cache *cache;
static struct cop_origin *origin;
static struct cop_fetch *fetch;
static struct cop_fuse *fs;
static struct fuse_req req;
static bool origin_is_real;

static inline int setup_with(struct cop_origin *o)
{
	struct cop_fetch_conf conf = {
		.topo = {1, 8, 1}, .chunk_bytes = CHUNK, .enoent_ttl_ms = 60000, .stats = &stats};

	memset(&stats, 0, sizeof(stats));
	cache = conf.cache = cop_cache_new(64 * COP_MIB, &stats);
	origin = conf.origin = o;
	fetch = cop_fetch_new(&conf);
	fs = calloc(1, sizeof(*fs));
	fs->conf = (struct cop_fuse_conf){.mountpoint = "/mnt",
		.source = "/source",
		.enoent_ttl_ms = 60000,
		.fetch = fetch,
		.cache = cache,
		.origin = origin,
		.stats = &stats};
	fs->cache_bytes = 64 * COP_MIB;
	fs->conn_caps = CAP_ABSENT_ENTRIES;
	cop_list_init(&fs->notify);
	cop_fuse_absent_init(&fs->absent);
	fs->notify_stop = true; /* there is no kernel to notify */
	return cop_fuse_inodes_init(fs);
}

static inline int setup(void **state)
{
	(void)state;
	origin_is_real = false;
	return setup_with(cop_origin_fake_new());
}

/* On return, the origin has no work left. */
static inline void close_origin(void)
{
	if (!origin)
		return;
	while (!origin_is_real && cop_origin_fake_run(origin, 1000))
		;
	cop_fetch_close(fetch);
	cop_origin_close(origin);
	origin = NULL;
}

static inline int teardown(void **state)
{
	(void)state;
	close_origin();
	cop_fuse_places_free(fs);
	cop_fuse_absent_fini(&fs->absent);
	cop_fuse_inodes_fini(fs);
	free(fs);
	cop_cache_check(cache);
	cop_fetch_free(fetch);
	cop_cache_free(cache);
	free(req.data);
	req = (struct fuse_req){0};
	return 0;
}

static inline void put_file(const char *path, const char *content)
{
	cop_origin_fake_put(origin, path, content ? S_IFREG | 0644 : S_IFDIR | 0755,
		content ? content : "", content ? strlen(content) : 0);
}

/* Starts a request, which has no reply yet. */
static inline fuse_req_t begin_request(void)
{
	free(req.data);
	req = (struct fuse_req){.fs = fs, .lost = req.lost};
	return &req;
}

/* Runs the origin, or waits for it, until there is a reply. Expects exactly one. */
static inline void end_request(void)
{
	while (!origin_is_real && !req.replies && cop_origin_fake_run(origin, 1))
		;
	pthread_mutex_lock(&reply_lock);
	while (origin_is_real && !req.replies)
		pthread_cond_wait(&reply_here, &reply_lock);
	assert_int_equal(req.replies, 1);
	pthread_mutex_unlock(&reply_lock);
}

static inline fuse_ino_t lookup(fuse_ino_t dir, const char *name)
{
	cop_fuse_ops.lookup(begin_request(), dir, name);
	end_request();
	return req.error ? 0 : req.entry.ino;
}

static inline void forget(fuse_ino_t ino, uint64_t count)
{
	cop_fuse_ops.forget(begin_request(), ino, count);
	end_request();
}

static inline void read_file(fuse_ino_t ino, size_t size, off_t off)
{
	cop_fuse_ops.read(begin_request(), ino, size, off, &(struct fuse_file_info){0});
	end_request();
}

static inline void read_dir(fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	(plus ? cop_fuse_ops.readdirplus : cop_fuse_ops.readdir)(
		begin_request(), ino, size, off, &(struct fuse_file_info){0});
	end_request();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
