/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: each shard of the inode table has one, which protects the shard and, for its inodes, the
 * attributes and the drop of the last reference. No lock is held across a reply or a call to
 * tree/fetch. */
#ifndef COP_MOUNT_FUSE_PRIV_H
#define COP_MOUNT_FUSE_PRIV_H

#include <fuse_lowlevel.h>

#include "base/base/htab.h"
#include "base/base/json.h"
#include "mount/fuse/fuse.h"
#include "base/log/log.h"

#define INODE_SHARDS 16u
#define PATH_BYTES 4096
#define NAME_BYTES 256
/* A day: existing objects stay valid until they are invalidated. */
#define CACHE_SECONDS 86400.0
#define READ_CHUNKS_MAX 20
#define WORKERS_MAX 16u

enum place {
	PLACE_TREE,  /* served through the tree */
	PLACE_LOCAL, /* a pseudo file system of this node, passed through */
	PLACE_SELF,  /* the mount point as seen through the mount, an empty directory; also
			COP_FUSE_STORAGE */
};

/* How this node's programs traverse a large directory (pages.c). */
struct sweep {
	_Atomic uint32_t at;     /* the listing entry after the last one looked up or returned with
				    attributes; 0: none */
	_Atomic uint32_t run;    /* consecutive lookups in listing order */
	_Atomic uint32_t risen;  /* consecutive lookups in sorted order */
	_Atomic uint32_t looked; /* total lookups */
	_Atomic uint32_t paged;  /* pages that these lookups requested */
	_Atomic uint64_t failed; /* the version whose pages are unavailable; 0: none */
};

struct inode {
	struct cop_hlink link;   /* in the table */
	struct inode *parent;    /* a reference */
	struct inode *told_next; /* only for the thread of notify.c */
	_Atomic uint64_t refs;   /* kernel lookups, children, operations in progress */
	union {
		struct { /* file: read-ahead */
			_Atomic uint64_t last,
				ahead; /* the last chunk read; the first chunk not yet requested */
			_Atomic uint8_t window; /* chunks to read ahead; 0 after a seek */
			_Atomic bool whole;     /* the whole file has been requested */
		};
		struct sweep sweep; /* directory */
	};
	_Atomic bool recorded;          /* directory: its listing has been recorded */
	_Atomic bool looked_in;         /* directory: a single name has been requested */
	_Atomic uint64_t names_version; /* directory: version of the listing that its names last
					   came from; 0: none */
	_Atomic uint64_t moved_size;    /* link: length of its rewritten target */
	struct cop_attr attr;           /* as in the source */
	bool stale; /* its name has a newer version: only existing users keep this inode */
	uint8_t place;
	uint16_t name_len;
	char name[];
};

struct inode_shard {
	pthread_mutex_t lock;
	struct cop_htab table;
};

struct inode_table {
	struct inode_shard shard[INODE_SHARDS];
};

/* Waiting requests and their total waiting time. For n current waits that began at b1, ..., bn, the
 * sum of (now - bi) is n * now - (b1 + ... + bn). The end of a wait may be recorded before its
 * beginning. Zeroed memory means no waits. */
struct waits {
	pthread_mutex_t lock;
	int64_t waiting;  /* waits begun minus waits ended */
	int64_t begun_us; /* sum of start times minus sum of end times */
};

/* The kernel's negative dentries in the root (absent.c). */
struct absent_names {
	pthread_mutex_t lock;
	struct cop_htab names;
	struct cop_list order; /* by last lookup, oldest first */
	size_t bytes;          /* memory used, at most COP_FUSE_ABSENT_BYTES */
};
#define COP_FUSE_ABSENT_BYTES (4 * COP_MIB)

