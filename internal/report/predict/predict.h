/* SPDX-License-Identifier: BSD-3-Clause */
/* predict: estimates the startup time of a recorded program on N nodes for four methods: every node
 * reads the storage directly; every node copies an environment image; sbcast distributes the same
 * image; Copper prefetches the recording. Measures the storage for about two seconds and computes
 * the rest with copper-sim's model (storage/model). Does not run the program and writes nothing. */
#ifndef COP_REPORT_PREDICT_H
#define COP_REPORT_PREDICT_H

#include "storage/model/model.h"

#define COP_PREDICT_SLOTS_MAX 64 /* with this concurrency, a storage counts as unlimited */

/* Summary of the recording. */
struct cop_predict_needs {
	uint64_t directories, names, files, bytes;
	uint64_t reads; /* read requests of one client, at most 128 KiB each */
	uint64_t programs;
	bool cut; /* the manifest is truncated: its last line is missing */
	char source[4096];
	char **path;   /* the largest files, largest first, at most 64; array and strings are
			  malloc'ed */
	char **folder; /* directories, at most 64; malloc'ed likewise */
	unsigned paths, folders;
};
/* Reads a manifest. 0, or -errno with a message that names the file. */
int cop_predict_read(const char *file, struct cop_predict_needs *out, struct cop_err *err);
void cop_predict_free(struct cop_predict_needs *n);

/* Properties of the storage, measured or given by the user. */
struct cop_predict_storage {
	double metadata_us, read_us;      /* latency of one operation of a single client */
	double stream_mb_per_s, mb_per_s; /* 10^6 bytes per second: one reader; several */
	double slots;                     /* operations served concurrently; 0: no limit found */
	double children; /* names per directory whose attributes Copper reads with the listing: the
			    mean over the recording */
	double pack_mb_per_s; /* bandwidth of a pack on another file system; 0: the pack is on this
				 storage */
	double measured_s;    /* how long the measurement took; 0: all values were given */
};
/* Sets a value given as NAME=VALUE; -EINVAL with a message. */
int cop_predict_set(struct cop_predict_storage *s, const char *text, struct cop_err *err);
/* Measures the values that are still negative, using the recording's files below source. -ENOENT
 * etc. with a message. */
int cop_predict_measure(const char *source, const struct cop_predict_needs *n,
	struct cop_predict_storage *s, struct cop_err *err);

/* The bandwidth of one reader of a pack that is not on the source's file system; 0 if it is on the
 * same one, or if either is unreadable. */
double cop_predict_measure_pack(const char *source, const char *pack);

struct cop_predict_job {
	const struct cop_predict_needs *needs;
	const struct cop_predict_storage *storage;
	uint64_t image_bytes;
	bool packed;         /* the recording has a pack, from which Copper reads unchanged files */
	double own_s;        /* CPU time of the program's startup with everything in memory */
	uint32_t processors; /* shared by all nodes; 0: each node has its own */
};

enum cop_predict_way {
	COP_PREDICT_DIRECT,
	COP_PREDICT_IMAGE,
	COP_PREDICT_SBCAST,
	COP_PREDICT_COPPER,
	COP_PREDICT_WAYS
};
extern const char *const cop_predict_name[COP_PREDICT_WAYS];

struct cop_predict_row {
	double s[COP_PREDICT_WAYS];          /* time until the last node has started */
	double operations[COP_PREDICT_WAYS]; /* storage operations, summed over all nodes */
};
/* Computes one row of the table. Returns 0 or -ENOMEM. */
int cop_predict_row(const struct cop_predict_job *job, uint32_t nodes, struct cop_predict_row *out);

#endif
