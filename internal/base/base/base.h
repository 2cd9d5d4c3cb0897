/* SPDX-License-Identifier: BSD-3-Clause */
/* base: helpers for every module, without policy: errors, clocks, sizes, hashes, intrusive lists,
 * growing buffers, whole reads and writes, named threads. It knows nothing of trees, caches or
 * FUSE.
 *
 * Return convention of the whole project: 0 or -errno, counts when natural. */
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

/* Sums of numbers from outside stop at 2^64-1, so that the order of adding does not matter. */
static inline uint64_t cop_add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#define COP_KIB ((size_t)1 << 10)
#define COP_MIB ((size_t)1 << 20)
#define COP_GIB ((uint64_t)1 << 30)
#define COP_NS_PER_MS 1000000ULL
#define COP_NS_PER_S 1000000000ULL

/* ---- errors ---- */

/* One sentence for a person: what happened, to what, and what to do. code is a positive errno
 * value; 0 means no error was recorded. */
struct cop_err {
	int code;
	char text[1024];
};

/* Fills err (which may be NULL) and returns -code, so that a function can end
 * with `return cop_err_set(err, ENOENT, "...", ...)`. */
int cop_err_set(struct cop_err *err, int code, const char *fmt, ...) COP_PRINTF(3, 4);

/* Whether this -errno means that a process lacks memory, descriptors or buffers, as opposed to an
 * answer to the request itself. */
bool cop_is_shortage(int rc);

/* ---- clocks ---- */

/* Monotonic. All waits and ages use this clock. */
uint64_t cop_now_ns(void);
uint64_t cop_now_ms(void);
/* Since 1970; may jump when an administrator or a time server sets it. Only for comparing with the
 * time stamps of files. */
int64_t cop_wall_ns(void);
/* For tests: replaces these clocks from now on; NULL restores the system's. Sleeps always use the
 * system's clock. */
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

/* A zero-initialised buffer is empty. Once anything was appended, data is NUL-terminated past len.
 * A failed allocation sets `failed`; further appends then do nothing, so the owner checks once at
 * the end. */
struct cop_buf {
	char *data;
	size_t len, cap;
	bool failed;
};

void cop_buf_add(struct cop_buf *b, const void *data, size_t len);
void cop_buf_str(struct cop_buf *b, const char *text);
void cop_buf_printf(struct cop_buf *b, const char *fmt, ...) COP_PRINTF(2, 3);
void cop_buf_free(struct cop_buf *b);

/* Numbers as LEB128, each in its shortest form (varint.c). */
void cop_buf_varint(struct cop_buf *b, uint64_t value);
/* Reads one and moves *at past it. False if it is cut off, has more than 64 bits or is not in its
 * shortest form. */
bool cop_varint(const unsigned char **at, const unsigned char *end, uint64_t *value);

/* ---- random numbers seen recently ---- */

#define COP_RECENT 1024

/* The last COP_RECENT numbers, by their first 8 bytes; zeroed memory holds none. */
struct cop_recent {
	uint64_t first[COP_RECENT];
	unsigned next;
};

bool cop_recent_has(const struct cop_recent *r, const void *number);
void cop_recent_add(struct cop_recent *r, const void *number);

/* ---- hashes seen before (seen.c) ---- */

/* A set of hashes: it records what was seen, without the thing itself. base/htab.h is for entries
 * that carry a link; a bare hash has none. Two things with the same hash count as one. Zeroed
 * memory is an empty set. */
struct cop_seen {
	uint64_t *hash; /* open addressing, at most half full; 0: free */
	size_t slots, count;
};

enum cop_seen_result {
	COP_SEEN_NEW,
	COP_SEEN_BEFORE,
	COP_SEEN_FULL, /* not added: it has `most` already, or memory is short */
};

enum cop_seen_result cop_seen_add(struct cop_seen *s, uint64_t hash, size_t most);
bool cop_seen_has(const struct cop_seen *s, uint64_t hash);
/* Frees its memory and leaves it empty. */
void cop_seen_forget(struct cop_seen *s);

