/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings negotiated with the kernel, and the table of operations. */
#include "mount/fuse/fuse_priv.h"

#include "base/base/compat.h"

#define MAX_BACKGROUND 256

/* READDIRPLUS without READDIRPLUS_AUTO means always. AUTO_INVAL_DATA is off because it would take
 * precedence over EXPLICIT_INVAL_DATA. File locks are left to the kernel, so they work between
 * processes of the same node. */
static void init(void *userdata, struct fuse_conn_info *conn)
{
	struct cop_fuse *fs = userdata;
	uint64_t begin = cop_now_ns();

	fs->conn_caps = cop_fuse_caps_want(fs, conn->capable);
	conn->want = fs->conn_caps & conn->capable;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = MAX_BACKGROUND / 4 * 3;
	conn->time_gran = 1;
	fs->proto_major = conn->proto_major;
	fs->proto_minor = conn->proto_minor;
	cop_prof_op(fs->conf.prof, COP_PROF_OP_INIT, COP_PROF_DONE, cop_now_ns() - begin);
}

static void forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	cop_fuse_count(req, COP_FUSE_FORGET);
	cop_fuse_inode_put(cop_fuse_of(req), cop_fuse_inode(cop_fuse_of(req), ino), nlookup);
	fuse_reply_none(req);
}

static void forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct cop_fuse *fs = cop_fuse_of(req);

	for (size_t i = 0; i < count; i++) {
		cop_fuse_count(req, COP_FUSE_FORGET);
		cop_fuse_inode_put(fs, cop_fuse_inode(fs, forgets[i].ino), forgets[i].nlookup);
	}
	fuse_reply_none(req);
}

static void reply_attr(struct op *op, const struct cop_attr *attr)
{
	struct stat st;

	cop_fuse_stat(attr, &st);
	fuse_reply_attr(op->req, &st, cop_fuse_cache_seconds(op));
	cop_fuse_op_free(op);
}

static void with_root(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_attr attr;

	if (rc) {
		cop_fuse_fail(op, rc);
		return;
	}
	cop_entry_get(obj->data, &attr, NULL, NULL);
	cop_fuse_inode_set_attr(op->fs, op->inode, &attr);
	reply_attr(op, &attr);
}

/* The kernel asks again only after a day or under memory pressure, and still gets the attributes
 * from the lookup. */
static void getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_GETATTR);
	struct cop_attr attr;

	(void)fi;
	cop_fuse_count(req, COP_FUSE_GETATTR);
	if (!op)
		return;
	if (!op->inode->parent) {
		cop_fuse_ask(op, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = ""}, with_root);
	} else if (op->inode->place != PLACE_TREE) {
		cop_fuse_local_getattr(op);
	} else {
		/* The inode itself has the attributes, so no table is consulted; this counts as a
		 * hit. */
		op->asked = true;
		attr = cop_fuse_inode_attr(op->fs, op->inode);
		cop_fuse_show(op, op->inode, &attr);
		reply_attr(op, &attr);
	}
}

/* After one ENOSYS the kernel opens files without asking and keeps their pages. */
static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cop_fuse *fs = cop_fuse_of(req);

	cop_fuse_count(req, COP_FUSE_OPEN);
	if (cop_fuse_inode(fs, ino)->place == PLACE_LOCAL) {
		struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_OPEN);

		if (op)
			cop_fuse_local_open(op, fi);
	} else if (fs->conn_caps & FUSE_CAP_NO_OPEN_SUPPORT) {
		cop_fuse_profile(req, ino, COP_PROF_OP_OPEN, -ENOSYS);
		fuse_reply_err(req, ENOSYS);
	} else {
		cop_fuse_profile(req, ino, COP_PROF_OP_OPEN, 0);
		/* To observe reads, each open makes the kernel drop the file's pages. direct_io is
		 * no alternative, because shared mappings would fail. */
		fi->keep_cache = !fs->conf.observe;
#if COP_HAVE_FUSE_NOFLUSH
		fi->noflush = 1;
#endif
		fuse_reply_open(req, fi);
	}
}

static void release_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	cop_fuse_count(req, COP_FUSE_RELEASE);
	cop_fuse_profile(req, ino, COP_PROF_OP_RELEASE, 0);
	if (cop_fuse_inode(cop_fuse_of(req), ino)->place == PLACE_LOCAL)
		cop_fuse_local_release(req, fi);
	else
		fuse_reply_err(req, 0);
}

