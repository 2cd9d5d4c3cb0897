/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c reads /proc and /sys, and schedules the samples; nvidia.c reads nvidia-smi, and sum.c
 * adds up many hosts. A sample is the sum of one host. */
#ifndef COP_PROF_MACHINE_PRIV_H
#define COP_PROF_MACHINE_PRIV_H

#include "prof/machine/machine.h"

#define ROOT_SIZE 512
#define TEXT_SIZE 16384 /* maximum bytes read from a file */

/* A kernel counter, which may restart, and its total increase since the start. */
struct counter {
	uint64_t last, total;
	bool known;
};

struct gpu {
	char dir[ROOT_SIZE + 64];   /* .../sys/class/drm/card0/device */
	char hwmon[ROOT_SIZE + 96]; /* hwmon directory with its power; "": none */
	unsigned card;
};

struct cop_machine {
	/* Used by one thread. */
	char root[ROOT_SIZE];
	uint64_t every_ms, next_ms, looked_ms;
	uint64_t busy, all; /* of the processors, at the last sample */
	struct counter received, sent;
	bool has_disk;
	struct gpu gpu[COP_MACHINE_GPUS];
	unsigned gpus;
	struct cop_nvidia *nvidia; /* NULL: out of memory */

	pthread_mutex_t lock; /* protects latest */
	struct cop_machine_sum latest;
};

void cop_machine_set(struct cop_machine_sum *s, unsigned metric, uint64_t thousandths);
/* Sets used / all, in thousandths of a percent. */
void cop_machine_set_share(struct cop_machine_sum *s, unsigned metric, uint64_t used, uint64_t all);

/* ---- nvidia.c ---- */
enum cop_nvidia_field {
	COP_NVIDIA_INDEX,
	COP_NVIDIA_PERCENT,
	COP_NVIDIA_USED, /* MiB, as the next */
	COP_NVIDIA_TOTAL,
	COP_NVIDIA_WATTS,
	COP_NVIDIA_LIMIT,
	COP_NVIDIA_FIELDS
};
/* A line printed by nvidia-smi. */
struct cop_nvidia_row {
	unsigned index, known; /* known: one bit per field */
	double value[COP_NVIDIA_FIELDS];
};
/* Parses the line in place. False: it does not describe a GPU. */
bool cop_nvidia_parse(char *line, struct cop_nvidia_row *out);
/* NULL: out of memory, or no thread. */
struct cop_nvidia *cop_nvidia_new(uint64_t every_ms);
/* Terminates nvidia-smi. */
void cop_nvidia_free(struct cop_nvidia *n);
/* Sets the values of its GPUs, numbered after `gpus` others. n may be NULL in both functions. */
void cop_nvidia_look(struct cop_nvidia *n, unsigned gpus, struct cop_machine_sum *s);

#endif