struct cop_fuse {
	struct cop_fuse_conf conf;
	struct waits waits;
	struct fuse_session *session;
	pthread_t worker[WORKERS_MAX], notify_thread;
	unsigned n_workers;
	bool notifying, mounted;
	bool watched; /* requests are profiled or traced */
	_Atomic bool gone, stopping;
	uint64_t cache_bytes;     /* size limit of the cache */
	_Atomic unsigned storing; /* chunks being stored into the kernel */
	_Atomic bool viewed;      /* the view side has been used */
	_Atomic bool used[2];     /* cop_fuse_used: the bare mount, views */
	int gone_fd;              /* eventfd */
	unsigned conn_caps;       /* FUSE_CAP_* and ours in use */
	unsigned caps_off;        /* capabilities that the user switched off */
	unsigned proto_major, proto_minor;
	bool deliver_opens; /* the source contains pseudo file systems: their files need direct
			       reads, so opens must reach the node */
	struct inode_table inodes;
	struct inode *root;
	struct place_path {
		char *path; /* relative to the source */
		enum place place;
		bool proc;
	} * places;
	size_t n_places;
	_Atomic uint32_t own_thread; /* cop_fuse_own_thread; 0: none */
	_Atomic uint64_t epoch; /* counts invalidations: the reply to a request that began before
				   one is not cached */
	_Atomic unsigned
		turning; /* directories whose names the kernel is still forgetting, before this node
			    forgets them; until then the kernel caches nothing new */
	/* Names to invalidate in the kernel; bounded. A separate thread sends them, because a
	 * notification may block in the kernel until a worker has answered some request. */
	pthread_mutex_t notify_lock;
	pthread_cond_t notify_wake;
	struct cop_list notify;
	unsigned notify_count;
	bool notify_stop, notify_all; /* all: forget everything, because the queue is full or memory
					 is short */
	_Atomic bool starving;        /* cop_fuse_starve */
	struct absent_names absent;
};

/* A request that may have to wait. */
struct op {
	struct cop_waiter waiter;
	struct cop_fuse *fs;
	fuse_req_t req;
	struct inode *inode; /* a reference */
	void (*next)(struct op *op, struct cop_obj *obj, int rc);
	int (*local)(struct op *op, const char *path); /* local.c: runs on a worker */
	size_t size;
	off_t off;
	uint64_t version;
	uint64_t epoch;        /* at the start of the operation */
	uint64_t start_ns;     /* only if profiled or traced */
	uint32_t from;         /* the requesting thread, in our pid namespace */
	int rc;                /* the error if there is no result */
	uint8_t kind, outcome; /* enum cop_prof_op, enum cop_prof_outcome */
	bool asked, missed;
	bool missed_before; /* an earlier request of this operation was a miss */
	int whence;
	bool plus, checked, may_be_hidden;
	bool own;   /* from the node's own thread or the creation of a view, not from a program */
	bool first; /* requested by itself, alongside the listing */
	bool view;  /* on the view side */
	unsigned n_chunks;
	struct cop_obj *chunk[READ_CHUNKS_MAX];
	uint16_t name_len;
	char name[NAME_BYTES];
};

/* How long the kernel may cache the reply. */
static inline double cop_fuse_cache_seconds(const struct op *op)
{
	const struct cop_fuse *fs = op->fs;

	return fs->conf.observe || atomic_load(&fs->turning) || op->epoch != atomic_load(&fs->epoch)
		       ? 0
		       : CACHE_SECONDS;
}

/* The same for this name; a recently modified version is revalidated soon. */
static inline double cop_fuse_name_seconds(const struct op *op, const struct cop_attr *attr)
{
	double most = cop_fuse_cache_seconds(op);
	uint64_t young_ms;

	if (!cop_version_is_young(attr->version) || S_ISDIR(attr->mode))
		return most;
	young_ms = cop_fetch_young_ms(op->fs->conf.fetch, attr);
	return COP_MIN(most, (double)young_ms / 1000);
}

/* ---- inode.c ---- */
int cop_fuse_inodes_init(struct cop_fuse *fs);
void cop_fuse_inodes_fini(struct cop_fuse *fs);
/* The mount has two sides: the bare mount and, under the name COP_FUSE_VIEW_ROOT, the contents of
 * views. Both show the same inodes. A link has one node id per side, because the kernel caches link
 * targets; so has a directory, because the kernel allows it only one parent. A file has a single
 * node id, and thus a single set of pages. The lowest bit of a node id is the side. */
struct inode *cop_fuse_inode(struct cop_fuse *fs, fuse_ino_t ino);
bool cop_fuse_is_view(fuse_ino_t ino);
/* The node id of a directory on this side. */
fuse_ino_t cop_fuse_dir_nodeid(struct cop_fuse *fs, struct inode *i, bool view);
/* The node id for a name in op's directory. */
fuse_ino_t cop_fuse_nodeid(const struct op *op, struct inode *i, mode_t mode);
/* The inode of this name, found or created, with a new reference; NULL if out of memory. A new
 * version of a regular file gets a new inode: an inode never has pages of two versions. */
