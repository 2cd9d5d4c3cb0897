/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job used of its environment: the paths that it asked for, compared with those on disk
 * now. */
#ifndef COP_REPORT_PATHS_PRIV_H
#define COP_REPORT_PATHS_PRIV_H

#include "writers/cluster/cluster.h"
#include "prof/profile/profile.h"
#include "report/paths/paths.h"
#include "base/walk/walk.h"

/* A path that is not in the walk's tree, or not on disk. */
struct path_ref {
	const char *text;
	uint32_t len;
	uint8_t type; /* DT_…; 0 if absent */
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
	struct path_refs missing; /* observed below a root, not on disk */
	struct path_refs beyond;  /* observed below a root and on disk, but not walked: through a
				     link, or in a directory that cannot be read */
	struct path_refs keep_beyond; /* the same under their real names, except those in a
					 directory that was read */
	uint64_t elsewhere;           /* observed below no root */
	uint64_t unknown;             /* could not be examined, hence in none of the lists */
	struct path_refs
		links_out; /* kept links that point out of the roots; size is meaningless */
};
/* Marks the used entries of the tree and fills the lists. -ENOMEM. tick: called with the number of
 * paths examined on disk. */
int cop_paths_usage_find(struct usage *u, void (*tick)(void *arg, uint64_t paths), void *arg);
void cop_paths_usage_free(struct usage *u);

/* ---- keep.c ---- */

/* Marks what an existing path needs: itself, the directories above it, links on the way and their
 * targets. -ENOMEM. */
int cop_paths_keep(struct usage *u, const char *path, size_t len);

/* ---- prune.c: what is worth looking at ---- */

#define PRUNE_ROWS 20u

struct unused_dir { /* nothing below it is kept, but something next to it is */
	char *path;
	uint64_t files, dirs, bytes; /* below it; dirs counts itself, too */
};
struct probed_name { /* absent in several directories */
	const char *name;
	size_t len;
	uint64_t directories, probes;
};
struct vain_dir { /* names were looked up in it, and none existed */
	const char *path;
	size_t len;
	uint64_t names, probes;
};
struct prune {
	struct unused_dir dir[PRUNE_ROWS]; /* the largest by bytes, then by names */
	struct probed_name name[PRUNE_ROWS];
	struct vain_dir vain[PRUNE_ROWS];
	unsigned dirs, names, vains;
	uint64_t all_dirs, all_names, all_vains;
	struct cop_pathclass_totals classes;
	bool absences;
};
/* -ENOMEM. */
int cop_paths_prune(const struct usage *u, struct prune *out);
void cop_paths_prune_free(struct prune *p);

/* ---- lists.c: the lists of paths ---- */

struct path_total {
	uint64_t paths, files, dirs, missing, bytes;
};
enum path_list { LIST_ALL, LIST_USED, LIST_UNUSED, LIST_MISSING, LIST_KEEP, LIST_PRUNE, LISTS };

struct lists {
	char *base; /* keep and prune are relative to it; NULL: there is no root on disk */
	struct path_total total[LISTS];
	bool sizes;   /* whether bytes are known */
	char *closed; /* the first used program that this user may execute and not read; NULL:
			 none, or sizes are not known */
	uint64_t all_closed; /* how many of these there are */
	uint64_t odd_names;  /* names in keep and prune that contain a line end, hence are only in
				keep.nul and prune_candidates.nul */
};
extern const char *const cop_paths_list_name[LISTS];
/* Writes all lists into dir, each completely or not at all. A failure has a sentence. */
int cop_paths_lists_write(
	const struct usage *u, const char *dir, struct lists *out, struct cop_err *err);
void cop_paths_lists_free(struct lists *l);

/* ---- out.c: a file that is written bit by bit and appears whole ---- */

struct out {
	char *path, *tmp; /* tmp: the file's name until it is finished */
	struct cop_dir at;
	char *data;
	size_t len;
	int fd, rc; /* rc: the first failure; later writes go nowhere */
};
int cop_paths_out_open(struct out *o, const char *dir, const char *name);
void cop_paths_out_add(struct out *o, const char *data, size_t len);
/* Writes what is buffered; the file keeps its temporary name. */
int cop_paths_out_finish(struct out *o);
/* Renames the file if it was finished without failure, else removes it. */
int cop_paths_out_close(struct out *o, bool keep);

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
/* Appends the rsync command that makes a reduced copy; nothing if there is no root on disk. */
void cop_paths_rsync(const struct cop_paths_result *p, struct cop_buf *out);

#endif