/* ---- byte ranges ---- */

struct cop_range {
	uint64_t start, end; /* end excluded */
};
/* Adds the bytes [start, end) to n ranges, which ascend and do not touch each other; r has room for
 * max + 1. Ranges that touch are merged. Beyond max ranges the smallest gap is closed, which adds a
 * few bytes too many. Returns the new number of ranges. */
unsigned cop_range_add(struct cop_range *r, unsigned n, unsigned max, uint64_t start, uint64_t end);

/* ---- files ---- */

/* Read or write exactly len bytes; a short read returns the count so far.
 * Both retry EINTR. Return the count or -errno. */
ssize_t cop_read_full(int fd, void *data, size_t len);
ssize_t cop_write_full(int fd, const void *data, size_t len);
/* Reads like cop_read_full from a file of which *left bytes remain, by its size when it was opened.
 * It reads no further, because a network file system would ask its server whether there is more. */
ssize_t cop_read_left(int fd, uint64_t *left, void *data, size_t len);
/* Opens the regular file name in dir (or AT_FDCWD) for reading and returns the descriptor, with the
 * file's size. -EISDIR or -EINVAL for anything else; otherwise -errno. Never blocks and touches no
 * device, so it is safe in folders that others may write to. */
int cop_open_regular(int dir, const char *name, uint64_t *size);
/* Reads a whole small file, NUL-terminated, of at most max_bytes (-EFBIG beyond that); the caller
 * frees *data. */
int cop_read_file(const char *path, size_t max_bytes, char **data, size_t *len);
/* Writes path whole or not at all: it writes a temporary file in the same folder and renames it,
 * without fsync. */
int cop_write_file(const char *path, const void *data, size_t len, unsigned mode);
/* Creates the directory path with any missing parents; an existing directory is fine. */
int cop_make_dirs(const char *path, unsigned mode);
/* The same with a sentence on failure; for guarded directories, the sentence says which of them is
 * unsafe and why. */
int cop_make_dirs_said(const char *path, unsigned mode, struct cop_err *err);

/* Whether openat2(2) works here: the kernel has it and no filter forbids it. It is tried once. */
bool cop_has_openat2(int dirfd);
/* Opens a normal relative path ("" is dirfd itself) without leaving dirfd or following a symbolic
 * link; sets O_CLOEXEC. Returns the descriptor or -errno; *calls is the number of system calls. */
int cop_open_beneath(int dirfd, const char *path, int flags, bool has_openat2, unsigned *calls);
/* Executes a command, found as execvp(3) finds it. Returns only on failure: the exit status that a
 * shell would use, 127 or 126, with a sentence. */
int cop_exec(char **command, struct cop_err *err);
/* Closes every descriptor from first to last, both included. Returns 0, or -errno if neither the
 * kernel nor /proc can list them. */
int cop_close_range(unsigned first, unsigned last);

/* ---- guarded directories (guard.c) ---- */

/* Guards dir. From now on the functions of this header open, make or replace nothing below dir
 * through a symbolic link, whoever made it, or in a directory that another user owns or may write
 * to. This holds for paths that begin with dir exactly as it is written here. root counts as this
 * user. A group may have write permission if it is the user's own, that is the group of the process
 * with the user's number. -EPERM with a sentence if dir itself is not such a directory, or is
 * reached through another user's link. */
int cop_mountguard(const char *dir, struct cop_err *err);
/* Returns 0 if the directory path, below a guarded one, meets these conditions or does not exist;
 * else -errno with a sentence. */
int cop_guard_check(const char *path, struct cop_err *err);

/* A path for the *at functions: a descriptor of its directory and its name there; AT_FDCWD and the
 * path itself if nothing is guarded. nofollow is O_NOFOLLOW below a guarded directory, else 0. */
