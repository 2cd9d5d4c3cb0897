/* SPDX-License-Identifier: BSD-3-Clause */
/* secret: how the nodes of one start come to share a secret. Without a job directory rank 0 leaves
 * it in a directory of this start, which it removes once all nodes have read it, or once they have
 * had the time to read there why the tree will not be ready. The sources are job's, the keys
 * wire's. */
#ifndef COP_SECRET_H
#define COP_SECRET_H

#include "base/base.h"
#include "conf/conf.h"
#include "job/job.h"
#include "wire/wire.h"

/* The caller's memory. */
struct cop_secret {
	struct cop_job_secret job;   /* as it was found; its note is for the user */
	struct cop_wire_secret wire; /* zeros: a node alone, or --insecure */
	/* The module's: */
	const struct cop_conf *conf;
	uint32_t rank, nodes;
	const char *dir; /* that rank 0 still has to remove; else NULL */
};

/* Call it as soon as rank and nodes are known: others may leave messages in the directory from then
 * on. s is all zeros; the caller keeps conf. */
void cop_secret_init(
	struct cop_secret *s, const struct cop_conf *conf, uint32_t rank, uint32_t nodes);
/* Finds or makes the secret. While this waits for rank 0, in_vain tells whether waiting is useless,
 * with a sentence. 0, or -errno with a sentence. */
int cop_secret_find(struct cop_secret *s, bool (*in_vain)(void *ctx, struct cop_err *err),
	void *ctx, struct cop_err *err);
/* The tree is ready, so all nodes have read it. */
void cop_secret_shared(struct cop_secret *s);
/* Wipes it. If the tree did not become ready, this waits until the others have had the time to read
 * the directory. */
void cop_secret_fini(struct cop_secret *s);

#endif
