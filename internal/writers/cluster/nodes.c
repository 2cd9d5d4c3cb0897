/* SPDX-License-Identifier: BSD-3-Clause */
/* Matches the job's list of hosts with the files of its nodes. A line is a host, or host:port if
 * several nodes share the host. A rank's files name only the host, so on a shared host we know how
 * many nodes are missing, but not which ones. */
#include <ctype.h>

#include "writers/cluster/cluster_priv.h"

#define LIST_MAX (16 * COP_MIB)

struct node_host {
	const char *name; /* points into the text of the list */
	uint32_t len, wanted, found;
	uint32_t rank;                     /* of its first node */
	bool shares_short;                 /* another host has the same short name */
	struct cop_hlink link, link_short; /* link_short: in the table of short names, which has
					      only the first host with each name */
};

/* The length of the short form of a host name. An IP address has dots, but no short form. */
static size_t short_len(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);

	for (size_t i = 0; i < len; i++)
		if (name[i] != '.' && !isdigit((unsigned char)name[i]))
			return dot ? (size_t)(dot - name) : len;
	return len;
}

static struct node_host *host_by_name(const struct nodes *n, const char *name, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&n->by_name, cop_hash64(name, len, n->seed));

	for (; l; l = cop_htab_next(l)) {
		struct node_host *h = COP_CONTAINER_OF(l, struct node_host, link);

		if (h->len == len && memcmp(h->name, name, len) == 0)
			return h;
	}
	return NULL;
}

static struct node_host *by_short(const struct nodes *n, const char *name, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&n->by_short, cop_hash64(name, len, n->seed));

	for (; l; l = cop_htab_next(l)) {
		struct node_host *h = COP_CONTAINER_OF(l, struct node_host, link_short);

		if (short_len(h->name, h->len) == len && memcmp(h->name, name, len) == 0)
			return h;
	}
	return NULL;
}

static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i] ? text[i] : '/'))
			return false;
	return len > 0 && len < RANK_NAME_MAX;
}

static void add_node(struct nodes *n, const char *name, size_t len, uint32_t rank)
{
	size_t brief = short_len(name, len);
	struct node_host *h = host_by_name(n, name, len), *first;

	if (h) {
		h->wanted++;
		return;
	}
	first = by_short(n, name, brief);
	h = &n->host[n->hosts++];
	*h = (struct node_host){.name = name, .len = (uint32_t)len, .wanted = 1, .rank = rank};
	cop_htab_add(&n->by_name, &h->link, cop_hash64(name, len, n->seed));
	if (first)
		first->shares_short = true;
	else
		cop_htab_add(&n->by_short, &h->link_short, cop_hash64(name, brief, n->seed));
}

int cop_report_nodes_load(struct nodes *n, const char *path)
{
	size_t len = 0;
	uint32_t rank = 0;
	int rc;

	*n = (struct nodes){0};
	if (cop_read_file(path, LIST_MAX, &n->text, &len))
		return 0;
	for (size_t i = 0; i < len; i++)
		n->lines += n->text[i] == '\n';
	n->seed = cop_now_ns();
	n->host = calloc(n->lines ? n->lines : 1, sizeof(*n->host));
	rc = n->host ? 0 : -ENOMEM;
	for (char *line = n->text, *end;
		!rc && (end = memchr(line, '\n', (size_t)(n->text + len - line)));
		line = end + 1, rank++) {
		const char *colon = memchr(line, ':', (size_t)(end - line));
		size_t name = (size_t)((colon ? colon : end) - line);

		if (is_name(line, name))
			add_node(n, line, name, rank);
	}
	return rc;
}

/* The host of a rank's files, or NULL. */
static struct node_host *host_of_stem(const struct nodes *n, const char *stem, size_t len)
{
	const char *dash = memrchr(stem, '-', len);
	size_t host = dash ? (size_t)(dash - stem) : len;
	struct node_host *h = n->hosts ? host_by_name(n, stem, host) : NULL;

	if (!h && n->hosts) {
		h = by_short(n, stem, short_len(stem, host));
		if (h && h->shares_short)
			h = NULL;
	}
	return h;
}

void cop_report_nodes_met(struct nodes *n, const char *stem, size_t len)
{
	struct node_host *h = host_of_stem(n, stem, len);

	if (!h)
		return;
	h->found++;
	n->met = true;
}

int64_t cop_report_nodes_rank(
	const struct nodes *n, const char *stem, size_t len, struct cop_buf *name)
{
	const struct node_host *h = host_of_stem(n, stem, len);

	if (!h || h->wanted > 1) {
		cop_buf_add(name, stem, len);
		return -1;
	}
	cop_buf_add(name, h->name, h->len);
	return h->rank;
}

static uint32_t missing_of(const struct node_host *h)
{
	return h->wanted > h->found ? h->wanted - h->found : 0;
}

uint64_t cop_report_nodes_missing(const struct nodes *n, struct cop_buf *names)
{
	uint64_t missing = 0, named = 0;
	unsigned hosts = 0;

	/* If the files and the list use different forms of host names, we cannot tell who is
	 * missing. */
	for (size_t i = 0; i < n->hosts && n->met; i++) {
		const struct node_host *h = &n->host[i];
		uint32_t one = missing_of(h);

		missing += one;
		if (!one || hosts == COP_OBSERVED_NAMED_MAX)
			continue;
		cop_buf_printf(names, "%s%.*s", hosts++ ? ", " : "", (int)h->len, h->name);
		if (h->wanted > 1)
			cop_buf_printf(
				names, " (%" PRIu32 " of its %" PRIu32 " nodes)", one, h->wanted);
		named += one;
	}
	if (missing > named)
		cop_buf_printf(names, " and %" PRIu64 " more", missing - named);
	return missing;
}

void cop_report_nodes_free(struct nodes *n)
{
	free(n->text);
	free(n->host);
	cop_htab_fini(&n->by_name);
	cop_htab_fini(&n->by_short);
	*n = (struct nodes){0};
}
