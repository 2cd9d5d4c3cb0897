/* SPDX-License-Identifier: BSD-3-Clause */
/* Others write address books: what parses must print, and the printed text must parse to the
 * same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/endpoint/endpoint_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cop_endpoint_naming *n, const char *text)
{
	unsigned char raw[COP_ENDPOINT_RAW_MAX], again[COP_ENDPOINT_RAW_MAX];
	char out[2 * COP_ENDPOINT_TEXT_MAX + 64];
	size_t len, again_len;

	if (cop_endpoint_address_parse(n, text, raw, &len))
		return;
	if (cop_endpoint_address_print(n, raw, len, out, sizeof(out)))
		abort();
	if (strlen(out) >= COP_ENDPOINT_TEXT_MAX)
		return;
	if (cop_endpoint_address_parse(n, out, again, &again_len) || again_len != len ||
		memcmp(raw, again, len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		const char *scheme;
		enum cop_endpoint_form form;
		size_t own_len;
	} kinds[] = {
		{"tcp", COP_ENDPOINT_FORM_IP, 16},
		{"tcp", COP_ENDPOINT_FORM_IP, 28},
		{"shm", COP_ENDPOINT_FORM_STR, 14},
		{"cxi", COP_ENDPOINT_FORM_CXI, 8},
		{"opx", COP_ENDPOINT_FORM_RAW, 8},
	};
	struct cop_endpoint_net_type net;
	char *text = malloc(size + 1), node[64], service[16];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < COP_ARRAY_SIZE(kinds); i++) {
		struct cop_endpoint_naming n = {.scheme = kinds[i].scheme,
			.form = kinds[i].form,
			.own_len = kinds[i].own_len};

		check(&n, text);
	}
	if (cop_endpoint_net_type_parse(text, &net) == 0)
		cop_endpoint_address_split(&net, text, node, service);
	free(text);
	return 0;
}
