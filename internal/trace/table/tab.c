/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table/table_priv.h"

static const char *const key_names[] = {
	"name", "cat", "file", "dir", "class", "pid", "tid", "host", "size", "interval"};

const char *cop_tab_key_name(enum cop_tab_key key)
{
	return key_names[key];
}

/* ---- words ---- */

/* The next word of a list; false at the end. */
static bool next_word(const char **at, char word[32])
{
	size_t n = strcspn(*at, ",");

	if (!**at)
		return false;
	snprintf(word, 32, "%.*s", (int)n, *at);
	*at += n + (at[0][n] == ',');
	return true;
}

int cop_tab_keys(const char *list, bool per, struct cop_tab_conf *conf, struct cop_err *err)
{
	const char *option = per ? "per" : "by";
	char word[32];

	while (next_word(&list, word)) {
		unsigned i = 0;

		while (i < COP_KEYS && strcmp(word, key_names[i]))
			i++;
		if (i == COP_KEYS)
			return cop_err_set(err, EINVAL,
				"--%s: there is no key '%s'; the keys are name, cat, file, dir, class, pid, tid, host, size, interval",
				option, word);
		if (conf->keys + conf->pers == COP_TAB_KEYS_MAX)
			return cop_err_set(
				err, EINVAL, "--%s: more than %u keys", option, COP_TAB_KEYS_MAX);
		conf->key[conf->keys + conf->pers] = i;
		*(per ? &conf->pers : &conf->keys) += 1;
	}
	return 0;
}

static int unknown_col(const char *word, struct cop_err *err)
{
	struct cop_buf all = {0};
	int rc;

	for (unsigned i = 0; i < cop_tab_col_count; i++)
		cop_buf_printf(&all, "%s%s", i ? ", " : "", cop_tab_col[i].name);
	rc = cop_err_set(err, EINVAL, "--show: there is no column '%s'; the columns are %s", word,
		all.data ? all.data : "");
	cop_buf_free(&all);
	return rc;
}

int cop_tab_cols(const char *list, struct cop_tab_conf *conf, struct cop_err *err)
{
	char word[32];

	while (next_word(&list, word)) {
		unsigned i = 0;

		while (i < cop_tab_col_count && strcmp(word, cop_tab_col[i].name))
			i++;
		if (i == cop_tab_col_count)
			return unknown_col(word, err);
		if (conf->cols == COP_TAB_COLS_MAX)
			return cop_err_set(
				err, EINVAL, "--show: more than %u columns", COP_TAB_COLS_MAX);
		conf->col[conf->cols++] = (uint8_t)i;
	}
	return 0;
}

bool cop_tab_needs_names(const struct cop_tab_conf *conf)
{
	for (unsigned i = 0; i < conf->keys + conf->pers; i++)
		if (conf->key[i] == COP_KEY_FILE || conf->key[i] == COP_KEY_DIR ||
			conf->key[i] == COP_KEY_CLASS || conf->key[i] == COP_KEY_HOST)
			return true;
	return false;
}

bool cop_tab_needs_first(const struct cop_tab_conf *conf)
{
	for (unsigned i = 0; i < conf->keys + conf->pers; i++)
		if (conf->key[i] == COP_KEY_INTERVAL)
			return true;
	return false;
}

/* ---- keys of an event ---- */

static struct cop_trace_str base_of(struct cop_trace_str file)
{
	const char *slash = file.len ? memrchr(file.at, '/', file.len) : NULL;
	size_t skip = slash ? (size_t)(slash + 1 - file.at) : 0;

	return (struct cop_trace_str){file.at + skip, file.len - skip};
}

static struct cop_trace_str dir_of(struct cop_trace_str file)
{
	struct cop_trace_str base = base_of(file);
	size_t n = file.len - base.len;

	return (struct cop_trace_str){file.at, n > 1 ? n - 1 : n};
}

static size_t put_class(struct cop_trace_str file, char *to)
{
	struct cop_trace_str base = base_of(file);
	size_t n = 0;

	for (size_t i = 0; i < base.len; i++)
		if (base.at[i] != '-' && (unsigned char)(base.at[i] - '0') >= 10)
			to[n++] = base.at[i];
	return n;
}

/* Rounds down, also before the first event. */
static int64_t interval_of(const struct cop_tab *t, int64_t ts_ns)
{
	int64_t width = (int64_t)t->conf.interval_ns, at = ts_ns - t->first_ns;

	return at / width - (at % width < 0);
}

static struct cop_trace_str text_of(const struct cop_trace_event *e, enum cop_tab_key key)
{
	switch (key) {
	case COP_KEY_NAME:
		return e->name;
	case COP_KEY_CAT:
		return e->cat;
	case COP_KEY_DIR:
		return dir_of(e->file);
	case COP_KEY_PID:
		return e->pid;
	case COP_KEY_TID:
		return e->tid;
	case COP_KEY_HOST:
		return e->host;
	default:
		return e->file;
	}
}

/* Appends seconds without trailing zeros. Events come more or less in order, so the last text can
 * usually be used again. */
static size_t put_interval(const struct cop_tab *t, struct part *p, int64_t interval, char *to)
{
	size_t n;

	if (!p->text_len || interval != p->interval) {
		n = (size_t)snprintf(p->text, sizeof(p->text), "%.9f",
			(double)interval * (double)t->conf.interval_ns / 1e9);
		while (p->text[n - 1] == '0')
			n--;
		p->text_len = p->text[n - 1] == '.' ? n - 1 : n;
		p->interval = interval;
	}
	memcpy(to, p->text, p->text_len);
	return p->text_len;
}

