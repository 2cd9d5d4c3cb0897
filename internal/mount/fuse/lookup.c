/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and attributes. The directory's listing answers a lookup. If there is none, or it is
 * inconclusive, the single entry does.
 *
 * The first name looked up in a directory is requested by itself alongside the listing, in one
 * message. A root, which has no messages to save, does so even if the listing is already in flight.
 * On slow storage a single name takes one operation, while a listing takes four in a row, and a
 * program often only passes through a directory. Later names are not requested this way: by then
 * the kernel may have names from an older listing, and a single entry might have a different
 * version. */
#include "mount/fuse/fuse_priv.h"

#include <dirent.h>

#include "base/log/log.h"

void cop_fuse_reply_entry(
	struct op *op, struct cop_attr *attr, const char *target, size_t target_len)
{
	struct fuse_entry_param e = {0};
	struct inode *i =
		cop_fuse_inode_shown(op, op->name, op->name_len, target, target_len, attr);

	if (!i) {
		cop_fuse_fail(op, -ENOMEM);
		return;
	}
	e.ino = cop_fuse_nodeid(op, i, attr->mode);
	/* The inode is already in the table, so an invalidation finds it there. */
	e.attr_timeout = e.entry_timeout = cop_fuse_name_seconds(op, attr);
	cop_fuse_stat(attr, &e.attr);
	/* An interrupted request gets no reply, so the kernel holds no reference. */
	if (fuse_reply_entry(op->req, &e))
		cop_fuse_inode_put(op->fs, i, 1);
	cop_fuse_op_free(op);
}

/* An absent name is answered with inode 0, which the kernel caches; it does not cache an error. */
static void reply_absent(struct op *op, bool certain)
{
	struct fuse_entry_param e = {.ino = 0};

	certain = certain && (op->fs->conn_caps & CAP_ABSENT_ENTRIES);
	/* The name is noted before the epoch is read, so an invalidation either finds the name or
	 * is detected here. */
	if (!op->inode->parent)
		certain = certain && cop_fuse_note_absent(op->fs, op->name, op->name_len);
	if (certain && cop_fuse_cache_seconds(op) > 0)
		e.entry_timeout = op->fs->conf.enoent_ttl_ms / 1000.0;
	op->outcome = COP_PROF_NEGATIVE;
	op->rc = -ENOENT;
	cop_stats_add(op->fs->conf.stats, COP_FUSE_NEGATIVE, 1);
	if (e.entry_timeout > 0)
		fuse_reply_entry(op->req, &e);
	else
		fuse_reply_err(op->req, ENOENT);
	cop_fuse_op_free(op);
}

static void with_entry(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_attr attr;
	const char *target;
	size_t target_len;

	if (rc == -ENOENT) {
		reply_absent(op, true);
	} else if (rc) {
		cop_fuse_fail(op, rc);
	} else {
		cop_entry_get(obj->data, &attr, &target, &target_len);
		/* Record the name as if the listing had answered. */
		if (op->first)
			cop_fuse_record_name(op);
		cop_fuse_reply_entry(op, &attr, target, target_len);
	}
}

static void ask_fetch(struct op *op, enum cop_ask_kind kind, uint64_t version, bool with_name,
	void (*next)(struct op *op, struct cop_obj *obj, int rc))
{
	char path[PATH_BYTES];
	int rc = cop_fuse_path(op->inode, op->name, with_name ? op->name_len : 0, path);

	if (rc < 0)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_ask(op, &(struct cop_ask){.kind = kind, .path = path, .version = version},
			next);
}

void cop_fuse_lookup_singly(struct op *op)
{
	ask_fetch(op, COP_ASK_ENTRY, 0, true, with_entry);
}

/* The directory does not list the name. If it may exist nevertheless, asks the storage; the answer
 * is valid as long as the directory is unchanged. */
static void unlisted(struct op *op)
{
	if (!op->may_be_hidden) {
		reply_absent(op, true);
		return;
	}
	op->missed_before |= op->missed;
	op->missed = false;
	cop_fuse_lookup_singly(op);
}

static void with_listing(struct op *op, struct cop_obj *obj, int rc);

static void with_check(struct op *op, struct cop_obj *obj, int rc)
{
	(void)obj;
	op->checked = true;
	/* If the listing is still right or the path is no longer a directory, the name is absent.
	 * Otherwise names may have been added; known names are unchanged. */
	if (rc == 0) {
		unlisted(op);
	} else if (rc == -ENOENT || rc == -ENOTDIR) {
		reply_absent(op, true);
	} else {
		cop_fuse_count(op->req, COP_ENOENT_CLEARS);
		cop_fuse_profile_ttl(op, COP_PROF_CLEAR);
		cop_fuse_forget_names(op->fs, op->inode);
		ask_fetch(op, COP_ASK_NEWER, op->version, false, with_listing);
	}
}

