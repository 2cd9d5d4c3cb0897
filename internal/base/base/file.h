/* SPDX-License-Identifier: BSD-3-Clause */
/* file: whole reads and writes, files that are written completely or not at all, opening without
 * following links. */
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
/* Programs that this process executes get none of the descriptors from first on that are open now;
 * those of libraries lack O_CLOEXEC. Returns as cop_close_range does. */
int cop_close_on_exec(unsigned first);

#endif
