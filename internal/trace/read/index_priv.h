/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of one trace file: which chunks it has, from where each can be read, and what is in it.
 * index_build.c makes it, index_write.c and index_read.c have the format, index_place.c says where
 * it is kept, plan.c reads a file by it.
 *
 * A file is cut into chunks of whole events. Of each chunk the index has which names, categories,
 * processes, threads, hosts and files its events have, and when they begin, so that a reading for
 * some of them skips the others. Names that few events have are not listed for chunks: the text of
 * those events is in the index itself (the digest of their chunk), together with all metadata,
 * which every reading needs. So a rare event is found wherever it is, and no reading needs a pass
 * of its own for names.
 *
 * Chunks with begins and ends of spans, with events that cannot be read or are omitted, or with
 * OpenTelemetry's forms are always read, so that pairs, faults and sums are the same as without an
 * index.
 *
 * Format: a head; windows and digests, each deflated by zlib; the rest, deflated as
 * well. Everything is under a checksum, and the head names the size and time of the file that the
 * index describes, and the checksums of its two ends. */
#ifndef COP_TRACE_READ_INDEX_PRIV_H
#define COP_TRACE_READ_INDEX_PRIV_H

#include "trace/read/read_priv.h"

#define INDEX_MAGIC                                                                                \
	{                                                                                          \
		"copper trace index 1"                                                             \
	}
#define INDEX_META_MAX (256 * COP_MIB) /* of the last part, inflated */
#define INDEX_WORDS_MAX 65536u         /* different ones of a kind; more are not kept */
#define INDEX_GROUP_BYTES (256 * COP_KIB)
#define INDEX_CHUNK_BYTES (2 * COP_MIB)

/* What identifies the state of a file. */
struct index_key {
	uint64_t size, mtime_ns, head, tail; /* checksums of the first and the last bytes */
};

/* A part of the index file. */
struct index_blob {
	uint64_t at, len, raw, hash; /* raw: inflated */
};
/* The head of the file, in the byte order of the machine: an index of another one is foreign. */
struct index_head {
	char magic[24];
	struct index_key key;
	struct index_blob rest;
	uint64_t hash; /* of the head before it */
};
struct index_point {
	struct cop_inflate_point at;
	struct index_blob window;
};

/* How the text of a word is to be read. */
enum index_form { WORD_PLAIN, WORD_HASH, WORD_HASH_TEXT };
struct index_word {
	struct cop_trace_str text;
	enum index_form form;
	bool rare; /* a name whose events are in the digests */
};
struct index_words {
	struct index_word *at;
	size_t n;
	bool lost; /* there are too many: nothing is known */
};
struct index_ids { /* into index.ids */
	size_t at, n;
};
struct index_chunk {
	uint64_t start, line; /* in the content */
	size_t point;         /* from which it is reached, and one more; 0: the beginning */
	bool always;          /* it must be read */
	int where;            /* as of struct split */
	bool has_base;
	int64_t base_ns;
	char rank[12];
	size_t rank_len;
	uint64_t events[COP_TRACE_KINDS], digested[COP_TRACE_KINDS];
	int64_t first_ns, begin_ns, end_ns; /* first and last begin, last end; first > last: none */
	struct index_ids word[COP_TRACE_WORDS];
	size_t group, digest, digest_len; /* its digest, in a group */
};
struct index {
	int fd;
	struct index_point *point;
	size_t points;
	struct index_words words[COP_TRACE_WORDS];
	struct index_blob *group;
	size_t groups;
	struct index_chunk *chunk;
	size_t chunks;
	uint32_t *ids;
	size_t id_count;
	int64_t tail_base_ns; /* as of struct source */
	char *text;           /* owns the words */
};

/* ---- index_place.c ---- */

/* -errno. */
int cop_index_key(int fd, struct index_key *out);
/* The i-th place of an index: beside the file, in the cache directory. The caller frees it. NULL:
 * no memory, or there is no such place. */
#define INDEX_PLACES 2u
char *cop_index_place(const char *file, unsigned i);

/* ---- index_read.c ---- */

/* Why an index cannot be used; the first is none. */
enum index_fault {
	INDEX_FINE,
	INDEX_NONE,
	INDEX_STALE,
	INDEX_FOREIGN,
	INDEX_DAMAGED,
	INDEX_OF_OTHERS
};
/* Opens the index of a file that is open as fd; NULL with a reason. *place, if it is asked for, is
 * where it was, and the caller's. */
struct index *cop_index_open(const char *file, int fd, char **place, enum index_fault *fault);
void cop_index_free(struct index *x);
/* The blob's bytes, which the caller frees; NULL if it is damaged or memory is short. */
char *cop_index_blob(const struct index *x, const struct index_blob *b);
/* Reads the last part, inflated. For tests as well. */
struct index *cop_index_parse(char *text, size_t len, uint64_t file_size);

/* ---- index_write.c ---- */

/* Appends a deflated blob to the file, of which *at bytes are written. -errno. */
int cop_index_put_blob(int fd, uint64_t *at, const void *data, size_t len, struct index_blob *out);
/* Appends the last part, and writes the head. -errno. */
int cop_index_finish(int fd, uint64_t *at, const struct index *x, const struct index_key *key);

/* ---- index_build.c ---- */

/* Writes the index of the file that is open as s to fd. */
int cop_index_build(struct source *s, int fd, const struct index_key *key,
	const struct cop_trace_index_conf *conf, struct cop_trace_index_result *out);

/* ---- plan.c ---- */

/* Reads by the index, if there is one of the file's present state. NULL: there is none; *why: a
 * sentence if the user should know the reason, else NULL. */
struct plan *cop_plan_new(const struct file *file, const struct source *s, const char **why);
void cop_plan_free(struct plan *p);
/* Passes on what the digests have, in a sink that takes names alone. -ENOMEM; -EIO if the index is
 * damaged. */
int cop_plan_names(struct plan *p, struct sink *sink, struct block *b);
/* Decides which chunks are read. */
void cop_plan_choose(struct plan *p, const struct names *names, const struct cop_trace_pick *pick,
	int64_t shift_ns);
/* Reads nothing: what is in the file is only counted. */
void cop_plan_count_only(struct plan *p);
/* Whether it is worth more than the names. */
bool cop_plan_skips(const struct plan *p);
int64_t cop_plan_tail_base(const struct plan *p);

#endif
