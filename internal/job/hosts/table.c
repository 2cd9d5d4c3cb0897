/* SPDX-License-Identifier: BSD-3-Clause */
/* Discovery's raw table, stored beside the job's address book as its provenance, and readable as
 * a site's book:
 *
 *     # host | cxi0 | cxi1
 *     n1 | ofi+cxi://0x00916600 | NA
 *
 * Without a header a network's number determines its column: cxi1 is the second after the host. */
#include <ctype.h>

#include "job/hosts/hosts_priv.h"

/* Finds cell n of a line, trimmed; false if there is none. */
static bool next_cell(const char *text, size_t len, unsigned n, const char **out, size_t *out_len)
{
	const char *end = text + len, *bar;

	for (; n; n--, text = bar + 1)
		if (!(bar = memchr(text, '|', (size_t)(end - text))))
			return false;
	bar = memchr(text, '|', (size_t)(end - text));
	end = bar ? bar : end;
	while (text < end && isspace((unsigned char)*text))
		text++;
	while (text < end && isspace((unsigned char)end[-1]))
		end--;
	*out = text;
	*out_len = (size_t)(end - text);
	return true;
}

static bool cell_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* Parses the number at the end of "cxi1"; false if there is none. */
static bool own_number(const char *network, unsigned *number)
{
	size_t len = strlen(network), at = len;
	uint64_t value;

	while (at > 0 && isdigit((unsigned char)network[at - 1]))
		at--;
	if (at == len || cop_parse_u64(network + at, &value) || value >= COP_JOB_NETWORKS_MAX)
		return false;
	*number = (unsigned)value;
	return true;
}

bool cop_job_column_find(struct cop_job_column *c, const char *text, size_t len)
{
	bool header = !memchr(text, ':', len); /* otherwise the cells hold addresses */
	const char *name;
	size_t name_len;
	unsigned number;

	c->at = 0;
	if (!c->network || !*c->network)
		return true;
	for (unsigned n = 1; n <= COP_JOB_NETWORKS_MAX && next_cell(text, len, n, &name, &name_len);
		n++) {
		if (cell_is(name, name_len, c->network)) {
			c->at = n;
			return true;
		}
		/* The row of a host without any network tells us nothing about the columns. */
		if (header && cell_is(name, name_len, "NA"))
			return false;
	}
	c->at = !header && own_number(c->network, &number) ? number + 1 : COP_JOB_NETWORKS_MAX + 1;
	return true;
}

bool cop_job_column_cut(const struct cop_job_column *c, const char *text, size_t len,
	const char **address, size_t *address_len)
{
	if (c->at)
		return next_cell(text, len, c->at, address, address_len) && *address_len &&
		       !cell_is(*address, *address_len, "NA");
	for (unsigned n = 1;
		n <= COP_JOB_NETWORKS_MAX && next_cell(text, len, n, address, address_len); n++)
		if (*address_len && !cell_is(*address, *address_len, "NA"))
			return true;
	return false;
}

static int find_shared(const struct cop_job_hosts *hosts, bool **shared)
{
	struct cop_job_map names;
	int rc = cop_job_map_init(&names, hosts->count);

	*shared = calloc(hosts->count + 1, sizeof(**shared));
	for (uint32_t i = 0; !rc && *shared && i < hosts->count; i++) {
		const char *name = hosts->host[i].name;
		uint32_t other = cop_job_map_put(&names, name, strlen(name), 0, i);

		if (other != COP_JOB_ABSENT)
			(*shared)[i] = (*shared)[other] = true;
	}
	cop_job_map_fini(&names);
	return !rc && *shared ? 0 : -ENOMEM;
}

static void add_label(
	const struct cop_job_hosts *hosts, const bool *shared, uint32_t i, struct cop_buf *out)
{
	const struct cop_job_host *h = &hosts->host[i];
	char label[COP_JOB_LABEL_SIZE];

	cop_buf_str(out, shared[i] ? cop_job_label(h->name, h->port, label) : h->name);
}

/* ---- writing ---- */

/* Parses the next "NAME ADDRESS\n"; false at the end, or if it is malformed. */
static bool next_network(const char **text, char name[COP_JOB_NETWORK_MAX], const char **address,
	size_t *address_len)
{
	size_t len = strcspn(*text, " \n");

	if (len == 0 || len >= COP_JOB_NETWORK_MAX || (*text)[len] != ' ')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)(*text)[i]) || strchr("|#", (*text)[i]))
			return false;
	memcpy(name, *text, len);
	name[len] = '\0';
	*address = *text + len + 1;
	*address_len = strcspn(*address, "\n");
	*text = *address + *address_len;
	if (**text != '\n' || !cop_job_address_ok(*address, *address_len) ||
		memchr(*address, '|', *address_len))
		return false;
	(*text)++;
	return true;
}

bool cop_job_networks_ok(const char *text)
{
	char name[COP_JOB_NETWORK_MAX];
	const char *address;
	size_t len;

	while (*text)
		if (!next_network(&text, name, &address, &len))
			return false;
	return true;
}

struct columns {
	char name[COP_JOB_NETWORKS_MAX][COP_JOB_NETWORK_MAX];
	unsigned count;
};

