/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse: the FUSE low-level front end. It translates kernel requests into requests to tree/fetch
 * and answers each exactly once. A waiting request is stored in an in-flight request and holds
 * no thread. Everything is read-only: the kernel (mounted ro) and this module refuse every
 * change with EROFS.
 *
 * The settings that maximize kernel caching are from Documentation/filesystems/fuse.rst and the
 * kernel's fs/fuse: entry and attribute timeouts of a day, absence as an entry with inode 0,
 * open and opendir answered ENOSYS (FUSE_NO_OPEN_SUPPORT, FUSE_NO_OPENDIR_SUPPORT), READDIRPLUS
 * always, cached symlinks, explicit invalidation. */
#ifndef COP_MOUNT_FUSE_H
#define COP_MOUNT_FUSE_H

#include "base/opt/opt.h"
#include "tree/fetch/fetch.h"
#include "storage/manifest/manifest.h"
#include "prof/profile/profile.h"
#include "prof/tracer/tracer.h"

/* The root of the same tree with link targets as in the source; not listed in any directory. For
 * mounts in the place of the source. */
#define COP_FUSE_VIEW_ROOT ".copper-as-source"

/* Below that root, an unlisted directory for a mount of the storage's own source: FIFOs and
 * sockets appear there as links through it. */
#define COP_FUSE_STORAGE ".copper-storage"

struct cop_fuse;

struct cop_fuse_conf {
	const char *mountpoint;            /* real path */
	const char *source;                /* real path of the tree's root */
	bool keep_symlinks;                /* absolute links below the source are not rewritten */
	const struct cop_opt_list *hidden; /* unlisted names that directories may have, in addition
					      to the known ones; "*": any. May be NULL */
	bool allow_other;
	bool observe; /* the kernel caches nothing, so every request is observed */
	uint32_t enoent_ttl_ms;
	uint64_t max_cacheable; /* bytes: larger files are read from the source by this node; 0:
				   none */
	unsigned workers;       /* 0: according to the number of processors */
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_origin *origin; /* for files read by the node itself: pseudo file systems, files
				      beyond max_cacheable */
	struct cop_stats *stats;
	struct cop_manifest_set *record; /* records requests to tree/fetch in order of first use;
					    may be NULL. No other effect */
	/* Called with the path when a program's request needs file data that the kernel has not
	 * cached; cheap. May be NULL. */
	void (*opened)(void *arg, const char *path);
	void *arg;
	struct cop_prof *prof; /* may be NULL. From level paths on, kernel caching is reduced: each
				  path is seen at least once */
	struct cop_tracer *tracer; /* receives each request; may be NULL */
};

/* Checks whether this can be a mount point and this machine can mount; -errno with a sentence if
 * not (missing, not a directory, already mounted, dead mount, not empty, no /dev/fuse, no
 * fusermount3). */
int cop_fuse_check(const char *mountpoint, struct cop_err *err);

/* Whether it is on a file system shared by machines; why then has a sentence with advice. */
bool cop_fuse_check_shared(const char *mountpoint, struct cop_err *why);

/* The last two of these checks: whether this user can mount here at all. */
int cop_fuse_check_machine(struct cop_err *err);
/* Whether --allow-other will be accepted. */
int cop_fuse_check_allow_other(struct cop_err *err);
/* The running kernel's release, and the features missing in it, without which more requests
 * reach the node. */
void cop_fuse_check_kernel(char release[65], struct cop_buf *lacks);

/* Mounts and starts serving. */
int cop_fuse_start(const struct cop_fuse_conf *conf, struct cop_fuse **out, struct cop_err *err);
/* Unmounts: tries normally for grace_ms, then unmounts lazily and appends the processes using
 * the mount to holders (may be NULL), as "name[pid], ..."; then joins the workers. Waiting
 * requests may still be answered until cop_fuse_free. 0; -errno: the mount remains, and is dead
 * after this process has exited. */
int cop_fuse_stop(struct cop_fuse *fs, unsigned grace_ms, struct cop_buf *holders);
/* No request may be in flight. NULL is fine. */
void cop_fuse_free(struct cop_fuse *fs);
/* A descriptor that becomes readable when the kernel has closed the connection (after an
 * unmount). */
int cop_fuse_gone_fd(const struct cop_fuse *fs);

/* Makes the kernel forget this path, everything below it ("" for all) and its sibling names;
 * told(arg) is called on another thread afterwards. The kernel does not cache the result of a
 * lookup in progress during this call. Open files keep their version. -ENOMEM, -ENOBUFS: told is
 * not called, and the kernel will eventually forget everything. */
int cop_fuse_invalidate(struct cop_fuse *fs, const char *path, void (*told)(void *arg), void *arg);

/* Makes the kernel revalidate each name in this directory, and absent names there after their
 * TTL. then(arg) is called once the kernel has received this and all earlier notifications, on
 * another thread or before this returns; later replies are cached again. dir NULL: only waits
 * for the earlier notifications. -ENOMEM, -ENOBUFS: nothing was done, and then is not called. */
int cop_fuse_forget_in(struct cop_fuse *fs, const char *dir, void (*then)(void *arg), void *arg);

/* Appends a JSON object with the negotiated features and the number of inodes cached by the
 * kernel. */
void cop_fuse_json(struct cop_fuse *fs, struct cop_buf *out);
/* Any thread. The number of requests currently waiting for data that this node does not have,
 * and the total microseconds of all such waits since the start, including current ones. */
void cop_fuse_waits(struct cop_fuse *fs, uint64_t *waiting, uint64_t *wait_us);

/* Requests of this thread (its tid in the node's pid namespace) are the node's own: counted
 * separately, not recorded, not reported as a program's, and without effect on prefetch
 * heuristics. */
void cop_fuse_own_thread(struct cop_fuse *fs, uint32_t tid);
/* Any thread. Whether programs have used names of the bare mount, and of views. */
void cop_fuse_used(struct cop_fuse *fs, bool *bare, bool *view);

/* Removes the dead mount of a killed node, even if it is in use. 0 or -errno. */
int cop_fuse_unmount_dead(const char *mountpoint);
/* The same, but only if no process has an open file, its working directory or its program there;
 * else -EBUSY. */
int cop_fuse_unmount_unused(const char *mountpoint);
/* Whether there is a mount without its node. Attributes cannot show this, because the kernel
 * caches those of a dead mount, too. If the node is about to exit, this waits for its exit. */
bool cop_fuse_is_dead(const char *mountpoint);

/* The number of the FUSE connection behind a mount, as in the kernel's control file system; 0:
 * no such mount. Contacts only the kernel. */
unsigned cop_fuse_connection(const char *mountpoint);
/* Aborts the connection of a killed process that cannot exit: its requests fail, and the mount
 * is dead. Works for root, and for a user's own connections. */
int cop_fuse_abort(unsigned connection);

#endif
