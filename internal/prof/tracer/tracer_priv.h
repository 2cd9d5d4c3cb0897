/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c passes events to the writer, format.c formats an event as a line, and tracer.c owns the
 * file and the writer thread. That thread alone uses everything but the rings, without a lock. */
#ifndef COP_PROF_TRACER_PRIV_H
#define COP_PROF_TRACER_PRIV_H

#include <stdatomic.h>

#include "deflate.h"
#include "prof/tracer/tracer.h"

#define PATH_KEPT 4096u
#define CACHE_LINE 64

/* ---- ring.c ---- */

enum kind {
	KIND_EVENT,
	KIND_THREAD, /* the path is the name of a thread */
	KIND_CLOCK,  /* arguments: offset, round trip */
	KIND_SKIP,   /* padding up to the end of the ring */
};

struct packed_arg {
	const char *key;
	union {
		int64_t value;
		const char *text;
	};
};

/* A record in a ring; the path follows the arguments. */
struct record {
	uint32_t size;                    /* of the record in the ring, a multiple of 8 */
	uint8_t kind, phase, args, texts; /* texts: one bit per text argument */
	uint32_t tid;
	uint16_t path_len;
	bool has_path;
	const char *name;
	uint64_t begin_ns, end_ns;
	struct packed_arg arg[];
};

/* Single producer, the thread that owns the ring; single consumer, the writer. */
struct ring {
	_Atomic bool taken;                         /* owned by a live thread */
	_Alignas(CACHE_LINE) _Atomic uint64_t head; /* bytes written; stored by the producer */
	uint64_t seen_tail;                         /* the producer's latest copy of tail */
	_Atomic uint64_t lost;
	_Alignas(CACHE_LINE) _Atomic uint64_t tail; /* bytes read; stored by the writer */
	_Alignas(8) unsigned char data[COP_TRACER_RING_BYTES];
};

struct rings {
	pthread_key_t key; /* holds a thread's ring */
	_Atomic unsigned count;
	struct ring *_Atomic ring[COP_TRACER_RINGS];
	_Atomic uint64_t homeless; /* events of threads without a ring */
	int wake_fd;               /* eventfd of the writer */
};

int cop_tracer_rings_init(struct rings *r);
void cop_tracer_rings_fini(struct rings *r);
/* Any thread. */
void cop_tracer_put(struct rings *r, enum kind kind, const struct cop_tracer_event *e);
/* Writer only. Goes through the rings, and calls fn for the events that it finds in each. */
void cop_tracer_drain(
	struct rings *r, void (*fn)(void *arg, const struct record *record), void *arg);
/* Number of events lost so far to full rings. */
uint64_t cop_tracer_lost(const struct rings *r);

/* ---- format.c ---- */

struct format {
	uint64_t id; /* the id of the next line */
	uint64_t host_hash, source_hash;
	char *source, *host;
	size_t source_len;
	int64_t base_ns; /* real-time clock minus monotonic clock */
	int pid;
	struct cop_seen names; /* names already in the file */
	struct cop_buf path;   /* the path being written */
};

int cop_tracer_format_init(struct format *f, const struct cop_tracer_conf *conf);
void cop_tracer_format_fini(struct format *f);
/* Both append whole lines. */
void cop_tracer_begin_lines(
	struct format *f, const struct cop_tracer_conf *conf, struct cop_buf *out);
void cop_tracer_lines(struct format *f, const struct record *r, struct cop_buf *out);
/* Appends a line with the number of missing events and the reason. */
void cop_tracer_left_out(struct format *f, const char *why, uint64_t count, struct cop_buf *out);
void cop_tracer_end_lines(struct format *f, struct cop_buf *out);

#endif
