/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/scheduler/scheduler.h"

/* If an attribute has several variables, the first that is set counts. */
static const struct {
	const char *key, *variable[2];
} jobs[] = {
	{"slurm.job_id", {"SLURM_JOB_ID"}},
	{"slurm.partition", {"SLURM_JOB_PARTITION"}},
	{"slurm.nodelist", {"SLURM_NODELIST", "SLURM_JOB_NODELIST"}},
	{"slurm.gpus_on_node", {"SLURM_GPUS_ON_NODE"}},
	{"slurm.mem_per_node", {"SLURM_MEM_PER_NODE"}},
	{"slurm.cluster_name", {"SLURM_CLUSTER_NAME"}},
	{"slurm.num_nodes", {"SLURM_JOB_NUM_NODES"}},
	{"slurm.restart_count", {"SLURM_RESTART_COUNT"}},
	{"slurm.cuda_visible_devices", {"CUDA_VISIBLE_DEVICES"}},
	{"pbs.job_id", {"PBS_JOBID"}},
	{"pbs.job_name", {"PBS_JOBNAME"}},
	{"pbs.queue", {"PBS_QUEUE"}},
	{"pbs.server", {"PBS_SERVER"}},
	{"flux.job_id", {"FLUX_JOB_ID"}},
	{"flux.uri", {"FLUX_URI"}},
};

/* CUDA_VISIBLE_DEVICES may be set outside Slurm, where it has nothing to do with the job. */
static bool is_of_this_job(const char *key)
{
	const char *id = getenv("SLURM_JOB_ID");

	return key[0] != 's' || (id && *id);
}

void cop_resource_job(cop_resource_visit *visit, void *arg)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(jobs); i++)
		for (unsigned k = 0; k < 2 && jobs[i].variable[k]; k++) {
			const char *value = getenv(jobs[i].variable[k]);

			if (!value || !*value || !is_of_this_job(jobs[i].key))
				continue;
			visit(arg, jobs[i].key, value);
			break;
		}
}

void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg)
{
	char host[256] = "localhost", number[16];

	visit(arg, "service.name", "copper");
	visit(arg, "service.version", cop_version);
	snprintf(number, sizeof(number), "%" PRIu32, rank);
	visit(arg, "service.instance.id", number);
	gethostname(host, sizeof(host) - 1);
	visit(arg, "host.name", host);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	visit(arg, "process.pid", number);
	cop_resource_job(visit, arg);
}
