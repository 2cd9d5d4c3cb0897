/* SPDX-License-Identifier: BSD-3-Clause */
/* base: what every module uses and no policy: errors, clocks, sizes, hashes,
 * intrusive lists, growing buffers, whole reads and writes, named threads.
 * It knows nothing of trees, caches or FUSE.
 *
 * Return convention of the whole project: 0 or -errno, counts when natural.
 */
#ifndef COP_BASE_H
#define COP_BASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define COP_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define COP_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define COP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define COP_MAX(a, b) ((a) > (b) ? (a) : (b))
#define COP_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define COP_KIB ((size_t)1 << 10)
#define COP_MIB ((size_t)1 << 20)
#define COP_GIB ((uint64_t)1 << 30)
#define COP_NS_PER_MS 1000000ULL
#define COP_NS_PER_S 1000000000ULL

/* ---- errors ---- */

/* One sentence for a person: what happened, to what, and the way out.
 * code is a positive errno value; 0 means no error was recorded. */
struct cop_err {
	int code;
	char text[1024];
};

/* Fills err (which may be NULL) and returns -code, so that a function can end
 * with `return cop_err_set(err, ENOENT, "...", ...)`. */
int cop_err_set(struct cop_err *err, int code, const char *fmt, ...) COP_PRINTF(3, 4);

/* Whether this -errno says that a process lacks memory, descriptors or buffers, and nothing about
 * what it was asked to do. */
bool cop_is_shortage(int rc);

/* ---- clocks ---- */

/* Monotonic: what all waits and ages go by. */
uint64_t cop_now_ns(void);
uint64_t cop_now_ms(void);
/* Since 1970, and whatever an administrator or a time server makes of it: for what is compared with
 * the stamps of files. */
int64_t cop_wall_ns(void);
/* For tests: what these clocks show from now on; NULL: the system's. Sleeps go by the system's. */
void cop_clocks_for_test(uint64_t (*now_ns)(void), int64_t (*wall_ns)(void));

/* ---- numbers as people write them ---- */

/* Decimal digits only; -EINVAL for anything else, -ERANGE past 64 bits. */
int cop_parse_u64(const char *text, uint64_t *out);
/* "4096", "64K", "16M", "2G", "1T" (binary; "KiB", "MB" and the like are accepted
 * and mean the same); -EINVAL, -ERANGE. */
int cop_parse_size(const char *text, uint64_t *bytes);
/* "1.5 MiB"; out has at least 16 bytes. Returns out. */
char *cop_format_size(uint64_t bytes, char out[16]);

/* ---- hashes (XXH3) ---- */

uint64_t cop_hash64(const void *data, size_t len, uint64_t seed);

/* ---- intrusive doubly linked list ---- */

struct cop_list {
	struct cop_list *prev, *next;
};

static inline void cop_list_init(struct cop_list *l)
{
	l->prev = l->next = l;
}
static inline bool cop_list_empty(const struct cop_list *l)
{
	return l->next == l;
}
static inline void cop_list_push_back(struct cop_list *head, struct cop_list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}
static inline void cop_list_push_front(struct cop_list *head, struct cop_list *item)
{
	item->next = head->next;
	item->prev = head;
	head->next->prev = item;
	head->next = item;
}
/* Leaves the item self-linked, so that removing twice is harmless. */
static inline void cop_list_remove(struct cop_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	cop_list_init(item);
}
/* First item removed from the list, or NULL. */
static inline struct cop_list *cop_list_pop_front(struct cop_list *head)
{
	struct cop_list *item = head->next;

	if (item == head)
		return NULL;
	cop_list_remove(item);
	return item;
}
/* Moves everything in from to the end of head. */
static inline void cop_list_splice(struct cop_list *head, struct cop_list *from)
{
	if (cop_list_empty(from))
		return;
	from->next->prev = head->prev;
	head->prev->next = from->next;
	from->prev->next = head;
	head->prev = from->prev;
	cop_list_init(from);
}

