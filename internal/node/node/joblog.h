/* SPDX-License-Identifier: BSD-3-Clause */
/* joblog: opens a node's log, which is a file in the job directory or, without one, standard error.
 * Its first lines identify the node and give its configuration and notes for the user. */
#ifndef COP_NODE_JOBLOG_H
#define COP_NODE_JOBLOG_H

#include "base/base/base.h"
#include "job/conf/conf.h"

#define COP_JOBLOG_PATH_SIZE (4096 + 512)

struct cop_joblog {
	char job_dir[4096];              /* absolute; "": none */
	char path[COP_JOBLOG_PATH_SIZE]; /* the file created by this call, or "" */
};

/* Creates and checks the job directory, if one is configured, and opens the log. host: this node's
 * name in the host list, or NULL. 0, or -errno with a sentence. The caller closes the log. */
int cop_joblog_open(
	const struct cop_conf *conf, const char *host, struct cop_joblog *out, struct cop_err *err);
/* The first lines, in a format that sites rely on (copper-formats(5)). mountpoint may be "". */
void cop_joblog_begin(const struct cop_conf *conf, uint32_t rank, uint32_t nodes,
	const char *source, const char *mountpoint);
/* Warns the user, on standard error and in the log, that the node may not be what was intended.
 * Does nothing for NULL and "". */
void cop_joblog_note(const char *text);

#endif
