/* SPDX-License-Identifier: BSD-3-Clause */
/* The first line of the input goes to SLURM_NODE_ALIASES, the rest to slurm.conf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job/hosts/hosts_priv.h"
#include "base/log/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file keeps its name from one input to the next, so that SLURM_CONF is set once. */
static int conf_file(void)
{
	static int fd = -1;
	char path[64];

	if (fd >= 0)
		return fd;
	fd = memfd_create("slurm.conf", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	if (cop_log_open(COP_LOG_NONE, COP_LOG_FILE, NULL, NULL))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("SLURM_CONF", path, 1);
	return fd;
}

static void set_aliases(const char *text, size_t len)
{
	char *aliases = strndup(text, len);

	if (!aliases || setenv("SLURM_NODE_ALIASES", aliases, 1))
		abort();
	free(aliases);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_job_hosts hosts = {0};
	struct cop_err err = {0};
	const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
	size_t len = end ? (size_t)(end - text) : 0;
	int fd = conf_file();

	if (!end || ftruncate(fd, 0) || pwrite(fd, end + 1, size - len - 1, 0) < 0)
		return 0;
	set_aliases(text, len);
	if (cop_job_hosts_load("n[1-3],login", COP_JOB_PORT, &hosts, &err))
		abort();
	if (cop_job_slurm_addresses(&hosts) > COP_JOB_MAX_HOSTS)
		abort();
	for (uint32_t i = 0; i < hosts.count; i++)
		if (!hosts.host[i].name[0] || hosts.host[i].port != COP_JOB_PORT)
			abort();
	cop_job_hosts_free(&hosts);
	return 0;
}