struct inode *cop_fuse_inode_get(struct cop_fuse *fs, struct inode *parent, const char *name,
	size_t name_len, const struct cop_attr *attr, enum place place);
/* The inode of this name, with a reference, if the kernel or an operation uses it. */
struct inode *cop_fuse_inode_find(
	struct cop_fuse *fs, struct inode *parent, const char *name, size_t len);
void cop_fuse_inode_ref(struct inode *i);
void cop_fuse_inode_put(struct cop_fuse *fs, struct inode *i, uint64_t n);
struct cop_attr cop_fuse_inode_attr(struct cop_fuse *fs, struct inode *i);
void cop_fuse_inode_set_attr(struct cop_fuse *fs, struct inode *i, const struct cop_attr *attr);
/* The path of i ("" for the root), or of name below i. Returns its length or -ENAMETOOLONG. */
int cop_fuse_path(const struct inode *i, const char *name, size_t name_len, char path[PATH_BYTES]);
uint64_t cop_fuse_inode_count(struct cop_fuse *fs);
/* Calls fn for every inode, holding the lock of its shard. */
void cop_fuse_inodes_each(struct cop_fuse *fs, void (*fn)(void *arg, struct inode *i), void *arg);
/* The number of directories between dir and the mount point. */
unsigned cop_fuse_depth(const struct inode *dir);

/* ---- caps.c ---- */
/* In addition to libfuse's FUSE_CAP_*: an absent name is answered with inode 0, so that the kernel
 * caches the absence. */
#define CAP_ABSENT_ENTRIES (1u << 31)
/* Parses comma-separated names; NULL means none. -EINVAL with a sentence. */
int cop_fuse_caps_parse(const char *list, unsigned *off, struct cop_err *err);
unsigned cop_fuse_caps_want(const struct cop_fuse *fs, unsigned capable);
/* Writes the names of the capabilities in use into an array. */
void cop_fuse_caps_json(unsigned in_use, struct cop_json *j);

/* ---- op.c ---- */
struct op *cop_fuse_op(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind);
/* Counts the operation in the profile, if there is one. */
void cop_fuse_op_free(struct op *op);
/* Counts a cached absence that has expired or turned out to be stale. */
void cop_fuse_profile_ttl(struct op *op, enum cop_prof_ttl event);
/* Counts and traces an operation on this inode that is answered with rc right away. */
void cop_fuse_profile(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind, int rc);
/* Requests the object from tree/fetch; next is called once, now or later. */
void cop_fuse_ask(struct op *op, const struct cop_ask *ask,
	void (*next)(struct op *op, struct cop_obj *obj, int rc));
/* Adds this request to the record. */
void cop_fuse_record(struct op *op, const struct cop_ask *ask);
/* Adds the name being looked up to the record. */
void cop_fuse_record_name(struct op *op);
/* Replies with an error and frees op. */
void cop_fuse_fail(struct op *op, int rc);
void cop_fuse_stat(const struct cop_attr *attr, struct stat *st);
struct cop_fuse *cop_fuse_of(fuse_req_t req);
void cop_fuse_count(fuse_req_t req, enum cop_counter c);

/* ---- wait.c ---- */
void cop_fuse_wait_begin(struct waits *w, uint64_t now_us);
void cop_fuse_wait_end(struct waits *w, uint64_t now_us);
void cop_fuse_waits_at(struct waits *w, uint64_t now_us, uint64_t *waiting, uint64_t *wait_us);
static inline uint64_t cop_fuse_now_us(void)
{
	return cop_now_ns() / 1000;
}

/* ---- trace.c: requests as events; only with a tracer ---- */
void cop_fuse_trace_op(struct op *op, enum cop_prof_outcome outcome, uint64_t end_ns);
void cop_fuse_trace_now(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind, int rc);

/* ---- places.c: pseudo file systems and the mount point itself ---- */
int cop_fuse_places_find(struct cop_fuse *fs);
void cop_fuse_places_free(struct cop_fuse *fs);
enum place cop_fuse_place(const struct cop_fuse *fs, const char *path);
/* Whether the path is inside a proc file system, but not its root. */
bool cop_fuse_is_below_proc(const struct cop_fuse *fs, const char *path);

