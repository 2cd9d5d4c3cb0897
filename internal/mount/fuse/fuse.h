/* SPDX-License-Identifier: BSD-3-Clause */
/* fs: the FUSE low-level front end. It turns kernel requests into questions to tree/fetch and
 * answers each exactly once. A request that has to wait lives in a flight and holds no thread.
 * Everything is read-only: the kernel (mounted ro) and this module refuse every change with EROFS.
 *
 * The settings that let the kernel answer by itself come from Documentation/filesystems/fuse.rst
 * and of the kernel's fs/fuse: entry and attribute timeouts of a day, absence as an entry with
 * inode 0, open and opendir answered ENOSYS (FUSE_NO_OPEN_SUPPORT, FUSE_NO_OPENDIR_SUPPORT),
 * READDIRPLUS always, cached symlinks, explicit invalidation. */
#ifndef COP_MOUNT_FUSE_H
#define COP_MOUNT_FUSE_H

#include "base/opt/opt.h"
#include "tree/fetch/fetch.h"
#include "storage/manifest/manifest.h"
#include "prof/profile/profile.h"
#include "prof/tracer/tracer.h"

/* The root of the same tree with the targets of links as they are in the source; no directory lists
 * it. For mounts in the place of the source. */
#define COP_FUSE_VIEW_ROOT ".copper-as-source"

/* Below that root, a directory that is not listed, for a mount of the storage's own source: FIFOs
 * and sockets are shown there as links through it. */
#define COP_FUSE_STORAGE ".copper-storage"

struct cop_fuse;

struct cop_fuse_conf {
	const char *mountpoint;            /* real path */
	const char *source;                /* real path, as the root of the tree sees it */
	bool keep_symlinks;                /* absolute links under the source stay as they are */
	const struct cop_opt_list *hidden; /* names that directories may have and not list, besides
					      those that are known; "*": any. May be NULL */
	bool allow_other;
	bool observe; /* the kernel caches nothing, so every request is seen */
	uint32_t enoent_ttl_ms;
	uint64_t max_cacheable; /* bytes: this node itself reads larger files from the source; 0:
				   none */
	unsigned workers;       /* 0: chosen by the number of processors */
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_origin *origin; /* for files that are read on the node itself: pseudo file
				      systems, files beyond max_cacheable */
	struct cop_stats *stats;
	struct cop_manifest_set *record; /* records requests to tree/fetch in the order of first
					    need; may be NULL. Has no other effect */
	/* Called when a program's request needs bytes of a file that the kernel does not have, with
	 * its path; cheap. May be NULL. */
	void (*opened)(void *arg, const char *path);
	void *arg;
	struct cop_prof *prof; /* may be NULL. From the level of paths on, the kernel is told less,
				  so that each path is seen at least once */
	struct cop_tracer *tracer; /* gets each request; may be NULL */
};

/* Checks whether this can be a mount point and this machine can mount; -errno with a sentence if
 * not (missing, not a directory, already mounted, dead mount, not empty, no /dev/fuse, no
 * fusermount3). */
int cop_fuse_check(const char *mountpoint, struct cop_err *err);

/* Whether it is on a file system that machines share; why then has a sentence that says so and what
 * to do. */
bool cop_fuse_check_shared(const char *mountpoint, struct cop_err *why);

/* The last two of these checks: can this user mount here at all? */
int cop_fuse_check_machine(struct cop_err *err);
/* Whether --allow-other will be accepted. */
int cop_fuse_check_allow_other(struct cop_err *err);
/* The release of the running kernel, and the features that it is too old for: without them more
 * requests reach the node. */
void cop_fuse_check_kernel(char release[65], struct cop_buf *lacks);

/* Mounts and starts to serve. */
int cop_fuse_start(const struct cop_fuse_conf *conf, struct cop_fuse **out, struct cop_err *err);
/* Unmounts: tries normally for grace_ms, then unmounts lazily and appends the processes that hold
 * the mount to holders (may be NULL), as "name[pid], ..."; then joins the workers. Requests that
 * wait in flights may still be answered until cop_fuse_free. 0; -errno: the mount remains, and is
 * dead when this process has ended. */
int cop_fuse_stop(struct cop_fuse *fs, unsigned grace_ms, struct cop_buf *holders);
/* No flight may be open any more. NULL is fine. */
void cop_fuse_free(struct cop_fuse *fs);
/* A descriptor that becomes readable once the kernel has ended the connection (somebody unmounted
 * it). */
int cop_fuse_gone_fd(const struct cop_fuse *fs);

/* Makes the kernel forget this path, everything below it ("" for all) and the names beside it;
 * told(arg) is called on another thread once the kernel has done so. The kernel does not keep the
 * result of a lookup that is under way during this call. Open files keep their version. -ENOMEM,
 * -ENOBUFS: told is not called, and the kernel will forget everything eventually. */
int cop_fuse_invalidate(struct cop_fuse *fs, const char *path, void (*told)(void *arg), void *arg);

/* Makes the kernel ask again for each name in this directory, and for absent names there once their
 * TTL is over. then(arg) is called once the kernel has received this and all earlier notifications,
 * on another thread or before this returns; answers from then on are kept again. dir NULL: only
 * wait for the earlier notifications. -ENOMEM, -ENOBUFS: nothing was done, and then is not called.
 */
int cop_fuse_forget_in(struct cop_fuse *fs, const char *dir, void (*then)(void *arg), void *arg);

/* Appends a JSON object with the negotiated features and the number of inodes that the kernel
 * holds. */
void cop_fuse_json(struct cop_fuse *fs, struct cop_buf *out);
/* Any thread. How many requests wait now for what this node does not have, and the microseconds
 * that requests have waited since the start, added up, those of now included. */
void cop_fuse_waits(struct cop_fuse *fs, uint64_t *waiting, uint64_t *wait_us);

/* Requests of this thread, by its number in the node's pid namespace, are the node's own: they are
 * counted apart, not recorded, not reported as those of a program, and lead to no guesses. */
void cop_fuse_own_thread(struct cop_fuse *fs, uint32_t tid);
/* Any thread. Whether programs have asked for names of the bare mount, and of views. */
void cop_fuse_used(struct cop_fuse *fs, bool *bare, bool *view);

/* Removes a dead mount, which a killed node leaves behind, even if it is in use. 0 or -errno. */
int cop_fuse_unmount_dead(const char *mountpoint);
/* The same, but only if no process has a file of it open, works in it or runs a program from it;
 * else -EBUSY. */
int cop_fuse_unmount_unused(const char *mountpoint);
/* Whether there is a mount whose node is gone. Attributes cannot tell this, because the kernel
 * keeps those of a dead mount, too. If the node is about to end, this waits for its end. */
bool cop_fuse_is_dead(const char *mountpoint);

/* The number of the FUSE connection behind a mount, as the kernel's control file system names it;
 * 0: no such mount. Asks only the kernel. */
unsigned cop_fuse_connection(const char *mountpoint);
/* Aborts the connection of a process that was killed but cannot end: its requests fail, and the
 * mount is dead. Works for root, and for a user's own connections. */
int cop_fuse_abort(unsigned connection);

#endif
