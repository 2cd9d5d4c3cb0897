/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's use of its environment: the requested paths, compared with the files now on disk. */
#ifndef COP_REPORT_PATHS_PRIV_H
#define COP_REPORT_PATHS_PRIV_H

#include "writers/cluster/cluster.h"
#include "prof/profile/profile.h"
#include "report/paths/paths.h"
#include "base/walk/walk.h"

/* A path outside the walked tree, or not on disk. */
struct path_ref {
	const char *text;
	uint32_t len;
	uint8_t type; /* DT_...; 0: absent */
	uint64_t size;
	const struct cop_observed_path *from; /* may be NULL */
};
struct path_refs {
	struct path_ref *ref;
	size_t n, cap;
};
int cop_paths_refs_add(struct path_refs *r, const struct path_ref *ref);

struct usage {
	const struct cop_observed *seen;
	struct cop_roots *roots;
	struct cop_walk_tree *tree;
	struct cop_arena arena;
	/* All lists are sorted by bytes after cop_paths_usage_find. */
	struct path_refs missing;     /* observed below a root, not on disk */
	struct path_refs beyond;      /* observed below a root and on disk, but not walked: behind a
					 link, or in an unreadable directory */
	struct path_refs keep_beyond; /* real paths of beyond, except in walked directories */
	uint64_t elsewhere;           /* paths observed outside all roots */
	uint64_t unknown;             /* paths that could not be examined; not listed */
	struct path_refs links_out;   /* kept links that point outside the roots; size is not set */
};
/* Marks the used entries of the tree and fills the lists. Returns 0 or -ENOMEM. tick receives the
 * number of paths examined on disk. */
int cop_paths_usage_find(struct usage *u, void (*tick)(void *arg, uint64_t paths), void *arg);
void cop_paths_usage_free(struct usage *u);

/* ---- prune.c: prune candidates ---- */

#define PRUNE_ROWS 20u

struct unused_dir { /* a directory that contains no kept entry but has a kept sibling */
	char *path;
	uint64_t files, dirs, bytes; /* totals below it; dirs includes itself */
};
struct probed_name { /* a name that was looked up in several directories and absent from all */
	const char *name;
	size_t len;
	uint64_t directories, probes;
};
struct vain_dir { /* a directory in which lookups found nothing */
	const char *path;
	size_t len;
	uint64_t names, probes;
};
struct prune {
	struct unused_dir dir[PRUNE_ROWS]; /* sorted by bytes, largest first, then by name */
	struct probed_name name[PRUNE_ROWS];
	struct vain_dir vain[PRUNE_ROWS];
	unsigned dirs, names, vains;
	uint64_t all_dirs, all_names, all_vains;
	struct cop_pathclass_totals classes;
	bool absences;
};
/* Returns 0 or -ENOMEM. */
int cop_paths_prune(const struct usage *u, struct prune *out);
void cop_paths_prune_free(struct prune *p);

/* ---- lists.c: lists of paths ---- */

struct path_total {
	uint64_t paths, files, dirs, missing, bytes;
};
enum path_list { LIST_ALL, LIST_USED, LIST_UNUSED, LIST_MISSING, LIST_KEEP, LIST_PRUNE, LISTS };

struct lists {
	char *base; /* directory that the paths in keep and prune are relative to; NULL: no root on
		       disk */
	struct path_total total[LISTS];
	bool sizes;   /* sizes are known */
	char *closed; /* the first used program that this user may execute but not read; NULL: none,
			 or sizes are unknown */
	uint64_t all_closed; /* number of such programs */
	uint64_t odd_names;  /* names with a line end in keep and prune; only keep.nul and
				prune_candidates.nul contain them */
};
extern const char *const cop_paths_list_name[LISTS];
/* Writes all lists into dir, each atomically. Errors have a message. */
int cop_paths_lists_write(
	const struct usage *u, const char *dir, struct lists *out, struct cop_err *err);
void cop_paths_lists_free(struct lists *l);

/* ---- paths.c ---- */

struct cop_paths_usage {
	struct cop_observed seen;
	struct cop_roots roots;
	struct usage use;
	struct lists lists;
	struct prune prune;
};

/* ---- write.c: roots_and_counts.txt and paths_summary.md ---- */

int cop_paths_write(const struct cop_paths_result *p, struct cop_err *err);
/* Appends the rsync command that makes a reduced copy; nothing if no root is on disk. */
void cop_paths_rsync(const struct cop_paths_result *p, struct cop_buf *out);

#endif
