/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "job/hosts/hosts_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char n1[] = "n1", n2[] = "n2.site", local[] = "127.0.0.11";
	struct cop_job_host host[] = {{.name = n1, .port = 7720}, {.name = n2, .port = 7720},
		{.name = local, .port = 7720}, {.name = local, .port = 7721}};
	struct cop_job_hosts hosts = {.host = host, .count = COP_ARRAY_SIZE(host)};
	char *address[COP_ARRAY_SIZE(host)];
	struct cop_err err = {0};
	int rc = cop_job_book_parse(
		(const char *)data, size, "fuzz", &hosts, size % 2 ? "cxi1" : NULL, address, &err);

	if ((rc != 0) != (err.code != 0))
		abort();
	for (size_t i = 0; i < COP_ARRAY_SIZE(host); i++) {
		if ((address[i] == NULL) != (rc != 0))
			abort();
		free(address[i]);
	}
	return 0;
}
