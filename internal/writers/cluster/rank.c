/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files of one rank. They may be from Copper 1.0, a later version, a node killed while
 * the disk was full, or an attacker. Ignores truncated and malformed files. */
#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "writers/cluster/cluster_priv.h"
#include "base/walk/walk.h"

static const char *const aggregate_columns[] = {"metric", "value", NULL};
static const char *const operations_columns[] = {"operation", "total_calls", "cache_hits",
	"cache_misses", "negative_results", "avg_latency_us", "total_latency_s", NULL};
static const char *const top_columns[] = {"category", "path", "total_events", "cache_hits",
	"cache_misses", "negative_results", "ttl_stores", "ttl_serves", "ttl_expires", "ttl_clears",
	NULL};

/* Adds a record. 0 or -errno; -EBADMSG with the reason in why. */
typedef int row_fn(struct rank_reader *to, const struct cop_csv_record *r, struct cop_buf *why);
static row_fn aggregate_row, operations_row, top_row;

static const struct kind {
	const char *name;
	const char *const *columns;
	row_fn *row;
	bool never_empty; /* even an idle rank has metrics, but no operations and paths */
} kinds[COP_REPORT_KINDS] = {
	[COP_REPORT_AGGREGATE] = {"profiling_aggregate.csv", aggregate_columns, aggregate_row,
		true},
	[COP_REPORT_OPERATIONS] = {"profiling_operations.csv", operations_columns, operations_row,
		false},
	[COP_REPORT_TOP_PATHS] = {"profiling_top_paths.csv", top_columns, top_row, false},
};

const char *cop_report_kind_name(enum cop_report_kind kind)
{
	return kinds[kind].name;
}

/* If the first *len bytes of name end in -<tail>, reduces *len by that. */
static bool cut_tail(const char *name, size_t *len, const char *tail)
{
	size_t n = strlen(tail);

	if (*len < n + 1 || memcmp(name + *len - n, tail, n) != 0 || name[*len - n - 1] != '-')
		return false;
	*len -= n + 1;
	return true;
}

bool cop_report_rank_name(
	const char *name, const char *tag, size_t *stem_len, enum cop_report_kind *kind)
{
	for (unsigned k = 0; k < COP_REPORT_KINDS; k++) {
		size_t len = strlen(name);

		if (!cut_tail(name, &len, kinds[k].name))
			continue;
		*stem_len = len;
		*kind = k;
		return (!*tag || cut_tail(name, &len, tag)) &&
		       cop_observed_is_host_and_pid(name, len);
	}
	return false;
}

static const char too_large[] = "a number is above 2^64-1 and counts as 2^64-1";

/* Records a problem with a file that is used anyway. The message has the line of the first problem,
 * and how many more there are. */
static void doubt(struct rank_reader *r, const char *what)
{
	if (!r->doubts++)
		cop_buf_printf(&r->doubt, "%s (line %llu)", what, (unsigned long long)r->csv.line);
}

static void count_doubts(struct rank_reader *r)
{
	if (r->doubts > 1)
		cop_buf_printf(&r->doubt, ", and %llu more", (unsigned long long)r->doubts - 1);
}

/* A negative count spoils its row, not the file, so skip only the row. */
static bool leaves_out(struct rank_reader *r, const struct cop_csv_record *record, unsigned first)
{
	for (unsigned i = first; i < record->n; i++)
		if (record->field[i].text[0] == '-' &&
			isdigit((unsigned char)record->field[i].text[1])) {
			doubt(r, "a number is negative, and its row is left out");
			return true;
		}
	return false;
}

static int bad(struct cop_buf *why, const char *text)
{
	cop_buf_str(why, text);
	return -EBADMSG;
}

/* Checks whether name can be added: names are unique in a file. 0, or -EBADMSG with the reason in
 * why. */
static int check_name(const struct rows *rows, const char *name, struct cop_buf *why)
{
	if (!*name || strlen(name) > CLUSTER_NAME_BYTES)
		return bad(why, "a row has no name, or one that is too long");
	if (cop_report_rows_find(rows, name))
		return bad(why, "a row appears twice");
	return rows->n == CLUSTER_NAMES_MAX
		       ? bad(why, "it has more rows than any version of Copper writes")
		       : 0;
}