static size_t put_key(const struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	enum cop_tab_key key, char *to)
{
	char *text = to + sizeof(uint32_t);
	struct cop_trace_str s;
	uint32_t len;

	if (key == COP_KEY_INTERVAL) {
		len = (uint32_t)put_interval(t, p, interval_of(t, e->ts_ns), text);
	} else if (key == COP_KEY_SIZE) {
		len = e->has_size ? (uint32_t)sprintf(text, "%llu", (unsigned long long)e->size)
				  : 0;
	} else if (key == COP_KEY_CLASS) {
		len = (uint32_t)put_class(e->file, text);
	} else {
		s = text_of(e, key);
		len = (uint32_t)s.len;
		memcpy(text, s.at, s.len);
	}
	memcpy(to, &len, sizeof(len));
	return sizeof(len) + len;
}

/* Makes room for the keys of any event with these strings. */
static int reserve_keys(struct part *p, const struct cop_trace_event *e)
{
	size_t need = COP_TAB_KEYS_MAX *
		      (sizeof(uint32_t) + 48 +
			      COP_MAX(COP_MAX(e->name.len, e->cat.len),
				      COP_MAX(e->pid.len + e->tid.len, e->file.len + e->host.len)));
	char *grown;

	if (need <= p->size)
		return 0;
	grown = realloc(p->scratch, 2 * need);
	if (!grown)
		return -ENOMEM;
	p->scratch = grown;
	p->size = 2 * need;
	return 0;
}

/* ---- groups ---- */

static struct group *find_group(
	const struct cop_htab *t, const char *key, size_t len, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(t, hash);

	for (; l; l = cop_htab_next(l)) {
		struct group *g = COP_CONTAINER_OF(l, struct group, link);

		if (g->len == len && !memcmp(g->key, key, len))
			return g;
	}
	return NULL;
}

static struct group *group_new(struct cop_htab *t, const char *key, size_t len, uint64_t hash)
{
	struct group *g = calloc(1, sizeof(*g) + len);

	if (!g)
		return NULL;
	memcpy(g->key, key, len);
	g->len = (uint32_t)len;
	cop_htab_add(t, &g->link, hash);
	return g;
}

int cop_tab_add(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e)
{
	struct part *p = &t->part[worker];
	struct group *g;
	uint64_t hash;
	size_t len = 0;

	if (e->kind != COP_TRACE_SPAN && e->kind != COP_TRACE_AGGREGATE)
		return 0;
	if (reserve_keys(p, e))
		return -ENOMEM;
	for (unsigned i = 0; i < t->conf.keys + t->conf.pers; i++)
		len += put_key(t, p, e, t->conf.key[i], p->scratch + len);
	hash = cop_hash64(p->scratch, len, 0);
	g = find_group(&p->table, p->scratch, len, hash);
	if (!g) {
		if (p->table.count >= COP_TAB_GROUPS_MAX)
			return -E2BIG;
		g = group_new(&p->table, p->scratch, len, hash);
		if (!g)
			return -ENOMEM;
	}
	return cop_agg_add(&g->agg, e, t->wants);
}

static int merge_part(struct cop_tab *t, struct part *from)
{
	struct cop_htab *to = &t->part[0].table;
	struct cop_hlink *l, *next;
	struct group *g, *same;
	int rc = 0;

	for (l = cop_htab_after(&from->table, NULL); l && !rc; l = next) {
		next = cop_htab_after(&from->table, l);
		g = COP_CONTAINER_OF(l, struct group, link);
		same = find_group(to, g->key, g->len, l->hash);
		if (!same && to->count >= COP_TAB_GROUPS_MAX)
			return -E2BIG;
		cop_htab_remove(&from->table, l);
		if (!same) {
			cop_htab_add(to, l, l->hash);
			continue;
		}
		rc = cop_agg_merge(&same->agg, &g->agg);
		cop_agg_fini(&g->agg);
		free(g);
	}
	return rc;
}

int cop_tab_merge(struct cop_tab *t)
{
	int rc = 0;

	for (unsigned i = 1; i < t->threads && !rc; i++)
		rc = merge_part(t, &t->part[i]);
	return rc;
}

size_t cop_tab_split(const struct group *g, unsigned n, struct cop_trace_str *out)
{
	const char *p = g->key;
	uint32_t len;

	for (unsigned i = 0; i < n; i++) {
		memcpy(&len, p, sizeof(len));
		out[i] = (struct cop_trace_str){p + sizeof(len), len};
		p += sizeof(len) + len;
	}
	return (size_t)(p - g->key);
}

struct cop_tab *cop_tab_new(const struct cop_tab_conf *conf, unsigned threads, int64_t first_ns)
{
	struct cop_tab *t = calloc(1, sizeof(*t) + threads * sizeof(t->part[0]));

	if (!t)
		return NULL;
	t->conf = *conf;
	t->threads = threads;
	t->first_ns = first_ns;
	for (unsigned i = 0; i < conf->cols; i++) {
		const struct col *c = &cop_tab_col[conf->col[i]];

		if (c->what < COL_Q25 || c->what > COL_Q75)
			continue;
		t->wants.dur |= c->of == OF_DUR;
		t->wants.size |= c->of == OF_SIZE;
	}
	return t;
}

void cop_tab_free(struct cop_tab *t)
{
	struct cop_hlink *l, *next;

	if (!t)
		return;
	for (unsigned i = 0; i < t->threads; i++) {
		for (l = cop_htab_after(&t->part[i].table, NULL); l; l = next) {
			struct group *g = COP_CONTAINER_OF(l, struct group, link);

			next = cop_htab_after(&t->part[i].table, l);
			cop_agg_fini(&g->agg);
			free(g);
		}
		cop_htab_fini(&t->part[i].table);
		free(t->part[i].scratch);
	}
	free(t);
}
