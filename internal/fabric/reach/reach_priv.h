/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of reach. There is no lock: non-atomic members are constant while rpc is
 * open, except `duplicate`, which only the main thread uses. */
#ifndef COP_FABRIC_REACH_PRIV_H
#define COP_FABRIC_REACH_PRIV_H

#include <stdatomic.h>

#include "fabric/reach/reach.h"
#include "job/rendezvous/rendezvous.h"

struct cop_reach {
	struct cop_reach_conf conf;
	char **book; /* address per rank, or NULL */
	struct cop_rendezvous
		*_Atomic rendezvous; /* the progress thread may read it before it is set */
	_Atomic bool ready, door_closed;
	bool duplicate;
};

/* ---- resolve.c ---- */
/* Called when rpc needs the address of this rank. The first argument is a struct cop_reach. */
void cop_reach_resolve(void *reach, uint32_t rank, bool silent);

#endif
