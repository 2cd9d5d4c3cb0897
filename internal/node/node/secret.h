/* SPDX-License-Identifier: BSD-3-Clause */
/* secret: distributes a secret among the nodes of one start. Without a job directory, rank 0 stores
 * it in a directory created for this start. It removes that directory once all nodes have read the
 * secret or, if the tree fails to start, once they have had time to read the reason. job decides
 * where the secret comes from; wire derives the keys. */
#ifndef COP_NODE_SECRET_H
#define COP_NODE_SECRET_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "job/dir/dir.h"
#include "fabric/wire/wire.h"

/* Stored in the caller's memory. */
struct cop_secret {
	struct cop_job_secret job;   /* the secret as found, with a note for the user */
	struct cop_wire_secret wire; /* zeros: the node is alone, or --insecure */
	/* Private to the module: */
	const struct cop_conf *conf;
	uint32_t rank, nodes;
	const char *dir; /* the directory of this start, if rank 0 must still remove it or this rank
			    its file there; else NULL */
	bool come;       /* this rank has left a message that it is waiting */
	bool others_may_begin; /* the caller sets it if the start failed: some ranks may start only
				  now and would wait for this one */
};

/* Call it as soon as rank and nodes are known: from then on, other ranks may leave messages in the
 * directory. s must be zeroed; the caller keeps conf. */
void cop_secret_init(
	struct cop_secret *s, const struct cop_conf *conf, uint32_t rank, uint32_t nodes);
/* Finds or creates the secret. While waiting for rank 0 it calls in_vain, which returns whether
 * further waiting is pointless and puts the reason into err. Returns 0, or -errno with a
 * sentence. */
int cop_secret_find(struct cop_secret *s, bool (*in_vain)(void *ctx, struct cop_err *err),
	void *ctx, struct cop_err *err);
/* Call it when the tree is ready: all nodes have read the secret. */
void cop_secret_shared(struct cop_secret *s);
/* Wipes the secret. If the tree did not become ready, waits until the others have had time to read
 * the directory. */
void cop_secret_fini(struct cop_secret *s);

#endif
