/* SPDX-License-Identifier: BSD-3-Clause */
/* Directory reads. The offset of a name is its cookie in the listing, which stays the same across
 * versions of the directory. So seekdir works, and a reader of a changing directory neither sees a
 * name twice nor misses one. */
#include "mount/fuse/fuse_priv.h"

#include <dirent.h>

/* libfuse's value for an unknown inode number. */
#define UNKNOWN_INO 0xffffffffu
#define OFF_DOT 1
#define OFF_DOTDOT 2

/* Minimum size of a READDIRPLUS entry in the reply. */
#define PLUS_MIN 152

struct fill {
	struct op *op;
	const struct cop_obj *obj; /* the listing */
	struct attrs attrs;        /* only if large */
	bool large,
		waits; /* large: the directory is large; waits: the reply ends at a missing page */
	char *buf;
	size_t used;
	struct inode *
		*given; /* READDIRPLUS: inodes to which the reply gives the kernel a reference */
	size_t n_given, max_given;
};

/* Adds one name; false if the buffer is full. e->ino is 0 if the kernel receives no inode. */
static bool add_direntry(
	struct fill *f, const char *name, const struct fuse_entry_param *e, off_t off)
{
	struct op *op = f->op;
	size_t left = op->size - f->used, need;

	need = op->plus ? fuse_add_direntry_plus(op->req, f->buf + f->used, left, name, e, off)
			: fuse_add_direntry(op->req, f->buf + f->used, left, name, &e->attr, off);
	if (need > left)
		return false;
	f->used += need;
	return true;
}

static bool add_dots(struct fill *f, const struct cop_attr *dir)
{
	struct op *op = f->op;
	struct inode *parent = op->inode->parent;
	struct fuse_entry_param e = {.attr.st_mode = S_IFDIR};

	if (op->off < OFF_DOT) {
		e.attr.st_ino = dir->ino;
		if (!add_direntry(f, ".", &e, OFF_DOT))
			return false;
	}
	if (op->off < OFF_DOTDOT) {
		e.attr.st_ino = parent ? cop_fuse_inode_attr(op->fs, parent).ino : dir->ino;
		if (!add_direntry(f, "..", &e, OFF_DOTDOT))
			return false;
	}
	return true;
}

/* Whether to withhold attributes, so that the kernel looks up the names it needs and the lookups
 * are recorded. A page is here only because a program traverses the whole large directory, so its
 * attributes are not withheld. A single entry is here because the manifest or a prefetch guess
 * requested it, or because a program looked it up. */
static bool is_recorded(const struct fill *f, const struct cop_obj *source)
{
	return f->op->fs->conf.record && !f->op->own &&
	       (source == f->obj || (source == f->attrs.entry && !f->waits));
}

/* With READDIRPLUS, a name with attributes gives the kernel an inode, as a successful lookup does.
 * source: the object that has the attributes. */
static bool add_name(struct fill *f, const struct cop_listing_entry *le, const char *name,
	const struct cop_obj *source)
{
	struct op *op = f->op;
	struct fuse_entry_param e = {.attr.st_ino = le->ino ? le->ino : UNKNOWN_INO,
		.attr.st_mode = cop_fuse_shown_mode(op, (mode_t)le->type << 12)};
	struct cop_attr attr = le->attr;
	struct inode *i = NULL;
	bool looked_up = (!S_ISLNK(attr.mode) || le->target) &&
			 !cop_fuse_is_old_ioctl(name, le->name_len) &&
			 cop_fetch_believes(op->fs->conf.fetch, source, &attr);

	if (le->has_attr) {
		cop_fuse_stat(&attr, &e.attr);
		e.attr.st_mode = cop_fuse_shown_mode(op, attr.mode);
	}
	if (op->plus && le->has_attr && looked_up && !is_recorded(f, source) && !op->fs->n_places &&
		f->n_given < f->max_given) {
		i = cop_fuse_inode_shown(op, name, le->name_len, le->target, le->target_len, &attr);
		if (i) {
			cop_fuse_stat(&attr, &e.attr);
			e.ino = cop_fuse_nodeid(op, i, attr.mode);
			e.attr_timeout = e.entry_timeout = cop_fuse_name_seconds(op, &attr);
		}
	}
	if (add_direntry(f, name, &e, (off_t)le->cookie)) {
		if (i)
			f->given[f->n_given++] = i;
		return true;
	}
	if (i)
		cop_fuse_inode_put(op->fs, i, 1);
	return false;
}

