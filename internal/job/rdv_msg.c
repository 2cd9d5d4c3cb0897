/* SPDX-License-Identifier: BSD-3-Clause */
/* The two messages of the rendezvous, to bytes and back. Pure but for the nonces. */
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

#include "job/rdv_priv.h"

enum { KIND_ASK = 1, KIND_ANSWER = 2 };

static const uint8_t magic[5] = {'C', 'O', 'P', 'R', 1};

/* What a tag is over, gathered. Each field but the last has a fixed length or is terminated,
 * so that no two meanings have the same bytes. */
struct tagged {
	uint8_t kind;
	uint8_t nonces[2][RDV_NONCE];
	uint8_t address_len;
	char identity[RDV_IDENTITY];
	char address[COP_JOB_ADDRESS_MAX];
};

static void tag_ask(const struct rdv_key *key, const char *identity, const uint8_t *nonce,
	uint8_t out[RDV_MAC])
{
	struct tagged t = {.kind = KIND_ASK};

	memcpy(t.nonces[0], nonce, RDV_NONCE);
	memcpy(t.identity, identity, strnlen(identity, sizeof(t.identity)));
	key->mac(key->ctx, &t, sizeof(t), out);
}

static void tag_answer(const struct rdv_key *key, const char *identity, const uint8_t *asked,
	const uint8_t *nonce, const void *address, size_t len, uint8_t out[RDV_MAC])
{
	struct tagged t = {.kind = KIND_ANSWER, .address_len = (uint8_t)len};

	memcpy(t.nonces[0], asked, RDV_NONCE);
	memcpy(t.nonces[1], nonce, RDV_NONCE);
	memcpy(t.identity, identity, strnlen(identity, sizeof(t.identity)));
	memcpy(t.address, address, len);
	key->mac(key->ctx, &t, sizeof(t), out);
}

static int put_head(uint8_t *out, uint8_t kind, uint8_t len)
{
	memset(out, 0, RDV_HEAD);
	memcpy(out, magic, sizeof(magic));
	out[5] = kind;
	out[6] = len;
	return getrandom(out + RDV_HEAD, RDV_NONCE, 0) == RDV_NONCE ? 0 : -EIO;
}

/* As much of a head as is there must be right: a stranger is known by its first bytes. */
static int check_head(const uint8_t *data, size_t len, uint8_t kind)
{
	uint8_t want[RDV_HEAD] = {0};

	memcpy(want, magic, sizeof(magic));
	want[5] = kind;
	if (kind == KIND_ANSWER && len > 6)
		want[6] = data[6];
	return memcmp(data, want, COP_MIN(len, sizeof(want))) ? -EBADMSG : 0;
}

int cop_rdv_ask_build(const struct rdv_key *key, const char *identity, uint8_t nonce[RDV_NONCE],
	uint8_t out[RDV_ASK_BYTES])
{
	int rc = put_head(out, KIND_ASK, 0);

	if (rc)
		return rc;
	memcpy(nonce, out + RDV_HEAD, RDV_NONCE);
	tag_ask(key, identity, nonce, out + RDV_HEAD + RDV_NONCE);
	return 0;
}

int cop_rdv_ask_check(const struct rdv_key *key, const char *identity, const uint8_t *data,
	size_t len)
{
	uint8_t tag[RDV_MAC];

	if (check_head(data, len, KIND_ASK) || len > RDV_ASK_BYTES)
		return -EBADMSG;
	if (len < RDV_ASK_BYTES)
		return 0;
	tag_ask(key, identity, data + RDV_HEAD, tag);
	if (sodium_memcmp(tag, data + RDV_HEAD + RDV_NONCE, RDV_MAC))
		return -EACCES;
	return RDV_ASK_BYTES;
}

int cop_rdv_answer_build(const struct rdv_key *key, const char *identity, const uint8_t *ask,
	const char *address, uint8_t out[RDV_ANSWER_MAX])
{
	size_t len = strlen(address);
	int rc;

	if (!cop_job_address_ok(address, len))
		return -EINVAL;
	rc = put_head(out, KIND_ANSWER, (uint8_t)len);
	if (rc)
		return rc;
	memcpy(out + RDV_ASK_BYTES, address, len);
	tag_answer(key, identity, ask + RDV_HEAD, out + RDV_HEAD, address, len,
		out + RDV_HEAD + RDV_NONCE);
	return (int)(RDV_ASK_BYTES + len);
}

int cop_rdv_answer_check(const struct rdv_key *key, const char *identity,
	const uint8_t nonce[RDV_NONCE], const uint8_t *data, size_t len,
	char address[COP_JOB_ADDRESS_MAX + 1])
{
	const uint8_t *text = data + RDV_ASK_BYTES;
	uint8_t tag[RDV_MAC];
	size_t n;

	if (check_head(data, len, KIND_ANSWER))
		return -EBADMSG;
	if (len < RDV_ASK_BYTES)
		return 0;
	n = data[6];
	if (len > RDV_ASK_BYTES + n)
		return -EBADMSG;
	if (len < RDV_ASK_BYTES + n)
		return 0;
	tag_answer(key, identity, nonce, data + RDV_HEAD, text, n, tag);
	if (sodium_memcmp(tag, data + RDV_HEAD + RDV_NONCE, RDV_MAC))
		return -EACCES;
	if (!cop_job_address_ok((const char *)text, n))
		return -EBADMSG;
	memcpy(address, text, n);
	address[n] = '\0';
	return (int)len;
}
