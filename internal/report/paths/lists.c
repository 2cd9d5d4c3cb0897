/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the lists of paths in passes over the tree, sorted by the bytes of full paths; paths
 * outside the tree are merged in. Lists for people and scripts escape newlines in names, as raw
 * tables do. keep.txt and prune_candidates.txt are for rsync --files-from, which has no escapes and
 * ends lines at a newline or carriage return. A name that contains either is only in keep.nul and
 * prune_candidates.nul, which are written only if there is such a name and then contain all
 * names. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "report/paths/paths_priv.h"

#define BUFFER (256 * COP_KIB)

/* ---- buffered files, renamed when complete ---- */

struct out {
	char *path, *tmp; /* tmp: the temporary name until the file is finished */
	struct cop_dir at;
	char *data;
	size_t len;
	int fd, rc; /* rc: the first error, after which writes have no effect */
};

static int out_open(struct out *o, const char *dir, const char *name)
{
	*o = (struct out){.fd = -1, .at = {.fd = -1}};
	if (asprintf(&o->path, "%s/%s", dir, name) < 0)
		o->path = NULL;
	o->data = malloc(BUFFER);
	if (!o->path || !o->data)
		return o->rc = -ENOMEM;
	o->rc = cop_dir_of(o->path, &o->at);
	if (o->rc)
		return o->rc;
	o->fd = cop_open_temp(&o->at, &o->tmp);
	if (o->fd < 0)
		o->rc = o->fd;
	else if (fchmod(o->fd, 0644))
		o->rc = -errno;
	return o->rc;
}

static void flush_output(struct out *o)
{
	ssize_t n = o->rc ? 0 : cop_write_full(o->fd, o->data, o->len);

	if (n < 0)
		o->rc = (int)n;
	o->len = 0;
}

static void out_add(struct out *o, const char *data, size_t len)
{
	while (len && !o->rc) {
		size_t n = COP_MIN(len, BUFFER - o->len);

		memcpy(o->data + o->len, data, n);
		o->len += n;
		data += n;
		len -= n;
		if (o->len == BUFFER)
			flush_output(o);
	}
}

/* Flushes the buffer; the file keeps its temporary name. */
static int out_finish(struct out *o)
{
	flush_output(o);
	if (o->fd >= 0 && close(o->fd) && !o->rc)
		o->rc = -errno;
	if (o->fd < 0 && !o->rc)
		o->rc = -EBADF;
	o->fd = -1;
	return o->rc;
}

/* Renames the file if it was finished without errors and keep is set, else removes it. */
static int out_close(struct out *o, bool keep)
{
	int rc = o->rc;

	if (o->fd >= 0)
		close(o->fd);
	if (keep && !rc && renameat(o->at.fd, o->tmp, o->at.fd, o->at.name))
		rc = -errno;
	if ((!keep || rc) && o->tmp)
		unlinkat(o->at.fd, o->tmp, 0);
	cop_dir_done(&o->at);
	free(o->path);
	free(o->tmp);
	free(o->data);
	*o = (struct out){.fd = -1, .at = {.fd = -1}};
	return rc;
}

const char *const cop_paths_list_name[LISTS] = {
	[LIST_ALL] = "all_possible_existing_paths.txt",
	[LIST_USED] = "used_paths_existing.txt",
	[LIST_UNUSED] = "same_run_candidate_not_observed_existing_paths.txt",
	[LIST_MISSING] = "missing_probe_paths.txt",
	[LIST_KEEP] = "keep.txt",
	[LIST_PRUNE] = "prune_candidates.txt",
};
static const char *const nul_name[LISTS] = {
	[LIST_KEEP] = "keep.nul", [LIST_PRUNE] = "prune_candidates.nul"};

struct writing {
	const struct usage *u;
	struct lists *l;
	size_t base_len; /* includes its slash */
	struct out out[LISTS];
	struct out nul[LISTS]; /* for keep and prune, if needed */
	bool with_nul;
	size_t beyond, keep_beyond; /* number of items written so far */
	int pass_rc[2];
	struct cop_buf escaped;
};

static void count_path(struct path_total *t, uint8_t type, uint64_t bytes)
{
	t->paths++;
	t->missing += type == DT_UNKNOWN;
	t->dirs += type == DT_DIR;
	t->files += type != DT_DIR && type != DT_UNKNOWN;
	t->bytes += bytes;
}