/* A listing proves nothing about snapshot directories and the like, which file systems hide (NFS
 * servers, ZFS, GPFS, WekaFS, CephFS, GlusterFS, Lustre), nor about any name on storage whose
 * listings may be incomplete. */
static bool may_be_hidden(const struct op *op, uint32_t flags)
{
	static const char *const known[] = {".snapshot", ".snapshots", "~snapshot", ".ckpt", ".zfs",
		".snap", ".snaps", ".lustre"};
	const struct cop_opt_list *given = op->fs->conf.hidden;

	if (flags & COP_LISTING_HIDES)
		return true;
	for (size_t i = 0; i < COP_ARRAY_SIZE(known); i++)
		if (strcmp(op->name, known[i]) == 0)
			return true;
	for (unsigned i = 0; given && i < given->n; i++)
		if (strcmp(given->at[i], "*") == 0 || strcmp(op->name, given->at[i]) == 0)
			return true;
	return false;
}

/* The listing does not have the name. The absence is valid for a TTL, after which the root
 * revalidates the directory. */
static void listed_absent(struct op *op, struct cop_obj *obj)
{
	struct cop_attr dir;

	op->may_be_hidden = may_be_hidden(op, cop_listing_flags(obj->data));
	if (op->checked || cop_fetch_missed_ms(op->fs->conf.fetch, obj)) {
		if (!op->may_be_hidden)
			cop_fuse_count(op->req, COP_ENOENT_SERVES);
		unlisted(op);
		return;
	}
	cop_fuse_count(op->req, COP_ENOENT_EXPIRES);
	cop_fuse_profile_ttl(op, COP_PROF_EXPIRE);
	cop_listing_dir(obj->data, &dir);
	op->version = dir.version;
	ask_fetch(op, COP_ASK_CHECK, dir.version, false, with_check);
}

/* The directory is too large for a listing with attributes. If its names are cached here, a page
 * may have the attributes. */
static void without_listing(struct op *op)
{
	struct cop_fuse *fs = op->fs;
	struct cop_listing_entry e;
	char path[PATH_BYTES];
	struct cop_obj *obj = NULL;
	bool answered;

	if (cop_fuse_path(op->inode, "", 0, path) >= 0)
		obj = cop_fetch_peek(
			fs->conf.fetch, &(struct cop_ask){.kind = COP_ASK_NAMES, .path = path});
	answered = obj && !obj->error && cop_listing_find(obj->data, op->name, op->name_len, &e) &&
		   cop_fuse_page_lookup(op, obj->data, &e);
	if (obj)
		cop_obj_put(fs->conf.cache, obj);
	if (!answered)
		cop_fuse_lookup_singly(op);
}

/* Whether the name is a directory whose own listing is cached here, with its attributes. */
static bool is_listed_dir(struct op *op, const struct cop_listing_entry *e, struct cop_attr *attr)
{
	char path[PATH_BYTES];

	return !e->has_attr && e->type == DT_DIR &&
	       cop_fuse_path(op->inode, op->name, op->name_len, path) >= 0 &&
	       cop_fetch_dir_attr(op->fs->conf.fetch, path, attr);
}

static void with_listing(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_listing_entry e;
	struct cop_attr attr;

	if (rc == -E2BIG) {
		without_listing(op);
		return;
	}
	if (!rc)
		cop_fuse_meet_names(op->fs, op->inode, obj->data);
	if (rc || !cop_listing_find(obj->data, op->name, op->name_len, &e)) {
		if (!rc && (cop_listing_flags(obj->data) & COP_LISTING_COMPLETE))
			listed_absent(op, obj);
		else
			cop_fuse_lookup_singly(op);
	} else if (e.has_attr && (!S_ISLNK(e.attr.mode) || e.target) &&
		   cop_fetch_believes(op->fs->conf.fetch, obj, &e.attr)) {
		cop_fuse_record_name(op);
		cop_fuse_reply_entry(op, &e.attr, e.target, e.target_len);
	} else if (is_listed_dir(op, &e, &attr)) {
		cop_fuse_record_name(op);
		cop_fuse_reply_entry(op, &attr, NULL, 0);
	} else if (!cop_fuse_page_lookup(op, obj->data, &e)) {
		cop_fuse_lookup_singly(op);
	}
}

/* The listing serves the names looked up after this one. */
static void lookup_first(struct op *op, const char *path)
{
	struct cop_fuse *fs = op->fs;
	struct cop_ask listing = {
		.kind = COP_ASK_LISTING, .path = path, .along = true, .from = op->from};
	struct cop_obj *obj;

	if (fs->conf.record && !op->own)
		cop_fuse_record(op, &listing);
	op->first = true;
	atomic_store(&op->inode->looked_in, true);
	cop_fetch_cork(fs->conf.fetch);
	cop_fuse_lookup_singly(op);
	if (cop_fetch_get(fs->conf.fetch, &listing, NULL, &obj) == 1)
		cop_obj_put(fs->conf.cache, obj);
	cop_fetch_uncork(fs->conf.fetch);
}