/* ---- local.c: passthrough on the node ---- */
void cop_fuse_local_lookup(struct op *op);
/* Looks up the directory COP_FUSE_STORAGE. */
void cop_fuse_lookup_storage(struct op *op);
void cop_fuse_local_getattr(struct op *op);
void cop_fuse_local_readlink(struct op *op);
void cop_fuse_local_open(struct op *op, struct fuse_file_info *fi);
void cop_fuse_local_read(struct op *op, struct fuse_file_info *fi);
void cop_fuse_local_release(fuse_req_t req, struct fuse_file_info *fi);
void cop_fuse_local_readdir(struct op *op);

/* ---- the operations ---- */
void cop_fuse_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
/* Answers a lookup with these attributes. */
void cop_fuse_reply_entry(
	struct op *op, struct cop_attr *attr, const char *target, size_t target_len);
/* Requests the name by itself, without the listing. */
void cop_fuse_lookup_singly(struct op *op);
/* The file through which programs written for Copper 1.0 read a mount's counters. Every lookup of
 * it fails. */
bool cop_fuse_is_old_ioctl(const char *name, size_t len);
/* Like cop_fuse_inode_get, for a name in op's directory; also adapts attr to the request's side. */
struct inode *cop_fuse_inode_shown(struct op *op, const char *name, size_t name_len,
	const char *target, size_t target_len, struct cop_attr *attr);
/* Adapts the attributes of this inode to the request's side. */
void cop_fuse_show(const struct op *op, const struct inode *i, struct cop_attr *attr);
/* Adapts a mode likewise. */
mode_t cop_fuse_shown_mode(const struct op *op, mode_t mode);
/* The link target through which a view reaches a FIFO or socket. Returns its length or
 * -ENAMETOOLONG. */
int cop_fuse_special_target(const struct inode *i, char out[PATH_BYTES]);
/* The link target as programs see it. Returns its length. depth: number of directories between the
 * root and the link. */
size_t cop_fuse_rewrite(const struct cop_fuse *fs, unsigned depth, const char *target, size_t len,
	char out[PATH_BYTES]);
void cop_fuse_readlink(fuse_req_t req, fuse_ino_t ino);
void cop_fuse_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cop_fuse_lseek(
	fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
void cop_fuse_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cop_fuse_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
extern const struct fuse_lowlevel_ops cop_fuse_ops;

/* ---- bypass.c: files read without the tree ---- */
bool cop_fuse_bypasses(const struct cop_fuse *fs, const struct cop_attr *attr);
/* op->size and op->off are set and lie within the file. */
void cop_fuse_bypass_read(struct op *op);

/* ---- store.c ---- */
/* Call it after replying to this read: stores the rest of its chunks in the kernel if that avoids
 * fetching them again. */
void cop_fuse_store(struct op *op);

/* ---- ahead.c ---- */
/* Call it when a read has accessed this chunk: requests the data likely to be read next. */
void cop_fuse_read_ahead(struct cop_fuse *fs, struct inode *i, uint64_t index);

/* ---- tell.c: only on the thread of notify.c, because these calls may block for long ---- */
/* The first makes the kernel forget a name on both sides; the second, a directory's attributes and
 * names or a file's pages. */
void cop_fuse_tell_name(struct cop_fuse *fs, struct inode *dir, const char *name, size_t len);
void cop_fuse_tell_inode(struct cop_fuse *fs, struct inode *i);
/* Makes the kernel forget every name at and below this directory. */
void cop_fuse_tell_under(struct cop_fuse *fs, struct inode *top);
/* Makes the kernel revalidate each name of the directory. */
void cop_fuse_tell_names(struct cop_fuse *fs, struct inode *dir);

/* ---- absent.c ---- */
void cop_fuse_absent_init(struct absent_names *a);
void cop_fuse_absent_fini(struct absent_names *a);
/* Remembers a name (shorter than NAME_BYTES) before the kernel caches its absence in the root.
 * False: the kernel must not cache it, because memory is short or no notification can be queued. */
bool cop_fuse_note_absent(struct cop_fuse *fs, const char *name, size_t len);
/* On the thread of notify.c: makes the kernel forget all these names. */
void cop_fuse_tell_absent(struct cop_fuse *fs);

/* ---- notify.c ---- */
int cop_fuse_notify_start(struct cop_fuse *fs);
void cop_fuse_notify_stop(struct cop_fuse *fs);
/* For tests: simulates a lack of memory for notifications. */
void cop_fuse_starve(struct cop_fuse *fs, bool starve);
/* Makes the kernel look up the name again, because the file no longer matches its dentry. */
void cop_fuse_forget_name(struct cop_fuse *fs, struct inode *i);
/* Makes the kernel reread the directory's names, because they have changed since it read them. */
void cop_fuse_forget_names(struct cop_fuse *fs, struct inode *dir);
/* Makes the kernel forget a negative dentry in the root, because the list here is full. On -ENOMEM
 * and -ENOBUFS the kernel keeps it. */
int cop_fuse_forget_absent(struct cop_fuse *fs, const char *name, size_t len);

/* Makes the kernel drop its pages of a file, because they are wrong. */
void cop_fuse_forget_pages(struct cop_fuse *fs, struct inode *i);
/* Makes the kernel revalidate each name in the directory. */
void cop_fuse_expire_names(struct cop_fuse *fs, struct inode *dir);

/* ---- change.c ---- */
void cop_fuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void cop_fuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void cop_fuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void cop_fuse_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void cop_fuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void cop_fuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags);
void cop_fuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);
void cop_fuse_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void cop_fuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi);
void cop_fuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi);
void cop_fuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
	size_t size, int flags);
