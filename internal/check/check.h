/* SPDX-License-Identifier: BSD-3-Clause */
/* check: whether a start with these settings would work on this machine, and what it lacks, looked
 * at one by one with the functions that the start itself uses. It mounts nothing, waits for nobody
 * and speaks with no other machine: what only shows between hosts it cannot tell. */
#ifndef COP_CHECK_H
#define COP_CHECK_H

#include "base/base.h"
#include "conf/conf.h"

/* A line for each thing, ok, warning or failed, with the way out; or, with conf->json, one object.
 * Returns how many failed, or -ENOMEM. */
int cop_check_run(const struct cop_conf *conf, struct cop_buf *out);

/* The libfabric providers that this program has on this machine, with commas between, for people.
 */
void cop_check_providers(char *out, size_t size);

#endif
