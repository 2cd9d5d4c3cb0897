/* SPDX-License-Identifier: BSD-3-Clause */
/* Address books: "hostname address" lines. A site's book may contain thousands of hosts outside the
 * job, so we put the job's hosts in a table and read the book once. A host is found by its full
 * name or, if job and book disagree about the domain, by its short name. Nodes that share a host
 * name are listed as "name:port". */
#include <ctype.h>

#include "job/hosts/hosts_priv.h"

#define NAMED_MAX 8 /* how many missing hosts an error names */

struct book {
	const struct cop_job_hosts *hosts;
	char **address;
	unsigned *line;               /* line number of each host's address; 0: none yet */
	bool *by_short;               /* we found it only by its short name */
	struct cop_job_map exact;     /* name to rank, and name and port to rank */
	struct cop_job_map brief;     /* short name to rank */
	bool *shared;                 /* another host has the same name */
	bool *vague;                  /* another host has the same short name */
	struct cop_job_column column; /* for raw tables */
	bool found_column, is_table;
};

static size_t short_len(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);

	return dot ? (size_t)(dot - name) : len;
}

/* An address has no short form, even though an IPv4 address contains dots. */
static bool has_short(const char *name, size_t len)
{
	if (memchr(name, ':', len))
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] != '.' && !isdigit((unsigned char)name[i]))
			return true;
	return false;
}

/* In the exact table, port 0 means that no port was given. */
static int book_init(struct book *b)
{
	uint32_t count = b->hosts->count;

	b->line = calloc(count + 1, sizeof(*b->line));
	b->by_short = calloc(count + 1, sizeof(*b->by_short));
	b->shared = calloc(count + 1, sizeof(*b->shared));
	b->vague = calloc(count + 1, sizeof(*b->vague));
	if (!b->line || !b->by_short || !b->shared || !b->vague ||
		cop_job_map_init(&b->exact, 2 * count) || cop_job_map_init(&b->brief, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct cop_job_host *h = &b->hosts->host[i];
		size_t len = strlen(h->name), brief = short_len(h->name, len);
		uint32_t other = cop_job_map_put(&b->exact, h->name, len, 0, i);

		cop_job_map_put(&b->exact, h->name, len, h->port, i);
		if (other != COP_JOB_ABSENT)
			b->shared[i] = b->shared[other] = true;
		if (!has_short(h->name, len))
			continue;
		other = cop_job_map_put(&b->brief, h->name, brief, 0, i);
		if (other != COP_JOB_ABSENT)
			b->vague[i] = b->vague[other] = true;
	}
	return 0;
}

static void book_fini(struct book *b)
{
	free(b->line);
	free(b->by_short);
	free(b->shared);
	free(b->vague);
	cop_job_map_fini(&b->exact);
	cop_job_map_fini(&b->brief);
}

/* The host that a name in the book refers to, or COP_JOB_ABSENT. */
static uint32_t find_host(
	const struct book *b, const char *name, size_t len, uint16_t port, bool *by_short)
{
	uint32_t i = cop_job_map_get(&b->exact, name, len, port);

	*by_short = false;
	if (i != COP_JOB_ABSENT || port || !has_short(name, len))
		return i == COP_JOB_ABSENT || port || !b->shared[i] ? i : COP_JOB_ABSENT;
	*by_short = true;
	i = cop_job_map_get(&b->brief, name, short_len(name, len), 0);
	if (i == COP_JOB_ABSENT || b->vague[i] || b->shared[i])
		return COP_JOB_ABSENT;
	/* n1.a is not n1.b: a full name may match only a short one. */
	return memchr(name, '.', len) && strchr(b->hosts->host[i].name, '.') ? COP_JOB_ABSENT : i;
}

/* Stores the address of a host. A second, different address for the same name is ambiguous. */
static int keep_address(struct book *b, uint32_t i, bool by_short, const char *address, size_t len,
	unsigned line, struct cop_err *err)
{
	const char *old = b->address[i];
	char *copy;

	if (old && by_short == b->by_short[i] && (strlen(old) != len || memcmp(old, address, len)))
		return cop_err_set(err, EINVAL, "lines %u and %u give %s two addresses", b->line[i],
			line, b->hosts->host[i].name);
	if (old && by_short >= b->by_short[i])
		return 0;
	copy = strndup(address, len);
	if (!copy)
		return cop_err_set(err, ENOMEM, "no memory for the addresses");
	free(b->address[i]);
	b->address[i] = copy;
	b->line[i] = line;
	b->by_short[i] = by_short;
	return 0;
}

/* Splits "name address"; returns false unless there are exactly two well-formed words. */
static bool split_line(
	const char *text, size_t len, size_t *name_len, const char **address, size_t *address_len)
{
	size_t n = 0, at;

	while (n < len && !isspace((unsigned char)text[n]))
		n++;
	for (at = n; at < len && isspace((unsigned char)text[at]);)
		at++;
	*name_len = n;
	*address = text + at;
	*address_len = len - at;
	return cop_job_address_ok(*address, *address_len);
}

/* Splits a row of a raw table: "name | address | NA". A host without an address on our network
 * counts as missing. */
static bool cut_row(struct book *b, const char *text, size_t len, size_t *name_len,
	const char **address, size_t *address_len)
{
	if (!b->found_column)
		b->found_column = cop_job_column_find(&b->column, text, len);
	for (*name_len = 0; text[*name_len] != '|' && !isspace((unsigned char)text[*name_len]);)
		++*name_len;
	b->is_table = true;
	if (b->found_column && cop_job_column_cut(&b->column, text, len, address, address_len))
		return cop_job_address_ok(*address, *address_len);
	*address_len = 0;
	return true;
}

/* Finds the host that a line begins with; an IPv6 address may be spelled in several ways. */
static int find_word(
	const struct book *b, const char *text, size_t len, uint32_t *rank, bool *by_short)
{
	struct cop_job_word word;
	char shortest[COP_IP_TEXT_SIZE];
	struct cop_err why = {0};
	struct cop_ip ip;

	if (cop_job_split_port(text, len, 0, &word, &why) || !cop_job_name_ok(word.name, word.len))
		return -EINVAL;
	if (cop_job_name_is_six(word.name, word.len, &ip)) {
		word.name = cop_ip_print(&ip, shortest);
		word.len = strlen(shortest);
	}
	*rank = find_host(b, word.name, word.len, word.port, by_short);
	return 0;
}

static int parse_line(
	struct book *b, const char *text, size_t len, unsigned line, struct cop_err *err)
{
	size_t word_len, address_len;
	const char *address;
	bool by_short;
	char quoted[64];
	uint32_t i;

	if (!(memchr(text, '|', len) ? cut_row(b, text, len, &word_len, &address, &address_len)
				     : split_line(text, len, &word_len, &address, &address_len)) ||
		find_word(b, text, word_len, &i, &by_short))
		return cop_err_set(err, EINVAL, "line %u: '%s' is not 'hostname address'", line,
			cop_job_quote(text, len, quoted));
	if (address_len == 2 && memcmp(address, "NA", 2) == 0)
		return 0;
	return i == COP_JOB_ABSENT || !address_len
		       ? 0
		       : keep_address(b, i, by_short, address, address_len, line, err);
}

static int refuse_missing(const struct book *b, struct cop_err *err)
{
	const struct cop_job_hosts *h = b->hosts;
	char label[COP_JOB_LABEL_SIZE];
	struct cop_buf names = {0};
	uint32_t missing = 0;

	for (uint32_t i = 0; i < h->count; i++) {
		if (b->address[i] || missing++ >= NAMED_MAX)
			continue;
		cop_job_label(h->host[i].name, h->host[i].port, label);
		cop_buf_printf(&names, "%s%.70s", missing > 1 ? ", " : "",
			b->shared[i] ? label : h->host[i].name);
	}
	if (missing > NAMED_MAX)
		cop_buf_printf(&names, " and %u more", missing - NAMED_MAX);
	if (missing)
		cop_err_set(err, ENOENT, "no address of %s%s%.40s",
			names.failed || !names.data ? "some hosts" : names.data,
			b->is_table && b->column.network ? " on " : "",
			b->is_table && b->column.network ? b->column.network : "");
	cop_buf_free(&names);
	return missing ? -ENOENT : 0;
}

/* The header of a raw table is a comment in its first line. */
static void find_header(struct book *b, const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);
	size_t line_len = end ? (size_t)(end - text) : len;

	if (len && *text == '#' && memchr(text, '|', line_len))
		b->found_column = cop_job_column_find(&b->column, text, line_len);
}

