/* SPDX-License-Identifier: BSD-3-Clause */
/* check: determines whether a start with these settings would work on this machine, and what is
 * missing. It runs a list of checks with the functions that the start itself uses, but does not
 * mount. On the other hosts it probes only ports, with a time limit. */
#ifndef COP_NODE_CHECK_H
#define COP_NODE_CHECK_H

#include "base/base/base.h"
#include "job/conf/conf.h"

/* Appends a line per check: ok, warning or failed, with advice; with conf->json, one object
 * instead. Returns the number of failed checks, or -ENOMEM. */
int cop_check_run(const struct cop_conf *conf, struct cop_buf *out);

/* -EMFILE, with advice, if the limit on open files is so low that a node could start and then be
 * unable to accept the command that stops it. */
int cop_check_file_limit(struct cop_err *err);

/* The libfabric providers available to this program on this machine, comma-separated, for
 * messages. */
void cop_check_providers(char *out, size_t size);

#endif
