/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse: the low-level FUSE front end. It translates kernel requests into requests to tree/fetch and
 * answers each exactly once. A waiting kernel request hangs off the in-flight fetch request and
 * ties up no thread. Everything is read-only: the kernel (mounted ro) and this module both refuse
 * changes with EROFS.
 *
 * The settings that maximize kernel caching come from Documentation/filesystems/fuse.rst and the
 * kernel's fs/fuse: entry and attribute timeouts of a day, an entry with inode 0 for an absent
 * name, ENOSYS for open and opendir (FUSE_NO_OPEN_SUPPORT, FUSE_NO_OPENDIR_SUPPORT), READDIRPLUS
 * always, cached symlinks, explicit invalidation. */
#ifndef COP_MOUNT_FUSE_H
#define COP_MOUNT_FUSE_H

#include "base/opt/opt.h"
#include "tree/fetch/fetch.h"
#include "storage/manifest/manifest.h"
#include "prof/profile/profile.h"
#include "prof/tracer/tracer.h"

/* A second root of the same tree, with link targets as in the source, for mounting over the source.
 * No directory lists it. */
#define COP_FUSE_VIEW_ROOT ".copper-as-source"

/* Below that root, an unlisted directory on which the real source is mounted. In a view, FIFOs and
 * sockets appear as links through it. */
#define COP_FUSE_STORAGE ".copper-storage"

struct cop_fuse;

struct cop_fuse_conf {
	const char *mountpoint; /* real path */
	const char *source;     /* real path of the tree's root */
	bool keep_symlinks;     /* absolute links below the source are not rewritten */
	const struct cop_opt_list
		*hidden; /* names that directories may contain without listing them, besides the
			    built-in ones; "*": any. May be NULL */
	bool allow_other;
	bool observe; /* the kernel caches nothing, so every request is observed */
	uint32_t enoent_ttl_ms;
	uint64_t max_cacheable; /* bytes: this node reads larger files from the source itself; 0: no
				   limit */
	unsigned workers;       /* 0: depends on the number of processors */
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_origin *origin; /* for files that this node reads itself: pseudo file systems,
				      files larger than max_cacheable */
	struct cop_stats *stats;
	struct cop_manifest_set *record; /* records requests to tree/fetch in order of first use,
					    with no other effect; may be NULL */
	/* Called with the path when a program's request needs file data that the kernel has not
	 * cached; cheap. May be NULL. */
	void (*opened)(void *arg, const char *path);
	void *arg;
	struct cop_prof *prof;     /* may be NULL. From level "paths" up, the kernel caches less, so
				      that each path is seen at least once */
	struct cop_tracer *tracer; /* receives each request; may be NULL */
};

/* Checks whether this directory can be a mount point and this machine can mount; -errno with a
 * sentence if not (missing, not a directory, already mounted, dead mount, not empty, no /dev/fuse,
 * no fusermount3). */
int cop_fuse_check(const char *mountpoint, struct cop_err *err);

/* Whether the mount point is on a file system shared between machines; if so, why has a sentence
 * with advice. */
bool cop_fuse_check_shared(const char *mountpoint, struct cop_err *why);

/* Only the last two of these checks: whether this user can mount on this machine. */
int cop_fuse_check_machine(struct cop_err *err);
/* Whether --allow-other will be accepted. */
int cop_fuse_check_allow_other(struct cop_err *err);
/* The running kernel's release, and the features it lacks. Without them more requests reach the
 * node. */
void cop_fuse_check_kernel(char release[65], struct cop_buf *lacks);

/* Mounts and starts serving. */
int cop_fuse_start(const struct cop_fuse_conf *conf, struct cop_fuse **out, struct cop_err *err);
/* Tries a normal unmount for grace_ms, then unmounts lazily and appends the processes that use the
 * mount to holders (may be NULL), as "name[pid], ..."; finally joins the workers. Waiting requests
 * may still be answered until cop_fuse_free. Returns 0, or -errno if the mount remains; it is dead
 * once this process has exited. */
int cop_fuse_stop(struct cop_fuse *fs, unsigned grace_ms, struct cop_buf *holders);
/* No request may be in flight. NULL is fine. */
void cop_fuse_free(struct cop_fuse *fs);
/* A descriptor that becomes readable when the kernel has closed the connection (after an
 * unmount). */
int cop_fuse_gone_fd(const struct cop_fuse *fs);

/* Makes the kernel forget this path, everything below it ("" for all) and its sibling names; then
 * calls told(arg) on another thread. The kernel does not cache the result of a lookup that is in
 * progress during this call. Open files keep their version. On -ENOMEM and -ENOBUFS told is not
 * called, and the kernel eventually forgets everything. */
int cop_fuse_invalidate(struct cop_fuse *fs, const char *path, void (*told)(void *arg), void *arg);

/* Makes the kernel revalidate each name in this directory, and absent names once their TTL expires.
 * Calls then(arg), on another thread or before this returns, once the kernel has received this and
 * all earlier notifications; later replies are cached again. dir NULL: only waits for the earlier
 * notifications. On -ENOMEM and -ENOBUFS nothing was done, and then is not called. */
int cop_fuse_forget_in(struct cop_fuse *fs, const char *dir, void (*then)(void *arg), void *arg);

/* Appends a JSON object with the negotiated features and the number of inodes cached by the
 * kernel. */
void cop_fuse_json(struct cop_fuse *fs, struct cop_buf *out);
/* Any thread. The number of requests currently waiting for data that this node does not have,
 * and the total microseconds of all such waits since the start, including current ones. */
void cop_fuse_waits(struct cop_fuse *fs, uint64_t *waiting, uint64_t *wait_us);

/* Requests of this thread (its tid in the node's pid namespace) are the node's own: they are
 * counted separately, are neither recorded nor reported as a program's, and do not affect prefetch
 * heuristics. */
void cop_fuse_own_thread(struct cop_fuse *fs, uint32_t tid);
/* Any thread. Whether programs have looked up names in the bare mount, and in views. */
void cop_fuse_used(struct cop_fuse *fs, bool *bare, bool *view);

/* Removes the dead mount of a killed node, even if it is in use. 0 or -errno. */
int cop_fuse_unmount_dead(const char *mountpoint);
/* The same, but fails with -EBUSY if a process has an open file, its working directory or its
 * executable there. */
int cop_fuse_unmount_unused(const char *mountpoint);
/* Whether a mount exists whose node has died. stat(2) cannot tell, because the kernel also caches
 * attributes of a dead mount. If the node is about to exit, waits until it has. */
bool cop_fuse_is_dead(const char *mountpoint);

/* The number of a mount's FUSE connection, as in the kernel's control file system; 0: no such
 * mount. Asks only the kernel, not the node. */
unsigned cop_fuse_connection(const char *mountpoint);
/* Aborts the connection of a killed process that cannot exit: its requests fail, and the mount is
 * dead. Root may abort any connection, other users only their own. */
int cop_fuse_abort(unsigned connection);

#endif