void cop_fuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void cop_fuse_fallocate(
	fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi);
void cop_fuse_copy_file_range(fuse_req_t req, fuse_ino_t ino, off_t off, struct fuse_file_info *fi,
	fuse_ino_t to, off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags);
/* Refuses an O_TMPFILE request, which libfuse does not support; returns false for any other
 * request. */
bool cop_fuse_refuse_tmpfile(struct cop_fuse *fs, const struct fuse_buf *buf);

/* ---- pages.c: attributes in directories whose listing has none ---- */

/* Attributes for consecutive entries of a listing. */
struct attrs {
	struct op *op;
	const void *names;     /* the listing */
	struct cop_obj *page;  /* the page last used, a reference; NULL: none */
	struct cop_obj *entry; /* or NULL */
	uint64_t index;        /* of that page; UINT64_MAX: none yet */
	size_t dir_len;
	char dir[PATH_BYTES], path[PATH_BYTES];
};
/* Answers, now or later, the lookup of a name that this listing has without attributes. False, with
 * nothing done, if the name should be requested by itself. */
bool cop_fuse_page_lookup(struct op *op, const void *names, const struct cop_listing_entry *listed);
/* False if no other source has attributes for the entries of this listing. A page, if given, is
 * used even if the cache has no space for it. */
bool cop_fuse_attrs_init(struct attrs *a, struct op *op, const void *names, struct cop_obj *page);
void cop_fuse_attrs_fini(struct attrs *a);
/* Fills in an entry's attributes from this node's cache. Returns the object they came from, valid
 * until the next call, or NULL. */
const struct cop_obj *cop_fuse_attrs_find(struct attrs *a, struct cop_listing_entry *e);
/* Whether a program is traversing the directory and has reached this entry. If so, requests the
 * following pages and fills *ask with the request for this entry's page, with its path in dir. */
bool cop_fuse_attrs_want(struct op *op, const void *names, uint32_t entry, char dir[PATH_BYTES],
	struct cop_ask *ask);
/* Call it when the page is unavailable. */
void cop_fuse_attrs_fail(struct op *op, const void *names);
/* A directory read has returned attributes for the entries before this one. */
void cop_fuse_attrs_given(struct op *op, uint32_t entry);

/* ---- names.c ---- */
/* Call it before serving names of this directory from this listing. If the kernel has cached names
 * from another version, makes it revalidate all of them. */
void cop_fuse_meet_names(struct cop_fuse *fs, struct inode *dir, const void *blob);

/* ---- check.c ---- */
/* Whether fusermount3 is in $PATH or where distributions install it. */
bool cop_fuse_have_fusermount(void);

/* ---- umount.c ---- */
int cop_fuse_umount(const char *mountpoint, bool lazy);
void cop_fuse_holders(const char *mountpoint, struct cop_buf *out);

#endif
