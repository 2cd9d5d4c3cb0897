/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads raw tables (copper-formats(5)) of Copper and Copper 1.0 as untrusted input. An events table
 * is
 *
 *     title {
 *     /path {
 *     cache hits: 1,
 *     …
 *     }
 *     }
 *
 * and a table of sizes has lines "/path: 123" and two totals, in Copper 1.0 between bars. Path
 * lines of the two kinds are distinct: one ends in a brace, the other in a digit. */
#include "writers/cluster/cluster.h"
#include "base/walk/walk.h"

/* The longest path with every byte escaped, plus the rest of the line. */
#define LINE_MAX_BYTES (2 * COP_PATHSET_LEN_MAX + 64)
#define BUFFER (LINE_MAX_BYTES + 64 * COP_KIB)

struct table {
	enum cop_observed_kind kind;
	cop_observed_visit *take;
	void *arg;
	struct cop_table_result *out;
	char *path; /* the path whose counts are being read, in the buffer below */
	size_t len;
	struct cop_path_counts counts;
	uint64_t lines;
	int64_t depth; /* open braces */
	bool totals;   /* has read the totals of a table of sizes */
	bool sizes;
};

enum cop_observed_kind cop_observed_table_kind(const char *name)
{
	return strstr(name, "md_table_cache_event") ? COP_OBSERVED_METADATA
	       : strstr(name, "md_ttl_cache_event") ? COP_OBSERVED_ABSENCES
						    : COP_OBSERVED_OTHER;
}

static uint64_t sum_of(const struct cop_path_counts *c, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum = cop_add_saturating(sum, c->count[i]);
	return sum;
}

static int finish_path(struct table *t)
{
	struct cop_path_counts *c = &t->counts;
	int rc = 0;

	if (t->kind == COP_OBSERVED_METADATA) {
		c->events = sum_of(c, 3);
		c->absent = c->count[2];
	} else if (t->kind == COP_OBSERVED_ABSENCES) {
		c->ttl = sum_of(c, 2);
	}
	if (t->len) {
		t->out->paths++;
		rc = t->take(t->arg, t->path, t->len, &t->counts);
	}
	t->len = 0;
	t->counts = (struct cop_path_counts){0};
	return rc;
}

/* Counts follow their path, so keep it until the next one. */
static int begin_path(struct table *t, const char *line, size_t len)
{
	int rc = finish_path(t);

	if (rc)
		return rc;
	memcpy(t->path, line, len);
	len = cop_csv_unescape(t->path, len);
	if (len > COP_PATHSET_LEN_MAX || !cop_walk_path_is_normal(t->path, len))
		t->out->odd++;
	else
		t->len = len;
	return 0;
}

/* The length of the path in "/path: 123"; 0: not such a line. */
static size_t before_size(const char *line, size_t len)
{
	size_t n = len;

	while (n && line[n - 1] >= '0' && line[n - 1] <= '9')
		n--;
	return n < len && n > 2 && line[n - 1] == ' ' && line[n - 2] == ':' ? n - 2 : 0;
}

static int path_line(struct table *t, const char *line, size_t len, bool whole)
{
	size_t n;

	if (len > 2 && memcmp(line + len - 2, " {", 2) == 0) {
		t->depth++;
		return begin_path(t, line, len - 2);
	}
	n = whole ? before_size(line, len) : 0;
	if (n) {
		t->sizes = true;
		return begin_path(t, line, n);
	}
	t->out->odd++;
	return 0;
}

/* "word: 12," */
static bool count_line(
	struct table *t, const char *line, size_t len, const char *word, uint64_t *sum)
{
	size_t n = strlen(word);
	uint64_t value = 0;
	bool cut = false;

	if (len <= n + 2 || memcmp(line, word, n) != 0 || memcmp(line + n, ": ", 2) != 0)
		return false;
	for (n += 2; n < len && line[n] >= '0' && line[n] <= '9'; n++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, line[n] - '0', &value))
			cut = true;
	if (cut) {
		value = UINT64_MAX;
		t->out->cut_line = t->out->cut_line ? t->out->cut_line : t->lines;
	}
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
	return true;
}

