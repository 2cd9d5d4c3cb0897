/* SPDX-License-Identifier: BSD-3-Clause */
/* fs: the FUSE low-level front end. It turns kernel requests into questions to coop and answers
 * each exactly once; a request that has to wait lives in a flight, no thread waits with it.
 * Everything is read-only: what changes something is refused with EROFS, by the kernel already
 * (mounted ro) and here.
 *
 * The settings that let the kernel answer by itself are those of Documentation/filesystems/fuse.rst
 * and of the kernel's fs/fuse: entry and attribute timeouts of a day, absence as an entry with
 * inode 0, open and opendir answered ENOSYS (FUSE_NO_OPEN_SUPPORT, FUSE_NO_OPENDIR_SUPPORT),
 * READDIRPLUS always, cached symlinks, explicit invalidation. */
#ifndef COP_FS_H
#define COP_FS_H

#include "coop/coop.h"
#include "manifest/manifest.h"
#include "prof/prof.h"

struct cop_fs;

struct cop_fs_conf {
	const char *mountpoint; /* real path */
	const char *source;     /* real path, as the root of the tree sees it */
	bool keep_symlinks;     /* absolute links under the source stay as they are */
	bool allow_other;
	bool observe; /* the kernel caches nothing, so every request is seen */
	uint32_t enoent_ttl_ms;
	uint64_t max_cacheable; /* bytes: larger files are read from the source by this node itself;
				   0: none are */
	unsigned workers;       /* 0: chosen by the number of processors */
	struct cop_coop *coop;
	struct cop_cache *cache;
	struct cop_origin *origin; /* for what is read on the node itself: pseudo file systems,
				      files beyond max_cacheable */
	struct cop_stats *stats;
	struct cop_manifest_set *record; /* what was asked of coop, in the order of first need; may
					    be NULL. Changes nothing else */
	struct cop_prof *prof; /* may be NULL. From the level of paths on, the kernel is told less,
				  so that each path is seen at least once */
};

/* Whether this can be a mount point and this machine can mount: a sentence if not (missing, not a
 * directory, already mounted, dead mount, not empty, no /dev/fuse, no fusermount3). */
int cop_fs_check(const char *mountpoint, struct cop_err *err);

/* Whether it stands on a file system that machines share; why says so in a sentence, with the way
 * out. */
bool cop_fs_check_shared(const char *mountpoint, struct cop_err *why);

/* The last two of those: can this user mount here at all? */
int cop_fs_check_machine(struct cop_err *err);
/* Whether --allow-other will be let through. */
int cop_fs_check_allow_other(struct cop_err *err);
/* The running kernel, and the names of what it is too old for: without them more requests reach the
 * node. */
void cop_fs_check_kernel(char release[65], struct cop_buf *lacks);

/* Mounts and starts to serve. */
int cop_fs_start(const struct cop_fs_conf *conf, struct cop_fs **out, struct cop_err *err);
/* Unmounts: politely for grace_ms, then lazily, appending to holders (may be NULL) the processes
 * that hold it, as "name[pid], ..."; then joins the workers. Requests that wait in flights may
 * still be answered until cop_fs_free. */
void cop_fs_stop(struct cop_fs *fs, unsigned grace_ms, struct cop_buf *holders);
/* No flight may be open any more. NULL is fine. */
void cop_fs_free(struct cop_fs *fs);
/* A descriptor that becomes readable once the kernel has ended the connection (somebody unmounted
 * it). */
int cop_fs_gone_fd(const struct cop_fs *fs);

/* The kernel forgets this path, what is below it ("" for all) and the names beside it; told(arg) is
 * called on another thread once it has. What a lookup that is under way brings after this call is
 * not kept by the kernel. Open files stay what they are. -ENOMEM, -ENOBUFS: told is not called, and
 * the kernel forgets all it has, some time. */
int cop_fs_invalidate(struct cop_fs *fs, const char *path, void (*told)(void *arg), void *arg);

/* The kernel asks again for each name in this directory, and for what is absent there once its TTL
 * is over; then(arg) is called once it has been told all that it was to be told so far, on another
 * thread or before this returns, and what is asked from then on is kept again. dir NULL: nothing is
 * added to that. -ENOMEM, -ENOBUFS: nothing was done, and then is not called. */
int cop_fs_forget_in(struct cop_fs *fs, const char *dir, void (*then)(void *arg), void *arg);

/* What was negotiated, and inodes held by the kernel: a JSON object. */
void cop_fs_json(struct cop_fs *fs, struct cop_buf *out);

/* Takes a dead mount away (a node that was killed leaves one behind), whoever uses it. 0 or -errno.
 */
int cop_fs_unmount_dead(const char *mountpoint);
/* The same if nobody has anything of it open, works in it or runs it; else -EBUSY. */
int cop_fs_unmount_unused(const char *mountpoint);
/* Whether a mount stands there whose node is gone. Attributes will not tell: the kernel keeps those
 * of a dead mount, too. Of a node that is about to end it waits for that. */
bool cop_fs_is_dead(const char *mountpoint);

/* The number of the FUSE connection behind a mount, as the kernel's control file system names it;
 * 0: no such mount. Asks the kernel alone. */
unsigned cop_fs_connection(const char *mountpoint);
/* Ends a connection whose process was killed and cannot end: its requests fail, and the mount is
 * dead. Root's, or the user's own. */
int cop_fs_abort(unsigned connection);

#endif
