/* SPDX-License-Identifier: BSD-3-Clause */
/* model: what a machine with many nodes is assumed to be, for copper-sim and copper predict: the
 * parameters, with the reason for each, and a storage that serves so many operations at once. Pure
 * arithmetic: it measures nothing and knows no clock. */
#ifndef COP_STORAGE_MODEL_H
#define COP_STORAGE_MODEL_H

#include "base/base/base.h"

struct cop_model {
#define COP_MODEL_PARAM(name, value, least, unit, source) uint64_t name;
#include "storage/model/params.def"
#undef COP_MODEL_PARAM
};
void cop_model_default(struct cop_model *m);
/* Sets a value given as NAME=VALUE; -EINVAL with a sentence. */
int cop_model_set(struct cop_model *m, const char *text, struct cop_err *err);
void cop_model_print(const struct cop_model *m);

/* ---- a storage ---- */

struct cop_model_storage {
	const struct cop_model *model;
	uint64_t *slot_free; /* when each service place is free, ns */
	uint64_t bytes_free; /* when the bytes of all earlier operations have left it, ns */
	uint64_t clients;    /* the caller's: each makes operations slower */
};
/* 0 or -ENOMEM; the caller keeps m. */
int cop_model_storage_open(struct cop_model_storage *s, const struct cop_model *m);
void cop_model_storage_close(struct cop_model_storage *s);
/* How long an operation takes that takes op_ns for a client alone. */
uint64_t cop_model_service_ns(const struct cop_model_storage *s, uint64_t op_ns);
/* When an operation ends that begins now and brings so many bytes; it takes the place that is free
 * first. Calls come in the order of now_ns. */
uint64_t cop_model_served_at(
	struct cop_model_storage *s, uint64_t now_ns, uint64_t op_ns, uint64_t bytes);

/* Clients that make the same operations, each one after the other. */
struct cop_model_client {
	double ops_s; /* what the operations of one take if it is alone */
	double bytes; /* of one */
	double own_s; /* the work of one beside the storage */
};
/* How long the slowest of so many takes: all together need the storage's service time, and one
 * alone its own waiting and work. */
double cop_model_direct_s(
	const struct cop_model *m, const struct cop_model_client *c, double nodes);

#endif
