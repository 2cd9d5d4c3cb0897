/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the items of a manifest. */
#include "report/predict/predict_priv.h"
#include "base/base/hash.h"
#include "storage/manifest/manifest.h"

#include <fcntl.h>

struct file {
	char *path;
	uint64_t size;
};

/* 1 PiB; no program reads this much when it starts. */
#define BYTES_MOST (UINT64_C(1) << 50)

static void count_ranges(const struct cop_manifest_item *item, struct cop_predict_needs *n)
{
	for (unsigned i = 0; i < item->ranges; i++) {
		uint64_t bytes = item->range[i].end - item->range[i].start;

		if (bytes > BYTES_MOST - n->bytes) {
			n->bytes = BYTES_MOST;
			return;
		}
		n->bytes += bytes;
		n->reads += (bytes + PREDICT_READ - 1) / PREDICT_READ;
	}
}

static void keep_folder(struct cop_predict_needs *n, const char *path)
{
	if (n->folders < PREDICT_PATHS && (n->folder[n->folders] = strdup(path)))
		n->folders++;
}

/* Keeps the largest files, in descending order. */
static void keep_file(struct cop_predict_needs *n, uint64_t size[], const char *path, uint64_t own)
{
	unsigned at = n->paths;
	char *copy;

	if (n->paths == PREDICT_PATHS && size[PREDICT_PATHS - 1] >= own)
		return;
	copy = strdup(path);
	if (!copy)
		return;
	if (n->paths == PREDICT_PATHS)
		free(n->path[--at]);
	else
		n->paths++;
	for (; at && size[at - 1] < own; at--) {
		n->path[at] = n->path[at - 1];
		size[at] = size[at - 1];
	}
	n->path[at] = copy;
	size[at] = own;
}

static uint64_t hash_of(const struct cop_manifest_item *item)
{
	return cop_hash64(item->path, item->len, 0);
}

/* Notes files and directories, which may also be listed as names. */
static void see_things(struct cop_manifest_reader *r, struct cop_seen *things)
{
	struct cop_manifest_item item;

	while (cop_manifest_next(r, &item))
		if (item.kind != COP_MANIFEST_NAME && !item.unused)
			cop_seen_add(things, hash_of(&item), SIZE_MAX);
}

static void count_items(const char *text, size_t len, struct cop_predict_needs *n)
{
	struct cop_manifest_reader *r = calloc(2, sizeof(*r));
	uint64_t size[PREDICT_PATHS] = {0};
	struct cop_manifest_item item;
	struct cop_seen things = {0};

	if (!r)
		return;
	r[0].data = r[1].data = text;
	r[0].len = r[1].len = len;
	see_things(&r[1], &things);
	while (cop_manifest_next(r, &item)) {
		/* The next few jobs would drop this item: the startup does not need it. */
		if (item.unused)
			continue;
		n->directories += item.kind == COP_MANIFEST_DIR;
		n->names +=
			item.kind == COP_MANIFEST_NAME && !cop_seen_has(&things, hash_of(&item));
		n->files += item.kind == COP_MANIFEST_FILE;
		if (item.kind == COP_MANIFEST_DIR)
			keep_folder(n, item.path);
		if (item.kind == COP_MANIFEST_FILE)
			keep_file(n, size, item.path, item.size);
		count_ranges(&item, n);
	}
	n->programs = COP_MAX(r->parts, 1u);
	n->cut = !r->ended;
	cop_seen_forget(&things);
	free(r);
}

/* Does not use cop_read_file, which a FIFO in place of the manifest would block. */
static int read_manifest(const char *file, char **text, size_t *len)
{
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, file, &size);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = size > COP_MANIFEST_BYTES_MAX ? -EFBIG : 0;
	*text = got ? NULL : malloc((size_t)size + 1);
	if (!got)
		got = *text ? cop_read_full(fd, *text, (size_t)size) : -ENOMEM;
	close(fd);
	if (got < 0)
		return (int)got;
	(*text)[got] = '\0';
	*len = (size_t)got;
	return 0;
}

int cop_predict_read(const char *file, struct cop_predict_needs *out, struct cop_err *err)
{
	char *text = NULL;
	struct cop_err why = {0};
	size_t len = 0, body;
	int rc;

	*out = (struct cop_predict_needs){0};
	out->path = calloc(PREDICT_PATHS, sizeof(*out->path));
	out->folder = calloc(PREDICT_PATHS, sizeof(*out->folder));
	if (!out->path || !out->folder)
		return cop_err_set(err, ENOMEM, "out of memory");
	rc = read_manifest(file, &text, &len);
	if (rc)
		return cop_err_set(err, -rc, "cannot read %s: %s", file,
			rc == -EINVAL ? "it is not a regular file" : strerror(-rc));
	rc = cop_manifest_head(text, len, out->source, &body, &why);
	if (rc)
		cop_err_set(err, -rc, "%s: %s", file, why.text);
	else
		count_items(text + body, len - body, out);
	free(text);
	if (!rc && !out->directories && !out->names && !out->files)
		rc = cop_err_set(err, ENODATA, "%s: the recording names nothing", file);
	if (!rc && out->bytes == BYTES_MOST)
		rc = cop_err_set(err, EFBIG, "%s: the recording names more than 1 PiB", file);
	return rc;
}

void cop_predict_free(struct cop_predict_needs *n)
{
	for (unsigned i = 0; i < n->paths; i++)
		free(n->path[i]);
	for (unsigned i = 0; i < n->folders; i++)
		free(n->folder[i]);
	free(n->path);
	free(n->folder);
	*n = (struct cop_predict_needs){0};
}