struct cop_dir {
	int fd;
	const char *name; /* points into the path */
	int nofollow;
};
/* -ELOOP, -EPERM and so on. Call cop_dir_done afterwards in any case. */
int cop_dir_of(const char *path, struct cop_dir *at);
void cop_dir_done(struct cop_dir *at);
/* Creates a new file (0600) beside it, open for reading and writing; the caller frees its name,
 * *tmp. */
int cop_open_temp(const struct cop_dir *at, char **tmp);
int cop_unlink(const char *path);
int cop_rename(const char *from, const char *to);

/* ---- what is mounted ---- */

#define COP_MOUNT_TYPE_SIZE 64
/* Called with a mount point and the type of what is mounted there ("ext4", "fuse.sshfs"); both are
 * valid during the call only. A result other than 0 ends the walk. */
typedef int cop_mount_visit(void *arg, const char *dir, const char *type);
/* Visits each mount in a text of the form of /proc/self/mountinfo, in order. Changes the text;
 * skips lines that are not mounts. */
int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg);
/* Restores a name in such a text, where a space, tab, newline or backslash is written as \ooo. */
void cop_mount_unescape(char *text);
/* Visits each mount that this process sees. Returns what visit returned, or -errno if the mounts
 * cannot be read. */
int cop_mounts_each(cop_mount_visit *visit, void *arg);
/* The type of the file system that holds path, after following links; "" if unknown. */
int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE]);
/* Whether file systems of this type are in memory and private to a machine (proc, tmpfs); whether
 * machines share them over a network. */
bool cop_mount_is_pseudo(const char *type);
bool cop_mount_is_shared(const char *type);

/* ---- this program ---- */

extern const char cop_version[]; /* "0.2.0", or "0.2.0+431.g9639c5d" between two */
extern const char cop_build[];   /* "release, static" */

/* ---- names of hosts ---- */

struct cop_ip;

/* The address that a host's own name has where Debian's installer set it up, or where no name
 * service knows the host. Every machine has this address, so it identifies none. */
#define COP_OWN_NAME_ADDRESS 0x7f000101u

/* The address of a host, from its text or else from the system's name service, which may take many
 * seconds. If there are several, it is one that this machine has a route to, and IPv4 before IPv6;
 * never a link-local IPv6 address. Returns 0, or -EHOSTUNREACH with a sentence to print after the
 * host's name and a colon. */
int cop_host_address(const char *name, struct cop_ip *out, struct cop_err *err);
/* Whether the names are equal, or one is the short form of the other: "n1" and "n1.cluster.org",
 * never "n1.a" and "n1.b". */
bool cop_same_host(const char *a, const char *b);

/* ---- processors ---- */

/* Pins every thread of this process, and those that it starts later, to a list such as "0-3,8".
 * -EINVAL with a sentence that names processors that do not exist or may not be used; then nothing
 * has changed. */
int cop_cpus_pin(const char *list, struct cop_err *err);
/* The processors that this thread may run on, as a list. */
void cop_cpus_list(struct cop_buf *out);
/* Whether the launcher restricted this thread to at most one core (two processors) of the cpuset;
 * if so, both lists are filled. */
bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset);

/* ---- memory ---- */

/* The memory limit in bytes that the control groups set for this process, UINT64_MAX if there is
 * none. root is "", or a test's folder with its own /proc and /sys. */
uint64_t cop_memory_limit(const char *root);
/* The resources of this process: the processor time that all its threads have used so far, and its
 * resident memory now. */
void cop_process_usage(uint64_t *cpu_us, uint64_t *resident_bytes);

/* ---- threads ---- */

/* Starts a thread with all signals blocked and a name of at most 15 bytes (cut).
 * The caller joins it. Returns 0 or -errno. */
int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg);
/* Initialises a condition whose timed waits use the clock of cop_now_ns and ignore the wall clock.
 */
void cop_cond_init(pthread_cond_t *cond);
/* Converts a time of that clock for such a wait. */
struct timespec cop_moment(uint64_t now_ns);

#endif
