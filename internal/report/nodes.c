/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes the job had, as its list of hosts says, and of which of them there is a file. A line
 * is a host, or host:port where several nodes share one; a rank's files tell the host, so that of
 * nodes that share a host it is known how many are missing, not which. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_priv.h"

#define LIST_MAX (16 * COP_MIB)

struct node_host {
	const char *name; /* in the text of the list */
	uint32_t len, wanted, found;
	bool shares_short; /* another host has the same short name */
};

/* An address has dots and no short form. */
static size_t short_len(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);

	for (size_t i = 0; i < len; i++)
		if (name[i] != '.' && !isdigit((unsigned char)name[i]))
			return dot ? (size_t)(dot - name) : len;
	return len;
}

/* The slot of a name in one of the two tables, whole names or short ones; its host, or UINT32_MAX
 * in a free slot. */
static uint32_t *slot_of(const struct nodes *n, bool brief, const char *name, size_t len)
{
	uint32_t *table = n->slot + (brief ? n->mask + 1 : 0);
	size_t i = cop_hash64(name, len, n->seed) & n->mask;

	for (;; i = (i + 1) & n->mask) {
		const struct node_host *h = table[i] == UINT32_MAX ? NULL : &n->host[table[i]];

		if (!h || ((brief ? short_len(h->name, h->len) : h->len) == len &&
				  memcmp(h->name, name, len) == 0))
			return &table[i];
	}
}

static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i] ? text[i] : '/'))
			return false;
	return len > 0 && len < RANK_NAME_MAX;
}

static void add(struct nodes *n, const char *name, size_t len)
{
	uint32_t *slot = slot_of(n, false, name, len), *brief;

	if (*slot != UINT32_MAX) {
		n->host[*slot].wanted++;
		return;
	}
	*slot = (uint32_t)n->hosts;
	n->host[n->hosts++] = (struct node_host){.name = name, .len = (uint32_t)len, .wanted = 1};
	brief = slot_of(n, true, name, short_len(name, len));
	if (*brief == UINT32_MAX)
		*brief = *slot;
	else
		n->host[*brief].shares_short = true;
}

static int make_room(struct nodes *n, uint64_t lines)
{
	size_t slots = 16;

	while (slots < 2 * lines)
		slots *= 2;
	n->mask = slots - 1;
	n->seed = cop_now_ns();
	n->host = calloc(lines ? lines : 1, sizeof(*n->host));
	n->slot = malloc(2 * slots * sizeof(*n->slot));
	if (!n->host || !n->slot)
		return -ENOMEM;
	memset(n->slot, 0xff, 2 * slots * sizeof(*n->slot));
	return 0;
}

int cop_report_nodes_load(struct nodes *n, const char *path)
{
	size_t len = 0;
	int rc;

	*n = (struct nodes){0};
	if (cop_read_file(path, LIST_MAX, &n->text, &len))
		return 0;
	for (size_t i = 0; i < len; i++)
		n->lines += n->text[i] == '\n';
	rc = make_room(n, n->lines);
	for (char *line = n->text, *end;
		!rc && (end = memchr(line, '\n', (size_t)(n->text + len - line))); line = end + 1) {
		const char *colon = memchr(line, ':', (size_t)(end - line));
		size_t name = (size_t)((colon ? colon : end) - line);

		if (is_name(line, name))
			add(n, line, name);
	}
	return rc;
}

void cop_report_nodes_met(struct nodes *n, const char *stem, size_t len)
{
	const char *dash = memrchr(stem, '-', len);
	size_t host = dash ? (size_t)(dash - stem) : len;
	uint32_t at;

	if (!n->hosts)
		return;
	at = *slot_of(n, false, stem, host);
	if (at == UINT32_MAX) {
		at = *slot_of(n, true, stem, short_len(stem, host));
		if (at != UINT32_MAX && n->host[at].shares_short)
			at = UINT32_MAX;
	}
	if (at == UINT32_MAX)
		return;
	n->host[at].found++;
	n->met = true;
}

static uint32_t missing_of(const struct node_host *h)
{
	return h->wanted > h->found ? h->wanted - h->found : 0;
}

uint64_t cop_report_nodes_missing(const struct nodes *n, struct cop_buf *names)
{
	uint64_t missing = 0, named = 0;
	unsigned hosts = 0;

	/* Where the files name hosts otherwise than the list, nothing can be said. */
	for (size_t i = 0; i < n->hosts && n->met; i++) {
		const struct node_host *h = &n->host[i];
		uint32_t one = missing_of(h);

		missing += one;
		if (!one || hosts == COP_REPORT_NAMED_MAX)
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
	free(n->slot);
	*n = (struct nodes){0};
}
