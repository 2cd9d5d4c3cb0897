/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of the mapped file, only for state.c and fault.c. */
#ifndef COP_SLOWFS_STATE_PRIV_H
#define COP_SLOWFS_STATE_PRIV_H

#include "slowfs_priv.h"

struct mount {
	pid_t pid; /* 0: free */
	uint32_t outstanding;
};

struct fault {
	enum cop_slowfs_fault kind;
	int64_t bytes; /* SLOWFS_SIZE */
	char path[COP_SLOWFS_PATH_MAX];
};

struct cop_slowfs_state {
	char magic[8];
	pthread_mutex_t
		lock; /* robust, process-shared; protects everything but count and faults_set */
	uint64_t link_free_ns;
	uint64_t slot_free_ns[COP_SLOWFS_MAX_SLOTS];
	struct mount mounts[COP_SLOWFS_MAX_MOUNTS];
	_Atomic uint64_t count[SLOWFS_COUNTERS];
	_Atomic uint32_t
		faults_set; /* used entries of fault[]; read without the lock on every operation */
	struct fault fault[COP_SLOWFS_MAX_FAULTS];
};

void cop_slowfs_state_lock(struct cop_slowfs_state *s);
void cop_slowfs_state_unlock(struct cop_slowfs_state *s);

#endif
