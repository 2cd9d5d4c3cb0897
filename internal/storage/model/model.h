/* SPDX-License-Identifier: BSD-3-Clause */
/* model: the many-node machine that copper-sim and copper predict assume: its parameters, with the
 * reason for each, and a storage that serves a limited number of operations at once. Pure
 * arithmetic: no measurements, no clocks. */
#ifndef COP_STORAGE_MODEL_H
#define COP_STORAGE_MODEL_H

#include "base/base/base.h"

struct cop_model {
#define COP_MODEL_PARAM(name, value, least, unit, source) uint64_t name;
#include "storage/model/params.def"
#undef COP_MODEL_PARAM
};
void cop_model_default(struct cop_model *m);
/* Sets a value given as NAME=VALUE; -EINVAL with a message. */
int cop_model_set(struct cop_model *m, const char *text, struct cop_err *err);
void cop_model_print(const struct cop_model *m);

/* ---- a storage ---- */

struct cop_model_storage {
	const struct cop_model *model;
	uint64_t *slot_free; /* when each service slot becomes free, ns */
	uint64_t bytes_free; /* when the bytes of all earlier operations will have been transferred,
				ns */
	uint64_t clients;    /* number of clients, set by the caller; each slows operations down */
};
/* Returns 0 or -ENOMEM. m is borrowed. */
int cop_model_storage_open(struct cop_model_storage *s, const struct cop_model *m);
void cop_model_storage_close(struct cop_model_storage *s);
/* The duration of an operation that takes op_ns if there is only one client. */
uint64_t cop_model_service_ns(const struct cop_model_storage *s, uint64_t op_ns);
/* Returns the time at which an operation that starts now and reads this many bytes ends. It uses
 * the first slot to become free. Calls must be in order of now_ns. */
uint64_t cop_model_served_at(
	struct cop_model_storage *s, uint64_t now_ns, uint64_t op_ns, uint64_t bytes);

/* Clients that all perform the same operations, each of them one at a time. */
struct cop_model_client {
	double ops_s; /* time of one client's operations if it is the only client */
	double bytes; /* per client */
	double own_s; /* time one client needs apart from the storage */
};
/* The time the slowest of these clients takes, limited by the total service time of the storage and
 * by what a single client waits and computes. */
double cop_model_direct_s(
	const struct cop_model *m, const struct cop_model_client *c, double nodes);

#endif
