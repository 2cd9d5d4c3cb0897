/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts: the hosts of a job and the rank of this machine among them (from a list, a file or the
 * scheduler's environment), the job's identity, and address books. */
#ifndef COP_JOB_HOSTS_H
#define COP_JOB_HOSTS_H

#include "base/base/base.h"
#include "base/base/ip.h"

#define COP_JOB_PORT 7720
/* Ports of jobs: below the kernel's ephemeral range. */
#define COP_JOB_PORTS_FROM 20480
#define COP_JOB_PORTS 8192
#define COP_JOB_MAX_HOSTS 200000

#define COP_JOB_MARK_SIZE 128
/* "NAME=VALUE" from the environment of the programs of this scheduler job, or "" and false. */
bool cop_job_mark(char mark[COP_JOB_MARK_SIZE]);
/* A number that is equal in all processes of this job of Slurm, PBS, LSF, Flux or Grid Engine, and
 * differs in other jobs and other parts of a job array; label receives the job as "VARIABLE=VALUE".
 * 0 and "" outside of a job. */
uint64_t cop_job_identity(char label[COP_JOB_MARK_SIZE]);

/* One host: name (or address), rendezvous port, and a second port for its node if the first is
 * taken; 0: none, because the user chose the first. The address comes from the scheduler; without
 * one, the name service is used. An IPv6 address as name has no brackets, and is in its shortest
 * form.
 *
 * The rendezvous port is not chosen by the kernel: nodes meet there, so all of them must derive it
 * in advance from the host list or the job's number. The kernel does choose the fabric ports, which
 * the rendezvous exchanges. A file in the job directory could hold this port, but not every job has
 * a directory visible to all nodes. A fixed port also keeps a node from being started twice: the
 * second process finds it taken (reach.h). The second port exists because a calculated port may be
 * in use by another program on one of the machines, which must not fail the start of the whole
 * tree. */
struct cop_job_host {
	char *name;
	uint16_t port, second_port;
	struct cop_ip address;
};

struct cop_job_hosts {
	struct cop_job_host *host;
	uint32_t count;
	char *origin;  /* source of the list, for messages: "--hosts FILE", "SLURM_JOB_NODELIST" */
	bool of_tasks; /* a host may run several launcher tasks, whose numbers are no ranks */
};

/* text is the name of an existing file, or a LIST: comma separated, Slurm's brackets
 * (n[1-4,7],login, x[001-010]y), each with an optional :port; an IPv6 address with a port is
 * written in brackets ([fd77::1]:7720); link-local addresses are refused. In a file: one per
 * line, '#' comments and blank lines skipped; errors name the line number. -ENOENT for a text
 * with a slash that is not an existing file; an empty list is an error; the same host:port twice
 * is an error that names both lines. */
int cop_job_hosts_load(
	const char *text, uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* From the scheduler's environment: SLURM_JOB_NODELIST; PBS_NODEFILE (each host once, in order).
 * out->count 0 if there is no scheduler; -EINVAL if a launcher's variables nevertheless indicate
 * several processes. With default_port 0 a host without a port gets one derived from the job's id
 * and its rank, to avoid collisions between jobs that share a node and between nodes that share a
 * machine. */
int cop_job_hosts_env(uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* The same for a launcher's tasks: in a Slurm job step its hosts (SLURM_STEP_NODELIST), with ports
 * distinct from those of other steps of the job and of other trees of the step. */
int cop_job_hosts_step(
	uint16_t default_port, uint32_t tree, struct cop_job_hosts *out, struct cop_err *err);
/* Whether this process is in a Slurm job step, and its number; a batch script is in none. */
bool cop_job_slurm_step(uint64_t *step);
/* The number of components of this Slurm job: 1, more in a heterogeneous job. */
unsigned cop_job_slurm_components(void);
void cop_job_hosts_free(struct cop_job_hosts *h);

/* The rank of this machine: want >= 0 is the user's choice (range checked); else the environment
 * (SLURM_NODEID, PALS_NODEID, PMIX_RANK, PMI_RANK, FLUX_TASK_RANK) when the hosts came from it;
 * else the only host that matches this machine's name (short or full) or a local interface address.
 * -ENOENT "... is not among the N hosts of ...", -EINVAL if several match (the error suggests
 * --rank). */
int cop_job_rank(const struct cop_job_hosts *h, int64_t want, uint32_t *rank, struct cop_err *err);

/* Both together. hosts is a FILE or LIST, or NULL for the scheduler's hosts of the job or the step;
 * port is for hosts without one, 0 for the default; rank < 0 to determine it. The caller frees out
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

/* A growing host list; capacity is private to the builder. */
struct cop_job_builder {
	struct cop_job_hosts hosts;
	size_t capacity;
};

/* Letters, digits, dot, dash and underscore, not starting with a dash; or an IPv6 address that is
 * not link-local. */
bool cop_job_name_ok(const char *name, size_t len);
/* Appends a copy; an IPv6 address in its shortest form. -ENOMEM, -E2BIG past COP_JOB_MAX_HOSTS. */
int cop_job_builder_add(struct cop_job_builder *b, const char *name, size_t len, uint16_t port);

/* ---- labels ---- */

#define COP_JOB_LABEL_SIZE 261
/* "n1:7720", "[fd77::1]:7720"; returns out. */
const char *cop_job_label(const char *name, uint16_t port, char out[COP_JOB_LABEL_SIZE]);
/* A host's name; "localhost" in a tree of one node without a list. */
const char *cop_job_host_name(const struct cop_job_hosts *h, uint32_t rank);
/* Its port; in a tree without a list the requested one, or the default (0). */
uint16_t cop_job_host_port(const struct cop_job_hosts *h, uint32_t rank, uint16_t want);

/* ---- address books: "hostname address" lines ---- */

/* Fills address[rank] (malloc'ed strings) for every host, in the order of hosts. The error names
 * missing hosts (up to 8, then their number) or the number of a bad line. */
/* A line may also be a row of a raw table (below): then the address is in the column of this
 * network, or in the first nonempty column if network is NULL or "". */
int cop_job_book_load(const char *path, const struct cop_job_hosts *hosts, const char *network,
	char **address, struct cop_err *err);
int cop_job_book_write(const char *path, const struct cop_job_hosts *hosts, char *const *address,
	struct cop_err *err);

/* Writes the addresses reported by the nodes: "host | cxi0 | cxi1", with a column per network and
 * NA where a host has no address. networks[rank] has lines "NAME ADDRESS\n", or is NULL. */
int cop_job_table_write(const char *path, const struct cop_job_hosts *hosts, char *const *networks,
	struct cop_err *err);
/* Reads such a table for the same hosts: networks is by rank, freed by the caller; NULL for a rank
 * without a row. 0 or -errno. */
int cop_job_table_read(const char *path, const struct cop_job_hosts *hosts, char **networks);
/* Whether a text is valid in networks. It comes from other nodes: untrusted. */
bool cop_job_networks_ok(const char *text);
/* Writes the hosts, one per line. */
int cop_job_node_file_write(
	const char *path, const struct cop_job_hosts *hosts, struct cop_err *err);

#define COP_JOB_ADDRESS_MAX 255 /* maximum bytes of a fabric address */
/* A fabric address: 1..COP_JOB_ADDRESS_MAX visible ASCII bytes. */
bool cop_job_address_ok(const char *text, size_t len);

#endif
