/* SPDX-License-Identifier: BSD-3-Clause */
/* LISTs of hosts: n[1-4,7],login,x[001-010]y[0-1]:7721,fd77::1,[fd77::2]:7721
 *
 * An item alternates literals and brackets, and expands to all combinations, the last bracket
 * varying fastest. A first pass checks the item and multiplies the counts, which rejects
 * n[0-999999999] before anything is allocated; a second pass writes the names. As in Slurm, the
 * first number of a range sets the zero-padded width. */
#include <ctype.h>

#include "job/hosts/hosts_priv.h"

#define MAX_BRACKETS 8
#define MAX_DIGITS 18 /* fits in 64 bits, and so do sums */

struct range {
	uint64_t first, last;
	int width;
};

/* The item being expanded, and the name built so far. */
struct item {
	const char *end;
	struct cop_job_builder *b;
	uint16_t port;
	char name[COP_JOB_NAME_MAX + 1];
};

static int refuse_item(
	struct cop_err *err, int code, const char *item, const char *end, const char *why)
{
	char quoted[64];

	return cop_err_set(
		err, code, "'%s': %s", cop_job_quote(item, (size_t)(end - item), quoted), why);
}

static bool read_number(const char **p, const char *end, uint64_t *out, int *digits)
{
	*out = 0;
	for (*digits = 0; *p < end && isdigit((unsigned char)**p); ++*p) {
		if (++*digits > MAX_DIGITS)
			return false;
		*out = *out * 10 + (uint64_t)(**p - '0');
	}
	return *digits > 0;
}

/* Reads a range and the comma or bracket after it. Returns 1 if more ranges follow in this bracket,
 * else 0. */
static int read_range(const char **p, const char *end, struct range *r)
{
	int digits;

	if (!read_number(p, end, &r->first, &r->width))
		return -EINVAL;
	r->last = r->first;
	if (*p < end && **p == '-') {
		++*p;
		if (!read_number(p, end, &r->last, &digits))
			return -EINVAL;
	}
	if (*p == end || r->last < r->first)
		return -EINVAL;
	++*p;
	return (*p)[-1] == ',' ? 1 : (*p)[-1] == ']' ? 0 : -EINVAL;
}

/* Counts the numbers in a bracket. *p is just past '[' and advances past ']'. */
static int count_bracket(const char **p, const char *end, uint64_t *count)
{
	struct range r;
	int more;

	*count = 0;
	do {
		more = read_range(p, end, &r);
		if (more < 0)
			return more;
		*count += r.last - r.first + 1;
		if (*count > COP_JOB_MAX_HOSTS)
			return -E2BIG;
	} while (more);
	return 0;
}

static bool is_literal(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_' || c == ':';
}

/* Checks an item (without its port) and counts its names. */
static int count_item(const char *item, const char *end, uint64_t *count, struct cop_err *err)
{
	const char *p = item;
	unsigned brackets = 0;
	uint64_t n;
	int rc;

	*count = 1;
	while (p < end) {
		if (is_literal(*p)) {
			p++;
			continue;
		}
		if (*p++ != '[')
			return refuse_item(err, EINVAL, item, end,
				"a host name has letters, digits, dots, dashes and underscores");
		if (++brackets > MAX_BRACKETS)
			return refuse_item(err, EINVAL, item, end, "more than 8 brackets");
		rc = count_bracket(&p, end, &n);
		if (rc == -EINVAL)
			return refuse_item(err, EINVAL, item, end,
				"a bracket holds numbers and rising ranges, as [1-4,7]");
		if (rc || (*count *= n) > COP_JOB_MAX_HOSTS)
			return refuse_item(err, E2BIG, item, end, "means more than 200000 hosts");
	}
	return 0;
}

static int put_names(struct item *it, const char *p, size_t len);

static int put_bracket(struct item *it, const char *p, size_t len)
{
	struct range r;
	const char *next = p, *close = memchr(p, ']', (size_t)(it->end - p));
	int more, rc = 0;

	do {
		more = read_range(&next, it->end, &r);
		for (uint64_t v = r.first; !rc && v <= r.last; v++) {
			int n = snprintf(it->name + len, sizeof(it->name) - len, "%0*llu", r.width,
				(unsigned long long)v);

			if ((size_t)n >= sizeof(it->name) - len)
				return -ENAMETOOLONG;
			rc = put_names(it, close + 1, len + (size_t)n);
		}
	} while (!rc && more > 0);
	return rc;
}

/* Writes all names that consist of the prefix so far and an expansion of the item from p on. */
static int put_names(struct item *it, const char *p, size_t len)
{
	while (p < it->end && *p != '[') {
		if (len >= COP_JOB_NAME_MAX)
			return -ENAMETOOLONG;
		it->name[len++] = *p++;
	}
	if (p < it->end)
		return put_bracket(it, p + 1, len);
	if (!cop_job_name_ok(it->name, len))
		return -EINVAL;
	return cop_job_builder_add(it->b, it->name, len, it->port);
}