static void collect_columns(struct columns *c, const char *text)
{
	char name[COP_JOB_NETWORK_MAX];
	const char *address;
	size_t len;

	while (text && next_network(&text, name, &address, &len)) {
		unsigned i = 0;

		while (i < c->count && strcmp(c->name[i], name))
			i++;
		if (i == c->count && c->count < COP_JOB_NETWORKS_MAX)
			strcpy(c->name[c->count++], name);
	}
}

/* Sorts cxi2 before cxi10. */
static int by_name(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static void add_cell(const char *text, const char *wanted, struct cop_buf *out)
{
	char name[COP_JOB_NETWORK_MAX];
	const char *address;
	size_t len;

	cop_buf_str(out, " | ");
	while (text && next_network(&text, name, &address, &len))
		if (strcmp(name, wanted) == 0) {
			cop_buf_add(out, address, len);
			return;
		}
	cop_buf_str(out, "NA");
}

static int write_whole(
	const char *path, struct cop_buf *text, int rc, const char *what, struct cop_err *err)
{
	if (!rc && text->failed)
		rc = -ENOMEM;
	if (!rc)
		rc = cop_write_file(path, text->data ? text->data : "", text->len, 0644);
	cop_buf_free(text);
	return rc ? cop_err_set(err, -rc, "cannot write %s %s: %s", what, path, strerror(-rc)) : 0;
}

int cop_job_table_write(const char *path, const struct cop_job_hosts *hosts, char *const *networks,
	struct cop_err *err)
{
	struct columns c = {0};
	struct cop_buf out = {0};
	bool *shared;
	int rc = find_shared(hosts, &shared);

	for (uint32_t i = 0; i < hosts->count; i++)
		collect_columns(&c, networks[i]);
	qsort(c.name, c.count, sizeof(c.name[0]), by_name);
	cop_buf_str(&out, "# host");
	for (unsigned n = 0; n < c.count; n++)
		cop_buf_printf(&out, " | %s", c.name[n]);
	cop_buf_str(&out, "\n");
	for (uint32_t i = 0; !rc && i < hosts->count; i++) {
		add_label(hosts, shared, i, &out);
		for (unsigned n = 0; n < c.count; n++)
			add_cell(networks[i], c.name[n], &out);
		cop_buf_str(&out, "\n");
	}
	free(shared);
	return write_whole(path, &out, rc, "the table of addresses", err);
}

/* ---- reading it back ---- */

/* Reads the names of the columns from the header. */
static bool read_header(const char *text, size_t len, struct columns *c)
{
	const char *name;
	size_t name_len;

	if (len < 6 || memcmp(text, "# host", 6))
		return false;
	for (c->count = 0; c->count < COP_JOB_NETWORKS_MAX &&
			   next_cell(text, len, c->count + 1, &name, &name_len);
		c->count++) {
		if (!name_len || name_len >= COP_JOB_NETWORK_MAX)
			return false;
		memcpy(c->name[c->count], name, name_len);
		c->name[c->count][name_len] = '\0';
	}
	return true;
}

static char *read_row(const char *text, size_t len, const char *label, const struct columns *c)
{
	struct cop_buf out = {0};
	const char *at;
	size_t at_len;

	if (!next_cell(text, len, 0, &at, &at_len) || !cell_is(at, at_len, label))
		return NULL;
	cop_buf_str(&out, "");
	for (unsigned n = 0; n < c->count; n++)
		if (next_cell(text, len, n + 1, &at, &at_len) && at_len &&
			!cell_is(at, at_len, "NA"))
			cop_buf_printf(&out, "%s %.*s\n", c->name[n], (int)at_len, at);
	if (!out.failed && out.data && cop_job_networks_ok(out.data))
		return out.data;
	cop_buf_free(&out);
	return NULL;
}

/* The rows are in the order of the hosts. */
static void read_rows(
	const char *text, const struct cop_job_hosts *hosts, const bool *shared, char **networks)
{
	struct columns c = {0};
	const char *end = strchr(text, '\n');

	if (!end || !read_header(text, (size_t)(end - text), &c))
		return;
	for (uint32_t i = 0; i < hosts->count; i++) {
		struct cop_buf label = {0};
		const char *line = end + 1;

		end = strchr(line, '\n');
		if (!end)
			return;
		add_label(hosts, shared, i, &label);
		networks[i] =
			label.data ? read_row(line, (size_t)(end - line), label.data, &c) : NULL;
		cop_buf_free(&label);
	}
}

int cop_job_table_read(const char *path, const struct cop_job_hosts *hosts, char **networks)
{
	char *text = NULL;
	bool *shared = NULL;
	size_t len;
	int rc = cop_read_file(path, COP_JOB_FILE_MAX, &text, &len);

	memset(networks, 0, hosts->count * sizeof(*networks));
	if (!rc)
		rc = find_shared(hosts, &shared);
	if (!rc)
		read_rows(text, hosts, shared, networks);
	free(shared);
	free(text);
	return rc;
}

int cop_job_node_file_write(
	const char *path, const struct cop_job_hosts *hosts, struct cop_err *err)
{
	struct cop_buf out = {0};
	bool *shared;
	int rc = find_shared(hosts, &shared);

	for (uint32_t i = 0; !rc && i < hosts->count; i++) {
		add_label(hosts, shared, i, &out);
		cop_buf_str(&out, "\n");
	}
	free(shared);
	return write_whole(path, &out, rc, "the list of nodes", err);
}
