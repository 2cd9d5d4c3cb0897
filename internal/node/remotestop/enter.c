/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a client join and leave the tree: finds its own address and the secret, and opens its end of
 * the network. */
#include "base/base/ip.h"
#include "node/remotestop/remotestop_priv.h"

#include "fabric/endpoint/endpoint.h"

/* Time limit for leaving, so that the network does not delay the command. */
#define END_SECONDS 10
#define FLUSH_MS 1000
#define LOOKED_UP_MAX 8 /* how many host names to try for a route to the tree */

/* ---- identity ---- */

/* Finds the address to which the nodes will reply. A machine's own name is no help, because locally
 * it often resolves to a loopback address, which others cannot reach. */
static int find_way(struct client *g, char self[COP_IP_TEXT_SIZE], struct cop_err *err)
{
	const struct cop_job_hosts *h = &g->hosts;
	struct cop_ip host, way;
	bool found = false, outside = false;

	for (uint32_t i = 0; i < COP_MIN(h->count, (uint32_t)LOOKED_UP_MAX) && !outside; i++) {
		if (cop_host_address(h->host[i].name, &host, NULL) || !cop_ip_way(&host, &way))
			continue;
		outside = !cop_ip_is_loopback(&way);
		if (outside || !found)
			cop_ip_print(&way, self);
		found = true;
	}
	if (found)
		return 0;
	return cop_err_set(err, EHOSTUNREACH,
		"this machine does not know the hosts of the tree (%s, ...), or cannot reach them: run this command on a machine that can",
		h->host[0].name);
}

/* Reads the secret from where the nodes read it. Ignores the scheduler job in which this command
 * runs. */
int cop_remotestop_secret(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err)
{
	const char *text = getenv("COPPER_SECRET");
	char path[sizeof(g->job_dir) + 16];
	struct cop_job_secret_from from = {.file = what->secret_file};
	struct cop_err why = {0};

	if (g->tree.insecure)
		return 0;
	snprintf(path, sizeof(path), "%s/secret", g->job_dir);
	if (!from.file && !(text && *text))
		from.file = g->tree.secret_file[0] ? g->tree.secret_file : path;
	if (cop_job_secret(&from, &g->secret, &why))
		return cop_err_set(err, EACCES,
			"there is no secret, and the nodes of %s accept no request without one: %s; give their secret with --secret-file FILE or $COPPER_SECRET",
			what->job_dir, why.text);
	if (cop_wire_secret_from(g->secret.data, g->secret.len, &g->wire_secret))
		return cop_err_set(err, EACCES,
			"%s: it is shorter than 16 bytes, and so not the secret of the nodes",
			from.file ? from.file : "$COPPER_SECRET");
	return 0;
}

/* ---- network ---- */

static void looked(void *ctx, uint32_t rank, const char *address, const char *why)
{
	struct client *g = ctx;

	(void)address;
	(void)why;
	atomic_store(&g->looked[rank], true);
}

/* A client serves no requests. */
static void serve(void *ctx, struct cop_rpc_req *req)
{
	(void)ctx;
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EPERM});
}

int cop_remotestop_reach(struct client *g, struct cop_err *err)
{
	char path[sizeof(g->job_dir) + 64];
	struct cop_reach_conf conf = {.rank = g->rank,
		.nodes = g->topo.nodes,
		.hosts = &g->hosts,
		.net_type = g->tree.net_type,
		.job_dir = g->job_dir,
		.insecure = g->tree.insecure,
		.secret = &g->wire_secret,
		.config_hash = g->tree.config_hash,
		.peer_timeout_ms = g->tree.peer_timeout_ms,
		.stats = &g->stats,
		.rpc = &g->rpc,
		.ctx = g,
		.serve = serve,
		.looked = looked};

	g->reach = cop_reach_new(&conf);
	if (!g->reach)
		return cop_err_set(err, ENOMEM, "out of memory");
	snprintf(path, sizeof(path), "%s/logs/copper_address_book.txt", g->job_dir);
	return g->tree.book ? cop_reach_use_book(g->reach, path, NULL, err) : 0;
}

static struct cop_rpc *treeop_rpc(void *ctx)
{
	struct client *g = ctx;

	return g->rpc;
}

static const char *treeop_host(void *ctx, uint32_t rank)
{
	return host_of(ctx, rank);
}

static int make_treeop(struct client *g, struct cop_err *err)
{
	static const struct cop_op_ops ops = {.rpc = treeop_rpc, .host = treeop_host};
	struct cop_op_conf conf = {.topo = g->topo,
		.rank = g->rank,
		.peer_timeout_ms = g->tree.peer_timeout_ms,
		.ops = &ops,
		.ctx = g,
		.gate = &g->gate};

	g->treeop = cop_op_new(&conf);
	return g->treeop ? 0 : cop_err_set(err, ENOMEM, "out of memory");
}

/* The tree's network card may have a different name on this machine, or not exist. */
static int open_network(struct client *g, const char *self, struct cop_err *err)
{
	char *device = strstr(g->tree.net_type, "://");
	int rc = cop_reach_open(g->reach, self, err);

	if (rc && device) {
		*device = '\0';
		rc = cop_reach_open(g->reach, self, err);
	}
	if (!rc && !g->tree.book)
		rc = cop_reach_listen_as_client(g->reach, self, err);
	return rc;
}

int cop_remotestop_enter(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err)
{
	char self[COP_IP_TEXT_SIZE], tree[COP_REACH_TREE_SIZE];
	int rc = find_way(g, self, err);

	if (!rc)
		rc = make_treeop(g, err);
	if (!rc)
		rc = open_network(g, self, err);
	cop_reach_tree_name(&g->wire_secret, g->tree.config_hash, tree);
	if (!rc && what->known)
		what->known(what->arg, tree);
	return rc;
}

void cop_remotestop_leave(struct client *g)
{
	alarm(END_SECONDS);
	cop_gate_close(&g->gate);
	if (g->reach) {
		cop_reach_close_door(g->reach);
		cop_reach_cancel(g->reach);
	}
	cop_gate_drain(&g->gate);
	if (g->rpc) {
		cop_endpoint_flush(cop_rpc_fabric(g->rpc), FLUSH_MS);
		cop_rpc_close(g->rpc);
	}
	cop_op_free(g->treeop);
	cop_reach_free(g->reach);
	cop_job_secret_free(&g->secret);
	cop_job_hosts_free(&g->hosts);
	cop_gate_fini(&g->gate);
	alarm(0);
}
