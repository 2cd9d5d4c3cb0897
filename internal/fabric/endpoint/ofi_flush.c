/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint/ofi_priv.h"

#include <semaphore.h>

#define LOOK_US 2000

struct idle_check {
	struct cop_endpoint_work work;
	struct ofi *o;
	bool idle;
	sem_t done;
};

static void check_idle(struct cop_endpoint_work *w)
{
	struct idle_check *l = COP_CONTAINER_OF(w, struct idle_check, work);

	l->idle = cop_list_empty(&l->o->flying) && cop_list_empty(&l->o->busy);
	sem_post(&l->done);
}

bool cop_endpoint_flush(struct cop_endpoint *f, uint32_t timeout_ms)
{
	uint64_t end = cop_now_ms() + timeout_ms;
	struct idle_check l = {.work.run = check_idle, .o = cop_endpoint_ofi_of(f)};

	sem_init(&l.done, 0, 0);
	for (;;) {
		if (cop_endpoint_post(f, &l.work))
			break;
		while (sem_wait(&l.done) && errno == EINTR)
			;
		if (l.idle || cop_now_ms() >= end)
			break;
		usleep(LOOK_US);
	}
	sem_destroy(&l.done);
	return l.idle;
}
