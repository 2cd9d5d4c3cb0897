/* SPDX-License-Identifier: BSD-3-Clause */
/* safedir: directories in which other users cannot redirect what this process makes. */
#ifndef COP_BASE_SAFEDIR_H
#define COP_BASE_SAFEDIR_H

#include "base/base/err.h"

/* Guards dir. From now on the functions of this header open, make or replace nothing below dir
 * through a symbolic link, even one of its own user, or in a directory that another user owns or
 * may write to. This holds for paths that begin with dir exactly as it is written here. root counts
 * as this user. A group may have write permission if it is the user's own, that is the group of the
 * process with the user's number. -EPERM with a sentence if dir itself is not such a directory, or
 * is reached through another user's link. */
int cop_safedir(const char *dir, struct cop_err *err);
/* Returns 0 if the directory path, below a guarded one, meets these conditions or does not exist;
 * else -errno with a sentence. */
int cop_safedir_check(const char *path, struct cop_err *err);

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

#endif
