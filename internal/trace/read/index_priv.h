/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of one trace file: its chunks, the point from which each can be read, and a summary of
 * its contents. index_build.c builds it, index_write.c and index_read.c implement the format,
 * index_place.c chooses its location, plan.c uses it to read a file.
 *
 * A file is cut into chunks of whole events. For each chunk, the index lists the names, categories,
 * processes, threads, hosts and files of its events and their time range, so a selective reading
 * skips other chunks. Rare names are not listed per chunk: the index contains the text of their
 * events (the digest of their chunk) and all metadata, which every reading needs. Rare events are
 * thus found without reading their chunks, and names need no separate pass.
 *
 * Chunks with separate begins and ends, unreadable or omitted events, or OpenTelemetry data are
 * always read: pairs, faults and sums are the same as without an index.
 *
 * Format: a head; windows and digests, each deflated by zlib; the rest, deflated as well. Checksums
 * cover all of it. The head has the size and mtime of the indexed file, and the checksums of its
 * first and last bytes. */
#ifndef COP_TRACE_READ_INDEX_PRIV_H
#define COP_TRACE_READ_INDEX_PRIV_H

#include "trace/read/read_priv.h"

#define INDEX_MAGIC                                                                                \
	{                                                                                          \
		"copper trace index 1"                                                             \
	}
#define INDEX_META_MAX (256 * COP_MIB) /* of the last part, inflated */
#define INDEX_WORDS_MAX 65536u         /* distinct words per kind; further ones are dropped */
#define INDEX_GROUP_BYTES (256 * COP_KIB)
#define INDEX_CHUNK_BYTES (2 * COP_MIB)

/* Identifies the state of a file. */
struct index_key {
	uint64_t size, mtime_ns, head, tail; /* checksums of the first and the last bytes */
};

/* A part of the index file. */
struct index_blob {
	uint64_t at, len, raw, hash; /* raw: size when inflated */
};
/* The head of the file, in host byte order: an index from a machine with another byte order is
 * rejected. */
struct index_head {
	char magic[24];
	struct index_key key;
	struct index_blob rest;
	uint64_t hash; /* of the preceding part of the head */
};
struct index_point {
	struct cop_inflate_point at;
	struct index_blob window;
};

/* How to interpret the text of a word. */
enum index_form { WORD_PLAIN, WORD_HASH, WORD_HASH_TEXT };
struct index_word {
	struct cop_trace_str text;
	enum index_form form;
	bool rare; /* a name with all its events in the digests */
};
struct index_words {
	struct index_word *at;
	size_t n;
	bool lost; /* too many words: none is listed */
};
struct index_ids { /* into index.ids */
	size_t at, n;
};
struct index_chunk {
	uint64_t start, line; /* offsets in the inflated content */
	size_t point;         /* entry point, plus one; 0: start of the file */
	bool always;          /* never skipped */
	int where;            /* as in struct split */
	bool has_base;
	int64_t base_ns;
	char rank[12];
	size_t rank_len;
	uint64_t events[COP_TRACE_KINDS], digested[COP_TRACE_KINDS];
	int64_t first_ns, begin_ns, end_ns; /* first and last begin, last end; first > last: none */
	struct index_ids word[COP_TRACE_WORDS];
	size_t group, digest, digest_len; /* its digest within a group */
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
	char *text;           /* owns the words */
};

/* ---- index_place.c ---- */

/* -errno on error. */
int cop_index_key(int fd, struct index_key *out);
/* The i-th candidate path of an index: beside the file, then in the cache directory. The caller
 * frees it. NULL: out of memory, or there is no such path. */
#define INDEX_PLACES 2u
char *cop_index_place(const char *file, unsigned i);

/* ---- index_read.c ---- */

/* Why an index cannot be used; INDEX_FINE: it can. */
enum index_fault {
	INDEX_FINE,
	INDEX_NONE,
	INDEX_STALE,
	INDEX_FOREIGN,
	INDEX_DAMAGED,
	INDEX_OF_OTHERS
};
/* Opens the index of the file open as fd; NULL with *fault set. *place, if not NULL, receives the
 * path of the index; the caller frees it. */
struct index *cop_index_open(const char *file, int fd, char **place, enum index_fault *fault);
void cop_index_free(struct index *x);
/* The blob's bytes, which the caller frees; NULL if damaged or out of memory. */
char *cop_index_blob(const struct index *x, const struct index_blob *b);

/* ---- index_write.c ---- */

/* Appends a deflated blob at offset *at, and advances *at. -errno. */
int cop_index_put_blob(int fd, uint64_t *at, const void *data, size_t len, struct index_blob *out);
/* Appends the last part and writes the head. -errno. */
int cop_index_finish(int fd, uint64_t *at, const struct index *x, const struct index_key *key);

/* ---- index_build.c ---- */

/* Writes the index of the file open as s to fd. */
int cop_index_build(struct source *s, int fd, const struct index_key *key,
	const struct cop_trace_index_conf *conf, struct cop_trace_index_result *out);

/* ---- plan.c ---- */

/* A plan from the file's index, if it has a current one, else NULL. *why: a message if the user
 * should know the reason, else NULL. */
struct plan *cop_plan_new(const struct file *file, const struct source *s, const char **why);
void cop_plan_free(struct plan *p);
/* Passes the digests to a names-only sink. -ENOMEM; -EIO if the index is damaged. */
int cop_plan_names(struct plan *p, struct sink *sink, struct block *b);
/* Chooses the chunks to read. */
void cop_plan_choose(struct plan *p, const struct names *names, const struct cop_trace_pick *pick,
	int64_t shift_ns);
/* Reads no chunk: events are only counted. */
void cop_plan_count_only(struct plan *p);
/* Whether the plan avoids reading any chunk. */
bool cop_plan_skips(const struct plan *p);
int64_t cop_plan_tail_base(const struct plan *p);

#endif
