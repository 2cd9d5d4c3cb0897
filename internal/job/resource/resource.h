/* SPDX-License-Identifier: BSD-3-Clause */
/* resource: describes a process and where it runs by the attributes of an OpenTelemetry resource:
 * the program, the host, and the job as the scheduler's environment describes it. It reads only
 * environment variables, and sends nothing. */
#ifndef COP_RESOURCE_H
#define COP_RESOURCE_H

#include "base/base/base.h"

/* The texts are valid during the call only. */
typedef void cop_resource_visit(void *arg, const char *key, const char *value);

/* The job, from the variables of Slurm, PBS and Flux: slurm.job_id and so on. Variables that are
 * absent or empty give no attribute. */
void cop_resource_job(cop_resource_visit *visit, void *arg);
/* All attributes: the process (service.*, host.name, process.pid) and the job. */
void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg);

#endif
