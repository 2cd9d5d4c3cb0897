/* SPDX-License-Identifier: BSD-3-Clause */
/* gentrace EVENTS MEMBER SEED FILE: writes a trace as DFTracer 1.x leaves it: calls of a program
 * that writes checkpoints, with names, files and sizes as they occur there. MEMBER says how many
 * events each gzip member has; `one`: all are in one; `plain`: there is no gzip. The same for the
 * same words. */
#include "bench.h"

#include <inttypes.h>
#include <stdbool.h>
#include <zlib.h>

#define LINE_BYTES 512
#define PACKED_BYTES 65536
#define FILES 512u
#define THREADS 6u
#define START_US UINT64_C(1698080323781412)

struct out {
	FILE *file;
	bool plain, open;
	uint64_t member, in_member;
	z_stream z;
	unsigned char packed[PACKED_BYTES];
};
struct call {
	const char *name, *cat;
	unsigned weight, mean_us;
	bool moves, on_file;
};

static const struct call calls[] = {
	{"write", "POSIX", 40, 260, true, true},
	{"read", "POSIX", 25, 180, true, true},
	{"lseek64", "POSIX", 9, 3, false, true},
	{"open64", "POSIX", 4, 90, false, true},
	{"close", "POSIX", 4, 30, false, true},
	{"__fxstat64", "POSIX", 4, 12, false, true},
	{"__xstat64", "POSIX", 3, 40, false, true},
	{"pread64", "POSIX", 4, 200, true, true},
	{"fsync", "POSIX", 1, 4000, false, true},
	{"forward", "compute", 3, 9000, false, false},
	{"backward", "compute", 2, 14000, false, false},
	{"_save_checkpoint", "checkpoint", 1, 60000, false, false},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* ---- the file ---- */

static void put_packed(struct out *o, int how)
{
	int rc;

	do {
		o->z.next_out = o->packed;
		o->z.avail_out = PACKED_BYTES;
		rc = deflate(&o->z, how);
		fwrite(o->packed, 1, PACKED_BYTES - o->z.avail_out, o->file);
	} while (!o->z.avail_out || (how == Z_FINISH && rc != Z_STREAM_END));
}

static void end_member(struct out *o)
{
	if (!o->open)
		return;
	put_packed(o, Z_FINISH);
	deflateReset(&o->z);
	o->in_member = 0;
	o->open = false;
}

static void put(struct out *o, char *line, size_t len)
{
	if (o->plain) {
		fwrite(line, 1, len, o->file);
		return;
	}
	o->z.next_in = (unsigned char *)line;
	o->z.avail_in = (unsigned)len;
	o->open = true;
	put_packed(o, Z_NO_FLUSH);
	if (++o->in_member == o->member)
		end_member(o);
}

/* ---- events ---- */

/* xorshift64*, Marsaglia, "Xorshift RNGs", 2003. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static uint64_t hash_of(uint64_t file)
{
	uint64_t state = file + 88172645463325252;

	next(&state);
	return next(&state);
}

static void define(struct out *o, const char *what, uint64_t hash, const char *name)
{
	char line[LINE_BYTES];
	int n = snprintf(line, sizeof(line),
		"{\"id\":0,\"name\":\"%s\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ph\":\"M\","
		"\"args\":{\"hhash\":%" PRIu64 ",\"name\":\"%s\",\"value\":%" PRIu64 "}}\n",
		what, hash_of(FILES), name, hash);

	put(o, line, (size_t)n);
}

static void define_all(struct out *o)
{
	char name[128];

	put(o, (char[]){"[\n"}, 2);
	define(o, "HH", hash_of(FILES), "corona171");
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name),
			i % 4 ? "/p/lustre1/user/run/global_step%u/layer_%02u-model_%02u-model_states.pt"
			      : "/l/ssd/user/scr.defjobid/scr.dataset.%u/rank_%u/part_%u.pt",
			100 * (i / 64), i % 64, i % 7);
		define(o, "FH", hash_of(i), name);
	}
}

static const struct call *pick(uint64_t r)
{
	size_t i = 0;

	for (unsigned at = (unsigned)(r % 100); at >= calls[i].weight; i++)
		at -= calls[i].weight;
	return &calls[i];
}

static uint64_t moved(uint64_t r)
{
	switch (r % 8) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 4096;
	case 3:
		return 33554432;
	default:
		return (r >> 8) % 1048576;
	}
}

static size_t event(char line[LINE_BYTES], uint64_t id, uint64_t pid, uint64_t *ts, uint64_t *state)
{
	uint64_t r = next(state), s = next(state);
	const struct call *c = pick(r);
	char args[160] = "";

	*ts += 1 + (r >> 10) % 50;
	if (c->on_file)
		snprintf(args, sizeof(args), ",\"fhash\":%" PRIu64 ",\"ret\":%" PRIu64,
			hash_of((r >> 20) % FILES), c->moves ? moved(s >> 8) : 0);
	return (size_t)snprintf(line, LINE_BYTES,
		"{\"id\":%" PRIu64 ",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%" PRIu64
		",\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ",\"dur\":%" PRIu64
		",\"ph\":\"X\",\"args\":{\"hhash\":%" PRIu64 "%s}}\n",
		id, c->name, c->cat, pid, pid + (r >> 30) % THREADS, *ts,
		1 + (s >> 30) % (2 * c->mean_us), hash_of(FILES), args);
}

int main(int argc, char **argv)
{
	static struct out o;
	uint64_t state, ts = START_US, n, pid;
	char line[LINE_BYTES];

	if (argc != 5)
		bench_die("usage: gentrace EVENTS MEMBER|one|plain SEED FILE");
	n = bench_size(argv[1]);
	state = UINT64_C(88172645463325252) + bench_size(argv[3]);
	pid = 1338000 + bench_size(argv[3]);
	o.plain = !strcmp(argv[2], "plain");
	o.member = o.plain || !strcmp(argv[2], "one") ? UINT64_MAX : bench_size(argv[2]);
	o.file = fopen(argv[4], "w");
	if (!o.file)
		bench_die("%s: %s", argv[4], strerror(errno));
	if (deflateInit2(&o.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		bench_die("no memory");
	define_all(&o);
	for (uint64_t i = 0; i < n; i++)
		put(&o, line, event(line, i, pid, &ts, &state));
	put(&o, (char[]){"]\n"}, 2);
	end_member(&o);
	deflateEnd(&o.z);
	if (fclose(o.file))
		bench_die("%s: %s", argv[4], strerror(errno));
	return 0;
}
