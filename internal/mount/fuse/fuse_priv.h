/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: each shard of the inode table has one. It protects the shard, the last reference of an
 * inode, and the attributes in it. No lock is held across a reply or a call to tree/fetch. */
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
/* A day: what exists stays valid until it is invalidated. */
#define CACHE_SECONDS 86400.0
#define READ_CHUNKS_MAX 20
#define WORKERS_MAX 16u

enum place {
	PLACE_TREE,  /* served through the tree */
	PLACE_LOCAL, /* a pseudo file system of this node, passed through */
	PLACE_SELF,  /* the mount point itself, seen from inside: an empty directory; so is
			COP_FUSE_STORAGE */
};

/* How the programs of this node go through a large directory (pages.c). */
struct sweep {
	_Atomic uint32_t at;    /* the entry of its listing after the last one that was looked up or
				   given with attributes; 0: none */
	_Atomic uint32_t run;   /* lookups in a row that followed the order of the listing */
	_Atomic uint32_t risen; /* lookups in a row of a name that sorts after the one before it */
	_Atomic uint32_t looked; /* lookups so far, */
	_Atomic uint32_t paged;  /* and pages that they asked for */
	_Atomic uint64_t failed; /* the version whose pages could not be had; 0: none */
};

struct inode {
	struct cop_hlink link;   /* in the table */
	struct inode *parent;    /* a reference */
	struct inode *told_next; /* for notify.c's thread alone */
	_Atomic uint64_t refs;   /* kernel lookups, children, operations in progress */
	union {
		struct { /* a file's: read-ahead */
			_Atomic uint64_t last,
				ahead; /* the last chunk read, the first one not requested, */
			_Atomic uint8_t window; /* how many chunks to keep ahead, 0 after a jump */
			_Atomic bool whole;     /* the whole file has been requested */
		};
		struct sweep sweep; /* a directory's */
	};
	_Atomic bool recorded;          /* a directory whose listing is in the record */
	_Atomic bool looked_in;         /* a directory: a name was requested by itself */
	_Atomic uint64_t names_version; /* a directory's: the listing version that its names last
					   came from; 0: none */
	_Atomic uint64_t moved_size;    /* a link's: the length of its rewritten target */
	struct cop_attr attr;           /* as in the source */
	bool stale; /* its name has another version now: only current users reach it */
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

/* Requests that wait, and how long: for n of them that began to wait at b1, ..., bn the sum of (now
 * - bi) is n * now - (b1 + ... + bn). The end of a wait may be noted before its begin. Zeroed
 * memory means no waits. */
struct waits {
	pthread_mutex_t lock;
	int64_t waiting;  /* those that have begun, less those that have ended */
	int64_t begun_us; /* the moments at which they began, less those at which others ended */
};

/* The names that the kernel holds absent in the root (absent.c). */
struct absent_names {
	pthread_mutex_t lock;
	struct cop_htab names;
	struct cop_list order; /* by the last lookup, the oldest first */
	size_t bytes;          /* of memory, at most COP_FUSE_ABSENT_BYTES */
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
	uint64_t cache_bytes;     /* limit of the cache */
	_Atomic unsigned storing; /* chunks on their way to the kernel */
	_Atomic bool viewed;      /* the side of views has been used */
	_Atomic bool used[2];     /* cop_fuse_used: the bare mount, views */
	int gone_fd;              /* eventfd */
	unsigned conn_caps;       /* FUSE_CAP_* and ours in use */
	unsigned caps_off;        /* those that are switched off by the user */
	unsigned proto_major, proto_minor;
	bool deliver_opens; /* there are pseudo file systems below: their files need direct reads,
			       so opens must be delivered */
	struct inode_table inodes;
	struct inode *root;
	struct place_path {
		char *path; /* relative to the source */
		enum place place;
		bool proc;
	} * places;
	size_t n_places;
	_Atomic uint32_t own_thread; /* cop_fuse_own_thread; 0: none */
	_Atomic uint64_t epoch;   /* counts invalidations: an answer to a request from before one is
				     not cached */
	_Atomic unsigned turning; /* directories whose names the kernel is forgetting before this
				     node does: nothing is cached meanwhile */
	/* Names to invalidate in the kernel. A thread of its own does it, because the kernel may
	 * wait for a request that a worker should answer. Bounded. */
	pthread_mutex_t notify_lock;
	pthread_cond_t notify_wake;
	struct cop_list notify;
	unsigned notify_count;
	bool notify_stop, notify_all; /* all: forget everything, because there was no space or
					 memory to say what */
	_Atomic bool starving;        /* cop_fuse_starve */
	struct absent_names absent;
};

/* One request that may have to wait. */
struct op {
	struct cop_waiter waiter;
	struct cop_fuse *fs;
	fuse_req_t req;
	struct inode *inode; /* a reference */
	void (*next)(struct op *op, struct cop_obj *obj, int rc);
	int (*local)(struct op *op, const char *path); /* local.c: what a worker does */
	size_t size;
	off_t off;
	uint64_t version;
	uint64_t epoch;        /* when it began */
	uint64_t start_ns;     /* profiled or traced only */
	uint32_t from;         /* the thread that asks, as its pid namespace numbers it for us */
	int rc;                /* the error, if there is no answer */
	uint8_t kind, outcome; /* enum cop_prof_op, enum cop_prof_outcome */
	bool asked, missed;
	bool missed_before; /* a request before the last one was a miss */
	int whence;
	bool plus, checked, may_be_hidden;
	bool own;   /* of the node's own thread, or of the making of a view: no program's */
	bool first; /* asked for by itself, together with the listing */
	bool view;  /* on the side of views */
	unsigned n_chunks;
	struct cop_obj *chunk[READ_CHUNKS_MAX];
	uint16_t name_len;
	char name[NAME_BYTES];
};

/* How long the kernel may cache the answer. */
static inline double cop_fuse_cache_seconds(const struct op *op)
{
	const struct cop_fuse *fs = op->fs;

	return fs->conf.observe || atomic_load(&fs->turning) || op->epoch != atomic_load(&fs->epoch)
		       ? 0
		       : CACHE_SECONDS;
}

/* The same for this name; one of a young version is asked for again soon. */
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
/* The mount has two sides: the bare mount, and under the name COP_FUSE_VIEW_ROOT what views show.
 * Both show the same inodes. The kernel keeps the target of a link, so links have a node id for
 * each side, and so have directories, which it allows only one place. Files have one, and with it
 * one set of pages. The lowest bit of a node id is the side. */
struct inode *cop_fuse_inode(struct cop_fuse *fs, fuse_ino_t ino);
bool cop_fuse_is_view(fuse_ino_t ino);
/* Of a directory, on this side. */
fuse_ino_t cop_fuse_dir_nodeid(struct cop_fuse *fs, struct inode *i, bool view);
/* Of what a name in op's directory stands for. */
fuse_ino_t cop_fuse_nodeid(const struct op *op, struct inode *i, mode_t mode);
/* The inode of this name, found or created, with one more reference; NULL without memory. A regular
 * file of another version gets a new inode, so that one inode never has pages of two versions. */
struct inode *cop_fuse_inode_get(struct cop_fuse *fs, struct inode *parent, const char *name,
	size_t name_len, const struct cop_attr *attr, enum place place);
/* The inode of this name, with a reference, if the kernel or an operation has one. */
struct inode *cop_fuse_inode_find(
	struct cop_fuse *fs, struct inode *parent, const char *name, size_t len);
void cop_fuse_inode_ref(struct inode *i);
void cop_fuse_inode_put(struct cop_fuse *fs, struct inode *i, uint64_t n);
struct cop_attr cop_fuse_inode_attr(struct cop_fuse *fs, struct inode *i);
void cop_fuse_inode_set_attr(struct cop_fuse *fs, struct inode *i, const struct cop_attr *attr);
/* "" for the root; with a name, of that name below i. Length or -ENAMETOOLONG. */
int cop_fuse_path(const struct inode *i, const char *name, size_t name_len, char path[PATH_BYTES]);
uint64_t cop_fuse_inode_count(struct cop_fuse *fs);
/* Calls fn for every inode with the table's shard locked. */
void cop_fuse_inodes_each(struct cop_fuse *fs, void (*fn)(void *arg, struct inode *i), void *arg);
/* How many directories are between it and the mount point. */
unsigned cop_fuse_depth(const struct inode *dir);

/* ---- caps.c ---- */
/* Besides the FUSE_CAP_* of libfuse: absence is an entry with inode 0, which the kernel
 * remembers. */
#define CAP_ABSENT_ENTRIES (1u << 31)
/* Parses names separated by commas; NULL is none. -EINVAL with a sentence. */
int cop_fuse_caps_parse(const char *list, unsigned *off, struct cop_err *err);
unsigned cop_fuse_caps_want(const struct cop_fuse *fs, unsigned capable);
/* Writes the names of those in use into an array. */
void cop_fuse_caps_json(unsigned in_use, struct cop_json *j);

/* ---- op.c ---- */
struct op *cop_fuse_op(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind);
/* Counts the operation in the profile, if there is one. */
void cop_fuse_op_free(struct op *op);
/* Counts an absence that expired or proved to be over. */
void cop_fuse_profile_ttl(struct op *op, enum cop_prof_ttl event);
/* Counts and traces an operation on this inode that is answered immediately, with rc. */
void cop_fuse_profile(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind, int rc);
/* Requests it from tree/fetch; next is called once, now or later. */
void cop_fuse_ask(struct op *op, const struct cop_ask *ask,
	void (*next)(struct op *op, struct cop_obj *obj, int rc));
/* Adds to the record that this was needed. */
void cop_fuse_record(struct op *op, const struct cop_ask *ask);
/* The same for the name that is looked up. */
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
/* Whether the path is inside a proc file system; the root of one is not. */
bool cop_fuse_is_below_proc(const struct cop_fuse *fs, const char *path);

/* ---- local.c: passthrough on the node ---- */
void cop_fuse_local_lookup(struct op *op);
/* The directory COP_FUSE_STORAGE. */
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
/* Asks for the name alone. */
void cop_fuse_lookup_singly(struct op *op);
/* The file through which programs of Copper 1.0 read a mount's counters: every lookup of it
 * fails. */
bool cop_fuse_is_old_ioctl(const char *name, size_t len);
/* The inode of a name in op's directory, as cop_fuse_inode_get. attr is changed to what the side of
 * the request shows. */
struct inode *cop_fuse_inode_shown(struct op *op, const char *name, size_t name_len,
	const char *target, size_t target_len, struct cop_attr *attr);
/* Changes the attributes of this inode to what the side of the request shows. */
void cop_fuse_show(const struct op *op, const struct inode *i, struct cop_attr *attr);
/* The same for a mode alone. */
mode_t cop_fuse_shown_mode(const struct op *op, mode_t mode);
/* Where a FIFO or socket is reached from a view. Returns the length, or -ENAMETOOLONG. */
int cop_fuse_special_target(const struct inode *i, char out[PATH_BYTES]);
/* The target as the user sees it. Returns its length; out has PATH_BYTES. depth: directories
 * between the root and the link. */
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

/* ---- bypass.c: files that are read past the tree ---- */
bool cop_fuse_bypasses(const struct cop_fuse *fs, const struct cop_attr *attr);
/* size and off are set and inside the file. */
void cop_fuse_bypass_read(struct op *op);

/* ---- store.c ---- */
/* The reply to this read has been sent: gives the kernel the rest of its chunks, where that saves
 * fetching them again. */
void cop_fuse_store(struct op *op);

/* ---- ahead.c ---- */
/* A read has touched this chunk: requests what will probably be read next. */
void cop_fuse_read_ahead(struct cop_fuse *fs, struct inode *i, uint64_t index);

/* ---- tell.c: for the thread of notify.c, which may wait long in these ---- */
/* Makes the kernel forget a name, or the attributes and names of a directory or the pages of a
 * file, on both sides. */
void cop_fuse_tell_name(struct cop_fuse *fs, struct inode *dir, const char *name, size_t len);
void cop_fuse_tell_inode(struct cop_fuse *fs, struct inode *i);
/* Makes the kernel forget every name at and below this directory. */
void cop_fuse_tell_under(struct cop_fuse *fs, struct inode *top);
/* Makes the kernel look up each name of the directory again. */
void cop_fuse_tell_names(struct cop_fuse *fs, struct inode *dir);

/* ---- absent.c ---- */
void cop_fuse_absent_init(struct absent_names *a);
void cop_fuse_absent_fini(struct absent_names *a);
/* Lists a name (of less than NAME_BYTES) that the kernel is about to hold absent in the root.
 * False: the kernel must not, because there is no memory, or no more can be told to the kernel now.
 */
bool cop_fuse_note_absent(struct cop_fuse *fs, const char *name, size_t len);
/* On the thread of notify.c: makes the kernel forget all of them. */
void cop_fuse_tell_absent(struct cop_fuse *fs);

/* ---- notify.c ---- */
int cop_fuse_notify_start(struct cop_fuse *fs);
void cop_fuse_notify_stop(struct cop_fuse *fs);
/* For tests: from now on there is no memory for notifications. */
void cop_fuse_starve(struct cop_fuse *fs, bool starve);
/* The file is not what its name promised: makes the kernel look up the name again. */
void cop_fuse_forget_name(struct cop_fuse *fs, struct inode *i);
/* The directory has changed since the kernel read it: makes it read the names again. */
void cop_fuse_forget_names(struct cop_fuse *fs, struct inode *dir);
/* The kernel is to forget a name that it holds absent in the root, for lack of room here. -ENOMEM,
 * -ENOBUFS: it will not. */
int cop_fuse_forget_absent(struct cop_fuse *fs, const char *name, size_t len);

/* The kernel's pages of a file are wrong: makes it drop them. */
void cop_fuse_forget_pages(struct cop_fuse *fs, struct inode *i);
/* Makes the kernel look up each name in the directory again. */
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
/* Answers a request for an unnamed file, which libfuse would call unknown; false for any other
 * request. */
bool cop_fuse_refuse_tmpfile(struct cop_fuse *fs, const struct fuse_buf *buf);

/* ---- pages.c: attributes in directories whose listing has none ---- */

/* Attributes for entries of a listing, one after the other. */
struct attrs {
	struct op *op;
	const void *names; /* the listing */
	struct cop_obj
		*page; /* the last one that was looked into, and an entry that was: references */
	struct cop_obj *entry; /* or NULL */
	uint64_t index;        /* of that page; UINT64_MAX: none yet */
	size_t dir_len;
	char dir[PATH_BYTES], path[PATH_BYTES];
};
/* Answers the lookup of a name that is in this listing without attributes, now or later; false (and
 * nothing is done) if the name is to be asked for singly. */
bool cop_fuse_page_lookup(struct op *op, const void *names, const struct cop_listing_entry *listed);
/* False if entries of this listing do not get attributes from elsewhere. page, if any, is in use
 * even if the cache has no room for it. */
bool cop_fuse_attrs_init(struct attrs *a, struct op *op, const void *names, struct cop_obj *page);
void cop_fuse_attrs_fini(struct attrs *a);
/* Completes an entry with what this node has; returns the object that it is from, in use until the
 * next call, or NULL. */
const struct cop_obj *cop_fuse_attrs_find(struct attrs *a, struct cop_listing_entry *e);
/* Whether somebody goes through the directory and comes to this entry now. If so, *ask is the
 * request for its page, with the path in dir, and the pages after it are requested. */
bool cop_fuse_attrs_want(struct op *op, const void *names, uint32_t entry, char dir[PATH_BYTES],
	struct cop_ask *ask);
/* The page could not be had. */
void cop_fuse_attrs_fail(struct op *op, const void *names);
/* A directory read has given attributes for the entries before this one. */
void cop_fuse_attrs_given(struct op *op, uint32_t entry);

/* ---- names.c ---- */
/* Names of this directory are about to be taken from this listing. Where the kernel knows other
 * ones, it is made to look up all of them again. */
void cop_fuse_meet_names(struct cop_fuse *fs, struct inode *dir, const void *blob);

/* ---- check.c ---- */
/* In $PATH, or where distributions have it. */
bool cop_fuse_have_fusermount(void);

/* ---- umount.c ---- */
int cop_fuse_umount(const char *mountpoint, bool lazy);
void cop_fuse_holders(const char *mountpoint, struct cop_buf *out);

#endif
