/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all operations: the life of struct op, requests to tree/fetch, errors, attributes. */
#include "mount/fuse/fuse_priv.h"

#include <sys/sysmacros.h>

struct cop_fuse *cop_fuse_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

void cop_fuse_own_thread(struct cop_fuse *fs, uint32_t tid)
{
	atomic_store(&fs->own_thread, tid);
}

void cop_fuse_used(struct cop_fuse *fs, bool *bare, bool *view)
{
	*bare = atomic_load(&fs->used[false]);
	*view = atomic_load(&fs->used[true]);
}

static bool is_own(fuse_req_t req)
{
	uint32_t tid = atomic_load_explicit(&cop_fuse_of(req)->own_thread, memory_order_relaxed);

	return tid && tid == (uint32_t)fuse_req_ctx(req)->pid;
}

void cop_fuse_count(fuse_req_t req, enum cop_counter c)
{
	cop_stats_add(cop_fuse_of(req)->conf.stats, is_own(req) ? COP_FUSE_AHEAD : c, 1);
}

struct op *cop_fuse_op(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op) {
		fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	op->fs = cop_fuse_of(req);
	op->req = req;
	op->epoch = atomic_load(&op->fs->epoch);
	op->kind = (uint8_t)kind;
	op->from = (uint32_t)fuse_req_ctx(req)->pid;
	op->own = is_own(req);
	if (op->fs->watched && !op->own)
		op->start_ns = cop_now_ns();
	op->inode = cop_fuse_inode(op->fs, ino);
	op->view = cop_fuse_is_view(ino);
	cop_fuse_inode_ref(op->inode);
	return op;
}

void cop_fuse_profile(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind, int rc)
{
	const struct cop_fuse_conf *conf = &cop_fuse_of(req)->conf;

	if (is_own(req))
		return;
	cop_prof_op(conf->prof, kind, rc == -EROFS ? COP_PROF_NEGATIVE : COP_PROF_DONE, 0);
	if (conf->tracer)
		cop_fuse_trace_now(req, ino, kind, rc);
}

/* The operation decides in which profile table its path is counted. */
static void profile_path(struct op *op, enum cop_prof_outcome outcome)
{
	struct cop_prof *prof = op->fs->conf.prof;
	char path[PATH_BYTES];
	int len = cop_fuse_path(op->inode, op->name, op->name_len, path);

	if (len < 0 || op->kind == COP_PROF_OP_STATFS)
		return;
	if (op->kind == COP_PROF_OP_READ)
		cop_prof_read(prof, path, (size_t)len, outcome, (uint64_t)op->off, op->size);
	else
		cop_prof_path(prof,
			op->kind == COP_PROF_OP_READDIR || op->kind == COP_PROF_OP_READDIRPLUS
				? COP_PROF_TREE
				: COP_PROF_METADATA,
			path, (size_t)len, outcome);
	if (outcome == COP_PROF_NEGATIVE)
		cop_prof_ttl(prof, path, (size_t)len,
			op->missed && (!op->checked || op->may_be_hidden) ? COP_PROF_STORE
									  : COP_PROF_SERVE);
}

void cop_fuse_profile_ttl(struct op *op, enum cop_prof_ttl event)
{
	struct cop_prof *prof = op->fs->conf.prof;
	char path[PATH_BYTES];
	int len;

	if (cop_prof_level(prof) == COP_PROF_OFF)
		return;
	len = cop_fuse_path(op->inode, op->name, op->name_len, path);
	if (len >= 0)
		cop_prof_ttl(prof, path, (size_t)len, event);
}

static void observe_op(struct op *op)
{
	struct cop_prof *prof = op->fs->conf.prof;
	enum cop_prof_outcome outcome = (enum cop_prof_outcome)op->outcome;
	uint64_t end_ns = cop_now_ns();

	if (outcome == COP_PROF_DONE && op->asked)
		outcome = op->missed || op->missed_before ? COP_PROF_MISS : COP_PROF_HIT;
	cop_prof_op(prof, (enum cop_prof_op)op->kind, outcome, end_ns - op->start_ns);
	if (op->fs->conf.tracer)
		cop_fuse_trace_op(op, outcome, end_ns);
	if (prof && (cop_prof_level(prof) >= COP_PROF_TOP || outcome == COP_PROF_NEGATIVE))
		profile_path(op, outcome);
}

void cop_fuse_op_free(struct op *op)
{
	if (op->fs->watched && !op->own)
		observe_op(op);
	for (unsigned i = 0; i < op->n_chunks; i++)
		cop_obj_put(op->fs->conf.cache, op->chunk[i]);
	cop_fuse_inode_put(op->fs, op->inode, 1);
	free(op);
}

static void op_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct op *op = COP_CONTAINER_OF(w, struct op, waiter);

	op->missed = true;
	if (!op->own)
		cop_fuse_wait_end(&op->fs->waits, cop_fuse_now_us());
	op->next(op, obj, rc);
}

void cop_fuse_ask(struct op *op, const struct cop_ask *ask,
	void (*next)(struct op *op, struct cop_obj *obj, int rc))
{
	struct cop_fuse *fs = op->fs;
	struct cop_ask whose = *ask;
	struct cop_obj *obj;
	bool own = op->own;
	int rc;

	whose.from = op->from;
	whose.background |= own;
	if (fs->conf.record && !op->first && !own)
		cop_fuse_record(op, ask);
	if (fs->conf.opened && ask->kind == COP_ASK_CHUNK && !own)
		fs->conf.opened(fs->conf.arg, ask->path);
	op->next = next;
	op->waiter.completed = op_completed;
	op->asked = true;
	rc = cop_fetch_get(fs->conf.fetch, &whose, &op->waiter, &obj);
	if (rc == 0) {
		/* op may already have been answered and freed. */
		if (!own)
			cop_fuse_wait_begin(&fs->waits, cop_fuse_now_us());
		return;
	}
	if (rc < 0) {
		next(op, NULL, rc);
		return;
	}
	next(op, obj, obj->error);
	cop_obj_put(fs->conf.cache, obj);
}

void cop_fuse_fail(struct op *op, int rc)
{
	/* These errors mean something only to a node; a program gets EIO. */
	if (rc == -ESHUTDOWN || rc == -ECANCELED || rc == -EBADMSG || rc == -EHOSTDOWN)
		rc = -EIO;
	op->outcome = rc == -ENOENT ? COP_PROF_NEGATIVE : COP_PROF_ERROR;
	op->rc = rc;
	cop_stats_add(op->fs->conf.stats, COP_FUSE_ERRORS, 1);
	fuse_reply_err(op->req, -rc);
	cop_fuse_op_free(op);
}

void cop_fuse_stat(const struct cop_attr *attr, struct stat *st)
{
	*st = (struct stat){
		.st_ino = attr->ino,
		.st_mode = attr->mode,
		.st_nlink = attr->nlink,
		.st_uid = attr->uid,
		.st_gid = attr->gid,
		.st_rdev = makedev(attr->rdev_major, attr->rdev_minor),
		.st_size = (off_t)attr->size,
		.st_blksize = attr->blksize,
		.st_blocks = (blkcnt_t)attr->blocks,
		.st_atim = {.tv_sec = attr->atime_s, .tv_nsec = attr->atime_nsec},
		.st_mtim = {.tv_sec = attr->mtime_s, .tv_nsec = attr->mtime_nsec},
		.st_ctim = {.tv_sec = attr->ctime_s, .tv_nsec = attr->ctime_nsec},
	};
}
