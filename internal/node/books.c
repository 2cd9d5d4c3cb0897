/* SPDX-License-Identifier: BSD-3-Clause */
/* Address books: the site's, from which this job's hosts are taken, and what the root leaves in the
 * job directory of what it was told. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOK_MAX (64 * COP_MIB)

int cop_node_load_book(struct cop_node *n, struct cop_err *err)
{
	if (!n->conf->address_book || n->conf->discover)
		return 0;
	n->book = calloc(n->hosts.count, sizeof(char *));
	if (!n->book)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	return cop_job_book_load(n->conf->address_book, &n->hosts,
		cop_fabric_net_device(n->conf->net_type), n->book, err);
}

/* The facility's book as it stands: two jobs that differ may have had different books. */
static int copy_book(const char *from, const char *to, struct cop_err *err)
{
	char *text;
	size_t len;
	int rc = cop_read_file(from, BOOK_MAX, &text, &len);

	if (rc)
		return cop_err_set(
			err, -rc, "cannot read the address book %s: %s", from, strerror(-rc));
	rc = cop_write_file(to, text, len, 0644);
	free(text);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", to, strerror(-rc)) : 0;
}

/* ---- what the nodes told ---- */

/* By rank; a copy, since a node that is started again tells it anew, at any time. */
struct known {
	char **address, **networks;
	uint32_t count, missing;
};

static void known_fini(struct known *k)
{
	for (uint32_t r = 0; r < k->count; r++) {
		free(k->address ? k->address[r] : NULL);
		free(k->networks ? k->networks[r] : NULL);
	}
	free(k->address);
	free(k->networks);
}

static int known_copy(struct cop_node *n, struct known *k)
{
	*k = (struct known){.count = n->hosts.count};
	k->address = calloc(k->count, sizeof(char *));
	k->networks = calloc(k->count, sizeof(char *));
	if (!k->address || !k->networks)
		return -ENOMEM;
	pthread_mutex_lock(&n->lock);
	for (uint32_t r = 0; r < k->count; r++) {
		k->missing += !n->ready_address[r];
		k->address[r] = n->ready_address[r] ? strdup(n->ready_address[r]) : NULL;
		k->networks[r] = n->ready_networks[r] ? strdup(n->ready_networks[r]) : NULL;
	}
	pthread_mutex_unlock(&n->lock);
	return 0;
}

static void fill(char **into, char **from, uint32_t count)
{
	for (uint32_t r = 0; r < count; r++) {
		if (into[r])
			free(from[r]);
		else
			into[r] = from[r];
	}
}

/* A root that was started again knows itself, and who was started again as well; the others are
 * where its books of before say. */
static int fill_from_files(struct cop_node *n, struct known *k, const char *book, const char *table,
	struct cop_err *err)
{
	char **was = k->missing ? calloc(k->count, sizeof(char *)) : NULL;
	int rc;

	if (!k->missing)
		return 0;
	if (!was)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	rc = cop_job_book_load(book, &n->hosts, NULL, was, err);
	if (!rc) {
		fill(k->address, was, k->count);
		if (cop_job_table_read(table, &n->hosts, was) == 0)
			fill(k->networks, was, k->count);
	}
	free(was);
	return rc;
}

/* What other nodes told is believed only if it has the form. */
static int write_table(struct cop_node *n, struct known *k, const char *path, struct cop_err *err)
{
	for (uint32_t r = 0; r < k->count; r++)
		if (k->networks[r] && !cop_job_networks_ok(k->networks[r])) {
			cop_log_warn("networks of a node not understood rank=%u", r);
			k->networks[r][0] = '\0';
		}
	return cop_job_table_write(path, &n->hosts, k->networks, err);
}

/* A tree of one node without a host list has no addresses to tell. */
static int write_alone(const char *path, struct cop_err *err)
{
	char line[258] = "localhost";
	int rc;

	gethostname(line, sizeof(line) - 2);
	strcat(line, "\n");
	rc = cop_write_file(path, line, strlen(line), 0644);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

/* For commands that are none of the nodes (guest.c). Who is alone has a socket, which is reached on
 * its own machine. */
static int write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped, struct cop_err *err)
{
	struct cop_job_tree t = {.stopped = stopped && !stopped->missing,
		.insecure = n->conf->insecure,
		.book = n->book != NULL,
		.terms = n->terms,
		.fanout = n->topo.fanout,
		.trees = n->topo.stripes,
		.peer_timeout_ms = n->conf->peer_timeout_ms,
		.hosts = n->hosts};
	char key[COP_CTL_KEY_MAX + 1], name[256] = "localhost", file[sizeof(t.secret_file)];
	struct cop_job_host alone = {.name = name, .port = COP_JOB_PORT};

	for (uint32_t i = 0; stopped && i < stopped->missing; i++)
		t.left[t.left_count++] = stopped->lost[i];
	snprintf(t.net_type, sizeof(t.net_type), "%s", n->conf->net_type);
	snprintf(t.source, sizeof(t.source), "%s", n->source);
	if (n->conf->secret_file && strlen(n->conf->secret_file) < sizeof(file) &&
		realpath(n->conf->secret_file, file))
		snprintf(t.secret_file, sizeof(t.secret_file), "%s", file);
	if (n->topo.nodes == 1) {
		gethostname(name, sizeof(name) - 1);
		t.hosts = (struct cop_job_hosts){.host = &alone, .count = 1};
		if (cop_node_socket(n, t.socket, key, err))
			return -EINVAL;
	}
	return cop_job_tree_write(n->job_dir, &t, err);
}

void cop_node_write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped)
{
	struct cop_err err = {0};

	_Static_assert(COP_TREEOP_NAMED <= COP_JOB_TREE_LEFT, "who is named is written");
	if (n->job_dir[0] && (!stopped || stopped->missing <= COP_TREEOP_NAMED) &&
		write_tree(n, stopped, &err))
		cop_log_warn("%s", err.text);
}

static int write_addresses(struct cop_node *n, struct known *k, struct cop_err *err)
{
	char book[sizeof(n->job_dir) + 64], table[sizeof(n->job_dir) + 64];
	int rc;

	snprintf(book, sizeof(book), "%s/logs/copper_address_book.txt", n->job_dir);
	snprintf(table, sizeof(table), "%s/logs/copper_address_book_full_output.txt", n->job_dir);
	rc = fill_from_files(n, k, book, table, err);
	if (!rc)
		rc = cop_job_book_write(book, &n->hosts, k->address, err);
	if (!rc)
		rc = n->book ? copy_book(n->conf->address_book, table, err)
			     : write_table(n, k, table, err);
	return rc;
}

/* Kept by files that others look for; a job runs without them. */
void cop_node_write_books(struct cop_node *n)
{
	char path[sizeof(n->job_dir) + 64];
	struct cop_err err = {0};
	struct known known;

	n->books_written = true;
	if (!n->job_dir[0])
		return;
	snprintf(path, sizeof(path), "%s/logs/node_file.txt", n->job_dir);
	if (n->hosts.count ? cop_job_node_file_write(path, &n->hosts, &err)
			   : write_alone(path, &err))
		cop_log_warn("%s", err.text);
	if (!n->hosts.count)
		return;
	if (known_copy(n, &known))
		cop_log_warn("no memory for the address book");
	else if (write_addresses(n, &known, &err))
		cop_log_warn("%s", err.text);
	known_fini(&known);
	/* From the start of this node: most of it is waiting for the others to tell their
	 * addresses. */
	cop_log_info("prepared address book generation took %llu s",
		(unsigned long long)(cop_now_ns() - n->started_ns) / 1000000000);
}