static int aggregate_row(
	struct rank_reader *to, const struct cop_csv_record *r, struct cop_buf *why)
{
	const char *name = r->field[0].text, *value = r->field[1].text;
	int rc = check_name(&to->file->metrics, name, why);

	if (rc)
		return rc;
	if (leaves_out(to, r, 1))
		return 0;
	rc = cop_report_cluster_metric(to->file, name, value);
	if (rc > 0)
		doubt(to, too_large);
	return rc == -EINVAL || rc > 0 ? 0 : rc; /* other text is a description, as in Copper 1.0 */
}

/* Parses a count, clamping it if it exceeds 64 bits. */
static bool parse_count(struct rank_reader *r, const char *text, uint64_t *out)
{
	int rc = cop_parse_u64(text, out);

	if (rc == -ERANGE) {
		doubt(r, too_large);
		*out = UINT64_MAX;
	}
	return !rc || rc == -ERANGE;
}

static int operations_row(
	struct rank_reader *to, const struct cop_csv_record *r, struct cop_buf *why)
{
	struct row row = {.name = (char *)r->field[0].text};
	int rc = check_name(&to->file->ops, row.name, why);
	bool decimal;
	int cut = 0;

	if (!rc && leaves_out(to, r, 1))
		return 0;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(row.count) && !rc; i++)
		if (!parse_count(to, r->field[1 + i].text, &row.count[i]))
			return bad(why, "a count is not a number");
	if (!rc && (cut = cop_report_number_parse(r->field[6].text, &row.sum, &decimal)) < 0)
		return bad(why, "a latency is not a number");
	if (!rc && cut)
		doubt(to, too_large);
	return rc ? rc : cop_report_cluster_row(&to->file->ops, &row);
}

/* The longest list of any rank and category has as many rows as the user requested, or all
 * paths. */
static void count_row(struct rank_reader *to, const char *category)
{
	int c = cop_report_category_of(category);

	if (c >= 0 && ++to->rows[c] > to->file->rows_most)
		to->file->rows_most = to->rows[c];
}

static int top_row(struct rank_reader *to, const struct cop_csv_record *r, struct cop_buf *why)
{
	uint64_t counts[COP_REPORT_TOP_COUNTS];
	const char *path = r->field[1].text;
	size_t len = r->field[1].len;
	int rc;

	if (leaves_out(to, r, 2))
		return 0;
	for (unsigned i = 0; i < COP_REPORT_TOP_COUNTS; i++)
		if (!parse_count(to, r->field[2 + i].text, &counts[i]))
			return bad(why, "a count is not a number");
	rc = cop_report_cluster_top(to->file, r->field[0].text, path, len, counts);
	count_row(to, r->field[0].text);
	if (!rc && cop_walk_path_is_normal(path, len))
		cop_buf_add(&to->paths, path, len + 1);
	return to->paths.failed ? -ENOMEM : rc;
}

/* A later version may append columns. */
static bool is_header(const struct cop_csv_record *r, const char *const *columns)
{
	unsigned i = 0;

	while (i < r->n && columns[i] && strcmp(r->field[i].text, columns[i]) == 0)
		i++;
	return !columns[i];
}

static int next(struct rank_reader *r, struct cop_csv_record *record, struct cop_buf *why)
{
	int rc = cop_csv_next(&r->csv, record);

	if (rc == -EBADMSG) {
		cop_buf_printf(why, "it is not a CSV file: line %llu: %s",
			(unsigned long long)r->csv.line, r->csv.why);
	} else if (rc < 0 && rc != -ENOMEM) {
		cop_buf_printf(why, "it cannot be read: %s", strerror(-rc));
		rc = -EBADMSG;
	} else if (rc > 0 && record->cut) {
		return bad(why, "it is truncated: its last line has no end");
	}
	return rc;
}

int cop_report_read_csv(struct rank_reader *r, enum cop_report_kind kind, struct cop_buf *why)
{
	const struct kind *k = &kinds[kind];
	struct cop_csv_record record;
	unsigned columns;
	bool rows = false;
	int rc = next(r, &record, why);

	if (rc <= 0)
		return rc ? rc : bad(why, "it is empty");
	if (!is_header(&record, k->columns))
		return bad(why,
			"its first line is not the expected header: another version wrote it, or it is another kind of file");
	columns = record.n;
	while ((rc = next(r, &record, why)) > 0) {
		rc = record.n == columns
			     ? k->row(r, &record, why)
			     : bad(why, "a line does not have as many fields as the header");
		if (rc == -EBADMSG)
			cop_buf_printf(why, " (line %llu)", (unsigned long long)r->csv.line);
		if (rc)
			return rc;
		rows = true;
	}
	return !rc && !rows && k->never_empty ? bad(why, "it has only a header") : rc;
}