/* ---- growing byte buffer ---- */

/* Zero-initialised is empty. data is always NUL-terminated past len once
 * anything was appended. After a failed allocation `failed` is set, further
 * appends do nothing, and the owner checks once at the end. */
struct cop_buf {
	char *data;
	size_t len, cap;
	bool failed;
};

void cop_buf_add(struct cop_buf *b, const void *data, size_t len);
void cop_buf_str(struct cop_buf *b, const char *text);
void cop_buf_printf(struct cop_buf *b, const char *fmt, ...) COP_PRINTF(2, 3);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void cop_buf_json_str(struct cop_buf *b, const char *text, size_t len);
void cop_buf_free(struct cop_buf *b);

/* ---- random numbers that came lately ---- */

#define COP_RECENT 1024

/* The last COP_RECENT of them, by their first 8 bytes; zeroed memory holds none. */
struct cop_recent {
	uint64_t first[COP_RECENT];
	unsigned next;
};

bool cop_recent_has(const struct cop_recent *r, const void *number);
void cop_recent_add(struct cop_recent *r, const void *number);

/* ---- byte ranges ---- */

struct cop_range {
	uint64_t start, end; /* end excluded */
};
/* Adds the bytes [start, end) to n ranges, which ascend and are apart from each other; r has room
 * for max + 1. They are merged where they touch; past max the smallest gap is closed, and a few
 * bytes too many are claimed. Returns how many there are then. */
unsigned cop_range_add(struct cop_range *r, unsigned n, unsigned max, uint64_t start, uint64_t end);

/* ---- files ---- */

/* Read or write exactly len bytes; a short read returns the count so far.
 * Both retry EINTR. Return the count or -errno. */
ssize_t cop_read_full(int fd, void *data, size_t len);
ssize_t cop_write_full(int fd, const void *data, size_t len);
/* A descriptor to read the regular file name in dir (AT_FDCWD), with its size; -errno, of anything
 * else -EISDIR or -EINVAL. Never waits and touches no device: for files in folders that others may
 * write to. */
int cop_open_regular(int dir, const char *name, uint64_t *size);
/* A whole small file, NUL-terminated, at most max_bytes (-EFBIG past that); the
 * caller frees *data. */
int cop_read_file(const char *path, size_t max_bytes, char **data, size_t *len);
/* Writes path whole or not at all: temporary name in the same folder, fsync is
 * not done, rename. */
int cop_write_file(const char *path, const void *data, size_t len, unsigned mode);
/* Makes the directory path and what is missing above it; one that is there is as good. */
int cop_make_dirs(const char *path, unsigned mode);
/* The same, and why not in a sentence; for guarded directories, what is wrong with which of them.
 */
int cop_make_dirs_said(const char *path, unsigned mode, struct cop_err *err);

/* Whether this kernel, and whatever filters its calls here, has openat2(2): asked once. */
bool cop_has_openat2(int dirfd);
/* Opens a normal relative path ("" is dirfd itself) that never leaves dirfd nor passes through a
 * symbolic link, O_CLOEXEC. The descriptor or -errno; *calls: how often the kernel was asked. */
int cop_open_beneath(int dirfd, const char *path, int flags, bool has_openat2, unsigned *calls);
/* Closes every descriptor from first to last, both included: 0, or -errno where neither the kernel
 * nor /proc can tell which there are. */
int cop_close_range(unsigned first, unsigned last);

/* ---- directories that are guarded (guard.c) ---- */

/* From now on nothing below dir is opened, made or replaced through a symbolic link, whoever made
 * it, nor in a directory that another user owns or may write to: by the functions of this header,
 * by paths that begin with dir as it is written here. root counts as this user; a group may write
 * if it is the user's own: that of the process, with the user's number. -EPERM with a sentence if
 * dir is not such a directory itself, or is reached by another user's link. */
