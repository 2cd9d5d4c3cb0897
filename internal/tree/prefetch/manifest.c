/* SPDX-License-Identifier: BSD-3-Clause */
/* Locates the file that --prefetch reads and the file for the next job's manifest.
 *
 * auto: the file next to the source, DIR/.NAME.copper-manifest for the source DIR/NAME, or, if this
 * user may not write there, $XDG_CACHE_HOME/copper/NAME-HASH.copper-manifest; if both exist, the
 * newer one. Without --prefetch, the same, but nothing is written next to the source. A file is
 * read only if its owner is this user, root or the source's owner, and no other user can write it.
 */
#include "tree/prefetch/prefetch_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log/log.h"

#define RECORD_BYTES (64 * COP_MIB)
#define SUFFIX ".copper-manifest"
#define PACK_SUFFIX ".copper-pack"
/* A manifest or pack in the cache directory is removed if no job has renewed it for this long. */
#define KEPT_DAYS 90
/* The same for an incomplete pack. */
#define UNFINISHED_DAYS 1

struct cop_prefetch_manifest {
	struct cop_prefetch_manifest_conf conf;
	struct cop_manifest_set *record; /* objects that this node needed; NULL: not recording */
	struct cop_buf text;             /* the complete manifest that was read */
	size_t body;                     /* offset of its items */
	bool hidden;                     /* as set by cop_prefetch_manifest_hide */
	char from[PATH_MAX];             /* the file that auto read */
	char pack_from[PATH_MAX];        /* its pack */
	struct cop_packfile *pack;
	char note[PATH_MAX + 200];
};

static bool is_auto(const struct cop_prefetch_manifest *m)
{
	return !*m->conf.path || strcmp(m->conf.path, "auto") == 0;
}

bool cop_prefetch_is_system(const char *source)
{
	static const char *const own[] = {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
		"/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var"};

	if (!source[1])
		return true;
	for (size_t i = 0; i < COP_ARRAY_SIZE(own); i++) {
		size_t len = strlen(own[i]);

		if (!strncmp(source, own[i], len) && (!source[len] || source[len] == '/'))
			return true;
	}
	return false;
}

/* ---- where auto looks ---- */

/* The name of the source in its directory; empty for the root directory. */
static const char *source_name(const char *source)
{
	return strrchr(source, '/') + 1;
}

static bool beside_source(const char *source, const char *suffix, char path[PATH_MAX])
{
	const char *name = source_name(source);

	return *name && snprintf(path, PATH_MAX, "%.*s.%s%s", (int)(name - source), source, name,
				suffix) < PATH_MAX;
}

/* This user's cache directory; "" if there is none. A missing home directory is not created: root
 * would create it for a user without a home on this machine. */