static void open_dir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cop_fuse *fs = cop_fuse_of(req);

	cop_fuse_count(req, COP_FUSE_OPENDIR);
	if (fs->conn_caps & FUSE_CAP_NO_OPENDIR_SUPPORT) {
		cop_fuse_profile(req, ino, COP_PROF_OP_OPENDIR, -ENOSYS);
		fuse_reply_err(req, ENOSYS);
		return;
	}
	cop_fuse_profile(req, ino, COP_PROF_OP_OPENDIR, 0);
	fi->cache_readdir = fi->keep_cache =
		!fs->conf.observe && cop_fuse_inode(fs, ino)->place == PLACE_TREE;
	fuse_reply_open(req, fi);
}

static void release_dir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	cop_fuse_count(req, COP_FUSE_RELEASEDIR);
	cop_fuse_profile(req, ino, COP_PROF_OP_RELEASEDIR, 0);
	fuse_reply_err(req, 0);
}

static void with_statfs(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_statfs s;
	struct statvfs v = {0};

	if (rc) {
		cop_fuse_fail(op, rc);
		return;
	}
	memcpy(&s, obj->data, sizeof(s));
	v.f_bsize = s.bsize;
	v.f_frsize = s.frsize;
	v.f_blocks = s.blocks;
	v.f_bfree = s.bfree;
	v.f_bavail = s.bavail;
	v.f_files = s.files;
	v.f_ffree = s.ffree;
	v.f_favail = s.favail;
	v.f_namemax = s.namemax;
	fuse_reply_statfs(op->req, &v);
	cop_fuse_op_free(op);
}

static void statfs_fs(fuse_req_t req, fuse_ino_t ino)
{
	struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_STATFS);

	cop_fuse_count(req, COP_FUSE_STATFS);
	if (op)
		cop_fuse_ask(
			op, &(struct cop_ask){.kind = COP_ASK_STATFS, .path = ""}, with_statfs);
}

/* Python calls isatty() on every file it opens; no file here is a terminal. */
static void ioctl_file(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg,
	struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	(void)cmd, (void)arg, (void)fi, (void)flags, (void)in, (void)in_size, (void)out_size;
	cop_fuse_count(req, COP_FUSE_IOCTL);
	cop_fuse_profile(req, ino, COP_PROF_OP_IOCTL, -ENOTTY);
	fuse_reply_err(req, ENOTTY);
}

static void getxattr_file(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	(void)name, (void)size;
	cop_fuse_count(req, COP_FUSE_GETXATTR);
	cop_fuse_profile(req, ino, COP_PROF_OP_GETXATTR, -ENOSYS);
	fuse_reply_err(req, ENOSYS);
}

static void listxattr_file(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	(void)size;
	cop_fuse_count(req, COP_FUSE_LISTXATTR);
	cop_fuse_profile(req, ino, COP_PROF_OP_LISTXATTR, -ENOSYS);
	fuse_reply_err(req, ENOSYS);
}

const struct fuse_lowlevel_ops cop_fuse_ops = {
	.init = init,
	.lookup = cop_fuse_lookup,
	.forget = forget,
	.forget_multi = forget_multi,
	.getattr = getattr,
	.readlink = cop_fuse_readlink,
	.open = open_file,
	.read = cop_fuse_read,
	.release = release_file,
	.opendir = open_dir,
	.readdir = cop_fuse_readdir,
	.readdirplus = cop_fuse_readdirplus,
	.releasedir = release_dir,
	.statfs = statfs_fs,
	.ioctl = ioctl_file,
	.lseek = cop_fuse_lseek,
	.getxattr = getxattr_file,
	.listxattr = listxattr_file,
	.mknod = cop_fuse_mknod,
	.mkdir = cop_fuse_mkdir,
	.unlink = cop_fuse_unlink,
	.rmdir = cop_fuse_rmdir,
	.symlink = cop_fuse_symlink,
	.rename = cop_fuse_rename,
	.link = cop_fuse_link,
	.setattr = cop_fuse_setattr,
	.create = cop_fuse_create,
	.write = cop_fuse_write,
	.setxattr = cop_fuse_setxattr,
	.removexattr = cop_fuse_removexattr,
	.fallocate = cop_fuse_fallocate,
	.copy_file_range = cop_fuse_copy_file_range,
};

void cop_fuse_json(struct cop_fuse *fs, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	char protocol[32];

	snprintf(protocol, sizeof(protocol), "%u.%u", fs->proto_major, fs->proto_minor);
	cop_json_object(&j, NULL);
	cop_json_str(&j, "protocol", protocol);
	cop_json_u64(&j, "inodes", cop_fuse_inode_count(fs));
	cop_json_array(&j, "capabilities");
	cop_fuse_caps_json(fs->conn_caps, &j);
	cop_json_end(&j);
	cop_json_end(&j);
}