static ssize_t read_report(void *arg, void *data, size_t len)
{
	struct rank_reader *r = arg;

	return cop_read_left(r->fd, &r->left, data, len);
}

int cop_report_reader_open(struct rank_reader *r)
{
	*r = (struct rank_reader){
		.fd = -1, .file = cop_report_cluster_new(), .tables = cop_report_cluster_new()};
	return r->file && r->tables ? cop_csv_open(&r->csv, read_report, r) : -ENOMEM;
}

void cop_report_reader_close(struct rank_reader *r)
{
	cop_report_cluster_free(r->file);
	cop_report_cluster_free(r->tables);
	cop_buf_free(&r->paths);
	cop_buf_free(&r->doubt);
	cop_csv_free(&r->csv);
}

int cop_report_read_file(struct rank_reader *r, int dir, const char *name,
	enum cop_report_kind kind, struct cop_buf *why)
{
	int rc;

	r->fd = cop_observed_open_file(dir, name, &r->left, why);
	if (r->fd < 0)
		return r->fd;
	cop_report_cluster_clear(r->file);
	r->paths.len = r->doubt.len = 0;
	r->doubts = 0;
	memset(r->rows, 0, sizeof(r->rows));
	rc = cop_csv_open(&r->csv, read_report, r);
	if (!rc)
		rc = cop_report_read_csv(r, kind, why);
	if (!rc && kind == COP_REPORT_AGGREGATE)
		cop_report_cluster_ranks(r->file, 1);
	count_doubts(r);
	close(r->fd);
	return rc;
}

/* ---- the raw tables of a rank ---- */

struct taking {
	struct rank_reader *r;
	unsigned category;
};

static int take_path(void *arg, const char *path, size_t len, const struct cop_path_counts *c)
{
	const struct taking *t = arg;
	bool absence = t->category == COP_REPORT_CATEGORIES - 1;
	uint64_t counts[COP_REPORT_TOP_COUNTS] = {0};

	for (unsigned i = 0; i < COP_PATH_COUNTS; i++) {
		unsigned to = absence ? COP_REPORT_TOP_TTL_STORES : COP_REPORT_TOP_HITS;

		if (absence || i < 3)
			counts[to + i] = c->count[i];
		counts[COP_REPORT_TOP_EVENTS] =
			cop_add_saturating(counts[COP_REPORT_TOP_EVENTS], c->count[i]);
	}
	/* Skip paths that were only touched, like lists of used paths do. */
	return counts[COP_REPORT_TOP_EVENTS]
		       ? cop_report_cluster_top(
				 t->r->tables, cop_report_category[t->category], path, len, counts)
		       : 0;
}

static bool read_table(struct rank_reader *r, int dir, const char *name, unsigned category)
{
	struct taking t = {r, category};
	struct cop_table_result table = {0};
	struct cop_buf why = {0};
	int rc;

	r->fd = cop_observed_open_file(dir, name, &r->left, &why);
	cop_buf_free(&why);
	if (r->fd < 0)
		return false;
	rc = cop_observed_table_read(
		read_report, r, cop_observed_table_kind(name), take_path, &t, &table);
	close(r->fd);
	return !rc && table.verdict == COP_OBSERVED_WHOLE;
}

bool cop_report_read_tables(struct rank_reader *r, int dir, const char *stem)
{
	static const char *const tables[COP_REPORT_CATEGORIES] = {
		"md_table", "data_table", "tree_table", "md_ttl"};
	bool whole = true;

	cop_report_cluster_clear(r->tables);
	for (unsigned c = 0; c < COP_REPORT_CATEGORIES && whole; c++) {
		char name[RANK_NAME_MAX + 32];

		snprintf(name, sizeof(name), "%s-%s_cache_event.output", stem, tables[c]);
		whole = read_table(r, dir, name, c);
	}
	return whole;
}
