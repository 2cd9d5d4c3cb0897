/* SPDX-License-Identifier: BSD-3-Clause */
/* dir: the job directory, which all nodes of a job may share: its folders, the job's secret,
 * messages of nodes that failed to start, and the description of the tree for commands that are not
 * nodes. */
#ifndef COP_JOB_DIR_H
#define COP_JOB_DIR_H

#include "job/hosts/hosts.h"

/* In a job directory: the part of rank 0's reply to "program" other than the directory, for
 * commands on other ranks. If programs of an earlier job have logged there, it is newer. */
#define COP_JOB_ENVIRONMENT "logs/copper_run.txt"

/* Checks that JOBDIR, and any folders of nodes and reports in it, are owned by and private to this
 * user (cop_safedir); else -errno with a sentence. From then on this process follows no links
 * there. */
int cop_job_dir_check(const char *job_dir, struct cop_err *err);
/* The same, but creates JOBDIR and JOBDIR/logs (0700) if needed. */
int cop_job_dir_make(const char *job_dir, struct cop_err *err);

/* ---- the secret ---- */

/* The sources of a secret: file, else $COPPER_SECRET, else JOBDIR/secret; NULL if not given. */
struct cop_job_secret_from {
	const char *file, *job_dir;
	uint32_t rank, timeout_ms;
	/* Called while waiting: whether waiting is pointless, with a sentence. NULL: waits until
	 * the timeout. */
	bool (*in_vain)(void *ctx, struct cop_err *err);
	void *ctx;
};
struct cop_job_secret {
	char *data; /* NULL: none of the three is given */
	size_t len;
	char note[640]; /* a sentence for the user, or "" */
};
/* A secret file must be regular, owned by the user, and without permissions for others; else -errno
 * with a sentence. In JOBDIR, rank 0 creates the secret (0600, random, complete before it is
 * visible) and replaces the secret of another scheduler job. The other ranks wait for it up to
 * timeout_ms; their error names the file they wait for. cop_job_secret_free wipes and frees out. */
int cop_job_secret(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err);
void cop_job_secret_free(struct cop_job_secret *s);
/* Whether rank 0 would create JOBDIR/secret now. */
bool cop_job_secret_to_come(const char *job_dir);
/* Call it when the whole tree has stopped. Removes JOBDIR/secret if it is this one and Copper
 * created it outside a scheduler's job, because the next start could not recognise it as stale. */
void cop_job_secret_retire(const char *job_dir, const struct cop_job_secret *s);

/* ---- messages of nodes that failed to start, so that the others need not wait for them ---- */

/* Writes the failed rank and the reason into JOBDIR/logs; a later failure replaces it. */
void cop_job_failure_write(const char *job_dir, uint32_t rank, const char *text);
/* Whether a node failed in the same start as this node. Both times are from the file system's
 * clock: began_ns is cop_job_file_time of a file that this node wrote there at its start. */
bool cop_job_failure_read(
	const char *job_dir, int64_t began_ns, uint32_t *rank, char *text, size_t size);
/* Removes it if it is from this rank; -1: from any rank. */
void cop_job_failure_clear(const char *job_dir, int64_t rank);
/* The file's modification time in ns since the epoch; 0 if unknown. */
int64_t cop_job_file_time(const char *path);
/* The file system's current time, from a temporary file in JOBDIR/logs; 0 if none can be
 * created. */
int64_t cop_job_dir_time(const char *job_dir);

/* ---- the tree of a job directory, for commands that are not nodes ---- */

#define COP_JOB_TREE_LEFT 16

struct cop_job_tree {
	bool stopped;         /* a command stopped all of it */
	bool insecure, book;  /* no secret; addresses from a book, no rendezvous */
	uint64_t config_hash; /* shared by all nodes, as in rpc */
	uint32_t fanout, trees, peer_timeout_ms;
	char net_type[128];
	char secret_file[4096]; /* as given, or "" */
	char source[4096];
	char socket[108]; /* for a tree of one node, which can be reached only there; else "" */
	struct cop_job_hosts hosts;       /* by rank */
	uint32_t left[COP_JOB_TREE_LEFT]; /* ranks that did not reply to a stop of the whole tree,
					     while the others have stopped */
	uint32_t left_count;              /* 0: no such stop, or too many such ranks */
	bool has_ends;           /* all nodes have stopped and reported how their commands ended */
	uint32_t commands, good; /* if so: their number; how many exited with 0 */
};

/* JOBDIR/logs/copper_tree.txt, whole or not at all. */
int cop_job_tree_write(const char *job_dir, const struct cop_job_tree *tree, struct cop_err *err);
/* -ENOENT etc., -EINVAL if the file is malformed, each with a sentence; nothing to free then. */
int cop_job_tree_read(const char *job_dir, struct cop_job_tree *tree, struct cop_err *err);
void cop_job_tree_free(struct cop_job_tree *tree);

#endif
