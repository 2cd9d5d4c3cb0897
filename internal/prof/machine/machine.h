/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: samples the load of a node's host: processors, memory, network, the root file system and
 * AMD GPUs from /proc and /sys, and NVIDIA GPUs with nvidia-smi. Also sums over many hosts. Names
 * and units are those of MLflow's system metrics.
 *
 * It uses no vendor libraries. Its only thread reads nvidia-smi. A metric that this host's kernel
 * does not report has no value. A sample costs about 100 us of CPU time, most of it in the kernel,
 * for /proc/stat. */
#ifndef COP_PROF_MACHINE_H
#define COP_PROF_MACHINE_H

#include "base/base/base.h"

#define COP_MACHINE_GPUS 16u /* per host; more GPUs are not sampled */

enum cop_machine_metric {
	COP_MACHINE_CPU_PERCENT,
	COP_MACHINE_MEMORY_MB,
	COP_MACHINE_MEMORY_PERCENT,
	COP_MACHINE_RECEIVED_MB, /* since the node started; so is SENT */
	COP_MACHINE_SENT_MB,
	COP_MACHINE_DISK_PERCENT,
	COP_MACHINE_DISK_MB,
	COP_MACHINE_DISK_FREE_MB,
	COP_MACHINE_GPU /* COP_MACHINE_GPU_METRICS for GPU 0, then for GPU 1, and so on */
};
enum cop_machine_gpu_metric {
	COP_MACHINE_GPU_PERCENT,
	COP_MACHINE_GPU_MEMORY_MB,
	COP_MACHINE_GPU_MEMORY_PERCENT,
	COP_MACHINE_GPU_WATTS,
	COP_MACHINE_GPU_WATTS_PERCENT, /* of the GPU's power limit */
	COP_MACHINE_GPU_METRICS
};
#define COP_MACHINE_METRICS (COP_MACHINE_GPU + COP_MACHINE_GPUS * COP_MACHINE_GPU_METRICS)
#define COP_MACHINE_NAME_SIZE 40

/* "cpu_utilization_percentage", "gpu_0_power_usage_watts". */
void cop_machine_name(unsigned metric, char name[COP_MACHINE_NAME_SIZE]);

/* ---- one host ---- */

struct cop_machine;

/* Also finds the GPUs. root: the parent directory of proc and sys, "" except in tests. every_ms:
 * sampling interval. NULL: out of memory. */
struct cop_machine *cop_machine_new(const char *root, uint64_t every_ms);
void cop_machine_free(struct cop_machine *m); /* m may be NULL, here and below */
/* Call from one thread only. Takes a sample if one is due at now_ms, or if this is the last call
 * and the previous sample is at least a second old. Returns when the next sample is due;
 * UINT64_MAX: never. */
uint64_t cop_machine_look(struct cop_machine *m, uint64_t now_ms, bool last);

/* ---- many hosts ---- */

/* A metric of several hosts, in thousandths of its unit. */
struct cop_machine_value {
	uint32_t hosts; /* number of hosts that have the metric; if 0, the other two fields are 0,
			   too */
	uint64_t sum, most;
};
struct cop_machine_sum {
	struct cop_machine_value of[COP_MACHINE_METRICS];
};

/* Any thread. Adds the latest sample of this host. */
void cop_machine_add_own(struct cop_machine_sum *into, struct cop_machine *m);
void cop_machine_add(struct cop_machine_sum *into, const struct cop_machine_sum *from);
/* Appends the metrics that have a value; appends nothing if none does. */
void cop_machine_encode(const struct cop_machine_sum *s, struct cop_buf *out);
/* Accepts untrusted bytes. 0, or -EBADMSG with *s all zero. */
int cop_machine_decode(const void *data, size_t len, struct cop_machine_sum *s);

#endif
