/* SPDX-License-Identifier: BSD-3-Clause */
/* cpu: processors, memory limits and CPU time. */
#ifndef COP_BASE_CPU_H
#define COP_BASE_CPU_H

#include "base/base/buf.h"
#include "base/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Binds all current and future threads of this process to a list of processors such as "0-3,8".
 * Returns -EINVAL and changes nothing if a processor is missing or not allowed; err names it. */
int cop_cpus_pin(const char *list, struct cop_err *err);
/* Appends the list of processors that this thread may run on. */
void cop_cpus_list(struct cop_buf *out);
/* Whether the launcher confined this thread to at most one core (two processors) of the cpuset; if
 * so, fills in both lists. */
bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset);

/* The memory limit, in bytes, that this process's control groups impose; UINT64_MAX if none. root
 * is "", or a test directory with its own /proc and /sys. */
uint64_t cop_memory_limit(const char *root);
/* Bytes available on this machine without swapping; 0 if unknown. */
uint64_t cop_memory_available(const char *root);
/* Whether less than a sixteenth of this machine's memory is available, or its programs stalled on
 * memory for more than a twentieth of the last ten seconds (/proc/pressure). */
bool cop_memory_is_short(const char *root);
/* How many processes in this process's control groups the OOM killer has killed. */
uint64_t cop_memory_kills(const char *root);
/* CPU time used so far by all threads of this process, and its current resident memory. */
void cop_process_usage(uint64_t *cpu_us, uint64_t *resident_bytes);

#endif
