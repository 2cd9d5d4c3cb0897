/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds arbitrary bytes as the address table in the job directory and as a node's report of its
 * networks. Whatever one parser accepts must be valid for the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job/hosts/hosts_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void say(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	require(text != NULL);
	(void)cop_job_networks_ok(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char n1[] = "n1", n2[] = "n2.site", local[] = "127.0.0.11";
	struct cop_job_host host[] = {{.name = n1, .port = 7720}, {.name = n2, .port = 7720},
		{.name = local, .port = 7720}, {.name = local, .port = 7721}};
	struct cop_job_hosts hosts = {.host = host, .count = COP_ARRAY_SIZE(host)};
	char *networks[COP_ARRAY_SIZE(host)], path[32];
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("table", MFD_CLOEXEC);
	require(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	require(cop_job_table_read(path, &hosts, networks) == 0 || size > COP_JOB_FILE_MAX);
	for (size_t i = 0; i < COP_ARRAY_SIZE(host); i++) {
		require(!networks[i] || cop_job_networks_ok(networks[i]));
		free(networks[i]);
	}
	say(data, size);
	return 0;
}
