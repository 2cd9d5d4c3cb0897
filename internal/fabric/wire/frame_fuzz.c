/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes from an unverified peer, and bytes from a peer that has the secret: the first byte says
 * whether the rest is used as it is or is first given a correct head and tag, so that the parsers
 * behind the tag are reached, too. */
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/wire_priv.h"

static const struct cop_wire_secret secret = {{7}};

static void as_it_is(const uint8_t *data, size_t len)
{
	struct cop_frame_rx rx = {.highest = 0}, before = rx;
	struct cop_frame_keys keys;
	struct cop_hello h;
	struct cop_frame f;
	uint8_t hello[COP_HELLO_MAX];
	size_t hello_len;
	uint64_t id;

	if (!cop_frame_parse(data, len, &f) &&
		(f.payload < data || f.payload + f.payload_len > data + len))
		abort();
	if (cop_frame_open(&rx, data, len, &f) && memcmp(&rx, &before, sizeof(rx)))
		abort();
	cop_hello_read(&secret, data, len, &h);
	h = (struct cop_hello){.from = 1, .to = 2, .session = 3, .address = "a", .address_len = 1};
	hello_len = cop_hello_write(&secret, &h, hello);
	if (!cop_welcome_read(&secret, hello, hello_len, data, len, &id, &keys))
		abort();
}

/* data is the payload of a message with a correct tag. */
static void as_hello(const uint8_t *data, size_t len)
{
	static const char context[] = "copper hello 1";
	uint8_t msg[COP_HELLO_MAX + 64], welcome[COP_WELCOME_LEN];
	struct cop_frame f = {.type = COP_FRAME_HELLO};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);
	struct cop_frame_keys keys;
	struct cop_hello h;
	size_t n;

	cop_wr_bytes(&w, data, COP_MIN(len, sizeof(msg) - COP_FRAME_HEAD - COP_HANDSHAKE_TAG));
	cop_frame_set_len(&w, COP_HANDSHAKE_TAG);
	n = cop_wr_len(&w);
	cop_wire_derive(&secret, context, NULL, 0, msg, n, msg + n, COP_HANDSHAKE_TAG);
	n += COP_HANDSHAKE_TAG;
	if (cop_hello_read(&secret, msg, n, &h))
		return;
	if ((const uint8_t *)h.address < msg ||
		(const uint8_t *)h.address + h.address_len > msg + n)
		abort();
	if (cop_welcome_write(&secret, msg, n, 9, welcome, &keys) != COP_WELCOME_LEN)
		abort();
}

static void as_sealed(const uint8_t *data, size_t len)
{
	struct cop_frame_tx tx = {.counter = 0};
	struct cop_frame_rx rx = {.highest = 0};
	struct cop_frame f = {.type = (uint8_t)(len ? data[0] % 16 : 0), .request = len};
	uint8_t *msg = malloc(len + COP_FRAME_OVERHEAD);
	struct cop_wr w;
	size_t n;
	int rc;

	if (!msg)
		return;
	w = cop_frame_begin(msg, len + COP_FRAME_OVERHEAD, &f);
	cop_wr_bytes(&w, data, len);
	n = cop_frame_seal(&tx, &w);
	rc = cop_frame_open(&rx, msg, n, &f);
	if (!rc && (f.payload_len != len || memcmp(f.payload, data, len)))
		abort();
	if (!rc && !cop_frame_open(&rx, msg, n, &f))
		abort();
	free(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		as_it_is(data + 1, size - 1);
		break;
	case 1:
		as_hello(data + 1, size - 1);
		break;
	default:
		as_sealed(data + 1, size - 1);
		break;
	}
	return 0;
}
