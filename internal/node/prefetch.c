/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the manifest of --prefetch comes from and where that of the next job goes. Rank 0 alone
 * reads and writes the file; the other nodes ask it for its text through the tree.
 *
 * auto: the file beside the source, DIR/.NAME.copper-manifest for the source DIR/NAME, or where
 * this user may not write there the user's own $XDG_CACHE_HOME/copper/NAME-HASH.copper-manifest; of
 * two the newer one. Beside the source only the file of this user or of the source's owner is read.
 */
#include "node/node_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_BYTES (64 * COP_MIB)
#define SUFFIX ".copper-manifest"

static bool is_auto(const struct cop_node *n)
{
	return n->conf->prefetch && strcmp(n->conf->prefetch, "auto") == 0;
}

/* ---- the places of auto ---- */

/* The name that the source has in its directory; none for the root of all. */
static const char *source_name(const struct cop_node *n)
{
	return strrchr(n->source, '/') + 1;
}

static bool beside(const struct cop_node *n, char path[PATH_MAX])
{
	const char *name = source_name(n);

	return *name && snprintf(path, PATH_MAX, "%.*s.%s" SUFFIX, (int)(name - n->source),
				n->source, name) < PATH_MAX;
}

/* In the cache directory of this user; makes the directories if asked to. */
static bool in_cache(const struct cop_node *n, bool make, char path[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"),
		   *name = source_name(n);
	uint64_t hash = cop_hash64(n->source, strlen(n->source), 0);
	char dir[PATH_MAX];
	int len = -1;

	if (cache && cache[0] == '/')
		len = snprintf(dir, sizeof(dir), "%s", cache);
	else if (home && home[0] == '/')
		len = snprintf(dir, sizeof(dir), "%s/.cache", home);
	if (len < 0 || (size_t)len + sizeof("/copper") > sizeof(dir))
		return false;
	if (make && mkdir(dir, 0700) && errno != EEXIST)
		return false;
	strcat(dir, "/copper");
	if (make && mkdir(dir, 0700) && errno != EEXIST)
		return false;
	return snprintf(path, PATH_MAX, "%s/%.100s-%016" PRIx64 SUFFIX, dir, *name ? name : "root",
		       hash) < PATH_MAX;
}

/* A regular file of this user or of the source's owner; its time, or -1. */
static int64_t usable_since(const struct cop_node *n, const char *path)
{
	struct stat st, source;

	if (lstat(path, &st) || !S_ISREG(st.st_mode) || stat(n->source, &source))
		return -1;
	if (st.st_uid != geteuid() && st.st_uid != source.st_uid)
		return -1;
	return st.st_mtim.tv_sec * (int64_t)COP_NS_PER_S + st.st_mtim.tv_nsec;
}

static bool find_auto(const struct cop_node *n, char path[PATH_MAX])
{
	char cached[PATH_MAX];
	int64_t a = beside(n, path) ? usable_since(n, path) : -1;
	int64_t b = in_cache(n, false, cached) ? usable_since(n, cached) : -1;

	if (b > a)
		strcpy(path, cached);
	return a >= 0 || b >= 0;
}

/* ---- reading ---- */

static int read_text(const char *path, struct cop_buf *out)
{
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, path, &size), rc;
	ssize_t got;

	if (fd < 0)
		return fd;
	rc = size > COP_MANIFEST_BYTES_MAX ? -EFBIG : 0;
	out->cap = (size_t)size + 1;
	out->data = rc ? NULL : malloc(out->cap);
	if (!rc && !out->data)
		rc = -ENOMEM;
	got = rc ? rc : cop_read_full(fd, out->data, (size_t)size);
	if (got >= 0) {
		out->len = (size_t)got;
		out->data[got] = '\0';
	}
	close(fd);
	return got < 0 ? (int)got : 0;
}

/* Says in one line what is wrong with a manifest that is used all the same, or not at all. */
static void warn(const struct cop_node *n, const char *path, const char *text)
{
	cop_log_warn("prefetch: %s: %s", path, text);
	/* Without a log of its own the node has said it there already. */
	if (n->logging)
		fprintf(stderr, "copper: warning: --prefetch %s: %s\n", path, text);
}

static void drop_manifest(struct cop_node *n)
{
	cop_buf_free(&n->manifest);
	n->manifest_body = 0;
}

