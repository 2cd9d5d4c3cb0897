/* SPDX-License-Identifier: BSD-3-Clause */
/* dir: the job directory, which all nodes of a job may share. It holds folders for output, the
 * job's secret, messages from nodes that failed to start, and a description of the tree for
 * commands that are not nodes. */
#ifndef COP_JOB_DIR_H
#define COP_JOB_DIR_H

#include "job/hosts/hosts.h"

/* A file in the job directory: what rank 0 replies to "program", minus the directory, for commands
 * on other ranks. It is newer than the logs of programs from an earlier job. */
#define COP_JOB_ENVIRONMENT "logs/copper_run.txt"

/* Checks that JOBDIR, and any folders in it that nodes and reports use, belong to this user and are
 * private (cop_safedir); else returns -errno with err set. From then on, this process follows no
 * links there. */
int cop_job_dir_check(const char *job_dir, struct cop_err *err);
/* Same, but creates JOBDIR and JOBDIR/logs (mode 0700) if needed. */
int cop_job_dir_make(const char *job_dir, struct cop_err *err);

/* ---- the secret ---- */

/* Where a secret comes from: file, else $COPPER_SECRET, else JOBDIR/secret. NULL if not given. */
struct cop_job_secret_from {
	const char *file, *job_dir;
	uint32_t rank, timeout_ms;
	/* Called while waiting: returns true and sets err if waiting is pointless. NULL: wait until
	 * the timeout. */
	bool (*in_vain)(void *ctx, struct cop_err *err);
	void *ctx;
};
struct cop_job_secret {
	char *data; /* NULL: none of the three sources is given */
	size_t len;
	char note[640]; /* a message for the user, or "" */
};
/* Gets the secret. A secret file must be a regular file, owned by the user and closed to others;
 * else returns -errno with err set. In JOBDIR, rank 0 creates the secret (mode 0600, random,
 * complete before it becomes visible), replacing the secret of another scheduler job. The other
 * ranks wait for it up to timeout_ms; on failure, err names the file. cop_job_secret_free wipes and
 * frees out. */
int cop_job_secret(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err);
void cop_job_secret_free(struct cop_job_secret *s);
/* Whether rank 0 would create JOBDIR/secret now. */
bool cop_job_secret_to_come(const char *job_dir);
/* Call this when the whole tree has stopped. Removes JOBDIR/secret if it holds this secret and
 * Copper created it outside a scheduler job, because the next start could not tell that it is
 * stale. */
void cop_job_secret_retire(const char *job_dir, const struct cop_job_secret *s);

/* ---- messages from nodes that failed to start, so that others need not wait for them ---- */

/* Writes the failed rank and the reason to JOBDIR/logs; a later failure replaces it. */
void cop_job_failure_write(const char *job_dir, uint32_t rank, const char *text);
/* Whether a node failed in the same start as this node. Both times come from the file system's
 * clock: began_ns is the cop_job_file_time of a file that this node wrote there when it started. */
bool cop_job_failure_read(
	const char *job_dir, int64_t began_ns, uint32_t *rank, char *text, size_t size);
/* Removes the message if this rank wrote it; -1: any rank. */
void cop_job_failure_clear(const char *job_dir, int64_t rank);
/* The file's modification time in ns since 1970; 0 if unknown. */
int64_t cop_job_file_time(const char *path);
/* The file system's current time, taken from a temporary file in JOBDIR/logs; 0 if none can be
 * created. */
int64_t cop_job_dir_time(const char *job_dir);

/* ---- the tree that uses a job directory, for commands that are not nodes ---- */

#define COP_JOB_TREE_LEFT 16

struct cop_job_tree {
	bool stopped;         /* a command has stopped the whole tree */
	bool insecure, book;  /* insecure: no secret; book: addresses come from a book, not the
				 rendezvous */
	uint64_t config_hash; /* same on all nodes, as in rpc */
	uint32_t fanout, trees, peer_timeout_ms;
	char net_type[128];
	char secret_file[4096]; /* as given, or "" */
	char source[4096];
	char socket[108];                 /* the only way to reach a tree of one node; else "" */
	struct cop_job_hosts hosts;       /* by rank */
	uint32_t left[COP_JOB_TREE_LEFT]; /* ranks that did not reply when the whole tree was
					     stopped, while the others did stop */
	uint32_t left_count;              /* 0: no such stop, or too many such ranks */
	bool has_ends; /* all nodes have stopped and reported how their commands ended */
	uint32_t commands,
		good; /* if so: how many commands there were, and how many exited with 0 */
};

/* Writes JOBDIR/logs/copper_tree.txt atomically. */
int cop_job_tree_write(const char *job_dir, const struct cop_job_tree *tree, struct cop_err *err);
/* Returns -ENOENT etc., or -EINVAL if the file is malformed, with err set; there is nothing to free
 * then. */
int cop_job_tree_read(const char *job_dir, struct cop_job_tree *tree, struct cop_err *err);
void cop_job_tree_free(struct cop_job_tree *tree);

#endif