static int parse_book(struct book *b, const char *text, size_t len, struct cop_err *err)
{
	struct cop_job_lines lines = {.p = text, .end = text + len};
	const char *line;
	size_t line_len;
	int rc = book_init(b);

	if (rc)
		return cop_err_set(err, -rc, "no memory for the addresses");
	find_header(b, text, len);
	while (!rc && cop_job_lines_next(&lines, &line, &line_len))
		rc = parse_line(b, line, line_len, lines.number, err);
	return rc ? rc : refuse_missing(b, err);
}

int cop_job_book_parse(const char *text, size_t len, const char *name,
	const struct cop_job_hosts *hosts, const char *network, char **address, struct cop_err *err)
{
	struct book b = {.hosts = hosts, .address = address, .column.network = network};
	struct cop_err why = {0};
	int rc;

	for (uint32_t i = 0; i < hosts->count; i++)
		address[i] = NULL;
	rc = parse_book(&b, text, len, &why);
	book_fini(&b);
	if (!rc)
		return 0;
	for (uint32_t i = 0; i < hosts->count; i++) {
		free(address[i]);
		address[i] = NULL;
	}
	return cop_err_set(err, -rc, "address book %s: %s", name, why.text);
}

int cop_job_book_load(const char *path, const struct cop_job_hosts *hosts, const char *network,
	char **address, struct cop_err *err)
{
	char *text;
	size_t len;
	int rc;

	rc = cop_read_file(path, COP_JOB_FILE_MAX, &text, &len);
	if (rc)
		return cop_err_set(
			err, -rc, "cannot read the address book %s: %s", path, strerror(-rc));
	rc = cop_job_book_parse(text, len, path, hosts, network, address, err);
	free(text);
	return rc;
}

int cop_job_book_write(const char *path, const struct cop_job_hosts *hosts, char *const *address,
	struct cop_err *err)
{
	struct book b = {.hosts = hosts};
	char label[COP_JOB_LABEL_SIZE];
	struct cop_buf text = {0};
	int rc = book_init(&b);

	for (uint32_t i = 0; !rc && i < hosts->count; i++) {
		const struct cop_job_host *h = &hosts->host[i];

		if (!address[i])
			continue;
		cop_buf_printf(&text, "%s %s\n",
			b.shared[i] ? cop_job_label(h->name, h->port, label) : h->name, address[i]);
	}
	if (!rc && text.failed)
		rc = -ENOMEM;
	if (!rc)
		rc = cop_write_file(path, text.data ? text.data : "", text.len, 0644);
	cop_buf_free(&text);
	book_fini(&b);
	return rc ? cop_err_set(
			    err, -rc, "cannot write the address book %s: %s", path, strerror(-rc))
		  : 0;
}
