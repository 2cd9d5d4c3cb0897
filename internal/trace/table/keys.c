/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command-line words for keys and columns, and extracts the keys of events. */
#include "trace/table/table_priv.h"

static const char *const key_names[COP_KEYS_NAMED] = {
	[COP_KEY_NAME] = "name",
	[COP_KEY_CAT] = "cat",
	[COP_KEY_FILE] = "file",
	[COP_KEY_DIR] = "dir",
	[COP_KEY_CLASS] = "class",
	[COP_KEY_PID] = "pid",
	[COP_KEY_TID] = "tid",
	[COP_KEY_HOST] = "host",
	[COP_KEY_SIZE] = "size",
	[COP_KEY_INTERVAL] = "interval",
	[COP_KEY_TIME] = "time",
	[COP_KEY_TRACE] = "trace",
	[COP_KEY_SERIES] = "series",
	[COP_KEY_RANK] = "rank",
	[COP_KEY_PROCESS] = "process",
	[COP_KEY_THREAD] = "thread",
};
#define KEY_WORDS                                                                                  \
	"name, cat, file, dir, class, pid, tid, host, size, interval, time, trace, rank, process, thread, series, arg:NAME"

const char *cop_tab_key_name(const struct cop_tab_conf *conf, unsigned i)
{
	return conf->key[i] < COP_KEYS_NAMED ? key_names[conf->key[i]] : conf->arg[i];
}

bool cop_tab_is_late(enum cop_tab_key key)
{
	return key == COP_KEY_RANK || key == COP_KEY_PROCESS || key == COP_KEY_THREAD ||
	       key == COP_KEY_WHICH_PROCESS || key == COP_KEY_WHICH_THREAD;
}

/* ---- words ---- */

/* Extracts the next word of a list; returns false at the end. Truncates an overlong word. */
static bool next_word(const char **at, char word[COP_TAB_WORD_MAX])
{
	size_t n = strcspn(*at, ",");

	if (!**at)
		return false;
	snprintf(word, COP_TAB_WORD_MAX, "%.*s", (int)n, *at);
	*at += n + (at[0][n] == ',');
	return true;
}

/* Returns COP_KEYS for an unknown key. */
static enum cop_tab_key key_of(const char *word, bool per)
{
	unsigned i = 0;

	if (!strncmp(word, "arg:", 4) && word[4])
		return COP_KEY_ARG;
	while (i < COP_KEYS_NAMED && strcmp(word, key_names[i]))
		i++;
	if (i == COP_KEYS_NAMED)
		return COP_KEYS;
	if (per && (i == COP_KEY_PID || i == COP_KEY_PROCESS))
		return COP_KEY_WHICH_PROCESS;
	return per && (i == COP_KEY_TID || i == COP_KEY_THREAD) ? COP_KEY_WHICH_THREAD : i;
}

int cop_tab_keys(const char *list, bool per, struct cop_tab_conf *conf, struct cop_err *err)
{
	const char *option = per ? "per" : "by";
	char word[COP_TAB_WORD_MAX];

	while (next_word(&list, word)) {
		enum cop_tab_key key = key_of(word, per);
		unsigned n = conf->keys + conf->pers;

		if (key == COP_KEYS || strlen(word) == COP_TAB_WORD_MAX - 1)
			return cop_err_set(err, EINVAL,
				"--%s: there is no key '%s'; the keys are " KEY_WORDS, option,
				word);
		if (n == COP_TAB_KEYS_MAX)
			return cop_err_set(
				err, EINVAL, "--%s: more than %u keys", option, COP_TAB_KEYS_MAX);
		conf->key[n] = key;
		memcpy(conf->arg[n], word, sizeof(word));
		*(per ? &conf->pers : &conf->keys) += 1;
	}
	return 0;
}

void cop_tab_tell_apart(struct cop_tab_conf *conf)
{
	for (unsigned i = 0; i < conf->keys; i++)
		if (conf->key[i] == COP_KEY_PID || conf->key[i] == COP_KEY_TID)
			conf->key[i] = conf->key[i] == COP_KEY_PID ? COP_KEY_WHICH_PROCESS
								   : COP_KEY_WHICH_THREAD;
}

static int unknown_col(const char *word, struct cop_err *err)
{
	struct cop_buf all = {0};
	int rc;

	for (unsigned i = 0; i < cop_tab_col_count; i++)
		if (!strchr(cop_tab_col[i].name, ':'))
			cop_buf_printf(&all, "%s%s", i ? ", " : "", cop_tab_col[i].name);
	rc = cop_err_set(err, EINVAL,
		"--show: there is no column '%s'; the columns are %s, and with dur:, size: or value: before it count, mean, std, min, max, 1%%, 5%%, 10%%, 25%%, 50%%, 75%%, 90%%, 95%%, 99%% (or p90), value:first, value:last",
		word, all.data ? all.data : "");
	cop_buf_free(&all);
	return rc;
}

