/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that stops a tree from outside: it is none of the nodes, so it needs none of them on its machine. It knows them by what the root
 * left in the job directory, and joins as a guest, with a rank behind those of the nodes and the job's secret; guests may ask for the
 * stop and for nothing else. The root is asked, and for each dead node those below it, as any node would (gather.c). Those that did not
 * answer whoever asked them are asked once more from here.
 *
 * A node that does not answer may be dead or out of reach. That it is dead is believed where its machine says that nobody listens at the node's
 * port; but so does many a firewall, hence only of this machine, or when others of the tree were reached. */
#include "node/node_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PROBE_MS 1000
#define NAMED_MAX 20 /* nodes that are named; the others are counted */
#define LOOKED_UP_MAX 8 /* hosts whose names are tried for a way to the tree */

/* What is known of a rank. */
enum {
	NODE_FINE,   /* nobody missed it */
	NODE_SILENT, /* it did not answer whoever asked it */
};

struct guest {
	struct cop_node *node;
	struct cop_conf conf;
	struct cop_job_tree tree;
	uint64_t deadline_ms;
	_Atomic bool *looked; /* by rank: it was asked from here */
	uint8_t *state;
	sem_t come;           /* an answer to what is asked at this moment */
	struct gathered got;
	_Atomic uint32_t pending;
	_Atomic uint32_t late; /* nodes that answered when they were asked once more */
};

void cop_node_guest_looked(struct cop_node *n, uint32_t rank, bool found)
{
	(void)found;
	if (rank < n->topo.nodes)
		atomic_store(&n->guest->looked[rank], true);
}

/* ---- who it is ---- */

static bool address_of(const char *name, struct sockaddr_in *out)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list;

	*out = (struct sockaddr_in){.sin_family = AF_INET};
	if (inet_pton(AF_INET, name, &out->sin_addr) == 1)
		return true;
	if (getaddrinfo(name, NULL, &hints, &list))
		return false;
	out->sin_addr = ((struct sockaddr_in *)list->ai_addr)->sin_addr;
	freeaddrinfo(list);
	return true;
}