static void check_manifest(struct cop_node *n, const char *path)
{
	char source[COP_MANIFEST_PATH_MAX + 1], text[2 * PATH_MAX + 128];
	struct cop_err err = {0};

	if (cop_manifest_head(n->manifest.data, n->manifest.len, source, &n->manifest_body, &err)) {
		snprintf(text, sizeof(text),
			"this is no manifest that can be used: %s; nothing is prefetched",
			err.text);
		warn(n, path, text);
		drop_manifest(n);
	} else if (strcmp(source, n->source) != 0) {
		snprintf(text, sizeof(text),
			"it was made for %s; what has the same names below %s is prefetched",
			source, n->source);
		warn(n, path, text);
	}
}

int cop_node_prefetch_load(struct cop_node *n, struct cop_err *err)
{
	const char *path = n->conf->prefetch;
	char found[PATH_MAX];
	int rc;

	if (!path || n->rank != 0)
		return 0;
	if (is_auto(n)) {
		n->record = n->conf->serve_only ? NULL : cop_manifest_set_new(RECORD_BYTES);
		if (!find_auto(n, found)) {
			cop_log_info("prefetch: there is no manifest of an earlier job yet");
			return 0;
		}
		path = found;
	}
	rc = read_text(path, &n->manifest);
	if (rc && is_auto(n)) {
		warn(n, path, strerror(-rc));
		return 0;
	}
	if (rc == -EFBIG)
		return cop_err_set(err, EFBIG,
			"--prefetch %s: it is larger than a manifest may be (%zu MiB)", path,
			COP_MANIFEST_BYTES_MAX / COP_MIB);
	if (rc)
		return cop_err_set(err, -rc,
			"--prefetch %s: %s; 'copper paths JOBDIR --manifest FILE' writes one, and 'auto' needs none",
			path, strerror(-rc));
	check_manifest(n, path);
	return 0;
}

/* Pieces are cut where lines end, so the index alone does not say where one begins; there are few.
 */
int cop_node_prefetch_piece(void *ctx, uint64_t index, void **data, size_t *len)
{
	struct cop_node *n = ctx;
	size_t all = n->manifest.len - n->manifest_body, at = 0, size;
	const char *body;

	if (!n->manifest.data || index > COP_MANIFEST_BYTES_MAX / (COP_MANIFEST_PIECE / 2))
		return -ENODATA;
	body = n->manifest.data + n->manifest_body;
	while ((size = cop_manifest_piece(body, all, at)) > 0 && index-- > 0)
		at += size;
	if (!size)
		return -ENODATA;
	*data = malloc(size);
	if (!*data)
		return -ENOMEM;
	memcpy(*data, body + at, size);
	*len = size;
	return 0;
}

void cop_node_prefetch_start(struct cop_node *n)
{
	struct cop_prefetch_conf conf = {.coop = n->coop,
		.cache = n->cache,
		.stats = &n->stats,
		.whole_file_max = COP_MAX(COP_COOP_GROUP_BYTES, n->conf->chunk),
		.max_cacheable = n->conf->max_cacheable};
	struct cop_prefetch *p = NULL;
	int rc;

	if (!n->conf->prefetch)
		return;
	rc = cop_prefetch_start(&conf, &p);
	if (rc)
		cop_log_warn("nothing is prefetched error=\"%s\"", strerror(-rc));
	n->prefetch = p;
}

void cop_node_prefetch_free(struct cop_node *n)
{
	cop_prefetch_free(n->prefetch);
	cop_manifest_set_free(n->record);
	drop_manifest(n);
}

/* ---- writing ---- */

/* Beside the source, or in the user's cache directory. One that stands in the other place is then
 * older. */
static int write_auto(const struct cop_node *n, const struct cop_buf *text, char path[PATH_MAX])
{
	int rc = beside(n, path) ? cop_write_file(path, text->data, text->len, 0644) : -ENOENT;

	if (rc && in_cache(n, true, path))
		rc = cop_write_file(path, text->data, text->len, 0644);
	return rc;
}

/* A job that needed nothing says nothing about the next one. */
void cop_node_prefetch_save(struct cop_node *n)
{
	struct cop_buf text = {0};
	char path[PATH_MAX] = "";
	int rc;

	if (!n->record || !cop_manifest_set_count(n->record))
		return;
	rc = cop_manifest_set_write(n->record, n->source, &text);
	if (!rc)
		rc = write_auto(n, &text, path);
	if (rc)
		cop_log_warn(
			"the manifest for the next job was not written path=\"%s\" error=\"%s\"",
			path, strerror(-rc));
	else
		cop_log_info("the manifest for the next job was written path=\"%s\" items=%zu",
			path, cop_manifest_set_count(n->record));
	cop_buf_free(&text);
}
