/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_CMD_STOP_JOB_H
#define COP_CMD_STOP_JOB_H

#include "base/base/base.h"

struct cop_cmd_stop_job {
	const char *job_dir, *secret_file, *runtime_dir;
	const char *mountpoint; /* a dead mount to remove; may be NULL */
	uint32_t timeout_ms;
};

/* Prints the result of a stop; returns 0, or 1 with a message if printing failed. */
int cop_cmd_print_stopped(unsigned stopped, unsigned of);
/* Stops the nodes of a job directory and prints the result; returns the exit code. A tree of one
 * node on this machine remains for the caller to stop: socket is set to its path, else to "". */
int cop_cmd_stop_job(const struct cop_cmd_stop_job *what, char socket[108]);

#endif