/* The address of this machine from which that one is reached; nothing is sent. */
static bool way_to(const char *name, char text[INET_ADDRSTRLEN])
{
	struct sockaddr_in to, self;
	socklen_t size = sizeof(self);
	int fd = -1;
	bool ok = address_of(name, &to);

	to.sin_port = htons(9);
	if (ok)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ok = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && getsockname(fd, (struct sockaddr *)&self, &size) == 0 &&
		inet_ntop(AF_INET, &self.sin_addr, text, INET_ADDRSTRLEN);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The nodes answer to this address. What a machine's own name means to itself is often a loopback address, which the others do not reach. */
static int find_way(struct guest *g, char self[INET_ADDRSTRLEN], struct cop_err *err)
{
	const struct cop_job_hosts *h = &g->node->hosts;
	char way[INET_ADDRSTRLEN];
	bool found = false, outside = false;

	for (uint32_t i = 0; i < COP_MIN(h->count, (uint32_t)LOOKED_UP_MAX) && !outside; i++) {
		if (!way_to(h->host[i].name, way))
			continue;
		outside = strncmp(way, "127.", 4) != 0;
		if (outside || !found)
			strcpy(self, way);
		found = true;
	}
	if (found)
		return 0;
	return cop_err_set(err, EHOSTUNREACH, "the hosts of the tree (%s, ...) are not known on this machine, or there is no way to them: stop it from a machine that "
		"reaches them", h->host[0].name);
}

/* What its nodes had is taken as they took it; what the scheduler's job here is called does not matter. */
static int find_secret(struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err)
{
	const char *text = getenv("COPPER_SECRET");
	char path[sizeof(g->node->job_dir) + 16];
	struct cop_job_secret_from from = {.file = what->secret_file};
	struct cop_err why = {0};

	if (g->tree.insecure)
		return 0;
	snprintf(path, sizeof(path), "%s/secret", g->node->job_dir);
	if (!from.file && !(text && *text))
		from.file = g->tree.secret_file[0] ? g->tree.secret_file : path;
	if (cop_job_secret(&from, &g->node->secret, &why))
		return cop_err_set(err, EACCES, "no secret, and without it the nodes of %s obey nobody: %s; give --secret-file FILE, or $COPPER_SECRET, as they have it",
			what->job_dir, why.text);
	if (cop_wire_secret_from(g->node->secret.data, g->node->secret.len, &g->node->wire_secret))
		return cop_err_set(err, EACCES, "%s: it is shorter than 16 bytes, and so not the secret of the nodes", from.file ? from.file : "$COPPER_SECRET");
	return 0;
}

static int load_book(struct cop_node *n, struct cop_err *err)
{
	char path[sizeof(n->job_dir) + 64];

	n->book = calloc(n->hosts.count, sizeof(char *));
	if (!n->book)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	snprintf(path, sizeof(path), "%s/logs/copper_address_book.txt", n->job_dir);
	return cop_job_book_load(path, &n->hosts, NULL, n->book, err);
}

/* The network's card may have another name here, or be missing. */
static int open_network(struct guest *g, const char *self, struct cop_err *err)
{
	char *device = strstr(g->tree.net_type, "://");
	int rc = cop_node_open_network(g->node, self, NULL, err);

	if (rc && device) {
		*device = '\0';
		rc = cop_node_open_network(g->node, self, NULL, err);
	}
	if (!rc && !g->node->book)
		rc = cop_node_open_asking(g->node, self, err);
	return rc;
}

static int join(struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err)
{
	struct cop_node *n = g->node;
	char self[INET_ADDRSTRLEN];
	int rc;

	n->rank = n->topo.nodes + (uint32_t)(cop_wire_random64() % NODE_GUESTS);
	n->terms = g->tree.terms;
	rc = cop_topo_check(&n->topo, err);
	if (!rc)
		rc = find_secret(g, what, err);
	if (!rc && cop_node_join_init(n))
		rc = cop_err_set(err, ENOMEM, "out of memory");
	if (!rc && g->tree.book)
		rc = load_book(n, err);
	if (!rc)
		rc = find_way(g, self, err);
	return rc ? rc : open_network(g, self, err);
}

/* ---- asking ---- */

/* False: the time is up. */
static bool await(struct guest *g)
{
	uint64_t now = cop_now_ms(), left = now < g->deadline_ms ? g->deadline_ms - now : 0;
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(left / 1000);
	until.tv_nsec += (long)(left % 1000) * (long)COP_NS_PER_MS;
	until.tv_sec += until.tv_nsec / (long)COP_NS_PER_S;
	until.tv_nsec %= (long)COP_NS_PER_S;
	while ((rc = sem_timedwait(&g->come, &until)) && errno == EINTR)
		;
	return rc == 0;
}

/* What is asked for still is taken back when the time is up, and then the answer comes at once. */
static void await_all(struct guest *g)
{
	if (await(g))
		return;
	cop_rpc_quiet(g->node->rpc);
	while (sem_wait(&g->come) && errno == EINTR)
		;
}

static void stopped(void *arg, struct gathered *got)
{
	struct guest *g = arg;

	g->got = *got;
	got->text = (struct cop_buf){0};
	got->prof = NULL;
	sem_post(&g->come);
}

/* "HOST (rank N) did not answer" */
static bool says_silent(const struct cop_node *n, const char *line, size_t len, uint32_t *rank)
{
	static const char word[] = " (rank ";
	const char *at = memmem(line, len, word, sizeof(word) - 1);
	char expected[400];

	if (!at)
		return false;
	*rank = (uint32_t)strtoul(at + sizeof(word) - 1, NULL, 10);
	return *rank < n->topo.nodes && (size_t)snprintf(expected, sizeof(expected), NODE_SILENT_LINE, cop_node_host(n, *rank), *rank) == len &&
		memcmp(expected, line, len) == 0;
}

/* Takes those lines out of what was answered, and leaves the others as remarks. */
static void sort_lines(struct guest *g, struct cop_buf *remarks)
{
	const char *line = g->got.text.data;

	while (line && *line) {
		size_t len = strcspn(line, "\n");
		uint32_t rank;

		if (says_silent(g->node, line, len, &rank)) {
			g->state[rank] = NODE_SILENT;
		} else if (len) {
			cop_buf_add(remarks, line, len);
			cop_buf_str(remarks, "\n");
		}
		line += len + (line[len] == '\n');
	}
}

struct once_more {
	struct guest *guest;
	uint32_t rank;
};

static void one_done(struct guest *g)
{
	if (atomic_fetch_sub(&g->pending, 1) == 1)
		sem_post(&g->come);
}

static void heard(void *arg, const struct cop_rpc_result *r)
{
	struct once_more o = *(struct once_more *)arg;

	free(arg);
	if (r->answered && !r->status) {
		o.guest->state[o.rank] = NODE_FINE;
		atomic_fetch_add(&o.guest->late, 1);
	}
	one_done(o.guest);
}

static void ask_once_more(struct guest *g)
{
	atomic_init(&g->pending, 1);
	for (uint32_t r = 0; r < g->node->topo.nodes; r++) {
		struct once_more *o = g->state[r] != NODE_SILENT || atomic_load(&g->looked[r]) ? NULL : malloc(sizeof(*o));
		struct cop_rpc_call call = {.rank = r, .op = OP_STOP, .payload = "", .done = heard, .arg = o};

		if (!o)
			continue;
		*o = (struct once_more){g, r};
		atomic_fetch_add(&g->pending, 1);
		cop_rpc_call(g->node->rpc, &call);
	}
	one_done(g);
	await_all(g);
}

/* ---- those that nobody reached ---- */

static bool is_here(const struct sockaddr_in *at)
{
	struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr = at->sin_addr};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here = fd >= 0 && bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0;

	if (fd >= 0)
		close(fd);
	return here;
}

