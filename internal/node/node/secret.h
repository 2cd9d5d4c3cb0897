/* SPDX-License-Identifier: BSD-3-Clause */
/* secret: how the nodes of one start come to share a secret. Without a job directory, rank 0 leaves
 * it in a directory that belongs to this start, which it removes once all nodes have read the
 * secret or, if the tree will not be ready, once they have had the time to read why. job decides
 * where a secret comes from; wire makes the keys. */
#ifndef COP_NODE_SECRET_H
#define COP_NODE_SECRET_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "job/dir/dir.h"
#include "fabric/wire/wire.h"

/* Lives in the caller's memory. */
struct cop_secret {
	struct cop_job_secret job;   /* as it was found; its note is for the user */
	struct cop_wire_secret wire; /* zeros: the node is alone, or --insecure */
	/* The module's own: */
	const struct cop_conf *conf;
	uint32_t rank, nodes;
	const char *dir; /* the directory of this start that still has to be removed: by rank 0, or
			    what this rank leaves there; else NULL */
	bool come;       /* this rank has left word that it waits */
	bool others_may_begin; /* set by the caller if the start failed: some rank may not have
				  begun, and would wait for this one */
};

/* Call it as soon as rank and nodes are known: from then on others may leave messages in the
 * directory. s is all zeros; the caller keeps conf. */
void cop_secret_init(
	struct cop_secret *s, const struct cop_conf *conf, uint32_t rank, uint32_t nodes);
/* Finds or makes the secret. While this waits for rank 0, in_vain says whether waiting is useless,
 * with a sentence. 0, or -errno with a sentence. */
int cop_secret_find(struct cop_secret *s, bool (*in_vain)(void *ctx, struct cop_err *err),
	void *ctx, struct cop_err *err);
/* Call it when the tree is ready: all nodes have read the secret. */
void cop_secret_shared(struct cop_secret *s);
/* Wipes the secret. If the tree did not become ready, this waits until the others have had the time
 * to read the directory. */
void cop_secret_fini(struct cop_secret *s);

#endif
