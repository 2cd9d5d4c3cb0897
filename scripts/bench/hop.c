/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes without FUSE: the product's rpc, cache, fetch and origin over its tcp fabric, one process
 * per node on 127.0.0.11, .12 and .13, in a chain.
 *
 *     hop small COUNT PAUSE_US   two nodes: median and 99th percentile in seconds of a small
 *                                request and its small reply, PAUSE_US of silence after each;
 *                                asked by a thread of its own
 *     hop chain COUNT 0          the same, each asked by the progress thread when it has the
 *                                answer before
 *     hop bulk BYTES CHUNK       two nodes, the parent has a file of BYTES in its cache and the
 *                                child fetches it into its own: bytes per second, a line for each
 *                                of three passes
 *     hop relay BYTES CHUNK      three nodes, the first has the file, the last fetches it: bytes
 *                                per second of CPU time of the middle one, a line for each of
 *                                three passes */
#include "bench.h"

#include <fcntl.h>
#include <semaphore.h>

#include "tree/fetch/fetch.h"

/* As large as the window that fs keeps for a reader. */
#define WINDOW 16
#define OP_SMALL 40
#define SMALL_BYTES 200
#define WARM_UP 100
/* In the first pass the memory comes fresh from the kernel; in the last it has been used before. */
#define PASSES 3

struct job {
	unsigned nodes;
	size_t bytes, chunk;
	unsigned count, pause_us;
	bool chained;
	char dir[512];
};

struct node {
	struct bench_shared *shared;
	uint32_t rank;
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_fetch *fetch;
};

static void resolve(void *ctx, uint32_t rank, bool silent)
{
	struct node *n = ctx;

	(void)silent;
	cop_rpc_resolved(n->rpc, rank, n->shared->address[rank], false);
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	static const char body[SMALL_BYTES];
	struct node *n = ctx;

	if (cop_rpc_req_op(req) == OP_SMALL)
		cop_rpc_reply(
			req, &(struct cop_rpc_answer){.body = body, .body_len = sizeof(body)});
	else if (!cop_fetch_serve(n->fetch, req))
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EOPNOTSUPP});
}

static void open_node(struct node *n, const struct job *j)
{
	struct cop_rpc_conf rpc = {.rank = n->rank,
		.nodes = j->nodes,
		.secret = {{42}},
		.peer_timeout_ms = 3000,
		.stats = &n->stats,
		.ctx = n,
		.resolve = resolve,
		.serve = serve};
	struct cop_origin_conf origin = {.source = j->dir,
		.max_ops = 64,
		.listing_max = 65536,
		.listing_attrs = COP_ORIGIN_LISTING_ATTRS,
		.stats = &n->stats};
	struct cop_fetch_conf fetch = {.topo = {j->nodes, 1, 1},
		.rank = n->rank,
		.chunk_bytes = j->chunk,
		.enoent_ttl_ms = 60000,
		.stats = &n->stats};
	struct cop_endpoint_conf fabric = {.net_type = "tcp"};
	struct cop_err err = {0};
	char host[32];

	snprintf(host, sizeof(host), "127.0.0.%u", 11 + n->rank);
	fabric.host = host;
	/* A flight may fill half of the budget; nothing may be evicted here. */
	n->cache = cop_cache_new(2 * j->bytes + 64 * COP_MIB, &n->stats);
	if (!n->cache || cop_origin_open(&origin, &n->origin, &err) ||
		cop_rpc_open(&rpc, &fabric, &n->rpc, &err))
		bench_die("node %u: %s", n->rank, err.text);
	fetch.cache = n->cache;
	fetch.origin = n->origin;
	fetch.rpc = n->rpc;
	n->fetch = cop_fetch_new(&fetch);
	if (!n->fetch)
		bench_die("no memory");
	snprintf(n->shared->address[n->rank], sizeof(n->shared->address[0]), "%s",
		cop_endpoint_address(cop_rpc_fabric(n->rpc)));
}

static void close_node(struct node *n)
{
	cop_fetch_close(n->fetch);
	cop_origin_close(n->origin);
	cop_rpc_close(n->rpc);
	cop_fetch_free(n->fetch);
	cop_cache_free(n->cache);
}

