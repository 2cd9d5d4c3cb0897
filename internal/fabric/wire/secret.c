/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/wire_priv.h"

#include <sodium.h>

#define SECRET_MIN 16

_Static_assert(COP_WIRE_SECRET_BYTES >= crypto_generichash_KEYBYTES_MIN &&
		       COP_WIRE_SECRET_BYTES <= crypto_generichash_KEYBYTES_MAX,
	"the secret is a BLAKE2b key");

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
}

int cop_wire_secret_from(const void *data, size_t len, struct cop_wire_secret *out)
{
	static const uint8_t context[] = "copper job secret";
	const uint8_t *p = data;
	crypto_generichash_state st;

	while (len && is_space(p[len - 1]))
		len--;
	if (len < SECRET_MIN)
		return -EINVAL;
	crypto_generichash_init(&st, NULL, 0, sizeof(out->bytes));
	crypto_generichash_update(&st, context, sizeof(context));
	crypto_generichash_update(&st, p, len);
	crypto_generichash_final(&st, out->bytes, sizeof(out->bytes));
	sodium_memzero(&st, sizeof(st));
	return 0;
}

static void add_run(crypto_generichash_state *st, const void *data, size_t len)
{
	uint8_t size[8];
	struct cop_wr w = cop_wr_init(size, sizeof(size));

	cop_wr_u64(&w, len);
	crypto_generichash_update(st, size, sizeof(size));
	if (len)
		crypto_generichash_update(st, data, len);
}

void cop_wire_derive(const struct cop_wire_secret *s, const char *context, const void *a,
	size_t a_len, const void *b, size_t b_len, uint8_t *out, size_t out_len)
{
	crypto_generichash_state st;

	crypto_generichash_init(&st, s->bytes, sizeof(s->bytes), out_len);
	add_run(&st, context, strlen(context));
	add_run(&st, a, a_len);
	add_run(&st, b, b_len);
	crypto_generichash_final(&st, out, out_len);
	sodium_memzero(&st, sizeof(st));
}

void cop_wire_mac(const struct cop_wire_secret *s, const char *context, const void *data,
	size_t len, uint8_t out[32])
{
	cop_wire_derive(s, context, "mac", 3, data, len, out, 32);
}

uint64_t cop_wire_seed(const struct cop_wire_secret *s, const char *purpose)
{
	uint8_t mac[32];
	uint64_t seed;

	cop_wire_mac(s, purpose, "", 0, mac);
	memcpy(&seed, mac, sizeof(seed));
	return seed;
}

void cop_wire_random(void *out, size_t len)
{
	randombytes_buf(out, len);
}

uint64_t cop_wire_random64(void)
{
	uint64_t v;

	randombytes_buf(&v, sizeof(v));
	return v;
}
