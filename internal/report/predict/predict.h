/* SPDX-License-Identifier: BSD-3-Clause */
/* predict: the startup time of a recorded program on N nodes, for four methods: direct access to
 * the storage by every node, an environment image copied by every node, the same image by sbcast,
 * and Copper with the recording. Measures the storage for about two seconds, and computes the rest
 * from copper-sim's model (storage/model). Runs no program and writes nothing. */
#ifndef COP_REPORT_PREDICT_H
#define COP_REPORT_PREDICT_H

#include "storage/model/model.h"

#define COP_PREDICT_SLOTS_MAX 64 /* a storage with this concurrency counts as unlimited */

/* Summary of the recording. */
struct cop_predict_needs {
	uint64_t directories, names, files, bytes;
	uint64_t reads; /* read requests of a client, at most 128 KiB each */
	uint64_t programs;
	bool cut; /* the last line is missing */
	char source[4096];
	char **path;   /* of files, largest first, at most 64; malloc'ed, also each string */
	char **folder; /* of directories, at most 64 */
	unsigned paths, folders;
};
/* Reads a manifest. 0, or -errno with a message that names the file. */
int cop_predict_read(const char *file, struct cop_predict_needs *out, struct cop_err *err);
void cop_predict_free(struct cop_predict_needs *n);

/* Measured or given figures of the storage. */
struct cop_predict_storage {
	double metadata_us, read_us;      /* latency of a single client's operation */
	double stream_mb_per_s, mb_per_s; /* 10^6 bytes per second: one reader; several */
	double slots;                     /* concurrent operations; 0: no limit found */
	double children; /* names per directory whose attributes Copper reads with it: mean over the
			    recording */
	double pack_mb_per_s; /* of a pack on another file system; 0: on this storage */
	double measured_s;    /* 0: all figures were given */
};
/* Sets a figure given as NAME=VALUE; -EINVAL with a message. */
int cop_predict_set(struct cop_predict_storage *s, const char *text, struct cop_err *err);
/* Measures the figures that are still negative, with the recording's files below source. -ENOENT
 * and so on with a message. */
int cop_predict_measure(const char *source, const struct cop_predict_needs *n,
	struct cop_predict_storage *s, struct cop_err *err);

/* The bandwidth of one reader of a pack on another file system than the source; 0 if it is on the
 * same one, or if this is unknown because one of them is unreadable. */
double cop_predict_measure_pack(const char *source, const char *pack);

struct cop_predict_job {
	const struct cop_predict_needs *needs;
	const struct cop_predict_storage *storage;
	uint64_t image_bytes;
	bool packed;         /* the recording has a pack, from which Copper takes unchanged files */
	double own_s;        /* the program's own startup work, with everything in memory */
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
	double operations[COP_PREDICT_WAYS]; /* storage operations of all nodes */
};
/* 0 or -ENOMEM. */
int cop_predict_row(const struct cop_predict_job *job, uint32_t nodes, struct cop_predict_row *out);

#endif