/* 0: somebody listens there; -errno. */
static int try_port(struct guest *g, struct sockaddr_in at, uint16_t port)
{
	uint64_t now = cop_now_ms();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(error);

	if (fd < 0)
		return -errno;
	at.sin_port = htons(port);
	if (now >= g->deadline_ms)
		error = ETIMEDOUT;
	else if (connect(fd, (struct sockaddr *)&at, sizeof(at)) && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, (int)COP_MIN(g->deadline_ms - now, (uint64_t)PROBE_MS)) <= 0)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	close(fd);
	return -error;
}

/* Where a rank listens: its rendezvous, or what the book says of it. */
static bool places_of(const struct cop_node *n, uint32_t rank, char name[256], uint16_t port[2])
{
	const struct cop_job_host *h = &n->hosts.host[rank];

	port[0] = h->port;
	port[1] = h->second_port;
	snprintf(name, 256, "%s", h->name);
	return !n->book || (port[1] = 0, sscanf(n->book[rank], "ofi+tcp://%255[^:]:%hu", name, &port[0]) == 2);
}

/* Whether the rank is known not to run; why says so, or why not. */
static bool is_gone(struct guest *g, uint32_t rank, bool others, char why[200])
{
	struct sockaddr_in at;
	uint16_t port[2];
	char name[256];
	int rc = 0;

	if (!places_of(g->node, rank, name, port) || !address_of(name, &at)) {
		snprintf(why, 200, "was not reached and may still run: it has no address that can be looked at from here");
		return false;
	}
	for (int i = 0; i < 2 && port[i]; i++) {
		rc = try_port(g, at, port[i]);
		if (rc != -ECONNREFUSED)
			break;
	}
	if (rc == -ECONNREFUSED && (others || is_here(&at))) {
		snprintf(why, 200, "does not run: it was stopped before, or was killed");
		return true;
	}
	if (rc)
		snprintf(why, 200, "was not reached and may still run: port %u: %s", port[0], strerror(-rc));
	else
		snprintf(why, 200, "did not answer and may still run: somebody listens at port %u, who hangs, or is no node that holds this secret", port[0]);
	return false;
}

static void judge(struct guest *g, struct cop_node_stopped_job *out)
{
	struct cop_node *n = g->node;
	uint32_t silent = 0;

	for (uint32_t r = 0; r < n->topo.nodes; r++) {
		char why[200];

		if (g->state[r] != NODE_SILENT)
			continue;
		out->unknown += !is_gone(g, r, out->stopped > 0, why);
		if (silent++ < NAMED_MAX)
			cop_buf_printf(&out->remarks, "%s (rank %" PRIu32 ") %s\n", cop_node_host(n, r), r, why);
	}
	if (silent > NAMED_MAX)
		cop_buf_printf(&out->remarks, "and %" PRIu32 " more nodes\n", silent - NAMED_MAX);
}

/* ---- the whole ---- */

/* The root is dead: nobody has written the sums. */
static void write_sums(struct guest *g, struct cop_buf *remarks)
{
	struct cop_err err = {0};

	if (g->got.prof && cop_node_cluster_write(g->node, &g->got, &err))
		cop_buf_printf(remarks, "%s\n", err.text);
}

static int ask_all(struct guest *g, struct cop_node_stopped_job *out, struct cop_err *err)
{
	struct cop_node *n = g->node;

	if (cop_node_gather(n, &(struct task){OP_STOP, ""}, cop_topo_root(&n->topo, 0), stopped, g))
		return cop_err_set(err, ENOMEM, "out of memory");
	await_all(g);
	sort_lines(g, &out->remarks);
	out->unknown += g->got.refused + g->got.failed;
	ask_once_more(g);
	write_sums(g, &out->remarks);
	out->of = n->topo.nodes;
	out->stopped = g->got.nodes + atomic_load(&g->late);
	judge(g, out);
	return 0;
}

/* No node of it is left that could, and the next start must not take this for a tree that runs. */
static void mark_stopped(struct guest *g)
{
	struct cop_err ignored;

	g->tree.stopped = true;
	g->tree.hosts = g->node->hosts;
	cop_job_tree_write(g->node->job_dir, &g->tree, &ignored);
	g->tree.hosts = (struct cop_job_hosts){0};
	cop_job_secret_retire(g->node->job_dir, &g->node->secret);
}

