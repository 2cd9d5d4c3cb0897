/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of one trace file lists its chunks, with the point from which each can be read and a
 * summary of what it contains. index_build.c builds it, index_write.c and index_read.c implement
 * the format, index_place.c chooses its location, and plan.c uses it to read a file.
 *
 * A chunk is a sequence of whole events. For each chunk, the index lists the names, categories,
 * processes, threads, hosts and files of its events and their time range, so a selective read can
 * skip chunks. Rare names are not listed per chunk. Instead, the index holds the text of their
 * events and of all metadata, which every read needs; the part that belongs to one chunk is its
 * digest. Thus, rare events are found without reading their chunks, and names need no separate
 * pass.
 *
 * Chunks that have separate begin and end events, unreadable or omitted events, or OpenTelemetry
 * data are always read, so pairs, faults and sums are the same as without an index.
 *
 * Format: a head, then windows and digests, each deflated by zlib, then everything else, also
 * deflated. Checksums cover all of it. The head records the size and mtime of the indexed file and
 * checksums of its first and last bytes. */
#ifndef COP_TRACE_READ_INDEX_PRIV_H
#define COP_TRACE_READ_INDEX_PRIV_H

#include "trace/read/read_priv.h"

#define INDEX_MAGIC                                                                                \
	{                                                                                          \
		"copper trace index 1"                                                             \
	}
#define INDEX_META_MAX (256 * COP_MIB) /* of the last part, inflated */
#define INDEX_WORDS_MAX 65536u /* maximum distinct words per kind; with more, none is listed */
#define INDEX_GROUP_BYTES (256 * COP_KIB)
#define INDEX_CHUNK_BYTES (2 * COP_MIB)

/* Identifies the state of a file. */
struct index_key {
	uint64_t size, mtime_ns, head, tail; /* checksums of the first and the last bytes */
};

/* A deflated part of the index file. */
struct index_blob {
	uint64_t at, len, raw, hash; /* len: deflated size; raw: inflated size */
};
/* The head of the index file, in host byte order; an index from a machine with another byte order
 * is rejected. */
struct index_head {
	char magic[24];
	struct index_key key;
	struct index_blob rest;
	uint64_t hash; /* of the head up to here */
};
struct index_point {
	struct cop_inflate_point at;
	struct index_blob window;
};

/* How to interpret the text of a word: as it is, as a hash, or as a hash written as a string. */
enum index_form { WORD_PLAIN, WORD_HASH, WORD_HASH_TEXT };
struct index_word {
	struct cop_trace_str text;
	enum index_form form;
	bool rare; /* a name whose events are all in the digests */
};
struct index_words {
	struct index_word *at;
	size_t n;
	bool lost; /* too many words, so none is listed */
};
struct index_ids { /* a range of index.ids */
	size_t at, n;
};
struct index_chunk {
	uint64_t start, line; /* offsets in the inflated content */
	size_t point;         /* the point to read from, plus one; 0: start of the file */
	bool always;          /* never skipped */
	int where;            /* as in struct split */
	bool has_base;
	int64_t base_ns;
	char rank[12];
	size_t rank_len;
	uint64_t events[COP_TRACE_KINDS], digested[COP_TRACE_KINDS];
	int64_t first_ns, begin_ns,
		end_ns; /* first, last start; last end. first_ns > begin_ns: none */
	struct index_ids word[COP_TRACE_WORDS];
	size_t group, digest, digest_len; /* where its digest is */
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
	int64_t tail_base_ns; /* as in struct source */
	char *text;           /* owns the text of the words */
};

/* ---- index_place.c ---- */

/* Computes the key of an open file. Returns 0 or -errno. */
int cop_index_key(int fd, struct index_key *out);
/* Returns the i-th candidate path of an index, which the caller frees: beside the file, then in the
 * cache directory. NULL: out of memory, or there is no such path. */
#define INDEX_PLACES 2u
char *cop_index_place(const char *file, unsigned i);

/* ---- index_read.c ---- */

/* Why an index cannot be used; INDEX_FINE if it can. */
enum index_fault {
	INDEX_FINE,
	INDEX_NONE,
	INDEX_STALE,
	INDEX_FOREIGN,
	INDEX_DAMAGED,
	INDEX_OF_OTHERS
};
/* Opens the index of the file that is open as fd. On failure, returns NULL and sets *fault. If
 * place is not NULL, *place receives the path of the index, which the caller frees. */
struct index *cop_index_open(const char *file, int fd, char **place, enum index_fault *fault);
void cop_index_free(struct index *x);
/* Returns the blob's inflated bytes, which the caller frees; NULL if damaged or out of memory. */
char *cop_index_blob(const struct index *x, const struct index_blob *b);

/* ---- index_write.c ---- */

/* Deflates the data, writes it at offset *at, and advances *at. Returns 0 or -errno. */
int cop_index_put_blob(int fd, uint64_t *at, const void *data, size_t len, struct index_blob *out);
/* Writes the last part, then the head. Returns 0 or -errno. */
int cop_index_finish(int fd, uint64_t *at, const struct index *x, const struct index_key *key);

/* ---- index_build.c ---- */

/* Builds the index of the file that is open as s, and writes it to fd. */
int cop_index_build(struct source *s, int fd, const struct index_key *key,
	const struct cop_trace_index_conf *conf, struct cop_trace_index_result *out);

/* ---- plan.c ---- */

/* Makes a plan from the file's index; NULL if it has no current one. *why is a message if the user
 * should know the reason, else NULL. */
struct plan *cop_plan_new(const struct file *file, const struct source *s, const char **why);
void cop_plan_free(struct plan *p);
/* Passes the digests to a sink that collects only names. -ENOMEM; -EIO if the index is damaged. */
int cop_plan_names(struct plan *p, struct sink *sink, struct block *b);
/* Chooses the chunks to read. */
void cop_plan_choose(struct plan *p, const struct names *names, const struct cop_trace_pick *pick,
	int64_t shift_ns);
/* Makes the plan read no chunks and only count their events. */
void cop_plan_count_only(struct plan *p);
/* Whether the plan avoids reading any chunk. */
bool cop_plan_skips(const struct plan *p);
int64_t cop_plan_tail_base(const struct plan *p);

#endif
