/* SPDX-License-Identifier: BSD-3-Clause */
/* check: finds out whether a start with these settings would work on this machine, and what is
 * missing. It runs the checks one by one, with the functions that the start itself uses. It mounts
 * nothing. Of the other hosts it tries only whether their ports can be reached, for a time that is
 * limited. */
#ifndef COP_NODE_CHECK_H
#define COP_NODE_CHECK_H

#include "base/base/base.h"
#include "job/conf/conf.h"

/* Appends a line for each check: ok, warning or failed, and what to do; with conf->json, one object
 * instead. Returns the number of failed checks, or -ENOMEM. */
int cop_check_run(const struct cop_conf *conf, struct cop_buf *out);

/* The libfabric providers that this program has on this machine, separated by commas, for people.
 */
void cop_check_providers(char *out, size_t size);

#endif
