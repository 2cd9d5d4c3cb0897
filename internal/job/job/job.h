/* SPDX-License-Identifier: BSD-3-Clause */
/* job: what a node knows about its job before any message flows: the hosts and which one it is
 * (from a list, a file or the scheduler's environment), the job directory, the job's secret,
 * address books, and the small authenticated TCP rendezvous through which nodes learn each other's
 * fabric addresses. */
#ifndef COP_JOB_H
#define COP_JOB_H

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
 * choose, those of the fabric, are what the rendezvous tells. A file in the job directory could
 * tell this one, but not every job has a directory that all nodes see. A fixed port also keeps a
 * node from being started twice: the second process finds it taken (reach.h). Why there is a second
 * port: one that was only calculated may belong to another program on one of the machines, and that
 * must not end the start of the whole tree. */
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
 * stands in brackets ([fd77::1]:7720), and a link-local one is refused. In a file: one per line,
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
 * ports that are not those of another step of the job. */
int cop_job_hosts_step(uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err);
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
};
int cop_job_find(const struct cop_job_want *want, struct cop_job_hosts *out, uint32_t *rank,
	struct cop_err *err);
#define COP_JOB_LABEL_SIZE 261
/* "n1:7720", "[fd77::1]:7720"; returns out. */
const char *cop_job_label(const char *name, uint16_t port, char out[COP_JOB_LABEL_SIZE]);
/* A host's name; "localhost" in a tree of one node without a list. */
const char *cop_job_host_name(const struct cop_job_hosts *h, uint32_t rank);
/* Its port; in such a tree the one that was wanted, or the default (0). */
uint16_t cop_job_host_port(const struct cop_job_hosts *h, uint32_t rank, uint16_t want);

/* The sources of a secret: file, else $COPPER_SECRET, else JOBDIR/secret; NULL if not given. */
struct cop_job_secret_from {
	const char *file, *job_dir;
	uint32_t rank, timeout_ms;
	/* Called while it waits: whether waiting is in vain, with a sentence. NULL: it waits until
	 * the timeout. */
	bool (*in_vain)(void *ctx, struct cop_err *err);
	void *ctx;
};
struct cop_job_secret {
	char *data; /* NULL: none of the three is given */
	size_t len;
	char note[640]; /* a sentence that the user should know, or "" */
};
/* A file must be regular, owned by the user, and without permissions for others; else -errno with a
 * sentence. In JOBDIR, rank 0 creates the secret (0600, random, complete before it is visible) and
 * replaces one that another job of the scheduler left. The other ranks wait for it up to
 * timeout_ms; their error names what they wait for. cop_job_secret_free wipes and frees out. */
int cop_job_secret(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err);
void cop_job_secret_free(struct cop_job_secret *s);
/* Whether rank 0 would create JOBDIR/secret now. */
bool cop_job_secret_to_come(const char *job_dir);
/* Call it when the whole tree has stopped. Removes JOBDIR/secret if it is this one and Copper
 * created it outside a scheduler's job, because the next start could not tell that it is old. */
void cop_job_secret_retire(const char *job_dir, const struct cop_job_secret *s);

/* Checks that JOBDIR, and any folders of nodes and reports in it, belong to this user alone
 * (cop_mountguard); else -errno with a sentence. From then on this process opens nothing through a
 * link there. */
int cop_job_dir_check(const char *job_dir, struct cop_err *err);
/* The same, and creates JOBDIR and JOBDIR/logs (0700) if needed. */
int cop_job_dir_make(const char *job_dir, struct cop_err *err);

/* ---- a node that could not start says so, so that the others need not wait for it ---- */

/* Writes which rank failed and why into JOBDIR/logs; a later failure replaces it. */
void cop_job_failure_write(const char *job_dir, uint32_t rank, const char *text);
/* Whether a node failed in the same start as this node. Both times come from the file system's
 * clock: began_ns is cop_job_file_time of a file that this node wrote there when it began. */
bool cop_job_failure_read(
	const char *job_dir, int64_t began_ns, uint32_t *rank, char *text, size_t size);
/* Removes it if it is from this rank; -1: from any rank. */
void cop_job_failure_clear(const char *job_dir, int64_t rank);
/* When the file was written, in ns since the epoch; 0 if unknown. */
int64_t cop_job_file_time(const char *path);
/* The file system's time now, from a file that is created in JOBDIR/logs and removed again; 0 if
 * none can be created. */
int64_t cop_job_dir_time(const char *job_dir);

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

