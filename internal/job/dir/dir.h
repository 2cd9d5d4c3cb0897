/* SPDX-License-Identifier: BSD-3-Clause */
/* dir: the job directory, which all nodes of a job may share: its folders, the job's secret, what a
 * node that could not start leaves for the others, and the description of the tree for commands
 * that are not nodes of it. */
#ifndef COP_JOB_DIR_H
#define COP_JOB_DIR_H

#include "job/hosts/hosts.h"

/* In a job directory: what rank 0's answer to "program" has beside the directory, for commands that
 * run beside other ranks. If programs of an earlier job have logged there, it is newer. */
#define COP_JOB_ENVIRONMENT "logs/copper_run.txt"

/* Checks that JOBDIR, and any folders of nodes and reports in it, belong to this user alone
 * (cop_safedir); else -errno with a sentence. From then on this process opens nothing through a
 * link there. */
int cop_job_dir_check(const char *job_dir, struct cop_err *err);
/* The same, and creates JOBDIR and JOBDIR/logs (0700) if needed. */
int cop_job_dir_make(const char *job_dir, struct cop_err *err);

/* ---- the secret ---- */

/* The sources of a secret: file, else $COPPER_SECRET, else JOBDIR/secret; NULL if not given. */
struct cop_job_secret_from {
	const char *file, *job_dir;
	uint32_t rank, timeout_ms;
	/* Called while it waits: whether waiting is useless, with a sentence. NULL: it waits until
	 * the timeout. */
	bool (*in_vain)(void *ctx, struct cop_err *err);
	void *ctx;
};
struct cop_job_secret {
	char *data; /* NULL: none of the three is given */
	size_t len;
	char note[640]; /* a sentence that the user should know, or "" */
};
/* A file must be regular, owned by the user, and without permissions for others; else -errno with a
 * sentence. In JOBDIR, rank 0 creates the secret (0600, random, complete before it is visible) and
 * replaces one that another job of the scheduler left. The other ranks wait for it up to
 * timeout_ms; their error names what they wait for. cop_job_secret_free wipes and frees out. */
int cop_job_secret(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err);
void cop_job_secret_free(struct cop_job_secret *s);
/* Whether rank 0 would create JOBDIR/secret now. */
bool cop_job_secret_to_come(const char *job_dir);
/* Call it when the whole tree has stopped. Removes JOBDIR/secret if it is this one and Copper
 * created it outside a scheduler's job, because the next start could not recognise it as old. */
void cop_job_secret_retire(const char *job_dir, const struct cop_job_secret *s);

/* ---- a node that could not start says so, so that the others need not wait for it ---- */

/* Writes which rank failed and why into JOBDIR/logs; a later failure replaces it. */
void cop_job_failure_write(const char *job_dir, uint32_t rank, const char *text);
/* Whether a node failed in the same start as this node. Both times come from the file system's
 * clock: began_ns is cop_job_file_time of a file that this node wrote there when it began. */
bool cop_job_failure_read(
	const char *job_dir, int64_t began_ns, uint32_t *rank, char *text, size_t size);
/* Removes it if it is from this rank; -1: from any rank. */
void cop_job_failure_clear(const char *job_dir, int64_t rank);
/* When the file was written, in ns since the epoch; 0 if unknown. */
int64_t cop_job_file_time(const char *path);
/* The file system's time now, from a file that is created in JOBDIR/logs and removed again; 0 if
 * none can be created. */
int64_t cop_job_dir_time(const char *job_dir);

/* ---- the tree of a job directory, for commands that are not nodes of it ---- */

#define COP_JOB_TREE_LEFT 16

struct cop_job_tree {
	bool stopped;         /* a command stopped all of it */
	bool insecure, book;  /* no secret; addresses from a book, and no rendezvous */
	uint64_t config_hash; /* what all nodes have in common, as in rpc */
	uint32_t fanout, trees, peer_timeout_ms;
	char net_type[128];
	char secret_file[4096]; /* the one that was given, or "" */
	char source[4096];
	char socket[108]; /* of a tree of one node, which can be reached only there; else "" */
	struct cop_job_hosts hosts;       /* by rank */
	uint32_t left[COP_JOB_TREE_LEFT]; /* ranks that did not answer a stop of the whole tree,
					     while the others have stopped */
	uint32_t left_count;     /* 0: there was no such stop, or there are too many of them */
	bool has_ends;           /* all nodes have stopped, and said how their commands ended */
	uint32_t commands, good; /* then: how many there were; of these ended with 0 */
};

/* JOBDIR/logs/copper_tree.txt, whole or not at all. */
int cop_job_tree_write(const char *job_dir, const struct cop_job_tree *tree, struct cop_err *err);
/* -ENOENT and so on, -EINVAL if the file is malformed, each with a sentence; then there is nothing
 * to free. */
int cop_job_tree_read(const char *job_dir, struct cop_job_tree *tree, struct cop_err *err);
void cop_job_tree_free(struct cop_job_tree *tree);

#endif