static void tree_name(const struct cop_node *n, char out[COP_NODE_TREE_SIZE])
{
	uint8_t tree[32];

	cop_wire_mac(&n->wire_secret, "tree", &n->terms, sizeof(n->terms), tree);
	for (int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", tree[i]);
}

static void prepare(struct guest *g)
{
	struct cop_node *n = g->node;

	g->conf = (struct cop_conf){.net_type = g->tree.net_type, .insecure = g->tree.insecure, .peer_timeout_ms = g->tree.peer_timeout_ms,
		.job_dir = n->job_dir};
	n->conf = &g->conf;
	n->guest = g;
	n->wake_fd = n->signal_fd = n->report_fd = -1;
	n->hosts = g->tree.hosts;
	g->tree.hosts = (struct cop_job_hosts){0};
	n->topo = (struct cop_topo){.nodes = n->hosts.count, .fanout = g->tree.fanout, .stripes = g->tree.trees};
	snprintf(n->source, sizeof(n->source), "%s", g->tree.source);
	cop_node_gate_init(&n->gate);
}

static int stop_from_outside(struct guest *g, const struct cop_node_stop_job *what, struct cop_node_stopped_job *out, struct cop_err *err)
{
	char tree[COP_NODE_TREE_SIZE];
	int rc;

	prepare(g);
	g->looked = calloc(g->node->topo.nodes, sizeof(*g->looked));
	g->state = calloc(g->node->topo.nodes, 1);
	sem_init(&g->come, 0, 0);
	/* What goes wrong on the way is said by who did not answer. */
	cop_log_open(COP_LOG_ERROR, COP_LOG_FILE, NULL, NULL);
	rc = g->looked && g->state ? join(g, what, err) : cop_err_set(err, ENOMEM, "out of memory");
	if (!rc) {
		tree_name(g->node, tree);
		if (what->known)
			what->known(what->arg, tree);
		rc = ask_all(g, out, err);
	}
	if (!rc && !out->unknown)
		mark_stopped(g);
	cop_node_gathered_free(&g->got);
	cop_node_stop(g->node);
	sem_destroy(&g->come);
	free((void *)g->looked);
	free(g->state);
	return rc;
}

/* A tree of one node has no port. */
static int name_socket(const struct cop_job_tree *t, struct cop_node_stopped_job *out, struct cop_err *err)
{
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	if (strcmp(name, t->hosts.host[0].name))
		return cop_err_set(err, EHOSTUNREACH, "the tree of this job directory is one node on %s, which is reached there only: run copper stop on %s", t->hosts.host[0].name,
			t->hosts.host[0].name);
	snprintf(out->socket, sizeof(out->socket), "%s", t->socket);
	return 0;
}

static int no_tree(const char *job_dir, int rc, struct cop_err *err)
{
	char path[4096 + 64];

	if (rc != -ENOENT)
		return rc;
	snprintf(path, sizeof(path), "%s/logs", job_dir);
	if (access(path, F_OK))
		return cop_err_set(err, EINVAL, "%s is no job directory: it has no logs; name the one that was given to copper mount -d", job_dir);
	return cop_err_set(err, EINVAL, "%s/logs/copper_tree.txt is not there: no node of rank 0 was started with this job directory, or one of an older version; stop the nodes on "
		"their hosts", job_dir);
}

int cop_node_stop_job(const struct cop_node_stop_job *what, struct cop_node_stopped_job *out, struct cop_err *err)
{
	struct guest *g = calloc(1, sizeof(*g));
	int rc;

	*out = (struct cop_node_stopped_job){0};
	if (g)
		g->node = calloc(1, sizeof(*g->node));
	if (!g || !g->node) {
		free(g);
		return cop_err_set(err, ENOMEM, "out of memory");
	}
	g->deadline_ms = cop_now_ms() + what->timeout_ms;
	rc = realpath(what->job_dir, g->node->job_dir) ? 0 : cop_err_set(err, errno, "%s: %s", what->job_dir, strerror(errno));
	if (!rc)
		rc = no_tree(what->job_dir, cop_job_tree_read(g->node->job_dir, &g->tree, err), err);
	if (!rc && g->tree.stopped)
		rc = cop_err_set(err, EALREADY, "the tree of %s was stopped already", what->job_dir);
	else if (!rc && g->tree.socket[0])
		rc = name_socket(&g->tree, out, err);
	else if (!rc)
		rc = stop_from_outside(g, what, out, err);
	cop_job_tree_free(&g->tree);
	free(g->node);
	free(g);
	return rc;
}
