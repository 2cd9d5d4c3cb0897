/* SPDX-License-Identifier: BSD-3-Clause */
/* cpu: processors, memory and processor time of this process. */
#ifndef COP_BASE_CPU_H
#define COP_BASE_CPU_H

#include "base/base/buf.h"
#include "base/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Pins every thread of this process, and those that it starts later, to a list such as "0-3,8".
 * -EINVAL with a sentence that names processors that do not exist or may not be used; then nothing
 * has changed. */
int cop_cpus_pin(const char *list, struct cop_err *err);
/* The processors that this thread may run on, as a list. */
void cop_cpus_list(struct cop_buf *out);
/* Whether the launcher restricted this thread to at most one core (two processors) of the cpuset;
 * if so, both lists are filled. */
bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset);

/* The memory limit in bytes that the control groups set for this process, UINT64_MAX if there is
 * none. root is "", or a test's folder with its own /proc and /sys. */
uint64_t cop_memory_limit(const char *root);
/* The bytes that this machine has available without swapping; 0 if unknown. */
uint64_t cop_memory_available(const char *root);
/* Whether less than a sixteenth of this machine's memory is available, or its programs have waited
 * for memory for more than a twentieth of the last ten seconds (/proc/pressure). */
bool cop_memory_is_short(const char *root);
/* The number of processes in this process's control groups that the OOM killer has killed. */
uint64_t cop_memory_kills(const char *root);
/* The resources of this process: the processor time that all its threads have used so far, and its
 * resident memory now. */
void cop_process_usage(uint64_t *cpu_us, uint64_t *resident_bytes);

#endif