/* ---- the tree of a job directory, for commands that are not nodes of it ---- */

#define COP_JOB_TREE_LEFT 16

struct cop_job_tree {
	bool stopped;         /* a command stopped all of it */
	bool insecure, book;  /* no secret; addresses from a book, and no rendezvous */
	uint64_t config_hash; /* what all nodes have in common, as in rpc */
	uint32_t fanout, trees, peer_timeout_ms;
	char net_type[128];
	char secret_file[4096]; /* the one that was given, or "" */
	char source[4096];
	char socket[108]; /* of a tree of one node, which can be reached only there; else "" */
	struct cop_job_hosts hosts;       /* by rank */
	uint32_t left[COP_JOB_TREE_LEFT]; /* ranks that did not answer a stop of the whole tree,
					     while the others have stopped */
	uint32_t left_count; /* 0: there was no such stop, or there are too many of them */
};

/* JOBDIR/logs/copper_tree.txt, whole or not at all. */
int cop_job_tree_write(const char *job_dir, const struct cop_job_tree *tree, struct cop_err *err);
/* -ENOENT and so on, -EINVAL if the file is malformed, each with a sentence; then there is nothing
 * to free. */
int cop_job_tree_read(const char *job_dir, struct cop_job_tree *tree, struct cop_err *err);
void cop_job_tree_free(struct cop_job_tree *tree);

/* ---- rendezvous: "what is your fabric address?" over TCP ---- */

struct cop_rendezvous;

/* A keyed hash; the key is the job's secret. */
typedef void cop_rendezvous_mac(void *ctx, const void *data, size_t len, uint8_t out[32]);
/* The node of this fabric address has proved the secret and is about to be told ours. On the
 * rendezvous thread; must not wait. */
typedef void cop_rendezvous_met(void *ctx, const char *address);
/* A peer was refused: -ETIMEDOUT (it said nothing), -EBADMSG (malformed), -EACCES (a wrong proof),
 * -EALREADY (received before). On the rendezvous thread. */
typedef void cop_rendezvous_refused(void *ctx, int rc);

struct cop_rendezvous_conf {
	const struct cop_job_host *self; /* where it listens; port 0: the kernel's choice */
	bool at_second_port;             /* use the second port; askers try both */
	const char *fabric_address;      /* the address that it tells, 1 to 255 bytes */
	cop_rendezvous_mac *mac;
	cop_rendezvous_met *met;         /* may be NULL */
	cop_rendezvous_refused *refused; /* may be NULL */
	void *ctx;                       /* of all three */
};

/* Listens, and answers askers that prove the secret with this node's fabric address; bounded: 64
 * connections, 2 s each. -EADDRINUSE and so on with a sentence naming address and port. One named
 * thread; sleeps when idle. What conf points to is copied. */
int cop_rendezvous_start(
	const struct cop_rendezvous_conf *conf, struct cop_rendezvous **out, struct cop_err *err);
/* Joins the thread; open requests end with NULL, on the caller's thread. Waits for a name lookup
 * that is running. NULL is fine. */
void cop_rendezvous_stop(struct cop_rendezvous *r);
/* The port listened on, where self->port was 0 and the kernel chose. */
uint16_t cop_rendezvous_port(const struct cop_rendezvous *r);

/* Finds the process that listens on this port of this machine and so prevents others from listening
 * there at this host's address: "process 1234 (copper)", or "a process of user 1001". False if none
 * is visible. */
bool cop_job_port_owner(const char *host, uint16_t port, char *out, size_t size);

/* Asks asynchronously, on the rendezvous thread; found is called once there, with the address (at
 * most 255 bytes, checked against the secret) or NULL when nobody answered within timeout_ms; *why
 * then says it in a sentence. lives: the node answered, or something listens there and keeps
 * silent, like a process that is stopped or gets no processor. A port that refuses, a host that
 * cannot be reached and a connection that is closed are not signs of life. Any thread; at most
 * 1,024 at a time (-EBUSY). */
typedef void cop_rendezvous_found(void *arg, const char *address, bool lives, const char *why);
int cop_rendezvous_ask(struct cop_rendezvous *r, const struct cop_job_host *host,
	uint32_t timeout_ms, cop_rendezvous_found *found, void *arg);
/* Requests that are open now end after timeout_ms at the latest: a node that has not come up by now
 * is not about to. */
void cop_rendezvous_end_asks(struct cop_rendezvous *r, uint32_t timeout_ms);

#endif