/* Writes the line to one or two lists. */
static void put_escaped(
	struct writing *w, enum path_list list, enum path_list other, const char *path, size_t len)
{
	if (memchr(path, '\n', len) || memchr(path, '\\', len)) {
		w->escaped.len = 0;
		cop_csv_escaped(&w->escaped, path, len);
		path = w->escaped.data;
		len = w->escaped.len;
		if (w->escaped.failed) {
			w->out[list].rc = -ENOMEM;
			return;
		}
	}
	out_add(&w->out[list], path, len);
	out_add(&w->out[list], "\n", 1);
	if (other == list)
		return;
	out_add(&w->out[other], path, len);
	out_add(&w->out[other], "\n", 1);
}

/* rsync treats a leading # or ; as a comment, so ./ is prepended. The base itself is omitted,
 * because "." would mean its whole contents. */
static void put_relative(struct writing *w, enum path_list list, const char *path, size_t len)
{
	bool odd = memchr(path, '\n', len) || memchr(path, '\r', len), comment;

	if (len < w->base_len + 1)
		return;
	path += w->base_len;
	len -= w->base_len;
	comment = path[0] == '#' || path[0] == ';';
	w->l->odd_names += odd;
	if (!odd) {
		out_add(&w->out[list], "./", comment ? 2 : 0);
		out_add(&w->out[list], path, len);
		out_add(&w->out[list], "\n", 1);
	}
	if (w->with_nul) {
		out_add(&w->nul[list], "./", comment ? 2 : 0);
		out_add(&w->nul[list], path, len);
		out_add(&w->nul[list], "", 1);
	}
}

/* Writes used paths outside the tree that sort before path; NULL: all. */
static void put_beyond(struct writing *w, const char *path)
{
	const struct path_refs *used = &w->u->beyond;

	for (; w->beyond < used->n && (!path || strcmp(used->ref[w->beyond].text, path) < 0);
		w->beyond++) {
		const struct path_ref *ref = &used->ref[w->beyond];

		count_path(&w->l->total[LIST_USED], ref->type, ref->size);
		put_escaped(w, LIST_USED, LIST_USED, ref->text, ref->len);
	}
}

static void put_keep_beyond(struct writing *w, const char *path)
{
	const struct path_refs *keep = &w->u->keep_beyond;

	for (; w->keep_beyond < keep->n &&
		(!path || strcmp(keep->ref[w->keep_beyond].text, path) < 0);
		w->keep_beyond++)
		put_relative(w, LIST_KEEP, keep->ref[w->keep_beyond].text,
			keep->ref[w->keep_beyond].len);
}

/* Nodes cannot read such a program either, because they run as the user who started them. */
static void note_closed(struct writing *w, const struct cop_walk_entry *e, const char *path)
{
	const uint8_t both = COP_WALK_USED | COP_WALK_HALF_CLOSED;

	if ((e->flags & both) != both || access(path, X_OK) || !access(path, R_OK) ||
		errno != EACCES)
		return;
	if (!w->l->all_closed++)
		w->l->closed = strdup(path);
}

static int put_whole(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	struct writing *w = arg;
	enum path_list used = e->flags & COP_WALK_USED ? LIST_USED : LIST_UNUSED;

	put_beyond(w, path);
	note_closed(w, e, path);
	count_path(&w->l->total[LIST_ALL], e->type, e->size);
	count_path(&w->l->total[used], e->type, e->size);
	put_escaped(w, LIST_ALL, used, path, len);
	return w->out[LIST_ALL].rc;
}

static int put_parts(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	struct writing *w = arg;
	enum path_list keep = e->flags & COP_WALK_KEEP ? LIST_KEEP : LIST_PRUNE;

	put_keep_beyond(w, path);
	count_path(&w->l->total[keep], e->type, e->size);
	put_relative(w, keep, path, len);
	return w->out[keep].rc;
}

/* ---- base directory of keep and prune ---- */

static size_t common_directory(const char *a, const char *b)
{
	size_t i = 0, end = 0;

	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			end = i;
	if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/'))
		end = i;
	return end ? end : 1;
}

/* A single root that is a directory, or else the deepest common parent of all roots. */
static int find_base(struct writing *w)
{
	const struct cop_walk_dir *top = &w->u->tree->top;
	const struct cop_walk_entry *first = NULL;
	char *base = NULL;

	for (uint32_t i = 0; i < top->n; i++) {
		const struct cop_walk_entry *e = &top->entry[i];

		if (!e->type)
			continue;
		if (!first) {
			const char *slash = strrchr(e->name, '/');

			base = strndup(
				e->name, e->dir ? e->len : COP_MAX((size_t)(slash - e->name), 1u));
			first = e;
		} else if (base) {
			base[common_directory(base, e->name)] = '\0';
		}
		if (!base)
			return -ENOMEM;
	}
	w->l->base = base;
	w->base_len = base ? strlen(base) + (base[1] != '\0') : 0;
	return 0;
}

