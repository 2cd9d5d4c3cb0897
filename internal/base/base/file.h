/* SPDX-License-Identifier: BSD-3-Clause */
/* file: full reads and writes, atomic file replacement, opening files without following links. */
#ifndef COP_BASE_FILE_H
#define COP_BASE_FILE_H

#include "base/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read or write len bytes, retrying on EINTR and short transfers. Return the number of bytes
 * transferred (fewer than len only at end of file), or -errno. */
ssize_t cop_read_full(int fd, void *data, size_t len);
ssize_t cop_write_full(int fd, const void *data, size_t len);
/* Like cop_read_full, for a file with *left bytes remaining according to its size at open. Stops
 * there instead of probing for end of file, which would cost a network file system another round
 * trip. */
ssize_t cop_read_left(int fd, uint64_t *left, void *data, size_t len);
/* Opens the regular file name in dir (or AT_FDCWD) for reading, stores its size and returns the
 * descriptor. Returns -EISDIR or -EINVAL if name is not a regular file, else -errno. Never blocks
 * and never opens a device, so it is safe in directories that others can write to. */
int cop_open_regular(int dir, const char *name, uint64_t *size);
/* Reads a small file and NUL-terminates the data; -EFBIG if it exceeds max_bytes. The caller frees
 * *data. */
int cop_read_file(const char *path, size_t max_bytes, char **data, size_t *len);
/* Replaces path atomically: writes a temporary file in the same directory and renames it, without
 * fsync. */
int cop_write_file(const char *path, const void *data, size_t len, unsigned mode);
/* Creates the directory path and any missing parents; succeeds if it already exists. */
int cop_make_dirs(const char *path, unsigned mode);
/* Same, but sets err on failure. In a guarded directory (safedir.h), err names the unsafe directory
 * and says why. */
int cop_make_dirs_said(const char *path, unsigned mode, struct cop_err *err);

/* Whether openat2(2) is usable here: the kernel supports it and no filter blocks it. The result is
 * cached. */
bool cop_has_openat2(int dirfd);
/* Opens a normalized relative path ("" is dirfd itself) without leaving dirfd or following symbolic
 * links; sets O_CLOEXEC. Returns the descriptor or -errno; *calls is the number of system calls
 * made. */
int cop_open_beneath(int dirfd, const char *path, int flags, bool has_openat2, unsigned *calls);
/* Executes a command, searching PATH like execvp(3). Returns only on failure: sets err and returns
 * the exit status a shell would use, 127 or 126. */
int cop_exec(char **command, struct cop_err *err);
/* Closes descriptors first to last, inclusive. Returns 0, or -errno if neither close_range(2) nor
 * /proc is available. */
int cop_close_range(unsigned first, unsigned last);
/* Sets close-on-exec on all open descriptors from first on: libraries open theirs without
 * O_CLOEXEC. Returns like cop_close_range. */
int cop_close_on_exec(unsigned first);

#endif
