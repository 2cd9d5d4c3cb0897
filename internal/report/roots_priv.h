/* SPDX-License-Identifier: BSD-3-Clause */
/* Usage roots (copper-formats.5): the directories whose use is looked at. Given ones first; then
 * what observed paths suggest: each prefix that ends in a component beginning "conda_env", cut
 * right after that word; then $HOME and its first-level children. Nothing here looks at the disk.
 */
#ifndef COP_REPORT_ROOTS_PRIV_H
#define COP_REPORT_ROOTS_PRIV_H

#include "base/base.h"

/* More roots than that of one kind are left out, and `full` says so. */
#define ROOTS_MAX 4096u

struct root_list { /* normal absolute paths without a slash at the end; each once */
	char **path;
	size_t n;
	bool full;
};

struct roots {
	struct root_list given;    /* in the order given */
	struct root_list conda;    /* in order of bytes, as the next two */
	struct root_list children; /* first-level children of home */
	struct root_list all;      /* after cop_report_roots_minimize */
	char *home;                /* normal; NULL: not looked for */
	bool home_observed;        /* as a path of its own, not only through what is below it */
};

/* home: $HOME, or NULL for none of it; one that is not absolute, or "/", counts as none. -ENOMEM.
 */
int cop_report_roots_init(struct roots *r, const char *home);
void cop_report_roots_free(struct roots *r);
/* One --usage-root: made absolute from here, links stay as they are. -EINVAL if it is empty,
 * -ENOMEM. */
int cop_report_roots_give(struct roots *r, const char *dir);
/* What one observed path suggests; path is normal. -ENOMEM. */
int cop_report_roots_observe(struct roots *r, const char *path, size_t len);
/* Fills all: given, conda, home if observed, children; in order of bytes, none below another.
 * -ENOMEM. */
int cop_report_roots_minimize(struct roots *r);
/* Index in all of the root that is path or above it, or -1. */
ssize_t cop_report_roots_above(const struct roots *r, const char *path, size_t len);

/* Whether path is root or below it; root is normal. */
bool cop_report_path_below(const char *path, size_t len, const char *root);
/* Absolute, without ".", "..", empty components and a slash at the end (except "/" itself). */
bool cop_report_path_is_normal(const char *path, size_t len);
/* Makes it so, in words only: "a/.." is nothing whatever a is. Relative to cwd, which is absolute.
 * NULL without memory. */
char *cop_report_path_normal(const char *cwd, const char *path);

#endif