/* ---- top level ---- */

static int open_all(struct writing *w, const char *dir)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < LISTS; i++) {
		rc = out_open(&w->out[i], dir, cop_paths_list_name[i]);
		if (!rc && w->with_nul && nul_name[i])
			rc = out_open(&w->nul[i], dir, nul_name[i]);
	}
	return rc;
}

/* Runs one of two passes, each on its own thread and with its own files, because composing and
 * copying lines is most of the work. */
static void one_pass(void *arg, size_t i)
{
	struct writing *w = arg;

	w->pass_rc[i] = cop_walk_tree_each(w->u->tree, i ? put_parts : put_whole, w);
	if (i)
		put_keep_beyond(w, NULL);
	else
		put_beyond(w, NULL);
}

static int write_lists(struct writing *w)
{
	int rc;

	for (size_t i = 0; i < w->u->missing.n; i++) {
		count_path(&w->l->total[LIST_MISSING], DT_UNKNOWN, 0);
		put_escaped(w, LIST_MISSING, LIST_MISSING, w->u->missing.ref[i].text,
			w->u->missing.ref[i].len);
	}
	rc = cop_walk_parallel(COP_ARRAY_SIZE(w->pass_rc), one_pass, NULL, w);
	for (unsigned i = 0; i < COP_ARRAY_SIZE(w->pass_rc); i++)
		rc = rc ? rc : w->pass_rc[i];
	for (unsigned i = 0; i < LISTS; i++) {
		rc = rc ? rc : out_finish(&w->out[i]);
		if (!rc && w->with_nul && nul_name[i])
			rc = out_finish(&w->nul[i]);
	}
	return rc;
}

/* Files are renamed only after all of them are complete, so that lists of different runs never
 * mix. */
static int close_all(struct writing *w, bool keep)
{
	int rc = 0;

	for (unsigned i = 0; i < LISTS; i++) {
		rc = out_close(&w->out[i], keep && !rc) ?: rc;
		if (w->with_nul && nul_name[i])
			rc = out_close(&w->nul[i], keep && !rc) ?: rc;
	}
	return rc;
}

static int write_once(struct writing *w, const char *dir)
{
	int rc, closed;

	memset(w->l->total, 0, sizeof(w->l->total));
	w->l->odd_names = w->l->all_closed = 0;
	free(w->l->closed);
	w->l->closed = NULL;
	w->beyond = w->keep_beyond = 0;
	for (unsigned i = 0; i < LISTS; i++)
		w->out[i] = w->nul[i] = (struct out){.fd = -1, .rc = -EBADF};
	rc = open_all(w, dir) ?: write_lists(w);
	/* Whether the NUL-terminated lists are needed is known only at the end. This is rare, and
	 * everything is then written again. */
	closed = close_all(w, !rc && (!w->l->odd_names || w->with_nul));
	return rc ?: closed;
}

static void remove_stale(const char *dir)
{
	for (unsigned i = 0; i < LISTS; i++) {
		struct cop_buf path = {0};

		if (!nul_name[i])
			continue;
		cop_buf_printf(&path, "%s/%s", dir, nul_name[i]);
		if (!path.failed)
			cop_unlink(path.data);
		cop_buf_free(&path);
	}
}

int cop_paths_lists_write(
	const struct usage *u, const char *dir, struct lists *out, struct cop_err *err)
{
	struct writing *w = calloc(1, sizeof(*w));
	int rc = w ? 0 : -ENOMEM;

	*out = (struct lists){0};
	if (!rc) {
		w->u = u;
		w->l = out;
		rc = find_base(w) ?: write_once(w, dir);
	}
	if (!rc && out->odd_names) {
		w->with_nul = true;
		rc = write_once(w, dir);
	} else if (!rc) {
		remove_stale(dir);
	}
	if (w)
		cop_buf_free(&w->escaped);
	free(w);
	return rc ? cop_err_set(err, -rc, "cannot write the lists of paths into %s: %s", dir,
			    strerror(-rc))
		  : 0;
}

void cop_paths_lists_free(struct lists *l)
{
	free(l->base);
	free(l->closed);
}
