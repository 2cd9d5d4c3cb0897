/* SPDX-License-Identifier: BSD-3-Clause */
/* resource: what a process is and where it runs, as attributes of an OpenTelemetry resource: the
 * program, the host, and what the scheduler's environment says of the job. It reads environment
 * variables and nothing else, and sends nothing. */
#ifndef COP_RESOURCE_H
#define COP_RESOURCE_H

#include "base/base.h"

/* Texts are valid during the call only. */
typedef void cop_resource_visit(void *arg, const char *key, const char *value);

/* The job, from the variables of Slurm, PBS and Flux: slurm.job_id and so on. Variables that are
 * absent or empty give no attribute. */
void cop_resource_job(cop_resource_visit *visit, void *arg);
/* All attributes: the process (service.*, host.name, process.pid) and the job. */
void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg);

#endif