/* Whether the kernel and this node have no names from the listing yet. */
static bool is_first(struct op *op, const struct cop_ask *listing)
{
	struct cop_fetch *c = op->fs->conf.fetch;

	enum cop_held held;

	if (atomic_load(&op->inode->names_version))
		return false;
	held = cop_fetch_held(c, listing);
	if (held != COP_HELD_FLYING)
		return held == COP_HELD_NOT;
	/* If the listing was requested for another name, this lookup waits for it. */
	return cop_fetch_reads_itself(c, listing) && !atomic_exchange(&op->inode->looked_in, true);
}

static void lookup_in_tree(struct op *op)
{
	char path[PATH_BYTES];
	struct cop_ask listing = {.kind = COP_ASK_LISTING, .path = path};
	int rc = cop_fuse_path(op->inode, "", 0, path);

	cop_fetch_looked_for(op->fs->conf.fetch, op->name, op->name_len);
	if (rc < 0)
		cop_fuse_fail(op, rc);
	else if (is_first(op, &listing))
		lookup_first(op, path);
	else
		cop_fuse_ask(op, &listing, with_listing);
}

/* Names at and below the mount point of a pseudo file system never reach the tree. */
static bool is_local(struct op *op)
{
	char path[PATH_BYTES];

	if (op->inode->place != PLACE_TREE)
		return true;
	return op->fs->n_places && cop_fuse_path(op->inode, op->name, op->name_len, path) > 0 &&
	       cop_fuse_place(op->fs, path) != PLACE_TREE;
}

bool cop_fuse_is_old_ioctl(const char *name, size_t len)
{
	static const char old[] = ".spec_ioctl_file";

	return len == sizeof(old) - 1 && memcmp(name, old, len) == 0;
}

/* Programs written for Copper 1.0 open this file in the mount and send it an ioctl. If the open
 * succeeded, the ioctl would fail and they would read zeros. */
static void refuse_old_ioctl(struct op *op)
{
	cop_log_warn(
		"refused: the file of Copper 1.0's ioctls was opened; use copper cache-stats, --output-dir, --snapshot or --reset of it (copper-cache-stats(1))");
	cop_fuse_fail(op, -EOPNOTSUPP);
}

static void with_root(struct op *op, struct cop_obj *obj, int rc)
{
	struct fuse_entry_param e = {0};
	struct cop_attr attr;

	if (rc) {
		cop_fuse_fail(op, rc);
		return;
	}
	cop_entry_get(obj->data, &attr, NULL, NULL);
	cop_fuse_inode_set_attr(op->fs, op->inode, &attr);
	e.ino = cop_fuse_dir_nodeid(op->fs, op->inode, true);
	e.attr_timeout = e.entry_timeout = cop_fuse_cache_seconds(op);
	cop_fuse_stat(&attr, &e.attr);
	fuse_reply_entry(op->req, &e);
	cop_fuse_op_free(op);
}

/* Whether op looks up this name in the root of the given side. */
static bool is_unlisted(const struct op *op, bool view, const char *name)
{
	return !op->inode->parent && op->view == view && strcmp(op->name, name) == 0;
}

static void lookup_view_root(struct op *op)
{
	op->own = true;
	atomic_store(&op->fs->viewed, true);
	cop_fuse_ask(op, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = ""}, with_root);
}

static void note_side(struct op *op)
{
	_Atomic bool *used = &op->fs->used[op->view];

	if (!op->own && !atomic_load_explicit(used, memory_order_relaxed))
		atomic_store(used, true);
}

void cop_fuse_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct op *op = cop_fuse_op(req, parent, COP_PROF_OP_LOOKUP);
	size_t len = strlen(name);

	cop_fuse_count(req, COP_FUSE_LOOKUP);
	if (!op)
		return;
	if (len >= sizeof(op->name)) {
		cop_fuse_fail(op, -ENAMETOOLONG);
		return;
	}
	memcpy(op->name, name, len);
	op->name_len = (uint16_t)len;
	if (cop_fuse_is_old_ioctl(name, len))
		refuse_old_ioctl(op);
	else if (is_unlisted(op, false, COP_FUSE_VIEW_ROOT))
		lookup_view_root(op);
	else if (is_unlisted(op, true, COP_FUSE_STORAGE))
		cop_fuse_lookup_storage(op);
	else if (is_local(op))
		cop_fuse_local_lookup(op);
	else {
		note_side(op);
		lookup_in_tree(op);
	}
}
