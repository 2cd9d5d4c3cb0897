/* SPDX-License-Identifier: BSD-3-Clause */
/* How a guest comes in: from which address of this machine it is reached, with which secret, under
 * which rank. */
#include "node/guest_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOKED_UP_MAX 8 /* hosts whose names are tried for a way to the tree */

/* ---- who it is ---- */

/* The address of this machine from which that one is reached; nothing is sent. */
static bool way_to(const char *name, char text[INET_ADDRSTRLEN])
{
	struct sockaddr_in to, self;
	socklen_t size = sizeof(self);
	int fd = -1;
	bool ok = cop_node_address_of(name, &to);

	to.sin_port = htons(9);
	if (ok)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ok = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	     getsockname(fd, (struct sockaddr *)&self, &size) == 0 &&
	     inet_ntop(AF_INET, &self.sin_addr, text, INET_ADDRSTRLEN);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The nodes answer to this address. What a machine's own name means to itself is often a loopback
 * address, which the others do not reach. */
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
	return cop_err_set(err, EHOSTUNREACH,
		"the hosts of the tree (%s, ...) are not known on this machine, or there is no way to them: stop it from a machine that "
		"reaches them",
		h->host[0].name);
}

/* What its nodes had is taken as they took it; what the scheduler's job here is called does not
 * matter. */
int cop_node_guest_secret(
	struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err)
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
		return cop_err_set(err, EACCES,
			"no secret, and without it the nodes of %s obey nobody: %s; give --secret-file FILE, or $COPPER_SECRET, as they have it",
			what->job_dir, why.text);
	if (cop_wire_secret_from(g->node->secret.data, g->node->secret.len, &g->node->wire_secret))
		return cop_err_set(err, EACCES,
			"%s: it is shorter than 16 bytes, and so not the secret of the nodes",
			from.file ? from.file : "$COPPER_SECRET");
	return 0;
}

/* ---- its end of the network ---- */

static void looked(void *ctx, uint32_t rank, bool found, const char *why)
{
	struct guest *g = ctx;

	(void)found;
	(void)why;
	atomic_store(&g->looked[rank], true);
}

/* It is asked for nothing. */
static void serve(void *ctx, struct cop_rpc_req *req)
{
	(void)ctx;
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EPERM});
}

int cop_node_guest_reach(struct guest *g, struct cop_err *err)
{
	struct cop_node *n = g->node;
	char path[sizeof(n->job_dir) + 64];
	struct cop_reach_conf conf = {.rank = n->rank,
		.nodes = n->topo.nodes,
		.hosts = &n->hosts,
		.net_type = g->tree.net_type,
		.job_dir = n->job_dir,
		.insecure = g->tree.insecure,
		.secret = &n->wire_secret,
		.config_hash = n->terms,
		.peer_timeout_ms = g->tree.peer_timeout_ms,
		.stats = &n->stats,
		.rpc = &n->rpc,
		.ctx = g,
		.serve = serve,
		.looked = looked};

	n->reach = cop_reach_new(&conf);
	if (!n->reach)
		return cop_err_set(err, ENOMEM, "out of memory");
	snprintf(path, sizeof(path), "%s/logs/copper_address_book.txt", n->job_dir);
	return g->tree.book ? cop_reach_use_book(n->reach, path, NULL, err) : 0;
}

/* The network's card may have another name here, or be missing. */
static int open_network(struct guest *g, const char *self, struct cop_err *err)
{
	char *device = strstr(g->tree.net_type, "://");
	struct cop_reach *reach = g->node->reach;
	int rc = cop_reach_open(reach, self, err);

	if (rc && device) {
		*device = '\0';
		rc = cop_reach_open(reach, self, err);
	}
	if (!rc && !g->tree.book)
		rc = cop_reach_listen_as_guest(reach, self, err);
	return rc;
}

int cop_node_guest_join(struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err)
{
	struct cop_node *n = g->node;
	char self[INET_ADDRSTRLEN], tree[COP_NODE_TREE_SIZE];
	int rc = find_way(g, self, err);

	if (!rc)
		rc = cop_node_treeop_start(n, err);
	if (!rc)
		rc = open_network(g, self, err);
	cop_node_tree_name(n, tree);
	if (!rc && what->known)
		what->known(what->arg, tree);
	return rc;
}
