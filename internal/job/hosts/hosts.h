/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts: the hosts of a job and this machine's rank among them (from a list, a file or the
 * scheduler's environment), the identity of the job, and address books. */
#ifndef COP_JOB_HOSTS_H
#define COP_JOB_HOSTS_H

#include "base/base/base.h"
#include "base/base/ip.h"

#define COP_JOB_PORT 7720
/* Ports for jobs are below the kernel's ephemeral range. */
#define COP_JOB_PORTS_FROM 20480
#define COP_JOB_PORTS 8192
#define COP_JOB_MAX_HOSTS 200000

#define COP_JOB_MARK_SIZE 128
/* Sets mark to a "NAME=VALUE" that all programs of this scheduler job have in their environment; ""
 * and false if there is none. */
bool cop_job_mark(char mark[COP_JOB_MARK_SIZE]);
/* Returns a number that is the same in all processes of this job of Slurm, PBS, LSF, Flux or Grid
 * Engine, and differs from that of other jobs and other tasks of a job array. label is set to the
 * job as "VARIABLE=VALUE". Outside a job, 0 and "". */
uint64_t cop_job_identity(char label[COP_JOB_MARK_SIZE]);

/* One host: its name (or address), its rendezvous port, and a second port for its node to use if
 * the first is taken (0: none, because the user chose the first). The address comes from the
 * scheduler; without it, the name service is asked. If the name is an IPv6 address, it has no
 * brackets and is in its shortest form.
 *
 * The kernel cannot choose the rendezvous port: nodes meet there, so all of them must derive it
 * beforehand from the host list or the job's number. The kernel does choose the fabric ports, which
 * the rendezvous exchanges. A file in the job directory could publish the port, but not every job
 * has a directory that all nodes can see. A fixed port also keeps a node from being started twice:
 * the second process finds it taken (reach.h). The second port is needed because another program on
 * some machine may be using a calculated port, and that must not make the start of the whole tree
 * fail. */
struct cop_job_host {
	char *name;
	uint16_t port, second_port;
	struct cop_ip address;
};

struct cop_job_hosts {
	struct cop_job_host *host;
	uint32_t count;
	char *origin;  /* where the list came from, for messages: "--hosts FILE",
			  "SLURM_JOB_NODELIST" */
	bool of_tasks; /* a host may run several launcher tasks, so task numbers are not ranks */
};

/* text is the name of an existing file, or a LIST separated by commas, with Slurm's brackets
 * (n[1-4,7],login,x[001-010]y), each host with an optional :port. An IPv6 address with a port is
 * written in brackets ([fd77::1]:7720); link-local addresses are refused. A file has one host per
 * line; '#' comments and blank lines are skipped, and errors give the line number. Returns -ENOENT
 * if text contains a slash and no such file exists. An empty list is an error, and so is a repeated
 * host:port (err names both lines). */
int cop_job_hosts_load(
	const char *text, uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* Gets the hosts from the scheduler's environment: SLURM_JOB_NODELIST or PBS_NODEFILE (each host
 * once, in order). Without a scheduler, out->count is 0; but returns -EINVAL if a launcher's
 * variables indicate several processes. If default_port is 0, a host without a port gets one
 * derived from the job's id and its rank, so that jobs that share a node, and nodes that share a
 * machine, do not collide. */
