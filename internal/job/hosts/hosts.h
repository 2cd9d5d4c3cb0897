/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts: the hosts of a job and which of them this machine is (from a list, a file or the
 * scheduler's environment), the job's identity, and address books. */
#ifndef COP_JOB_HOSTS_H
#define COP_JOB_HOSTS_H

#include "base/base/base.h"
#include "base/base/ip.h"

#define COP_JOB_PORT 7720
/* Ports of jobs: below those that the kernel assigns by itself. */
#define COP_JOB_PORTS_FROM 20480
#define COP_JOB_PORTS 8192
#define COP_JOB_MAX_HOSTS 200000

#define COP_JOB_MARK_SIZE 128
/* "NAME=VALUE" in the environment of the programs of this scheduler's job, or "" and false. */
bool cop_job_mark(char mark[COP_JOB_MARK_SIZE]);
/* A number that is the same in all processes of this job of Slurm, PBS, LSF, Flux or Grid Engine,
 * and in none of another job or another part of a job array; label gets the job as
 * "VARIABLE=VALUE". 0 and "" outside of a job. */
uint64_t cop_job_identity(char label[COP_JOB_MARK_SIZE]);

/* One host: name (or address), rendezvous port, and the port that its node uses if that one is
 * taken; 0: none, because the user chose the first. The address comes from the scheduler; none if
 * it gives none, and then the name service must be asked. A name that is an address of IPv6 has no
 * brackets, and is in its shortest form.
 *
 * Why the kernel does not choose the rendezvous port: nodes meet there, so all of them must know it
 * before they have met, from the host list or the job's number. The ports that the kernel does
 * choose, those of the fabric, are what the rendezvous exchanges. A file in the job directory
 * could hold this one, but not every job has a directory that all nodes see. A fixed port also
 * keeps a node from being started twice: the second process finds it taken (reach.h). Why there is
 * a second port: one that was only calculated may belong to another program on one of the machines,
 * and that must not end the start of the whole tree. */
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
	bool of_tasks; /* a launcher's tasks may run on each: their numbers are no ranks */
};

/* text is a file's name if such a file exists, else a LIST: comma separated, Slurm's brackets
 * (n[1-4,7],login, x[001-010]y), each with an optional :port; an address of IPv6 that has a port
 * is written in brackets ([fd77::1]:7720), and a link-local one is refused. In a file: one per
 * line,
 * '#' comments and blank lines skipped; a bad line is named by its number. -ENOENT for a text that
 * looks like a file name (it has a slash) and does not exist; an empty list is an error; the same
 * host:port twice is an error that names both lines. */
int cop_job_hosts_load(
	const char *text, uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* From the scheduler's environment: SLURM_JOB_NODELIST; PBS_NODEFILE (each host once, in order).
 * out->count 0 if there is no scheduler; -EINVAL if a launcher's variables nevertheless say that
 * this is one of several processes. With default_port 0 a host without a port gets one from the
 * job's id and its rank, so that neither jobs that share a node nor nodes that share a machine
 * collide. */
int cop_job_hosts_env(uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
/* The same for the tasks of a launcher: in a job step of Slurm its hosts (SLURM_STEP_NODELIST), and
 * ports that are not those of another step of the job, nor of another tree of the step. */
int cop_job_hosts_step(
	uint16_t default_port, uint32_t tree, struct cop_job_hosts *out, struct cop_err *err);
/* Whether this process is in a job step of Slurm, and in which; a batch script is in none. */
bool cop_job_slurm_step(uint64_t *step);
/* How many components this job of Slurm has: 1, more in a heterogeneous job. */
unsigned cop_job_slurm_components(void);
void cop_job_hosts_free(struct cop_job_hosts *h);

/* The rank of this machine: want >= 0 is the user's choice (range checked); else the environment
 * (SLURM_NODEID, PALS_NODEID, PMIX_RANK, PMI_RANK, FLUX_TASK_RANK) when the hosts came from it;
 * else the one host that is this machine by name (short or full) or local interface address.
 * -ENOENT "... is not among the N hosts of ...", -EINVAL when several match (name --rank). */
int cop_job_rank(const struct cop_job_hosts *h, int64_t want, uint32_t *rank, struct cop_err *err);

/* Both together. hosts is a FILE or LIST, NULL for the scheduler's, of the job or of the step; port
 * is for hosts without one, 0 for the default; rank < 0 to find it out. The caller frees out even
 * after a failure. */
struct cop_job_want {
	const char *hosts;
	uint16_t port;
	int64_t rank;
	bool of_step;
	uint32_t step_tree; /* the number of this tree among those of its step */
};
int cop_job_find(const struct cop_job_want *want, struct cop_job_hosts *out, uint32_t *rank,
	struct cop_err *err);

/* ---- a list by hand ---- */

/* A host list that grows; capacity is for the builder alone. */
struct cop_job_builder {
	struct cop_job_hosts hosts;
	size_t capacity;
};

/* Letters, digits, dot, dash and underscore, not first a dash; or an address of IPv6 that is not
 * link-local. */
bool cop_job_name_ok(const char *name, size_t len);
/* Appends a copy, of an address of IPv6 its shortest form; -ENOMEM, -E2BIG past COP_JOB_MAX_HOSTS.
 */
int cop_job_builder_add(struct cop_job_builder *b, const char *name, size_t len, uint16_t port);

/* ---- labels ---- */

#define COP_JOB_LABEL_SIZE 261
/* "n1:7720", "[fd77::1]:7720"; returns out. */
const char *cop_job_label(const char *name, uint16_t port, char out[COP_JOB_LABEL_SIZE]);
/* A host's name; "localhost" in a tree of one node without a list. */
const char *cop_job_host_name(const struct cop_job_hosts *h, uint32_t rank);
/* Its port; in such a tree the one that was wanted, or the default (0). */
uint16_t cop_job_host_port(const struct cop_job_hosts *h, uint32_t rank, uint16_t want);

/* ---- address books: "hostname address" lines ---- */

/* Fills address[rank] (malloc'ed strings) for every host, in the order of hosts. A host that
 * is missing is named (up to 8, then a count), a bad line by its number. */
/* A line may also be one of a raw table (below): then the address is in the column of this network,
 * or in the first column that has one if network is NULL or "". */
int cop_job_book_load(const char *path, const struct cop_job_hosts *hosts, const char *network,
	char **address, struct cop_err *err);
int cop_job_book_write(const char *path, const struct cop_job_hosts *hosts, char *const *address,
	struct cop_err *err);

/* Writes what the nodes reported about themselves: "host | cxi0 | cxi1", with a column for each
 * network and NA if a host has no address there. networks[rank] has lines "NAME ADDRESS\n", or is
 * NULL. */
int cop_job_table_write(const char *path, const struct cop_job_hosts *hosts, char *const *networks,
	struct cop_err *err);
/* Reads such a table for the same hosts: networks is by rank, for the caller to free; NULL if the
 * table has no row for a rank. 0 or -errno. */
int cop_job_table_read(const char *path, const struct cop_job_hosts *hosts, char **networks);
/* Whether a text is valid in networks. It comes from other nodes and may be hostile. */
bool cop_job_networks_ok(const char *text);
/* Writes the hosts, one per line. */
int cop_job_node_file_write(
	const char *path, const struct cop_job_hosts *hosts, struct cop_err *err);

#define COP_JOB_ADDRESS_MAX 255 /* bytes of a fabric address */
/* A fabric address: 1..COP_JOB_ADDRESS_MAX visible ASCII bytes. */
bool cop_job_address_ok(const char *text, size_t len);

#endif
