/* SPDX-License-Identifier: BSD-3-Clause */
/* safedir: directories in which other users cannot redirect this process's files. */
#ifndef COP_BASE_SAFEDIR_H
#define COP_BASE_SAFEDIR_H

#include "base/base/err.h"

/* Guards dir. From now on, the functions in this header refuse to open, create or replace anything
 * below dir through a symbolic link, even one owned by this user, or in a directory that another
 * user owns or can write to. Only paths that begin with dir, spelled exactly as here, are covered.
 * root is trusted like this user. Group write permission is fine for the user's private group: this
 * process's group, with the same number as the user. Returns -EPERM and sets err if dir itself is
 * unsafe or is reached through another user's link. */
int cop_safedir(const char *dir, struct cop_err *err);
/* Returns 0 if the directory path, which is below a guarded one, is safe or does not exist; else
 * -errno, with err set. */
int cop_safedir_check(const char *path, struct cop_err *err);

/* A path for the *at functions: a descriptor for its directory, and its name there. If it is not
 * guarded, AT_FDCWD and the path itself. nofollow is O_NOFOLLOW below a guarded directory, else
 * 0. */
struct cop_dir {
	int fd;
	const char *name; /* points into the path */
	int nofollow;
};
/* Returns 0, -ELOOP, -EPERM etc. Call cop_dir_done afterwards in any case. */
int cop_dir_of(const char *path, struct cop_dir *at);
void cop_dir_done(struct cop_dir *at);
/* Creates a temporary file (mode 0600) in the same directory, open for reading and writing. The
 * caller frees its name, *tmp. */
int cop_open_temp(const struct cop_dir *at, char **tmp);
int cop_unlink(const char *path);
int cop_rename(const char *from, const char *to);

#endif
