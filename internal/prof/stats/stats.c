/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/stats/stats.h"

static const struct row {
	const char *group, *name, *unit, *meaning;
} rows[COP_COUNTERS] = {
#define COP_COUNTER(id, group, name, unit, meaning) {group, name, unit, meaning},
#include "prof/stats/counters.def"
#undef COP_COUNTER
};

static enum cop_counter kind_of(int rc)
{
	switch (rc) {
	case -ETIMEDOUT:
		return COP_FABRIC_REJECTED_SILENT;
	case -EBADMSG:
		return COP_FABRIC_REJECTED_FORM;
	case -EACCES:
		return COP_FABRIC_REJECTED_SECRET;
	case -EALREADY:
		return COP_FABRIC_REJECTED_REPLAY;
	case -EHOSTUNREACH:
		return COP_FABRIC_REJECTED_HOST;
	default:
		return COP_FABRIC_REJECTED_OTHER;
	}
}

void cop_stats_rejected(struct cop_stats *s, int rc, uint64_t n)
{
	cop_stats_add(s, COP_FABRIC_REJECTED, n);
	cop_stats_add(s, kind_of(rc), n);
}

/* ---- examples ---- */

enum { NO_EXAMPLE, BEING_WRITTEN, WRITTEN };

void cop_stats_example(struct cop_stats *s, enum cop_example kind, const char *path)
{
	size_t len, cut;
	int none = NO_EXAMPLE;

	/* Once there is an example, a call costs only a load. */
	if (!s || !*path || atomic_load(&s->example[kind].state) != NO_EXAMPLE ||
		!atomic_compare_exchange_strong(&s->example[kind].state, &none, BEING_WRITTEN))
		return;
	len = strlen(path);
	cut = len < COP_EXAMPLE_SIZE ? 0 : len - COP_EXAMPLE_SIZE + 1;
	memcpy(s->example[kind].path, path + cut, len - cut + 1);
	for (char *c = s->example[kind].path; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	atomic_store(&s->example[kind].state, WRITTEN);
}

const char *cop_stats_first(const struct cop_stats *s, enum cop_example kind)
{
	return atomic_load(&((struct cop_stats *)s)->example[kind].state) == WRITTEN
		       ? s->example[kind].path
		       : "";
}

static void copy_examples(struct cop_stats *into, const struct cop_stats *from)
{
	for (unsigned i = 0; i < COP_EXAMPLES; i++)
		cop_stats_example(into, i, cop_stats_first(from, i));
}

/* ---- as text ---- */

void cop_stats_json(const struct cop_stats *s, struct cop_json *j)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		if (!c || strcmp(rows[c].group, rows[c - 1].group) != 0) {
			if (c)
				cop_json_end(j);
			cop_json_object(j, rows[c].group);
		}
		cop_json_u64(j, rows[c].name, cop_stats_get(s, c));
	}
	cop_json_end(j);
}

void cop_stats_lines(const struct cop_stats *s, struct cop_buf *out)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		uint64_t value = cop_stats_get(s, c);

		if (value)
			cop_buf_printf(
				out, "%s.%s %" PRIu64 "\n", rows[c].group, rows[c].name, value);
	}
	cop_buf_str(out, "\n");
}

static bool is_named(unsigned c, const char *name)
{
	size_t len = strlen(rows[c].group);

	return strncmp(name, rows[c].group, len) == 0 && name[len] == '.' &&
	       strcmp(name + len + 1, rows[c].name) == 0;
}

static int read_line(char *line, struct cop_stats *s)
{
	char *number = strchr(line, ' ');
	uint64_t value;
	unsigned c = 0;

	if (!number)
		return -EBADMSG;
	*number++ = '\0';
	if (cop_parse_u64(number, &value))
		return -EBADMSG;
	while (c < COP_COUNTERS && !is_named(c, line))
		c++;
	if (c < COP_COUNTERS)
		s->value[c] = value;
	return 0;
}

char *cop_stats_read_lines(char *text, struct cop_stats *s)
{
	char *line;

	*s = (struct cop_stats){0};
	while ((line = strsep(&text, "\n")) && *line)
		if (read_line(line, s))
			return NULL;
	return text;
}

uint64_t cop_stats_requests(const struct cop_stats *s)
{
	static const enum cop_counter of[] = {COP_FUSE_LOOKUP, COP_FUSE_GETATTR, COP_FUSE_READLINK,
		COP_FUSE_OPEN, COP_FUSE_READ, COP_FUSE_RELEASE, COP_FUSE_OPENDIR, COP_FUSE_READDIR,
		COP_FUSE_RELEASEDIR, COP_FUSE_STATFS, COP_FUSE_ACCESS, COP_FUSE_IOCTL,
		COP_FUSE_LSEEK, COP_FUSE_GETXATTR, COP_FUSE_LISTXATTR};
	uint64_t n = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(of); i++)
		n += cop_stats_get(s, of[i]);
	return n;
}

void cop_stats_sum(struct cop_stats *into, const struct cop_stats *from)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(into, c, cop_stats_get(from, c));
	copy_examples(into, from);
}

void cop_stats_drain(struct cop_stats *from, struct cop_stats *into)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(into, c,
			atomic_exchange_explicit(&from->value[c], 0, memory_order_relaxed));
	copy_examples(into, from);
}

const char *cop_counter_group(enum cop_counter c)
{
	return rows[c].group;
}

const char *cop_counter_name(enum cop_counter c)
{
	return rows[c].name;
}

const char *cop_counter_unit(enum cop_counter c)
{
	return rows[c].unit;
}

const char *cop_counter_meaning(enum cop_counter c)
{
	return rows[c].meaning;
}
