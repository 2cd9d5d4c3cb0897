/* SPDX-License-Identifier: BSD-3-Clause */
/* runrec: the record of one run: its name, how it went, its parameters, tags and resource, and
 * series of measured values. It bounds what a run may record, thins series, and converts a record
 * to a text and back (copper-formats(5), run records). It knows no database and no node. */
#ifndef COP_WRITERS_RUNREC_H
#define COP_WRITERS_RUNREC_H

#include "base/base/base.h"

#define COP_RUNREC_ID_LEN 16       /* lower-case hexadecimal digits */
#define COP_RUNREC_POINTS_MAX 2000 /* of a series */
#define COP_RUNREC_SERIES_MAX 1024
#define COP_RUNREC_PAIRS_MAX 1024 /* of a list */
#define COP_RUNREC_KEY_MAX 255    /* bytes */
#define COP_RUNREC_VALUE_MAX 4095 /* bytes; longer ones are cut */
#define COP_RUNREC_FILE_MAX (64 * COP_MIB)
#define COP_RUNREC_SUFFIX ".run"

enum cop_runrec_status {
	COP_RUNREC_RUNNING,
	COP_RUNREC_FINISHED,
	COP_RUNREC_FAILED,
	COP_RUNREC_LOST, /* only readers assign it; no record contains it */
	COP_RUNREC_STATUSES
};
const char *cop_runrec_status_name(enum cop_runrec_status s);
/* -EINVAL: no status has this name, in any case of its letters. */
int cop_runrec_status_of(const char *name, enum cop_runrec_status *out);

enum cop_runrec_list { COP_RUNREC_PARAM, COP_RUNREC_TAG, COP_RUNREC_RESOURCE, COP_RUNREC_LISTS };
/* "param", "tag", "resource". */
const char *cop_runrec_list_name(enum cop_runrec_list l);

enum cop_runrec_field {
	COP_RUNREC_NAME,
	COP_RUNREC_GROUP,
	COP_RUNREC_VERSION,
	COP_RUNREC_REASON, /* why it ended */
	COP_RUNREC_FIELDS
};

struct cop_runrec_pair {
	char *key, *value;
};
struct cop_runrec_pairs {
	struct cop_runrec_pair *at; /* sorted by key */
	size_t n;
};
struct cop_runrec_point {
	uint64_t step;
	double time_s, value; /* time: since 1970 */
};
struct cop_runrec_series {
	char *key;
	struct cop_runrec_point *point; /* in ascending order of step */
	size_t n, cap;
};

/* Zeroed memory is an empty record. A record owns everything in it. */
struct cop_runrec {
	char id[COP_RUNREC_ID_LEN + 1];
	enum cop_runrec_status status;
	char *field[COP_RUNREC_FIELDS]; /* NULL: "" */
	double start_s, end_s;          /* since 1970; end 0: it has not ended */
	double seen_s; /* when the run last reported that it is alive, and the interval of these
			  reports */
	double beat_s;
	uint32_t nodes;
	struct cop_runrec_pairs list[COP_RUNREC_LISTS];
	struct cop_runrec_series *series; /* sorted by key */
	size_t series_n;
	uint64_t step;   /* the step of the points that are being added */
	uint64_t stride; /* only multiples of it are kept; 0 means 1 */
	bool failed;     /* memory was short: something is missing */
};

void cop_runrec_free(struct cop_runrec *r);
/* A random identifier. 0 or -errno. */
int cop_runrec_new_id(char id[COP_RUNREC_ID_LEN + 1]);
/* "" if the field was not set. */
const char *cop_runrec_get(const struct cop_runrec *r, enum cop_runrec_field f);

/* These cut what is too long, and set r->failed if memory is short. */

void cop_runrec_put(struct cop_runrec *r, enum cop_runrec_field f, const char *text);
/* Adds the pair, or replaces its value. Leaves out pairs beyond the limit, and those without a
 * key. */
void cop_runrec_pair(
	struct cop_runrec *r, enum cop_runrec_list l, const char *key, const char *value);
/* The value of a key in a list; NULL: there is none. */
const char *cop_runrec_value(const struct cop_runrec *r, enum cop_runrec_list l, const char *key);
/* Begins the next step. True: its points are kept. If series have become too long, every second
 * step is dropped, those so far and those to come. */
bool cop_runrec_next(struct cop_runrec *r);
/* Declares the next step to be the last, which is kept whatever its number. */
void cop_runrec_last(struct cop_runrec *r);
/* Adds a point of the current step. Leaves out values that are not finite, and series beyond the
 * limit. */
void cop_runrec_point(struct cop_runrec *r, const char *key, double time_s, double value);
const struct cop_runrec_series *cop_runrec_find(const struct cop_runrec *r, const char *key);

/* ---- as a text ---- */

void cop_runrec_write(const struct cop_runrec *r, struct cop_buf *out);
/* Parses into r, which must be empty and which the caller frees in any case. 0; -EBADMSG with a
 * sentence that begins with name; -EPROTO with a sentence: a later version wrote it; -ENOMEM. */
int cop_runrec_parse(
	const char *text, size_t len, const char *name, struct cop_runrec *r, struct cop_err *err);

#endif