static void cache_dir(char dir[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len = 0;

	if (cache && cache[0] == '/')
		len = snprintf(dir, PATH_MAX, "%s/copper", cache);
	else if (home && home[0] == '/' && !access(home, X_OK))
		len = snprintf(dir, PATH_MAX, "%s/.cache/copper", home);
	if (len <= 0 || len >= PATH_MAX)
		dir[0] = '\0';
}

static bool in_cache(const char *source, const char *suffix, char path[PATH_MAX])
{
	const char *name = source_name(source);
	char dir[PATH_MAX];

	cache_dir(dir);
	return *dir &&
	       snprintf(path, PATH_MAX, "%s/%.100s-%016" PRIx64 "%s", dir, *name ? name : "root",
		       cop_hash64(source, strlen(source), 0), suffix) < PATH_MAX;
}

bool cop_prefetch_kept_at(const char *source, char path[COP_PREFETCH_PATH])
{
	_Static_assert(COP_PREFETCH_PATH == PATH_MAX, "one length of paths");
	return in_cache(source, SUFFIX, path);
}

bool cop_prefetch_pack_at(const char *source, char path[COP_PREFETCH_PATH])
{
	return in_cache(source, PACK_SUFFIX, path);
}

/* The modification time of a regular file that only this user, root or the source's owner could
 * have written; -1 for any other file. */
static int64_t usable_since(const char *source, const char *path)
{
	struct stat st, owned;

	if (lstat(path, &st) || !S_ISREG(st.st_mode) || stat(source, &owned))
		return -1;
	if (st.st_uid && st.st_uid != geteuid() && st.st_uid != owned.st_uid)
		return -1;
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return -1;
	return st.st_mtim.tv_sec * (int64_t)COP_NS_PER_S + st.st_mtim.tv_nsec;
}

static bool find_auto(const char *source, char path[PATH_MAX])
{
	char cached[PATH_MAX];
	int64_t a = beside_source(source, SUFFIX, path) ? usable_since(source, path) : -1;
	int64_t b = in_cache(source, SUFFIX, cached) ? usable_since(source, cached) : -1;

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

/* Logs a one-line warning about a damaged or unusable manifest. */
static void warn_of(const struct cop_prefetch_manifest *m, const char *path, const char *text)
{
	cop_log_warn("prefetch: %s: %s", path, text);
	if (m->conf.to_stderr)
		fprintf(stderr, "copper: warning: --prefetch %s: %s\n", path, text);
}

static void drop_text(struct cop_prefetch_manifest *m)
{
	cop_buf_free(&m->text);
	m->body = 0;
}

static void check_text(struct cop_prefetch_manifest *m, const char *path)
{
	char source[COP_MANIFEST_PATH_MAX + 1], text[2 * PATH_MAX + 128];
	struct cop_err err = {0};

	if (cop_manifest_head(m->text.data, m->text.len, source, &m->body, &err)) {
		snprintf(text, sizeof(text),
			"this manifest cannot be used: %s; nothing is prefetched", err.text);
		warn_of(m, path, text);
		drop_text(m);
	} else if (strcmp(source, m->conf.source) != 0) {
		snprintf(text, sizeof(text),
			"it was made for %s; what has the same names below %s is prefetched",
			source, m->conf.source);
		warn_of(m, path, text);
	}
}

/* Notes this once per user: when the directory is created. */
static void note_first(struct cop_prefetch_manifest *m)
{
	char dir[PATH_MAX];
	struct stat st;

	cache_dir(dir);
	if (!m->record || *m->conf.path || !*dir || !stat(dir, &st) || errno != ENOENT ||
		cop_make_dirs(dir, 0700))
		return;
	snprintf(m->note, sizeof(m->note),
		"what programs need of %s is recorded in %s, so that the next job starts faster; --prefetch off records nothing",
		m->conf.source, dir);
}

const char *cop_prefetch_manifest_note(const struct cop_prefetch_manifest *m)
{
	return m ? m->note : "";
}

/* ---- the pack ---- */

const char *cop_prefetch_pack_error(int rc)
{
	switch (-rc) {
	case EPERM:
		return "it belongs to another user, or others may write to it";
	case EBADMSG:
		return "it is damaged";
	case EPROTO:
		return "a later version of Copper wrote it";
	case ESTALE:
		return "it was made with another --chunk, or for another source";
	default:
		return strerror(-rc);
	}
}

/* Next to the manifest that was read. */
static void open_pack(struct cop_prefetch_manifest *m)
{
	size_t len = strlen(m->from) - strlen(SUFFIX);
	struct stat source;
	int rc;

	if (!m->conf.pack_limit || !m->text.data || stat(m->conf.source, &source))
		return;
	snprintf(m->pack_from, sizeof(m->pack_from), "%.*s" PACK_SUFFIX, (int)len, m->from);
	rc = cop_packfile_open(
		m->pack_from, m->conf.source, m->conf.chunk_bytes, source.st_uid, &m->pack);
	if (rc && rc != -ENOENT)
		cop_log_warn("the pack of the last job is not used path=\"%s\" error=\"%s\"",
			m->pack_from, cop_prefetch_pack_error(rc));
	if (rc)
		m->pack_from[0] = '\0';
	else
		cop_log_info("the pack of the last job has %zu records, %" PRIu64
			     " bytes path=\"%s\"",
			cop_packfile_count(m->pack), cop_packfile_bytes(m->pack), m->pack_from);
}

struct cop_packfile *cop_prefetch_manifest_pack(const struct cop_prefetch_manifest *m)
{
	return m ? m->pack : NULL;
}

const char *cop_prefetch_pack_from(const struct cop_prefetch_manifest *m)
{
	return m->pack_from;
}

void cop_prefetch_pack_places(
	const struct cop_prefetch_manifest *m, char path[2][COP_PREFETCH_PATH])
{
	char dir[PATH_MAX];

	path[0][0] = path[1][0] = '\0';
	cache_dir(dir);
	if (*m->conf.path && !beside_source(m->conf.source, PACK_SUFFIX, path[0]))
		path[0][0] = '\0';
	if (!*dir || cop_make_dirs(dir, 0700) || !in_cache(m->conf.source, PACK_SUFFIX, path[1]))
		path[1][0] = '\0';
}

const struct cop_prefetch_manifest_conf *cop_prefetch_manifest_conf(
	const struct cop_prefetch_manifest *m)
{
	return &m->conf;
}

/* ---- loading ---- */

static int load_auto(struct cop_prefetch_manifest *m)
{
	char path[PATH_MAX];
	int rc;

	if (!*m->conf.path && cop_prefetch_is_system(m->conf.source))
		return 0;
	m->record = m->conf.record ? cop_manifest_set_new(RECORD_BYTES) : NULL;
	note_first(m);
	if (!find_auto(m->conf.source, path)) {
		cop_log_info("prefetch: there is no manifest of an earlier job yet");
		return 0;
	}
	strcpy(m->from, path);
	rc = read_text(path, &m->text);
	if (rc)
		warn_of(m, path, strerror(-rc));
	else
		check_text(m, path);
	open_pack(m);
	return 0;
}

static int load_named(struct cop_prefetch_manifest *m, struct cop_err *err)
{
	const char *path = m->conf.path;
	int rc = read_text(path, &m->text);

	if (rc == -EFBIG)
		return cop_err_set(err, EFBIG,
			"--prefetch %s: it is larger than a manifest may be (%zu MiB)", path,
			COP_MANIFEST_BYTES_MAX / COP_MIB);
	if (rc == -EINVAL)
		return cop_err_set(err, EINVAL,
			"--prefetch %s: it is not a regular file; 'copper paths JOBDIR --manifest FILE' writes a manifest",
			path);
	if (rc)
		return cop_err_set(err, -rc,
			"--prefetch %s: %s; 'copper paths JOBDIR --manifest FILE' writes one, and 'auto' needs none",
			path, strerror(-rc));
	check_text(m, path);
	return 0;
}

int cop_prefetch_manifest_load(const struct cop_prefetch_manifest_conf *conf,
	struct cop_prefetch_manifest **out, struct cop_err *err)
{
	struct cop_prefetch_manifest *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return cop_err_set(err, ENOMEM, "out of memory");
	m->conf = *conf;
	rc = is_auto(m) ? load_auto(m) : load_named(m, err);
	if (rc)
		cop_prefetch_manifest_free(m);
	else
		*out = m;
	return rc;
}

void cop_prefetch_manifest_free(struct cop_prefetch_manifest *m)
{
	if (!m)
		return;
	cop_manifest_set_free(m->record);
	cop_packfile_free(m->pack);
	cop_buf_free(&m->text);
	free(m);
}

struct cop_manifest_set *cop_prefetch_manifest_record(struct cop_prefetch_manifest *m)
{
	return m ? m->record : NULL;
}

bool cop_prefetch_manifest_renews(const struct cop_prefetch_manifest *m)
{
	return m && m->record && m->text.len > m->body;
}

void cop_prefetch_manifest_hide(struct cop_prefetch_manifest *m)
{
	if (m)
		m->hidden = true;
}

uint64_t cop_prefetch_manifest_hash(const struct cop_prefetch_manifest *m)
{
	if (!m || m->text.len <= m->body)
		return 0;
	return cop_hash64(m->text.data + m->body, m->text.len - m->body, 0);
}

/* Pieces end at line breaks, so a piece's offset cannot be computed from its index; there are only
 * a few pieces. */
int cop_prefetch_manifest_piece(
	const struct cop_prefetch_manifest *m, uint64_t index, void **data, size_t *len)
{
	size_t all, at = 0, size;
	const char *body;

	if (!m || !m->text.data || index > COP_MANIFEST_BYTES_MAX / (COP_MANIFEST_PIECE / 2))
		return -ENODATA;
	all = m->text.len - m->body;
	body = m->text.data + m->body;
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

/* ---- writing ---- */

static bool ends_with(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	return len > end && !strcmp(name + len - end, suffix);
}

/* For how many days to keep a file in the cache directory that no job renews; 0: Copper did not
 * create it. */
static int days_of(const char *name)
{
	if (ends_with(name, SUFFIX) || ends_with(name, PACK_SUFFIX))
		return KEPT_DAYS;
	return strstr(name, PACK_SUFFIX ".") ? UNFINISHED_DAYS : 0;
}

static void remove_old(void)
{
	int64_t now = cop_wall_ns() / (int64_t)COP_NS_PER_S;
	char dir[PATH_MAX];
	struct dirent *d;
	struct stat st;
	DIR *all;

	cache_dir(dir);
	all = *dir ? opendir(dir) : NULL;
	while (all && (d = readdir(all))) {
		int days = days_of(d->d_name);

		if (days && !fstatat(dirfd(all), d->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			S_ISREG(st.st_mode) && st.st_mtim.tv_sec < now - days * 86400)
			unlinkat(dirfd(all), d->d_name, 0);
	}
	if (all)
		closedir(all);
}

static int write_in_cache(const char *source, const struct cop_buf *text, char path[PATH_MAX])
{
	char dir[PATH_MAX];
	int rc;

	cache_dir(dir);
	if (!*dir || !in_cache(source, SUFFIX, path))
		return -ENOENT;
	rc = cop_make_dirs(dir, 0700);
	if (!rc)
		rc = cop_write_file(path, text->data, text->len, 0644);
	remove_old();
	return rc;
}

/* Writes the manifest next to the source if requested, or to the user's cache directory. A manifest
 * at the other location then counts as the older one. */
static int write_auto(
	struct cop_prefetch_manifest *m, const struct cop_buf *text, char path[PATH_MAX])
{
	int rc = -ENOENT;

	if (*m->conf.path && beside_source(m->conf.source, SUFFIX, path))
		rc = cop_write_file(path, text->data, text->len, 0644);
	return rc ? write_in_cache(m->conf.source, text, path) : 0;
}

int cop_prefetch_make_next(
	struct cop_prefetch_manifest *m, uint64_t begun, struct cop_buf *text, uint64_t *items)
{
	int rc;

	cop_manifest_begin(text, m->conf.source);
	rc = cop_prefetch_next_parts(m->text.data ? m->text.data + m->body : "",
		m->text.len - m->body, m->record, begun, m->hidden, text, items);
	cop_manifest_end(text, *items);
	return rc ? rc : text->failed ? -ENOMEM : 0;
}

/* A job that needed nothing says nothing about the next one. */
void cop_prefetch_manifest_save(struct cop_prefetch_manifest *m, uint64_t begun)
{
	struct cop_manifest_set *record = cop_prefetch_manifest_record(m);
	struct cop_buf text = {0};
	uint64_t items = 0;
	char path[PATH_MAX] = "";
	int rc;

	if (!record)
		return;
	/* The manifest is still valid and in use. */
	if (!cop_manifest_set_count(record) && m->hidden && m->text.data) {
		utimensat(AT_FDCWD, m->from, NULL, 0);
		return;
	}
	if (!cop_manifest_set_count(record)) {
		cop_log_info(
			"nothing was recorded for the next job: no program used the tree on this node");
		return;
	}
	rc = cop_prefetch_make_next(m, begun, &text, &items);
	if (!rc)
		rc = write_auto(m, &text, path);
	if (rc)
		cop_log_warn(
			"the manifest for the next job was not written path=\"%s\" error=\"%s\"",
			path, strerror(-rc));
	else
		cop_log_info("the manifest for the next job was written path=\"%s\" items=%" PRIu64,
			path, items);
	cop_buf_free(&text);
}