/* ---- a file, through fetch ---- */

struct wanted {
	struct cop_waiter waiter;
	struct cop_obj *obj; /* with a reference, if it is to be kept */
	bool keep;
	int rc;
	sem_t *done;
};

static void completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct wanted *x = COP_CONTAINER_OF(w, struct wanted, waiter);

	x->rc = rc;
	x->obj = x->keep ? cop_obj_get(obj) : NULL;
	sem_post(x->done);
}

static void ask_fetch(struct node *n, const struct cop_ask *what, struct wanted *x)
{
	struct cop_obj *obj;
	int rc = cop_fetch_get(n->fetch, what, &x->waiter, &obj);

	bench_check(rc, "cop_fetch_get");
	if (rc == 1) {
		completed(&x->waiter, obj, obj->error);
		cop_obj_put(n->cache, obj);
	}
}

static void wait_done(sem_t *done)
{
	while (sem_wait(done) && errno == EINTR)
		;
}

static struct cop_attr attributes(struct node *n)
{
	struct cop_attr attr;
	sem_t done;
	struct wanted x = {.waiter.completed = completed, .keep = true, .done = &done};

	sem_init(&done, 0, 0);
	ask_fetch(n, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = "file"}, &x);
	wait_done(&done);
	bench_check(x.rc, "attributes");
	cop_entry_get(x.obj->data, &attr, NULL, NULL);
	cop_obj_put(n->cache, x.obj);
	return attr;
}

/* Fetches every chunk in order, a window at a time; they stay in the cache. */
static void fetch_file(struct node *n, const struct job *j, const struct cop_attr *attr)
{
	uint64_t chunks = j->bytes / j->chunk;
	struct wanted *x = calloc(chunks, sizeof(*x));
	sem_t room, done;

	if (!x)
		bench_die("no memory");
	sem_init(&room, 0, WINDOW);
	sem_init(&done, 0, 0);
	for (uint64_t i = 0; i < chunks; i++) {
		x[i].waiter.completed = completed;
		x[i].done = &room;
		wait_done(&room);
		ask_fetch(n,
			&(struct cop_ask){.kind = COP_ASK_CHUNK,
				.path = "file",
				.version = attr->version,
				.size = attr->size,
				.index = i},
			&x[i]);
	}
	for (unsigned i = 0; i < WINDOW; i++)
		wait_done(&room);
	for (uint64_t i = 0; i < chunks; i++)
		bench_check(x[i].rc, "chunk");
	free(x);
}

/* One pass: bytes per second of the last node, or of CPU time of the one before it. */
static void pass(struct node *n, const struct job *j)
{
	struct cop_attr attr;
	double wall, cpu;

	if (n->rank > 0)
		cop_cache_drop_under(n->cache, "");
	bench_meet(n->shared);
	/* Sessions and connections open here. */
	attr = attributes(n);
	bench_meet(n->shared);
	wall = bench_wall();
	cpu = bench_cpu();
	if (n->rank == j->nodes - 1)
		fetch_file(n, j, &attr);
	wall = bench_wall() - wall;
	bench_meet(n->shared);
	if (n->rank == 1)
		printf("%.0f\n", (double)j->bytes / (j->nodes == 2 ? wall : bench_cpu() - cpu));
	bench_meet(n->shared);
}

static void bulk_side(struct bench_shared *s, void *arg, unsigned i)
{
	const struct job *j = arg;
	struct node n = {.shared = s, .rank = i};
	struct cop_attr attr;

	open_node(&n, j);
	bench_meet(s);
	if (i == 0) {
		attr = attributes(&n);
		fetch_file(&n, j, &attr);
	}
	for (int times = 0; times < PASSES; times++)
		pass(&n, j);
	fflush(stdout);
	bench_meet(s);
	close_node(&n);
}

/* ---- small requests ---- */

struct asked {
	struct node *node;
	struct cop_rpc_call call;
	sem_t done;
	bool chained; /* the callback of each answer sends the next request */
	unsigned count, next;
	double start, *took;
};

static void ask_small(struct asked *a)
{
	a->start = bench_wall();
	cop_rpc_call(a->node->rpc, &a->call);
}