static void fill_reply(struct fill *f)
{
	const void *blob = f->obj->data;
	uint32_t count = cop_listing_count(blob);
	struct cop_listing_entry le;
	struct cop_attr dir;
	char name[256];
	uint32_t i;

	cop_listing_dir(blob, &dir);
	if (!add_dots(f, &dir))
		return;
	for (i = cop_listing_seek(blob, (uint64_t)f->op->off); i < count; i++) {
		const struct cop_obj *source = f->obj;

		cop_listing_at(blob, i, &le);
		if (f->large && !le.has_attr) {
			source = cop_fuse_attrs_find(&f->attrs, &le);
			if (!source && f->waits && f->used && !f->attrs.page)
				break;
		}
		memcpy(name, le.name, le.name_len);
		name[le.name_len] = '\0';
		if (!add_name(f, &le, name, source ? source : f->obj))
			break;
	}
	if (f->waits)
		cop_fuse_attrs_given(f->op, i);
}

/* If the reply could not be delivered, because the reader was killed, the kernel has received no
 * references. */
static void reply_entries(struct fill *f)
{
	struct op *op = f->op;

	if (fuse_reply_buf(op->req, f->buf, f->used))
		for (size_t i = 0; i < f->n_given; i++)
			cop_fuse_inode_put(op->fs, f->given[i], 1);
	cop_fuse_op_free(op);
}

/* page: the page of the first name if the reply must end at the next missing page; else NULL. */
static void fill_entries(struct op *op, const struct cop_obj *obj, struct cop_obj *page)
{
	struct fill f = {
		.op = op, .obj = obj, .max_given = op->size / PLUS_MIN, .waits = page != NULL};

	f.buf = malloc(op->size);
	f.given = calloc(f.max_given + 1, sizeof(*f.given));
	if (!f.buf || !f.given) {
		cop_fuse_fail(op, -ENOMEM);
	} else {
		f.large = cop_fuse_attrs_init(&f.attrs, op, obj->data, page);
		fill_reply(&f);
		if (f.large)
			cop_fuse_attrs_fini(&f.attrs);
		reply_entries(&f);
	}
	free(f.buf);
	free(f.given);
}

/* The page of the first name has arrived or is unavailable. The operation holds the listing. */
static void with_page(struct op *op, struct cop_obj *page, int rc)
{
	if (rc)
		cop_fuse_attrs_fail(op, op->chunk[0]->data);
	fill_entries(op, op->chunk[0], rc ? NULL : page);
}

static void with_names(struct op *op, struct cop_obj *obj, int rc)
{
	char dir[PATH_BYTES];
	struct cop_ask ask;

	if (rc) {
		cop_fuse_fail(op, rc);
		return;
	}
	cop_fuse_meet_names(op->fs, op->inode, obj->data);
	if (cop_fuse_attrs_want(
		    op, obj->data, cop_listing_seek(obj->data, (uint64_t)op->off), dir, &ask)) {
		op->chunk[op->n_chunks++] = cop_obj_get(obj);
		cop_fuse_ask(op, &ask, with_page);
	} else {
		fill_entries(op, obj, NULL);
	}
}

static void with_listing(struct op *op, struct cop_obj *obj, int rc)
{
	char path[PATH_BYTES];

	if (rc != -E2BIG) {
		with_names(op, obj, rc);
		return;
	}
	rc = cop_fuse_path(op->inode, "", 0, path);
	if (rc < 0)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_ask(
			op, &(struct cop_ask){.kind = COP_ASK_NAMES, .path = path}, with_names);
}

static void readdir_op(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	struct op *op = cop_fuse_op(req, ino, plus ? COP_PROF_OP_READDIRPLUS : COP_PROF_OP_READDIR);
	char path[PATH_BYTES];
	int rc;

	cop_fuse_count(req, COP_FUSE_READDIR);
	if (!op)
		return;
	op->size = size;
	op->off = off;
	op->plus = plus;
	if (op->inode->place != PLACE_TREE) {
		cop_fuse_local_readdir(op);
		return;
	}
	rc = cop_fuse_path(op->inode, "", 0, path);
	if (rc < 0)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_ask(
			op, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = path}, with_listing);
}

void cop_fuse_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	readdir_op(req, ino, size, off, false);
}

void cop_fuse_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	readdir_op(req, ino, size, off, true);
}
