/* SPDX-License-Identifier: BSD-3-Clause */
/* The first byte selects a LIST, a host file or a PBS node file. */
#include <stdlib.h>

#include "job/hosts/hosts_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_job_builder b = {0};
	struct cop_err err = {0};
	const char *text = (const char *)data + 1;
	int rc;

	if (size < 2)
		return 0;
	if (data[0] % 3 == 0)
		rc = cop_job_list_expand(text, size - 1, COP_JOB_PORT, &b, &err);
	else
		rc = cop_job_lines_parse(text, size - 1, COP_JOB_PORT, data[0] % 3 == 2, &b, &err);
	if ((rc != 0) != (err.code != 0) || b.hosts.count > COP_JOB_MAX_HOSTS)
		abort();
	for (uint32_t i = 0; !rc && i < b.hosts.count; i++)
		if (!b.hosts.host[i].name[0] || !b.hosts.host[i].port)
			abort();
	cop_job_hosts_free(&b.hosts);
	return 0;
}
