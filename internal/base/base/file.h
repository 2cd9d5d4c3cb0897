/* SPDX-License-Identifier: BSD-3-Clause */
/* file: complete reads and writes, atomic replacement of files, opening without following links. */
#ifndef COP_BASE_FILE_H
#define COP_BASE_FILE_H

#include "base/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read or write exactly len bytes; a short read returns the count so far.
 * Both retry EINTR. Return the count or -errno. */
ssize_t cop_read_full(int fd, void *data, size_t len);
ssize_t cop_write_full(int fd, const void *data, size_t len);
/* Reads like cop_read_full from a file with *left bytes remaining, according to its size at
 * open. It reads no further, because a network file system would query its server for more data. */
ssize_t cop_read_left(int fd, uint64_t *left, void *data, size_t len);
/* Opens the regular file name in dir (or AT_FDCWD) for reading and returns the descriptor, with
 * the file's size. -EISDIR or -EINVAL for anything else; otherwise -errno. Never blocks or
 * accesses a device, so it is safe in folders writable by others. */
int cop_open_regular(int dir, const char *name, uint64_t *size);
/* Reads a small file, NUL-terminated, of at most max_bytes (-EFBIG beyond); the caller frees
 * *data. */
int cop_read_file(const char *path, size_t max_bytes, char **data, size_t *len);
/* Replaces path atomically: writes a temporary file in the same folder and renames it, without
 * fsync. */
int cop_write_file(const char *path, const void *data, size_t len, unsigned mode);
/* Creates the directory path with any missing parents; an existing directory is fine. */
int cop_make_dirs(const char *path, unsigned mode);
/* The same with a sentence on failure; for guarded directories, the sentence names the unsafe
 * one and the reason. */
int cop_make_dirs_said(const char *path, unsigned mode, struct cop_err *err);

/* Whether openat2(2) works here: supported by the kernel and not filtered. Tested once. */
bool cop_has_openat2(int dirfd);
/* Opens a normal relative path ("" is dirfd itself) without leaving dirfd or following a symbolic
 * link; sets O_CLOEXEC. Returns the descriptor or -errno; *calls is the number of system calls. */
int cop_open_beneath(int dirfd, const char *path, int flags, bool has_openat2, unsigned *calls);
/* Executes a command, searched as by execvp(3). Returns only on failure: a shell's exit status,
 * 127 or 126, with a sentence. */
int cop_exec(char **command, struct cop_err *err);
/* Closes all descriptors from first to last, inclusive. Returns 0, or -errno if neither the
 * kernel nor /proc can list them. */
int cop_close_range(unsigned first, unsigned last);
/* Sets close-on-exec for all descriptors that are open now, from first on; those of libraries
 * lack O_CLOEXEC. Returns like cop_close_range. */
int cop_close_on_exec(unsigned first);

#endif
