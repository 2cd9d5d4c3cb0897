/* SPDX-License-Identifier: BSD-3-Clause */
/* cpu: processors, memory and CPU time of this process. */
#ifndef COP_BASE_CPU_H
#define COP_BASE_CPU_H

#include "base/base/buf.h"
#include "base/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Binds all current and later threads of this process to a list such as "0-3,8". -EINVAL with a
 * sentence that names missing or disallowed processors, and without side effects. */
int cop_cpus_pin(const char *list, struct cop_err *err);
/* The processors that this thread may run on, as a list. */
void cop_cpus_list(struct cop_buf *out);
/* Whether the launcher restricted this thread to at most one core (two processors) of the
 * cpuset; if so, fills both lists. */
bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset);

/* The memory limit of this process's control groups in bytes, UINT64_MAX if none. root is "", or
 * a test's folder with its own /proc and /sys. */
uint64_t cop_memory_limit(const char *root);
/* Bytes available on this machine without swapping; 0 if unknown. */
uint64_t cop_memory_available(const char *root);
/* Whether less than a sixteenth of this machine's memory is available, or its programs have
 * stalled on memory for more than a twentieth of the last ten seconds (/proc/pressure). */
bool cop_memory_is_short(const char *root);
/* The number of processes in this process's control groups killed by the OOM killer. */
uint64_t cop_memory_kills(const char *root);
/* The CPU time used by all threads of this process so far, and its current resident memory. */
void cop_process_usage(uint64_t *cpu_us, uint64_t *resident_bytes);

#endif
