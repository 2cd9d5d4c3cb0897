/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses filter terms such as param.lr < 0.01, and converts them to SQL, with keys and values as
 * parameters. */
#include "writers/runs/store_priv.h"

enum kind { KIND_COLUMN, KIND_PAIR, KIND_METRIC };

static const struct source {
	const char *prefix; /* if it ends with a dot, a key follows */
	enum kind kind;
	const char *sql; /* ?K is the key's parameter */
} sources[] = {
	{"status", KIND_COLUMN, "status"},
	{"name", KIND_COLUMN, "name"},
	{"group", KIND_COLUMN, "\"group\""},
	{"reason", KIND_COLUMN, "exit_reason"},
	{"version", KIND_COLUMN, "version"},
	{"nodes", KIND_COLUMN, "nodes"},
	{"start", KIND_COLUMN, "start"},
	{"seconds", KIND_COLUMN, "(coalesce(\"end\", seen) - start)"},
	{"param.", KIND_PAIR, "(SELECT value FROM param WHERE run = run_now.id AND key = ?K)"},
	{"tag.", KIND_PAIR, "(SELECT value FROM tag WHERE run = run_now.id AND key = ?K)"},
	{"resource.", KIND_PAIR,
		"(SELECT value FROM resource WHERE run = run_now.id AND key = ?K)"},
	{"metric.", KIND_METRIC, NULL},
};
/* Statistics of a metric's points; the first is the default. */
static const struct {
	const char *suffix, *sql;
} points[] = {
	{".last",
		"(SELECT value FROM metric WHERE run = run_now.id AND key = ?K ORDER BY step DESC LIMIT 1)"},
	{".min", "(SELECT min(value) FROM metric WHERE run = run_now.id AND key = ?K)"},
	{".max", "(SELECT max(value) FROM metric WHERE run = run_now.id AND key = ?K)"},
	{".mean", "(SELECT avg(value) FROM metric WHERE run = run_now.id AND key = ?K)"},
};
/* Two-character operators come first, so that they match first. */
static const char *const operators[] = {"!=", "<=", ">=", "=", "<", ">"};

/* Finds the SQL for a metric's suffix, and returns the suffix's length. */
static size_t find_point(const char *key, size_t len, const char **sql)
{
	*sql = points[0].sql;
	for (size_t i = 0; i < COP_ARRAY_SIZE(points); i++) {
		size_t n = strlen(points[i].suffix);

		if (len > n && memcmp(key + len - n, points[i].suffix, n) == 0) {
			*sql = points[i].sql;
			return n;
		}
	}
	return 0;
}

static int parse_key(const char *text, size_t len, struct store_key *out)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(sources); i++) {
		size_t n = strlen(sources[i].prefix);
		bool column = sources[i].kind == KIND_COLUMN;

		if (len < n || memcmp(text, sources[i].prefix, n) != 0 ||
			(column ? len != n : len == n))
			continue;
		text += n;
		len -= n;
		out->sql = sources[i].sql;
		if (sources[i].kind == KIND_METRIC)
			len -= find_point(text, len, &out->sql);
		if (len > COP_RUNREC_KEY_MAX)
			return -EINVAL;
		snprintf(out->key, sizeof(out->key), "%.*s", (int)len, text);
		return 0;
	}
	return -EINVAL;
}

static size_t trim(const char **text, size_t len)
{
	while (len && **text == ' ')
		++*text, len--;
	while (len && (*text)[len - 1] == ' ')
		len--;
	return len;
}

