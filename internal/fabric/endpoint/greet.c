/* SPDX-License-Identifier: BSD-3-Clause */
#include <sodium.h>
#include <sys/random.h>

#include "fabric/endpoint/portguard_priv.h"

enum { KIND_CHALLENGE = 1, KIND_ANSWER, KIND_PROOF };

static void put_head(uint8_t kind, uint8_t out[COP_GREET_HEAD])
{
	const uint8_t bytes[COP_GREET_HEAD] = {'C', 'O', 'P', 'G', 1, kind, 0, 0};

	memcpy(out, bytes, sizeof(bytes));
}

static bool has_head(uint8_t kind, const uint8_t *data)
{
	uint8_t want[COP_GREET_HEAD];

	put_head(kind, want);
	return memcmp(want, data, sizeof(want)) == 0;
}

/* Fixed field positions: no two greetings share their tagged bytes. */
struct tagged {
	uint8_t kind;
	uint8_t nonces[2][COP_GREET_NONCE];
	uint8_t port[2];
	uint8_t address[16];
};

static void make_tag(const struct cop_greet_key *key, uint8_t kind, const uint8_t *challenge,
	const uint8_t *answer, const struct sockaddr_storage *at, uint8_t out[COP_GREET_MAC])
{
	struct tagged t = {.kind = kind};
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	memcpy(t.nonces[0], challenge + COP_GREET_HEAD, COP_GREET_NONCE);
	memcpy(t.nonces[1], answer + COP_GREET_HEAD, COP_GREET_NONCE);
	memcpy(&four, at, sizeof(four));
	memcpy(&six, at, sizeof(six));
	memcpy(t.port, at->ss_family == AF_INET6 ? &six.sin6_port : &four.sin_port, sizeof(t.port));
	if (at->ss_family == AF_INET6)
		memcpy(t.address, &six.sin6_addr, sizeof(six.sin6_addr));
	else
		memcpy(t.address, &four.sin_addr, sizeof(four.sin_addr));
	key->mac(key->ctx, &t, sizeof(t), out);
}

int cop_endpoint_greet_challenge(uint8_t out[COP_GREET_CHALLENGE])
{
	put_head(KIND_CHALLENGE, out);
	return getrandom(out + COP_GREET_HEAD, COP_GREET_NONCE, GRND_NONBLOCK) == COP_GREET_NONCE
		       ? 0
		       : -EIO;
}

int cop_endpoint_greet_answer(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, uint8_t out[COP_GREET_ANSWER])
{
	if (!has_head(KIND_CHALLENGE, challenge))
		return -EBADMSG;
	put_head(KIND_ANSWER, out);
	if (getrandom(out + COP_GREET_HEAD, COP_GREET_NONCE, GRND_NONBLOCK) != COP_GREET_NONCE)
		return -EIO;
	make_tag(key, KIND_ANSWER, challenge, out, at, out + COP_GREET_HEAD + COP_GREET_NONCE);
	return 0;
}

int cop_endpoint_greet_check_answer(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, const uint8_t *answer, uint8_t proof[COP_GREET_PROOF])
{
	uint8_t want[COP_GREET_MAC];

	if (!has_head(KIND_ANSWER, answer))
		return -EBADMSG;
	make_tag(key, KIND_ANSWER, challenge, answer, at, want);
	if (sodium_memcmp(want, answer + COP_GREET_HEAD + COP_GREET_NONCE, sizeof(want)))
		return -EACCES;
	put_head(KIND_PROOF, proof);
	make_tag(key, KIND_PROOF, challenge, answer, at, proof + COP_GREET_HEAD);
	return 0;
}

int cop_endpoint_greet_check_proof(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, const uint8_t *answer, const uint8_t *proof)
{
	uint8_t want[COP_GREET_MAC];

	if (!has_head(KIND_PROOF, proof))
		return -EBADMSG;
	make_tag(key, KIND_PROOF, challenge, answer, at, want);
	return sodium_memcmp(want, proof + COP_GREET_HEAD, sizeof(want)) ? -EACCES : 0;
}