static void counts_line(struct table *t, const char *line, size_t len)
{
	static const char *const words[][COP_PATH_COUNTS] = {
		{"cache hits", "cache misses", "neg", NULL},
		{"stores", "serves", "expires", "clears"}};
	const char *const *word = words[t->kind == COP_OBSERVED_ABSENCES];

	for (unsigned i = 0; i < COP_PATH_COUNTS && word[i]; i++)
		if (count_line(t, line, len, word[i], &t->counts.count[i]))
			return;
}

static void other_line(struct table *t, const char *line, size_t len)
{
	while (len && (line[0] == ' ' || line[0] == '\t'))
		line++, len--;
	if (len && line[0] == '}')
		t->depth--;
	else if (len && line[len - 1] == '{')
		t->depth++;
	else if (len > 15 && memcmp(line, "total number of", 15) == 0)
		t->totals = true;
	else if (len > 11 && memcmp(line, "Total bytes", 11) == 0)
		t->sizes = true;
	else
		counts_line(t, line, len);
}

/* Whether a table can begin with this line. */
static bool is_beginning(const char *line, size_t len)
{
	return len &&
	       (line[0] == '/' || cop_observed_is_ornament(line, len) || line[len - 1] == '{' ||
		       (len > 11 && memcmp(line, "Total bytes", 11) == 0));
}

static int one_line(struct table *t, const char *line, size_t len, bool whole)
{
	if (len && line[len - 1] == '\r')
		len--;
	if (!t->lines++ && !is_beginning(line, len))
		return -EBADMSG;
	if (len && line[0] == '/')
		return path_line(t, line, len, whole);
	other_line(t, line, len);
	return 0;
}

/* Splits blocks into lines, skipping overlong ones. */
struct lines {
	char *data;
	size_t len;
	bool skipping;
};

static int whole_lines(struct table *t, struct lines *l)
{
	char *at = l->data, *end = l->data + l->len, *line_end;
	int rc = 0;

	while (!rc && (line_end = memchr(at, '\n', (size_t)(end - at)))) {
		if (!l->skipping && line_end - at < LINE_MAX_BYTES)
			rc = one_line(t, at, (size_t)(line_end - at), true);
		else if (!t->lines)
			rc = -EBADMSG;
		else
			t->out->odd++;
		l->skipping = false;
		at = line_end + 1;
	}
	l->len = (size_t)(end - at);
	if (l->skipping || l->len >= LINE_MAX_BYTES) {
		l->skipping = true;
		l->len = 0;
	}
	memmove(l->data, at, l->len);
	return rc ? rc : l->skipping && !t->lines ? -EBADMSG : 0;
}

static int all_lines(struct table *t, struct lines *l, cop_csv_read *read, void *arg)
{
	ssize_t got;
	int rc = 0;

	t->out->verdict = COP_OBSERVED_EMPTY;
	while (!rc && (got = read(arg, l->data + l->len, BUFFER - l->len)) > 0) {
		t->out->verdict = COP_OBSERVED_NONE;
		l->len += (size_t)got;
		rc = whole_lines(t, l);
	}
	if (!rc && got < 0)
		return (int)got;
	if (!rc && l->skipping)
		t->out->odd++;
	else if (!rc && l->len)
		rc = one_line(t, l->data, l->len, false);
	return rc ? rc : finish_path(t);
}

int cop_observed_table_read(cop_csv_read *read, void *read_arg, enum cop_observed_kind kind,
	cop_observed_visit *take, void *arg, struct cop_table_result *out)
{
	struct table t = {
		.kind = kind, .take = take, .arg = arg, .out = out, .path = malloc(LINE_MAX_BYTES)};
	struct lines l = {.data = malloc(BUFFER)};
	int rc = -ENOMEM;

	*out = (struct cop_table_result){0};
	if (t.path && l.data)
		rc = all_lines(&t, &l, read, read_arg);
	if (rc == -EBADMSG)
		rc = 0; /* "not a table" is a result, not an error */
	else if (!rc && t.lines)
		out->verdict = t.depth == 0 && (t.totals || !t.sizes) ? COP_OBSERVED_WHOLE
								      : COP_OBSERVED_CUT;
	free(t.path);
	free(l.data);
	return rc;
}
