/* SPDX-License-Identifier: BSD-3-Clause */
/* The greetings of the guarded port from both sides, with a tag that the fuzzer can produce: all
 * zero. */
#include <stdlib.h>
#include <string.h>

#include "fabric/endpoint/portguard_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void zero_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	(void)ctx;
	(void)data;
	(void)len;
	memset(out, 0, 32);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cop_greet_key key = {.mac = zero_mac};
	const struct sockaddr_storage at = {.ss_family = size & 1 ? AF_INET : AF_INET6};
	uint8_t challenge[COP_GREET_CHALLENGE] = "COPG\1\1", answer[COP_GREET_ANSWER],
		proof[COP_GREET_PROOF];

	if (size >= COP_GREET_ANSWER &&
		cop_endpoint_greet_check_answer(&key, challenge, &at, data, proof) == 0 &&
		cop_endpoint_greet_check_proof(&key, challenge, &at, data, proof))
		abort();
	if (size >= COP_GREET_CHALLENGE &&
		cop_endpoint_greet_answer(&key, data, &at, answer) == 0) {
		if (cop_endpoint_greet_check_answer(&key, data, &at, answer, proof))
			abort();
		if (size >= COP_GREET_CHALLENGE + COP_GREET_PROOF)
			cop_endpoint_greet_check_proof(
				&key, data, &at, answer, data + COP_GREET_CHALLENGE);
	}
	return 0;
}