int cop_job_hosts_env(uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* Same for the tasks of a launcher. In a Slurm job step, uses the hosts of the step
 * (SLURM_STEP_NODELIST), with ports distinct from those of the job's other steps and the step's
 * other trees. */
int cop_job_hosts_step(
	uint16_t default_port, uint32_t tree, struct cop_job_hosts *out, struct cop_err *err);
/* Whether this process is in a Slurm job step, and which one; a batch script is not in a step. */
bool cop_job_slurm_step(uint64_t *step);
/* How many components this Slurm job has: 1, or more if it is heterogeneous. */
unsigned cop_job_slurm_components(void);
void cop_job_hosts_free(struct cop_job_hosts *h);

/* Finds the rank of this machine. want >= 0 is the user's choice, whose range is checked. Otherwise
 * the rank comes from the environment (SLURM_NODEID, PALS_NODEID, PMIX_RANK, PMI_RANK,
 * FLUX_TASK_RANK) if the hosts did, else from the only host that matches this machine's name (short
 * or full) or an address of one of its interfaces. Returns -ENOENT "... is not among the N hosts of
 * ...", or -EINVAL if several hosts match (err suggests --rank). */
int cop_job_rank(const struct cop_job_hosts *h, int64_t want, uint32_t *rank, struct cop_err *err);

/* Finds hosts and rank. hosts is a FILE or LIST, or NULL for the scheduler's hosts of the job or
 * step; port is for hosts without one (0: default); rank < 0 means unknown. The caller frees out,
 * even after a failure. */
struct cop_job_want {
	const char *hosts;
	uint16_t port;
	int64_t rank;
	bool of_step;
	uint32_t step_tree; /* this tree's number within its step */
};
int cop_job_find(const struct cop_job_want *want, struct cop_job_hosts *out, uint32_t *rank,
	struct cop_err *err);

/* ---- building a list ---- */

/* A growing host list; the capacity is private to the builder. */
struct cop_job_builder {
	struct cop_job_hosts hosts;
	size_t capacity;
};

/* Accepts letters, digits, dots, dashes and underscores, not starting with a dash; or an IPv6
 * address that is not link-local. */
bool cop_job_name_ok(const char *name, size_t len);
/* Appends a copy, with an IPv6 address in its shortest form. -ENOMEM; -E2BIG past
 * COP_JOB_MAX_HOSTS. */
int cop_job_builder_add(struct cop_job_builder *b, const char *name, size_t len, uint16_t port);

/* ---- labels ---- */

#define COP_JOB_LABEL_SIZE 261
/* Formats "n1:7720" or "[fd77::1]:7720"; returns out. */
const char *cop_job_label(const char *name, uint16_t port, char out[COP_JOB_LABEL_SIZE]);
/* The name of a host; "localhost" in a tree of one node without a host list. */
const char *cop_job_host_name(const struct cop_job_hosts *h, uint32_t rank);
/* The port of a host; without a host list, the one asked for, or the default if it is 0. */
uint16_t cop_job_host_port(const struct cop_job_hosts *h, uint32_t rank, uint16_t want);

/* ---- address books: "hostname address" lines ---- */

/* Fills address[rank] (malloc'ed strings) for every host, in the order of hosts. On failure, err
 * names the missing hosts (up to 8, then how many more) or the number of a bad line. */
/* A line may also be a row of a raw table (below). The address is then in this network's column, or
 * in the first nonempty column if network is NULL or "". */
int cop_job_book_load(const char *path, const struct cop_job_hosts *hosts, const char *network,
	char **address, struct cop_err *err);
int cop_job_book_write(const char *path, const struct cop_job_hosts *hosts, char *const *address,
	struct cop_err *err);

/* Writes the addresses that the nodes reported: "host | cxi0 | cxi1", with a column per network and
 * NA where a host has no address. networks[rank] has lines "NAME ADDRESS\n", or is NULL. */
int cop_job_table_write(const char *path, const struct cop_job_hosts *hosts, char *const *networks,
	struct cop_err *err);
/* Reads such a table back for the same hosts. The caller frees networks, which is indexed by rank;
 * NULL for a rank without a row. Returns 0 or -errno. */
int cop_job_table_read(const char *path, const struct cop_job_hosts *hosts, char **networks);
/* Whether text is valid as an element of networks. It comes from other nodes and is not trusted. */
bool cop_job_networks_ok(const char *text);
/* Writes the hosts, one per line. */
int cop_job_node_file_write(
	const char *path, const struct cop_job_hosts *hosts, struct cop_err *err);

#define COP_JOB_ADDRESS_MAX 255 /* maximum length of a fabric address, in bytes */
/* Accepts 1 to COP_JOB_ADDRESS_MAX visible ASCII bytes. */
bool cop_job_address_ok(const char *text, size_t len);

#endif
