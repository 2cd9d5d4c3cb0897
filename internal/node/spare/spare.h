/* SPDX-License-Identifier: BSD-3-Clause */
/* spare: keeps the view of one command for the next command that would make the same. A view is
 * cold when it is new, so the next one starts faster in one that has been used. What is kept are
 * descriptors, which the first command gives away before it starts its program.
 *
 * It decides for whom, and for how long: for a command with the same key, which stands for
 * everything that a view depends on; no longer than keep_ms after the first command asked; and only
 * as long as nothing new is known of the tree, and no mount has changed, neither in the view nor in
 * the namespace that it was copied from. It keeps one view. A new one takes the place of an older
 * one with another key.
 *
 * It makes and enters no view, and does not look into descriptors, except that poll(2) must report
 * POLLPRI or POLLERR for two of them when mounts have changed, as for /proc/PID/mountinfo. Any
 * thread may call it, except where it says otherwise; no call waits, but closing the last
 * descriptor of a mount namespace unmounts what is in it. */
#ifndef COP_NODE_SPARE_H
#define COP_NODE_SPARE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum cop_spare_fd {
	COP_SPARE_NS,     /* the view's mount namespace */
	COP_SPARE_ROOT,   /* the root directory in it */
	COP_SPARE_MOUNTS, /* its table of mounts */
	COP_SPARE_BEFORE, /* the table of mounts of the namespace that it was copied from */
	COP_SPARE_FDS
};
/* Those that a command needs: the namespace and the root. */
#define COP_SPARE_GIVEN 2

/* What is known of the tree at one moment. */
struct cop_spare_tree {
	uint64_t changes;  /* grows whenever a name may be another file, or there, since then */
	uint64_t young_ms; /* until when (cop_now_ms) the kernel holds a name that it will then look
			      up again, which may turn out to be another file; 0: none. It holds
			      such a name for keep_ms or longer */
};

struct cop_spare_claim {
	uint64_t number, key, since_ms, changes;
};

/* The caller's memory; its fields belong to this module. */
struct cop_spare {
	pthread_mutex_t lock; /* over the others; descriptors are closed outside */
	uint32_t keep_ms;
	bool stopped;
	uint64_t numbers;
	struct cop_spare_claim claim; /* the command that may offer its view; number 0: none */
	struct cop_spare_claim kept;  /* what fd is; number 0: nothing is kept */
	int fd[COP_SPARE_FDS];
};

/* keep_ms 0: no view is ever kept. */
void cop_spare_init(struct cop_spare *s, uint32_t keep_ms);
/* Nobody may use it any more. */
void cop_spare_fini(struct cop_spare *s);

/* A command with this key (not 0) asks. True: there is a view for it; given gets descriptors that
 * belong to the caller. False: it must make its own, and if *offer is not 0, it may offer that one
 * under this number. */
bool cop_spare_ask(struct cop_spare *s, uint64_t key, const struct cop_spare_tree *tree,
	int given[COP_SPARE_GIVEN], uint64_t *offer);
/* Takes the descriptors in any case. 0: the view is kept; -ESTALE: the number is not the last one,
 * or too much has happened since it was given. */
int cop_spare_offer(struct cop_spare *s, uint64_t number, const int fd[COP_SPARE_FDS],
	const struct cop_spare_tree *tree);
/* Lets go of a view that is no longer good for anybody. Returns after how many ms it is to be
 * called again; -1: not before the next offer. */
int cop_spare_tend(struct cop_spare *s, const struct cop_spare_tree *tree);
/* Lets go of the view, and keeps none from now on. */
void cop_spare_stop(struct cop_spare *s);

#endif