static int read_port(const char *p, const char *end, uint16_t *port)
{
	uint64_t value = 0;

	if (end - p < 1 || end - p > 5)
		return -EINVAL;
	for (; p < end; p++) {
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (!value || value > UINT16_MAX)
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

/* Where "[fd77::1]" ends in "[fd77::1]:7720"; NULL if text does not start with a bracketed address.
 * "[1-4]" is a range. */
static const char *six_in_brackets(const char *text, const char *end)
{
	const char *close =
		text < end && *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;

	return close && memchr(text, ':', (size_t)(close - text)) ? close + 1 : NULL;
}

/* Two colons mean an address without a port. */
static bool has_two_colons(const char *text, const char *end)
{
	const char *colon = memchr(text, ':', (size_t)(end - text));

	return colon && memchr(colon + 1, ':', (size_t)(end - colon - 1));
}

/* Refuses text that looks like an IPv6 address but is not a valid host address. */
static int check_six(
	const char *text, const char *end, const struct cop_job_word *w, struct cop_err *err)
{
	struct cop_ip ip;

	if (memchr(w->name, '%', w->len) ||
		(cop_job_name_is_six(w->name, w->len, &ip) && cop_ip_is_link_local(&ip)))
		return refuse_item(err, EINVAL, text, end, COP_IP_LINK_LOCAL);
	if (memchr(w->name, '[', w->len) || cop_job_name_is_six(w->name, w->len, &ip))
		return 0;
	return refuse_item(err, EINVAL, text, end,
		"is not an address of IPv6, as fd77::1 or, with a port, [fd77::1]:7720");
}

int cop_job_split_port(const char *text, size_t len, uint16_t default_port,
	struct cop_job_word *out, struct cop_err *err)
{
	const char *end = text + len, *rest = six_in_brackets(text, end);
	const char *bracket = memrchr(text, ']', len), *from = bracket ? bracket : text;
	bool six = rest || has_two_colons(text, end);

	*out = (struct cop_job_word){text, len, default_port};
	if (rest)
		*out = (struct cop_job_word){text + 1, (size_t)(rest - text) - 2, default_port};
	else if (!six && (rest = memchr(from, ':', (size_t)(end - from))))
		out->len = (size_t)(rest - text);
	if (rest && rest < end && (*rest != ':' || read_port(rest + 1, end, &out->port)))
		return refuse_item(err, EINVAL, text, end, "a port is a number in 1..65535");
	return six ? check_six(text, end, out, err) : 0;
}

/* Checks an item, splits it and counts its names. */
static int measure_item(const char *text, size_t len, uint16_t default_port,
	struct cop_job_word *word, uint64_t *count, struct cop_err *err)
{
	int rc;

	if (!len)
		return cop_err_set(err, EINVAL, "a name is missing between two commas");
	rc = cop_job_split_port(text, len, default_port, word, err);
	return rc ? rc : count_item(word->name, word->name + word->len, count, err);
}

static int expand_item(const char *text, size_t len, uint16_t default_port,
	struct cop_job_builder *b, struct cop_err *err)
{
	struct item it = {.b = b};
	struct cop_job_word word;
	uint64_t count;
	int rc = measure_item(text, len, default_port, &word, &count, err);

	if (rc)
		return rc;
	text = word.name;
	it.port = word.port;
	it.end = text + word.len;
	if (b->hosts.count + count > COP_JOB_MAX_HOSTS)
		return refuse_item(
			err, E2BIG, text, it.end, "with it there are more than 200000 hosts");
	rc = put_names(&it, text, 0);
	if (rc == -ENOMEM)
		return cop_err_set(err, ENOMEM, "no memory for the host list");
	return rc ? refuse_item(err, EINVAL, text, it.end,
			    "is not a host name of 1 to 253 bytes, nor an address of IPv6")
		  : 0;
}

/* Returns the end of the item: the first comma outside brackets. */
static const char *item_end(const char *p, const char *end)
{
	bool inside = false;

	for (; p < end && (inside || *p != ','); p++)
		inside = *p == '[' || (inside && *p != ']');
	return p;
}

/* Splits off the first item and trims it; returns whether more follow. */
static bool cut_item(const char **p, const char *end, const char **item, size_t *len)
{
	const char *stop = item_end(*p, end), *first = *p, *last = stop;

	while (first < last && isspace((unsigned char)*first))
		first++;
	while (first < last && isspace((unsigned char)last[-1]))
		last--;
	*item = first;
	*len = (size_t)(last - first);
	*p = stop < end ? stop + 1 : end;
	return stop < end;
}

int cop_job_list_expand(const char *text, size_t len, uint16_t default_port,
	struct cop_job_builder *b, struct cop_err *err)
{
	const char *p = text, *end = text + len, *item;
	size_t item_len;
	bool more;
	int rc;

	do {
		more = cut_item(&p, end, &item, &item_len);
		rc = expand_item(item, item_len, default_port, b, err);
	} while (!rc && more);
	return rc;
}

int cop_job_list_count(const char *text, size_t len, uint64_t *count, struct cop_err *err)
{
	const char *p = text, *end = text + len, *item;
	struct cop_job_word word;
	size_t item_len;
	uint64_t n;
	bool more;
	int rc;

	*count = 0;
	do {
		more = cut_item(&p, end, &item, &item_len);
		rc = measure_item(item, item_len, 0, &word, &n, err);
		*count += rc ? 0 : n;
	} while (!rc && more);
	return rc;
}