static unsigned find_col(const char *word)
{
	unsigned i = 0;

	while (i < cop_tab_col_count && strcmp(word, cop_tab_col[i].name))
		i++;
	return i;
}

int cop_tab_cols(const char *list, struct cop_tab_conf *conf, struct cop_err *err)
{
	char word[COP_TAB_WORD_MAX];

	while (next_word(&list, word)) {
		unsigned i = find_col(word);

		if (i == cop_tab_col_count)
			return unknown_col(word, err);
		if (conf->cols == COP_TAB_COLS_MAX)
			return cop_err_set(
				err, EINVAL, "--show: more than %u columns", COP_TAB_COLS_MAX);
		conf->col[conf->cols++] = (uint8_t)i;
	}
	return 0;
}

bool cop_tab_has_col(const struct cop_tab_conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->cols; i++)
		if (!strcmp(cop_tab_col[conf->col[i]].name, name))
			return true;
	return false;
}

/* ---- --then ---- */

static enum cop_tab_then then_of(const char *word)
{
	static const char *const words[] = {[COP_THEN_MAX] = "max",
		[COP_THEN_MIN] = "min",
		[COP_THEN_SUM] = "sum",
		[COP_THEN_MEAN] = "mean"};

	for (unsigned i = COP_THEN_MAX; i < COP_ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return i;
	return COP_THEN_NONE;
}

static int set_then(
	struct cop_tab_conf *conf, const char *col, enum cop_tab_then then, struct cop_err *err)
{
	for (unsigned i = 0; i < conf->cols; i++) {
		if (strcmp(cop_tab_col[conf->col[i]].name, col))
			continue;
		conf->then[i] = then;
		return 0;
	}
	return cop_err_set(err, EINVAL, "--then: the column '%s' is not shown", col);
}

/* Adds the columns named by --then to those shown. */
static int show_named(const char *list, struct cop_tab_conf *conf, struct cop_err *err)
{
	char word[COP_TAB_WORD_MAX], *equals;
	int rc = 0;

	while (!rc && next_word(&list, word)) {
		equals = strchr(word, '=');
		if (!equals)
			continue;
		*equals = '\0';
		rc = cop_tab_cols(word, conf, err);
	}
	return rc;
}

int cop_tab_thens(const char *list, struct cop_tab_conf *conf, struct cop_err *err)
{
	enum cop_tab_then rest = COP_THEN_NONE, then;
	char word[COP_TAB_WORD_MAX], *equals;
	int rc = conf->cols ? 0 : show_named(list, conf, err);

	while (!rc && next_word(&list, word)) {
		equals = strchr(word, '=');
		then = then_of(equals ? equals + 1 : word);
		if (!then)
			return cop_err_set(err, EINVAL,
				"--then: '%s' is neither max, min, sum or mean nor COL=max and so on",
				word);
		if (!equals) {
			rest = then;
			continue;
		}
		*equals = '\0';
		rc = set_then(conf, word, then, err);
	}
	for (unsigned i = 0; i < conf->cols && !rc; i++) {
		conf->then[i] = conf->then[i] ? conf->then[i] : rest;
		if (!conf->then[i])
			return cop_err_set(err, EINVAL,
				"--then: what becomes of the column '%s'? name it, too, as %s=max, or give a word for all others, as max",
				cop_tab_col[conf->col[i]].name, cop_tab_col[conf->col[i]].name);
	}
	return rc;
}

/* ---- requirements of a table ---- */

static bool has_key(const struct cop_tab_conf *conf, enum cop_tab_key key)
{
	for (unsigned i = 0; i < conf->keys + conf->pers; i++)
		if (conf->key[i] == key)
			return true;
	return false;
}

bool cop_tab_needs_names(const struct cop_tab_conf *conf)
{
	return has_key(conf, COP_KEY_FILE) || has_key(conf, COP_KEY_DIR) ||
	       has_key(conf, COP_KEY_CLASS) || has_key(conf, COP_KEY_HOST) ||
	       has_key(conf, COP_KEY_PROCESS);
}

bool cop_tab_needs_first(const struct cop_tab_conf *conf)
{
	return has_key(conf, COP_KEY_INTERVAL) || has_key(conf, COP_KEY_TIME) ||
	       cop_tab_has_col(conf, "first") || cop_tab_has_col(conf, "last");
}

static bool has_values(const struct cop_tab_conf *conf)
{
	for (unsigned i = 0; i < conf->cols; i++)
		if (cop_tab_col[conf->col[i]].of == OF_VALUE)
			return true;
	return false;
}

bool cop_tab_needs_args(const struct cop_tab_conf *conf)
{
	return has_key(conf, COP_KEY_ARG) || has_values(conf);
}

/* Keys pid and tid need it, too, because rows that combine several processes are marked. */
bool cop_tab_needs_who(const struct cop_tab_conf *conf)
{
	for (unsigned i = 0; i < conf->keys + conf->pers; i++)
		if (cop_tab_is_late(conf->key[i]) || conf->key[i] == COP_KEY_PID ||
			conf->key[i] == COP_KEY_TID)
			return true;
	return false;
}

bool cop_tab_needs_self(const struct cop_tab_conf *conf)
{
	return cop_tab_has_col(conf, "self");
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

/* Rounds down, even for times before the first event. */
static int64_t interval_of(const struct cop_tab *t, int64_t ts_ns)
{
	int64_t width = (int64_t)t->conf.interval_ns, at = ts_ns - t->first_ns;

	return at / width - (at % width < 0);
}

/* Prints seconds without trailing zeros. */
static size_t put_seconds(int64_t ns, char *to)
{
	uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	size_t n = (size_t)sprintf(to, "%s%llu.%09llu", ns < 0 ? "-" : "",
		(unsigned long long)(v / 1000000000), (unsigned long long)(v % 1000000000));

	while (to[n - 1] == '0')
		n--;
	return to[n - 1] == '.' ? n - 1 : n;
}

/* Events are roughly in time order, so the last text can usually be reused. */
static size_t put_interval(const struct cop_tab *t, struct part *p, int64_t interval, char *to)
{
	if (!p->text_len || interval != p->interval) {
		p->text_len = put_seconds(interval * (int64_t)t->conf.interval_ns, p->text);
		p->interval = interval;
	}
	memcpy(to, p->text, p->text_len);
	return p->text_len;
}

static size_t put_text(struct cop_trace_str s, char *to)
{
	memcpy(to, s.at, s.len);
	return s.len;
}

/* Writes a member of the args; those of the begin event take precedence. */
static size_t put_arg(struct part *p, const struct cop_trace_event *e, const char *name, char *to)
{
	struct cop_trace_str value;

	if (!cop_trace_member(e->args, name, &value) &&
		!cop_trace_member(e->end_args, name, &value))
		return 0;
	return put_text(cop_trace_value_text(value, &p->room), to);
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

static size_t put_trace(const struct cop_tab *t, const struct cop_trace_event *e, char *to)
{
	const char *name = t->conf.files ? cop_trace_files_name(t->conf.files, e->source) : "";

	return put_text((struct cop_trace_str){name, strlen(name)}, to);
}

static size_t put_one(struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	unsigned i, struct cop_trace_str series, char *to)
{
	enum cop_tab_key key = t->conf.key[i];

	if (cop_tab_is_late(key))
		return cop_late_put(e, to);
	switch (key) {
	case COP_KEY_INTERVAL:
		return put_interval(t, p, interval_of(t, e->ts_ns), to);
	case COP_KEY_TIME:
		return put_seconds(e->ts_ns - t->first_ns, to);
	case COP_KEY_SIZE:
		return e->has_size ? (size_t)sprintf(to, "%llu", (unsigned long long)e->size) : 0;
	case COP_KEY_CLASS:
		return put_class(e->file, to);
	case COP_KEY_TRACE:
		return put_trace(t, e, to);
	case COP_KEY_SERIES:
		return put_text(series, to);
	case COP_KEY_ARG:
		return put_arg(p, e, t->conf.arg[i] + 4, to);
	default:
		return put_text(text_of(e, key), to);
	}
}

/* Reserves scratch space for all keys that this event can have. */
static int reserve_keys(const struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	struct cop_trace_str series)
{
	size_t most = COP_MAX(COP_MAX(e->name.len, e->cat.len),
		COP_MAX(e->pid.len + e->tid.len, e->file.len + e->host.len));
	size_t need;
	char *grown;

	most = COP_MAX(most, COP_MAX(series.len, COP_MAX(e->args.len, e->end_args.len)));
	most = COP_MAX(most, cop_late_room(e));
	if (t->conf.files)
		most = COP_MAX(most, strlen(cop_trace_files_name(t->conf.files, e->source)));
	need = COP_TAB_KEYS_MAX * (sizeof(uint32_t) + 48 + most);
	if (need <= p->size)
		return 0;
	grown = realloc(p->scratch, 2 * need);
	if (!grown)
		return -ENOMEM;
	p->scratch = grown;
	p->size = 2 * need;
	return 0;
}

ssize_t cop_tab_put_keys(struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	struct cop_trace_str series)
{
	size_t len = 0;

	if (reserve_keys(t, p, e, series))
		return -ENOMEM;
	for (unsigned i = 0; i < t->conf.keys + t->conf.pers; i++) {
		size_t n = put_one(t, p, e, i, series, p->scratch + len + sizeof(uint32_t));
		uint32_t n32 = (uint32_t)n;

		memcpy(p->scratch + len, &n32, sizeof(n32));
		len += sizeof(n32) + n;
	}
	return (ssize_t)len;
}