int cop_guard(const char *dir, struct cop_err *err);
/* 0 if the directory path, below a guarded one, is such a directory or is not there; else a
 * sentence. */
int cop_guard_check(const char *path, struct cop_err *err);

/* Where a path leads, for the *at functions: a descriptor of the directory it lies in and its name
 * there; AT_FDCWD and the path itself where nothing is guarded. nofollow is O_NOFOLLOW below a
 * guarded directory, else 0. */
struct cop_dir {
	int fd;
	const char *name; /* points into the path */
	int nofollow;
};
/* -ELOOP, -EPERM and so on. To be followed by cop_dir_done in any case. */
int cop_dir_of(const char *path, struct cop_dir *at);
void cop_dir_done(struct cop_dir *at);
/* A new file (0600) beside it, open for reading and writing; its name there, *tmp, is the caller's
 * to free. */
int cop_open_temp(const struct cop_dir *at, char **tmp);
int cop_unlink(const char *path);
int cop_rename(const char *from, const char *to);

/* ---- what is mounted ---- */

#define COP_MOUNT_TYPE_SIZE 64
/* A directory on which something is mounted, and the type of it ("ext4", "fuse.sshfs"); both end
 * with the call. Not 0 ends the walk. */
typedef int cop_mount_visit(void *arg, const char *dir, const char *type);
/* Each mount of a text as /proc/self/mountinfo (which it changes), in order; lines that are none
 * are passed over. */
int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg);
/* Each mount that this process sees: what visit said, or -errno if they cannot be read. */
int cop_mounts_each(cop_mount_visit *visit, void *arg);
/* The type of the file system on which path lies, links followed; "" where it is not known. */
int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE]);
/* Whether every machine has such a file system for itself and in memory (proc, tmpfs); whether
 * machines share it over a network. */
bool cop_mount_is_pseudo(const char *type);
bool cop_mount_is_shared(const char *type);

/* ---- this program ---- */

extern const char cop_version[]; /* "0.2.0", or "0.2.0+431.g9639c5d" between two */
extern const char cop_build[];   /* "release, static" */

/* ---- names of hosts ---- */

struct in_addr;

/* What a host's own name means to itself where Debian's installer set it up, or where nobody else
 * knows it: every machine's own. */
#define COP_OWN_NAME_ADDRESS 0x7f000101u

/* The IPv4 address of a host, from its text or else from the system's name service, which may take
 * many seconds. 0, or -EHOSTUNREACH with a sentence that follows the host's name and a colon. */
int cop_host_address(const char *name, struct in_addr *out, struct cop_err *err);
/* Equal in full, or the short form of one is the other: "n1" and "n1.cluster.org", never "n1.a" and
 * "n1.b". */
bool cop_same_host(const char *a, const char *b);

/* ---- processors ---- */

/* Pins every thread of this process, and those that it starts later, to a list such as "0-3,8".
 * -EINVAL with a sentence that names those that are not there or may not be used; then nothing has
 * changed. */
int cop_cpus_pin(const char *list, struct cop_err *err);
/* Those that this thread may run on, as a list. */
void cop_cpus_list(struct cop_buf *out);
/* Whether whoever started this thread left it no more than one core (two processors) of those that
 * the cpuset has; then both lists. */
bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset);

/* ---- memory ---- */

/* The bytes that the control groups of this process leave to it, UINT64_MAX without a limit. root:
 * "", or where a test has its own /proc and /sys. */
uint64_t cop_memory_limit(const char *root);

/* ---- threads ---- */

/* Starts a thread with all signals blocked and a name of at most 15 bytes (cut).
 * The caller joins it. Returns 0 or -errno. */
int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg);
/* A condition whose timed waits end by the clock of cop_now_ns, whatever becomes of the wall clock.
 */
void cop_cond_init(pthread_cond_t *cond);
/* That moment, for such a wait. */
struct timespec cop_moment(uint64_t now_ns);

#endif