/* The first requests open the session and warm up. */
static void answered(void *arg, const struct cop_rpc_result *r)
{
	struct asked *a = arg;

	if (r->status || r->body_len != SMALL_BYTES)
		bench_die("small request: %s", strerror(-r->status));
	if (a->next >= WARM_UP)
		a->took[a->next - WARM_UP] = bench_wall() - a->start;
	if (++a->next < a->count && a->chained)
		ask_small(a);
	else
		sem_post(&a->done);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Measured from the call to the answer on the progress thread, where fs replies and a request is
 * passed on. */
static void ask_all(struct node *n, const struct job *j)
{
	static const char payload[64] = "site-packages/torch/nn/modules/__init__.py";
	struct asked a = {.node = n,
		.chained = j->chained,
		.count = j->count + WARM_UP,
		.call = {.rank = 0,
			.op = OP_SMALL,
			.payload = payload,
			.payload_len = sizeof(payload),
			.done = answered,
			.arg = &a}};

	a.took = calloc(j->count, sizeof(*a.took));
	if (!a.took)
		bench_die("no memory");
	sem_init(&a.done, 0, 0);
	while (a.next < a.count) {
		ask_small(&a);
		wait_done(&a.done);
		if (j->pause_us)
			usleep(j->pause_us);
	}
	qsort(a.took, j->count, sizeof(*a.took), by_size);
	printf("%.9f %.9f\n", a.took[j->count / 2], a.took[j->count * 99ull / 100]);
	fflush(stdout);
	free(a.took);
}

static void small_side(struct bench_shared *s, void *arg, unsigned i)
{
	const struct job *j = arg;
	struct node n = {.shared = s, .rank = i};

	open_node(&n, j);
	bench_meet(s);
	if (i == 1)
		ask_all(&n, j);
	bench_meet(s);
	close_node(&n);
}

/* ---- what to do ---- */

/* A file of incompressible bytes. */
static void make_file(struct job *j)
{
	uint64_t *block = malloc(j->chunk), x = 88172645463325252ull;
	const char *tmp = getenv("TMPDIR");
	char path[520];
	int fd;

	snprintf(j->dir, sizeof(j->dir), "%s/copper-hop.XXXXXX", tmp ? tmp : "/tmp");
	if (!block || !mkdtemp(j->dir))
		bench_die("no directory for the file");
	snprintf(path, sizeof(path), "%s/file", j->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	for (size_t done = 0; done < j->bytes; done += j->chunk) {
		for (size_t i = 0; i < j->chunk / sizeof(x); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		if (cop_write_full(fd, block, j->chunk) < 0)
			bench_die("cannot write %s", path);
	}
	close(fd);
	free(block);
}

static void remove_file(const struct job *j)
{
	char path[520];

	snprintf(path, sizeof(path), "%s/file", j->dir);
	unlink(path);
	rmdir(j->dir);
}

int main(int argc, char **argv)
{
	struct job j = {.nodes = 2};
	const char *what = argc == 4 ? argv[1] : "";
	int bad;

	if (strcmp(what, "small") == 0 || strcmp(what, "chain") == 0) {
		j.chained = *what == 'c';
		j.chunk = j.bytes = COP_MIB;
		j.count = (unsigned)bench_size(argv[2]);
		j.pause_us = (unsigned)atoi(argv[3]);
	} else if (strcmp(what, "bulk") == 0 || strcmp(what, "relay") == 0) {
		j.nodes = *what == 'r' ? 3 : 2;
		j.bytes = bench_size(argv[2]);
		j.chunk = bench_size(argv[3]);
	} else {
		bench_die(
			"usage: hop small COUNT PAUSE_US | chain COUNT 0 | bulk BYTES CHUNK | relay BYTES CHUNK");
	}
	if (j.bytes % j.chunk)
		bench_die("BYTES must be a multiple of CHUNK");
	make_file(&j);
	/* The file's pages, and what each node caches. */
	if (!j.count)
		bench_use_memory((j.nodes + 1) * j.bytes);
	bad = bench_sides(j.nodes, j.count ? small_side : bulk_side, &j);
	remove_file(&j);
	return bad;
}
