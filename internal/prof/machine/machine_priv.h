/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c reads /proc and /sys and schedules the samples, nvidia.c reads nvidia-smi, and sum.c
 * adds up hosts. A sample is a sum over one host. */
#ifndef COP_PROF_MACHINE_PRIV_H
#define COP_PROF_MACHINE_PRIV_H

#include "prof/machine/machine.h"

#define ROOT_SIZE 512
#define TEXT_SIZE 16384 /* maximum bytes read from a file */

/* A kernel counter, which may restart from zero, and its total increase since the start. */
struct counter {
	uint64_t last, total;
	bool known;
};

struct gpu {
	char dir[ROOT_SIZE + 64];   /* .../sys/class/drm/card0/device */
	char hwmon[ROOT_SIZE + 96]; /* hwmon directory that reports its power; "": none */
	unsigned card;
};

struct cop_machine {
	/* Used by one thread. */
	char root[ROOT_SIZE];
	uint64_t every_ms, next_ms, looked_ms;
	uint64_t busy, all; /* processor times at the last sample */
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
	COP_NVIDIA_USED, /* MiB, like TOTAL */
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
/* Parses the line in place. Returns false if it does not describe a GPU. */
bool cop_nvidia_parse(char *line, struct cop_nvidia_row *out);
/* NULL: out of memory, or the thread cannot be started. */
struct cop_nvidia *cop_nvidia_new(uint64_t every_ms);
/* Terminates nvidia-smi. */
void cop_nvidia_free(struct cop_nvidia *n);
/* Sets the values of the NVIDIA GPUs, which are numbered after `gpus` others. Both functions accept
 * NULL for n. */
void cop_nvidia_look(struct cop_nvidia *n, unsigned gpus, struct cop_machine_sum *s);

#endif
