/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of reach share. There is no lock: what is not atomic does not change while rpc is
 * open, except `duplicate`, which belongs to the main thread. */
#ifndef COP_FABRIC_REACH_PRIV_H
#define COP_FABRIC_REACH_PRIV_H

#include <stdatomic.h>

#include "fabric/reach/reach.h"
#include "job/rendezvous/rendezvous.h"

struct cop_reach {
	struct cop_reach_conf conf;
	char **book; /* address per rank, or NULL */
	struct cop_rendezvous
		*_Atomic rendezvous; /* the progress thread may use it before it exists */
	_Atomic bool ready, door_closed;
	bool duplicate;
};

/* ---- resolve.c ---- */
/* Called when rpc wants the address of this rank. The first argument is a struct cop_reach. */
void cop_reach_resolve(void *reach, uint32_t rank, bool silent);

#endif
