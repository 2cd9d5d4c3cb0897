/* SPDX-License-Identifier: BSD-3-Clause */
/* predict: how long a program that was recorded will take to start on N nodes, by four ways: every
 * node on the storage itself, an image of the environment copied by every node, the same image by
 * sbcast, and Copper with the recording. It measures the storage for about two seconds, and
 * computes the rest from the model that copper-sim uses (storage/model). It runs no program and
 * writes nothing. */
#ifndef COP_REPORT_PREDICT_H
#define COP_REPORT_PREDICT_H

#include "storage/model/model.h"

#define COP_PREDICT_SLOTS_MAX 64 /* a storage that serves so many at once has no limit here */

/* What the recording names. */
struct cop_predict_needs {
	uint64_t directories, names, files, bytes;
	uint64_t reads; /* as a client reads files: 128 KiB at most */
	uint64_t programs;
	bool cut; /* its last line is missing */
	char source[4096];
	char **path;   /* of files, largest first, at most 64; malloc'ed, as each one */
	char **folder; /* of directories, at most 64 */
	unsigned paths, folders;
};
/* Reads a manifest. 0, or -errno with a sentence that names the file. */
int cop_predict_read(const char *file, struct cop_predict_needs *out, struct cop_err *err);
void cop_predict_free(struct cop_predict_needs *n);

/* What was measured at the storage, or given. */
struct cop_predict_storage {
	double metadata_us, read_us;      /* one operation of a client alone */
	double stream_mb_per_s, mb_per_s; /* 10^6 bytes a second: one reader; several */
	double slots;                     /* operations at once; 0: no limit was found */
	double children; /* names of a directory whose attributes Copper reads with it: the mean
			    over those of the recording */
	double pack_mb_per_s; /* of a pack on another file system; 0: it is on this storage */
	double measured_s;    /* 0: all was given */
};
/* Sets a figure given as NAME=VALUE; -EINVAL with a sentence. */
int cop_predict_set(struct cop_predict_storage *s, const char *text, struct cop_err *err);
/* Measures the figures that are still negative, with files of the recording below source. -ENOENT
 * and so on with a sentence. */
int cop_predict_measure(const char *source, const struct cop_predict_needs *n,
	struct cop_predict_storage *s, struct cop_err *err);

/* The bandwidth of one reader of a pack that is not on the source's file system; 0 if it is, or if
 * that is not known because one of them cannot be read. */
double cop_predict_measure_pack(const char *source, const char *pack);

struct cop_predict_job {
	const struct cop_predict_needs *needs;
	const struct cop_predict_storage *storage;
	uint64_t image_bytes;
	bool packed;  /* the recording has a pack, from which Copper takes what is the same */
	double own_s; /* the program's own work, if everything is in memory */
	uint32_t processors; /* of all nodes together; 0: each node has its own */
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
	double s[COP_PREDICT_WAYS];          /* until the last node has started */
	double operations[COP_PREDICT_WAYS]; /* at the storage, all nodes together */
};
/* 0 or -ENOMEM. */
int cop_predict_row(const struct cop_predict_job *job, uint32_t nodes, struct cop_predict_row *out);

#endif
