/* SPDX-License-Identifier: BSD-3-Clause */
/* Both parsers of the rendezvous, with a tag that the fuzzer can produce: all zero. */
#include <stdlib.h>
#include <string.h>

#include "job/rendezvous/rdv_priv.h"

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
	static const uint8_t nonce[RDV_NONCE];
	struct rdv_key key = {.mac = zero_mac};
	char address[COP_JOB_ADDRESS_MAX + 1] = "";
	int rc = cop_rdv_ask_check(&key, "n1:7720", data, size, address);

	if (rc > 0 && ((size_t)rc != size || strlen(address) != data[6] || !address[0]))
		abort();
	rc = cop_rdv_answer_check(&key, "n1:7720", nonce, data, size, address);
	if (rc > 0 && ((size_t)rc != size || strlen(address) != data[6] || !address[0]))
		abort();
	return 0;
}