int cop_store_parse_where(const char *text, struct store_where *out, struct cop_err *err)
{
	const char *at = text + strcspn(text, "=<>!"), *key = text, *value;
	size_t i = 0, value_len;

	while (i < COP_ARRAY_SIZE(operators) &&
		strncmp(at, operators[i], strlen(operators[i])) != 0)
		i++;
	if (i < COP_ARRAY_SIZE(operators)) {
		size_t len = trim(&key, (size_t)(at - text));

		*out = (struct store_where){.op = operators[i]};
		value = at + strlen(operators[i]);
		value_len = trim(&value, strlen(value));
		snprintf(out->value, sizeof(out->value), "%.*s", (int)value_len, value);
		if (*out->value && parse_key(key, len, &out->key) == 0) {
			char *end;

			out->number = strtod(out->value, &end);
			out->is_number = !*end;
			return 0;
		}
	}
	return cop_err_set(err, EINVAL,
		"'%s' is not KEY OP VALUE: the key is status, name, group, reason, version, nodes, start, seconds, param.K, tag.K, resource.K or metric.K (also metric.K.min, .max, .mean), and OP is one of = != < <= > >=",
		text);
}

int cop_store_parse_sort(const char *text, struct store_key *out, bool *down, struct cop_err *err)
{
	*down = *text == '-';
	text += *down;
	*out = (struct store_key){0};
	return parse_key(text, strlen(text), out) == 0
		       ? 0
		       : cop_err_set(err, EINVAL,
				 "'%s' is no key: status, name, group, nodes, start, seconds, param.K, tag.K, resource.K or metric.K (also metric.K.min, .max, .mean), with a - before it for the largest first",
				 text);
}

int cop_store_check_filter(const struct cop_store_filter *f, struct cop_err *err)
{
	struct store_where where;
	struct store_key key;
	bool down;
	int rc = 0;

	for (size_t i = 0; i < f->wheres && !rc; i++)
		rc = cop_store_parse_where(f->where[i], &where, err);
	return !rc && f->sort ? cop_store_parse_sort(f->sort, &key, &down, err) : rc;
}

/* ---- SQL ---- */

static void put_key(struct cop_buf *sql, const struct store_key *key, unsigned parameter)
{
	const char *mark = strstr(key->sql, "?K");

	cop_buf_add(sql, key->sql, mark ? (size_t)(mark - key->sql) : strlen(key->sql));
	if (mark)
		cop_buf_printf(sql, "?%u%s", parameter, mark + 2);
}

/* Numeric text compares as a number, but "inf" as text is not a number. */
static void put_is_number(struct cop_buf *sql, const struct store_key *key, unsigned parameter)
{
	cop_buf_str(sql, "(");
	put_key(sql, key, parameter);
	cop_buf_str(sql, " GLOB '*[0-9]*' AND ");
	put_key(sql, key, parameter);
	cop_buf_str(sql, " NOT GLOB '*[^-+.0-9eE]*' OR typeof(");
	put_key(sql, key, parameter);
	cop_buf_str(sql, ") = 'real')");
}

void cop_store_put_where(struct cop_buf *sql, const struct store_where *w, unsigned parameter)
{
	bool equal = w->op[0] == '=' || w->op[0] == '!';

	cop_buf_str(sql, " AND ");
	if (!w->is_number) {
		put_key(sql, &w->key, parameter);
		cop_buf_printf(sql, " %s ?%u", w->op, parameter + 1);
		return;
	}
	cop_buf_str(sql, "(CASE WHEN ");
	put_is_number(sql, &w->key, parameter);
	cop_buf_str(sql, " THEN CAST(");
	put_key(sql, &w->key, parameter);
	cop_buf_printf(sql, " AS REAL) %s ?%u ELSE ", w->op, parameter + 2);
	if (equal) {
		put_key(sql, &w->key, parameter);
		cop_buf_printf(sql, " %s ?%u END)", w->op, parameter + 1);
	} else {
		cop_buf_str(sql, "0 END)");
	}
}

void cop_store_put_sort(
	struct cop_buf *sql, const struct store_key *key, bool down, unsigned parameter)
{
	const char *order = down ? " DESC" : "";

	put_key(sql, key, parameter);
	cop_buf_str(sql, " IS NULL, CASE WHEN ");
	put_is_number(sql, key, parameter);
	cop_buf_str(sql, " THEN CAST(");
	put_key(sql, key, parameter);
	cop_buf_str(sql, " AS REAL) ELSE ");
	put_key(sql, key, parameter);
	cop_buf_printf(sql, " END%s, ", order);
}
