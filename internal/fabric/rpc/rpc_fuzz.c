/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer can do to a node by messages alone: as an unverified peer, and as one that knows the
 * secret and sends anything in any order. The input plays rank 2: a sequence of steps, each a byte
 * that selects the step, a length byte and as many bytes. */
#include "fabric/rpc/rpc_testing.h"

#define EVIL 2
#define LANDING 4096

struct evil {
	struct cop_endpoint_work work;
	struct t_world *w;
	struct cop_endpoint *fabric;
	uint8_t hello[COP_HELLO_MAX];
	size_t hello_len;
	/* The session that rank 2 opened to rank 1, and the one that rank 0 opened to rank 2. */
	bool as_client, as_server;
	struct cop_frame_keys client, server;
	uint64_t client_remote, server_remote;
	uint64_t last_request;
	uint8_t landing[LANDING];
	/* Posted work. */
	const char *to;
	const void *msg;
	size_t len;
};

static void send_now(struct evil *e, const char *to, const void *msg, size_t len)
{
	cop_endpoint_peer_t peer;

	if (cop_endpoint_peer(e->fabric, to, &peer))
		abort();
	cop_endpoint_send(e->fabric, peer, msg, len, NULL, NULL);
}

static void send_posted(struct cop_endpoint_work *w)
{
	struct evil *e = COP_CONTAINER_OF(w, struct evil, work);

	send_now(e, e->to, e->msg, e->len);
}

static void shoot(struct evil *e, const char *to, const void *msg, size_t len)
{
	e->to = to;
	e->msg = msg;
	e->len = len;
	e->work.run = send_posted;
	if (cop_endpoint_post(e->fabric, &e->work))
		abort();
	t_run(e->w);
}

static void evil_recv(void *ctx, const void *msg, size_t len)
{
	struct evil *e = ctx;
	struct cop_frame f;
	struct cop_hello h;
	uint8_t welcome[COP_WELCOME_LEN];

	if (cop_frame_parse(msg, len, &f))
		abort();
	if (f.type == COP_FRAME_WELCOME) {
		if (!cop_welcome_read(&t_secret, e->hello, e->hello_len, msg, len,
			    &e->client_remote, &e->client))
			e->as_client = true;
	} else if (f.type == COP_FRAME_HELLO) {
		if (cop_hello_read(&t_secret, msg, len, &h))
			abort();
		e->server_remote = h.session;
		cop_welcome_write(&t_secret, msg, len, 0x100000000ULL, welcome, &e->server);
		e->as_server = true;
		send_now(e, "fake://n0", welcome, sizeof(welcome));
	} else if (f.type == COP_FRAME_REQUEST) {
		e->last_request = f.request;
	}
}

static void evil_tick(void *ctx, uint64_t now_ms)
{
	(void)ctx, (void)now_ms;
}

static void greet(struct evil *e)
{
	struct cop_hello h = {
		.from = EVIL, .to = 1, .session = 7, .address = "fake://n2", .address_len = 9};

	cop_wire_random(h.nonce, sizeof(h.nonce));
	e->hello_len = cop_hello_write(&t_secret, &h, e->hello);
	shoot(e, "fake://n1", e->hello, e->hello_len);
}

/* data: type, request (relative to the last), payload. */
static void sealed(struct evil *e, bool client, const uint8_t *data, size_t len)
{
	uint8_t msg[512];
	struct cop_frame f = {.type = (uint8_t)(len ? data[0] % COP_FRAME_TYPES : 0)};
	struct cop_wr w;
	size_t n;

	if (len < 2 || (client ? !e->as_client : !e->as_server))
		return;
	f.session = client ? e->client_remote : e->server_remote;
	f.request = client ? data[1] : e->last_request - data[1] % 4;
	w = cop_frame_begin(msg, sizeof(msg), &f);
	cop_wr_bytes(&w, data + 2, len - 2);
	n = cop_frame_seal(client ? &e->client.tx : &e->server.tx, &w);
	shoot(e, client ? "fake://n1" : "fake://n0", msg, n);
}

/* data: request, mode, status, body length as two bytes, body. */
static void reply(struct evil *e, const uint8_t *data, size_t len)
{
	uint8_t payload[2 + 512] = {COP_FRAME_REPLY};
	struct cop_wr w = cop_wr_init(payload + 2, sizeof(payload) - 2);
	struct msg_reply m = {.head = "h", .head_len = 1};

	if (len < 5)
		return;
	payload[1] = data[0];
	m.mode = data[1] % MODES;
	m.status = -(int)data[2];
	m.body_len = m.mode == MODE_INLINE ? len - 5 : data[3] + 256u * data[4];
	m.body = data + 5;
	m.body_hash = cop_hash64(e->landing, COP_MIN(m.body_len, LANDING), e->server.body_seed);
	cop_rpc_msg_put_reply(&w, &m);
	sealed(e, false, payload, 2 + cop_wr_len(&w));
}

static void call(struct evil *e, bool landing)
{
	struct t_result *t = t_next(e->w);
	struct cop_rpc_call c = {.rank = EVIL,
		.op = T_ECHO,
		.payload = "x",
		.payload_len = 1,
		.landing = landing ? e->landing : NULL,
		.landing_len = landing ? LANDING : 0,
		.done = t_done,
		.arg = t};

	cop_rpc_call(e->w->node[0].rpc, &c);
	t_run(e->w);
}

static void step(struct evil *e, uint8_t kind, const uint8_t *data, size_t len)
{
	switch (kind % 8) {
	case 0:
		shoot(e, "fake://n1", data, len);
		break;
	case 1:
		sealed(e, true, data, len);
		break;
	case 2:
		sealed(e, false, data, len);
		break;
	case 3:
		call(e, len % 2);
		break;
	case 4:
		t_advance(e->w, 100 * (len % 64));
		break;
	case 5:
		t_answer_held(&e->w->node[1]);
		t_run(e->w);
		break;
	case 6:
		reply(e, data, len);
		break;
	default:
		greet(e);
		break;
	}
}

static void play(struct evil *e, const uint8_t *data, size_t size)
{
	struct cop_rd r = cop_rd_init(data, size);

	for (unsigned i = 0; i < 64 && r.p < r.end; i++) {
		uint8_t kind = cop_rd_u8(&r);
		size_t len = cop_rd_u8(&r);

		len = COP_MIN(len, (size_t)(r.end - r.p));
		step(e, kind, r.p, len);
		r.p += len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct t_world w;
	static struct evil e;
	struct cop_endpoint_conf fc = {.events = {.ctx = &e, .recv = evil_recv, .tick = evil_tick}};

	memset(w.node, 0, sizeof(w.node));
	memset(w.result, 0, w.results * sizeof(w.result[0]));
	w.results = 0;
	memset(&e, 0, sizeof(e));
	e.w = &w;
	w.net = cop_endpoint_net_new();
	if (!w.net || t_open(&w, 0, &t_secret) || t_open(&w, 1, &t_secret) ||
		cop_endpoint_fake_open(w.net, "n2", &fc, &e.fabric))
		abort();
	w.node[1].body_mask = 0x1ffff;
	greet(&e);
	call(&e, true);
	play(&e, data, size);
	t_close(&w, 0);
	t_close(&w, 1);
	t_answer_held(&w.node[1]);
	cop_endpoint_close(e.fabric);
	cop_endpoint_net_free(w.net);
	for (unsigned i = 0; i < w.results; i++)
		if (w.result[i].times != 1)
			abort();
	if (w.node[1].releases != w.node[1].bodies)
		abort();
	return 0;
}
