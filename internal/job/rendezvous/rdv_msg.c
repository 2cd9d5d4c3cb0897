/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes the two messages of the rendezvous. No side effects, except that nonces are
 * random. */
#include <sodium.h>
#include <sys/random.h>

#include "job/rendezvous/rdv_priv.h"

enum { KIND_ASK = 1, KIND_ANSWER = 2 };

static const uint8_t magic[5] = {'C', 'O', 'P', 'R', 2};

/* The bytes that a tag covers. All fields but the last have a fixed length or a terminator, so
 * distinct messages have distinct bytes. */
struct tagged {
	uint8_t kind;
	uint8_t nonces[2][RDV_NONCE];
	uint8_t address_len;
	char identity[RDV_IDENTITY];
	char address[COP_JOB_ADDRESS_MAX];
};

static void make_tag(const struct rdv_key *key, struct tagged *t, const char *identity,
	const void *address, size_t len, uint8_t out[RDV_MAC])
{
	memcpy(t->identity, identity, strnlen(identity, sizeof(t->identity)));
	t->address_len = (uint8_t)len;
	memcpy(t->address, address, len);
	key->mac(key->ctx, t, sizeof(*t), out);
}

static void tag_ask(const struct rdv_key *key, const char *identity, const uint8_t *nonce,
	const void *address, size_t len, uint8_t out[RDV_MAC])
{
	struct tagged t = {.kind = KIND_ASK};

	memcpy(t.nonces[0], nonce, RDV_NONCE);
	make_tag(key, &t, identity, address, len, out);
}

static void tag_answer(const struct rdv_key *key, const char *identity, const uint8_t *asked,
	const uint8_t *nonce, const void *address, size_t len, uint8_t out[RDV_MAC])
{
	struct tagged t = {.kind = KIND_ANSWER};

	memcpy(t.nonces[0], asked, RDV_NONCE);
	memcpy(t.nonces[1], nonce, RDV_NONCE);
	make_tag(key, &t, identity, address, len, out);
}

/* Fills in everything but the tag. Returns the length of the address, or -errno. */
static int fill_message(uint8_t *out, uint8_t kind, const char *address)
{
	size_t len = strlen(address);

	if (!cop_job_address_ok(address, len))
		return -EINVAL;
	memset(out, 0, RDV_HEAD);
	memcpy(out, magic, sizeof(magic));
	out[5] = kind;
	out[6] = (uint8_t)len;
	memcpy(out + RDV_FIXED, address, len);
	return getrandom(out + RDV_HEAD, RDV_NONCE, 0) == RDV_NONCE ? (int)len : -EIO;
}

/* Checks as much of the header as has arrived, because its first bytes already give away an
 * unverified peer. Returns the length of the message once it is complete, or 0. */
static int check_form(const uint8_t *data, size_t len, uint8_t kind)
{
	uint8_t want[RDV_HEAD] = {0};
	size_t whole;

	memcpy(want, magic, sizeof(magic));
	want[5] = kind;
	if (len > 6)
		want[6] = data[6];
	if (memcmp(data, want, COP_MIN(len, sizeof(want))))
		return -EBADMSG;
	whole = len > 6 ? RDV_FIXED + (size_t)data[6] : RDV_MESSAGE_MAX;
	return len > whole ? -EBADMSG : len < whole ? 0 : (int)len;
}

/* Checks the message's tag, then copies its address. */
static int parse_address(const uint8_t *data, int len, const uint8_t want[RDV_MAC],
	char address[COP_JOB_ADDRESS_MAX + 1])
{
	const char *text = (const char *)data + RDV_FIXED;
	size_t n = (size_t)len - RDV_FIXED;

	if (sodium_memcmp(want, data + RDV_HEAD + RDV_NONCE, RDV_MAC))
		return -EACCES;
	if (!cop_job_address_ok(text, n))
		return -EBADMSG;
	memcpy(address, text, n);
	address[n] = '\0';
	return len;
}

int cop_rdv_ask_build(const struct rdv_key *key, const char *identity, const char *address,
	uint8_t nonce[RDV_NONCE], uint8_t out[RDV_MESSAGE_MAX])
{
	int n = fill_message(out, KIND_ASK, address);

	if (n < 0)
		return n;
	memcpy(nonce, out + RDV_HEAD, RDV_NONCE);
	tag_ask(key, identity, nonce, address, (size_t)n, out + RDV_HEAD + RDV_NONCE);
	return RDV_FIXED + n;
}

int cop_rdv_ask_check(const struct rdv_key *key, const char *identity, const uint8_t *data,
	size_t len, char address[COP_JOB_ADDRESS_MAX + 1])
{
	uint8_t want[RDV_MAC];
	int rc = check_form(data, len, KIND_ASK);

	if (rc <= 0)
		return rc;
	tag_ask(key, identity, data + RDV_HEAD, data + RDV_FIXED, len - RDV_FIXED, want);
	return parse_address(data, rc, want, address);
}

int cop_rdv_answer_build(const struct rdv_key *key, const char *identity, const uint8_t *ask,
	const char *address, uint8_t out[RDV_MESSAGE_MAX])
{
	int n = fill_message(out, KIND_ANSWER, address);

	if (n < 0)
		return n;
	tag_answer(key, identity, ask + RDV_HEAD, out + RDV_HEAD, address, (size_t)n,
		out + RDV_HEAD + RDV_NONCE);
	return RDV_FIXED + n;
}

int cop_rdv_answer_check(const struct rdv_key *key, const char *identity,
	const uint8_t nonce[RDV_NONCE], const uint8_t *data, size_t len,
	char address[COP_JOB_ADDRESS_MAX + 1])
{
	uint8_t want[RDV_MAC];
	int rc = check_form(data, len, KIND_ANSWER);

	if (rc <= 0)
		return rc;
	tag_answer(key, identity, nonce, data + RDV_HEAD, data + RDV_FIXED, len - RDV_FIXED, want);
	return parse_address(data, rc, want, address);
}
