/* SPDX-License-Identifier: BSD-3-Clause */
/* Regular expressions are slow and distinct names are few, so each thread caches the results. */
#include <regex.h>

#include "trace/table/table_priv.h"

/* Maximum number of cached names per thread; a full cache is cleared. */
#define MEMO_MAX 65536u

/* Rounding margin, needed because selected times are floating-point numbers. */
#define COP_SELECT_ROOM_NS 100000

struct rule {
	bool active;
	regex_t *re;
	unsigned n, nots; /* including expressions precede excluding ones */
};
struct memo {
	struct cop_hlink link;
	bool yes;
	uint32_t len;
	unsigned text;
	char bytes[];
};
struct cop_select {
	struct cop_select_conf conf;
	struct rule rule[COP_SELECT_TEXTS];
	bool all, times;
	int64_t first_ns;
	unsigned threads;
	struct cop_htab memo[]; /* one per thread */
};

static const char *const options[] = {"name", "cat", "file", "host"};

/* ---- expressions ---- */

/* Returns the position after the bracket expression at p, or NULL if it is unterminated. */
static const char *after_brackets(const char *p)
{
	p++;
	p += *p == '^';
	p += *p == ']';
	for (; *p && *p != ']'; p++) {
		char kind = p[1];

		if (*p != '[' || !kind || !strchr(":.=", kind))
			continue;
		for (p += 2; *p && (p[0] != kind || p[1] != ']'); p++)
			;
		if (!*p)
			return NULL;
		p++;
	}
	return *p ? p + 1 : NULL;
}

static size_t open_bracket(const char *text)
{
	const char *p = text, *next;

	while (*p) {
		if (*p == '[') {
			next = after_brackets(p);
			if (!next)
				break;
			p = next;
		} else {
			p += *p == '\\' && p[1] ? 2 : 1;
		}
	}
	return (size_t)(p - text);
}

/* Returns how many bytes precede the error: those before the unmatched bracket, else those before
 * the end of the shortest prefix that fails with the same error. */
static size_t right_bytes(const char *text, int wrong)
{
	size_t n = strlen(text);
	char *copy = wrong == REG_EBRACK ? NULL : strdup(text);
	regex_t re;

	if (wrong == REG_EBRACK)
		return open_bracket(text);
	for (int rc = wrong; copy && n && rc == wrong;) {
		copy[--n] = '\0';
		rc = regcomp(&re, copy, REG_EXTENDED | REG_NOSUB);
		if (!rc)
			regfree(&re);
	}
	free(copy);
	return n;
}

static int compile(
	regex_t *re, const char *text, const char * not, const char *option, struct cop_err *err)
{
	int rc = regcomp(re, text, REG_EXTENDED | REG_NOSUB);
	char why[128];
	size_t n;

	if (!rc)
		return 0;
	regerror(rc, re, why, sizeof(why));
	if (rc == REG_ESPACE)
		return cop_err_set(err, ENOMEM, "no memory for --%s%s '%s'", not, option, text);
	n = right_bytes(text, rc);
	return cop_err_set(err, EINVAL,
		"--%s%s '%s' is not an extended regular expression: %s, at '%s' (byte %zu)", not,
		option, text, why, text + n, n + 1);
}

static int compile_rule(struct cop_select *s, unsigned i, struct cop_err *err)
{
	const struct cop_words *yes = &s->conf.text[i], *no = &s->conf.not_text[i];
	const char *option =
		i == COP_SELECT_NAME && s->conf.name_option ? s->conf.name_option : options[i];
	struct rule *r = &s->rule[i];
	int rc = 0;

	r->active = yes->n + no->n > 0;
	r->re = calloc(yes->n + no->n + 1, sizeof(*r->re));
	if (!r->re)
		return cop_err_set(err, ENOMEM, "no memory");
	for (; r->n < yes->n && !rc; r->n += !rc)
		rc = compile(&r->re[r->n], yes->at[r->n], "", option, err);
	for (; !rc && r->nots < no->n; r->nots += !rc)
		rc = compile(&r->re[r->n + r->nots], no->at[r->nots], "not-", option, err);
	return rc;
}

static bool matches(const regex_t *re, struct cop_trace_str s)
{
	regmatch_t m = {0, (regoff_t)s.len};

	return !regexec(re, s.at, 0, &m, REG_STARTEND);
}

static bool rule_test(const struct rule *r, struct cop_trace_str s)
{
	bool yes = !r->n;

	for (unsigned i = 0; i < r->n && !yes; i++)
		yes = matches(&r->re[i], s);
	for (unsigned i = 0; i < r->nots && yes; i++)
		yes = !matches(&r->re[r->n + i], s);
	return yes;
}

/* ---- per-thread cache ---- */

static void forget_memo(struct cop_htab *t)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(t, NULL); l; l = next) {
		next = cop_htab_after(t, l);
		free(COP_CONTAINER_OF(l, struct memo, link));
	}
	cop_htab_fini(t);
}

/* Copies the text and appends a NUL, which sanitizers require even though REG_STARTEND does not. */
static struct memo *memo_new(unsigned text, struct cop_trace_str s)
{
	struct memo *m = malloc(sizeof(*m) + s.len + 1);

	if (!m)
		return NULL;
	m->text = text;
	m->len = (uint32_t)s.len;
	memcpy(m->bytes, s.at, s.len);
	m->bytes[s.len] = '\0';
	return m;
}

static void remember(struct cop_htab *t, struct memo *m, uint64_t hash)
{
	if (t->count >= MEMO_MAX)
		forget_memo(t);
	cop_htab_add(t, &m->link, hash);
}

static bool text_test(
	struct cop_select *s, struct cop_htab *memo, unsigned text, struct cop_trace_str at)
{
	uint64_t hash = cop_hash64(at.at, at.len, text);
	struct cop_hlink *l = cop_htab_first(memo, hash);
	struct memo *m;

	for (; l; l = cop_htab_next(l)) {
		m = COP_CONTAINER_OF(l, struct memo, link);
		if (m->text == text && m->len == at.len && !memcmp(m->bytes, at.at, at.len))
			return m->yes;
	}
	m = memo_new(text, at);
	if (!m)
		return rule_test(&s->rule[text], at);
	m->yes = rule_test(&s->rule[text], (struct cop_trace_str){m->bytes, at.len});
	remember(memo, m, hash);
	return m->yes;
}

/* ---- selection ---- */

static bool one_of(const struct cop_words *w, struct cop_trace_str s)
{
	for (unsigned i = 0; i < w->n; i++)
		if (strlen(w->at[i]) == s.len && !memcmp(w->at[i], s.at, s.len))
			return true;
	return false;
}

static bool number_test(const struct cop_select *s, unsigned i, struct cop_trace_str at)
{
	if (s->conf.number[i].n && !one_of(&s->conf.number[i], at))
		return false;
	return !one_of(&s->conf.not_number[i], at);
}

static bool time_test(const struct cop_select *s, int64_t ts_ns)
{
	double at = (double)(ts_ns - s->first_ns) / 1e9;

	return at >= s->conf.from_s && (s->conf.to_s < 0 || at < s->conf.to_s);
}

bool cop_select_test(struct cop_select *s, unsigned worker, const struct cop_trace_event *e)
{
	const struct cop_trace_str *text[] = {&e->name, &e->cat, &e->file, &e->host};

	if (s->all)
		return true;
	if (s->times && !time_test(s, e->ts_ns))
		return false;
	if (!number_test(s, COP_SELECT_PID, e->pid) || !number_test(s, COP_SELECT_TID, e->tid))
		return false;
	for (unsigned i = 0; i < COP_SELECT_TEXTS; i++)
		if (s->rule[i].active && !text_test(s, &s->memo[worker], i, *text[i]))
			return false;
	return true;
}

static bool has_any(const struct cop_select *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < COP_SELECT_TEXTS; i++)
		n += s->conf.text[i].n + s->conf.not_text[i].n;
	for (unsigned i = 0; i < COP_SELECT_NUMBERS; i++)
		n += s->conf.number[i].n + s->conf.not_number[i].n;
	return n > 0 || s->times;
}

int cop_select_new(const struct cop_select_conf *conf, unsigned threads, struct cop_select **out,
	struct cop_err *err)
{
	struct cop_select *s = calloc(1, sizeof(*s) + threads * sizeof(s->memo[0]));
	int rc = 0;

	if (!s)
		return cop_err_set(err, ENOMEM, "no memory");
	s->conf = *conf;
	s->threads = threads;
	s->times = conf->from_s > 0 || conf->to_s >= 0;
	s->all = !has_any(s);
	for (unsigned i = 0; i < COP_SELECT_TEXTS && !rc; i++)
		rc = compile_rule(s, i, err);
	if (rc)
		cop_select_free(s);
	else
		*out = s;
	return rc;
}

void cop_select_free(struct cop_select *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < COP_SELECT_TEXTS; i++) {
		for (unsigned k = 0; k < s->rule[i].n + s->rule[i].nots; k++)
			regfree(&s->rule[i].re[k]);
		free(s->rule[i].re);
	}
	for (unsigned i = 0; i < s->threads; i++)
		forget_memo(&s->memo[i]);
	free(s);
}

bool cop_select_needs_names(const struct cop_select *s)
{
	return s->rule[COP_SELECT_FILE].active || s->rule[COP_SELECT_HOST].active;
}

bool cop_select_needs_first(const struct cop_select *s)
{
	return s->times;
}

bool cop_select_is_all(const struct cop_select *s)
{
	return s->all;
}

void cop_select_first(struct cop_select *s, int64_t first_ns)
{
	s->first_ns = first_ns;
}

/* ---- selection by index ---- */

static bool pick_word(void *arg, unsigned what, struct cop_trace_str text)
{
	static const unsigned rules[COP_TRACE_WORDS] = {
		[COP_TRACE_WORD_NAME] = COP_SELECT_NAME,
		[COP_TRACE_WORD_CAT] = COP_SELECT_CAT,
		[COP_TRACE_WORD_HOST] = COP_SELECT_HOST,
		[COP_TRACE_WORD_FILE] = COP_SELECT_FILE,
	};
	const struct cop_select *s = arg;
	struct memo *m;
	bool yes;

	if (what == COP_TRACE_WORD_PID || what == COP_TRACE_WORD_TID)
		return number_test(
			s, what == COP_TRACE_WORD_PID ? COP_SELECT_PID : COP_SELECT_TID, text);
	m = memo_new(rules[what], text);
	yes = !m || rule_test(&s->rule[rules[what]], (struct cop_trace_str){m->bytes, text.len});
	free(m);
	return yes;
}

/* Converts seconds since the first event to a timestamp, and adds the margin `room`. */
static int64_t absolute(const struct cop_select *s, double seconds, int64_t room)
{
	double ns = (double)s->first_ns + seconds * 1e9;

	return ns > -9e18 && ns < 9e18 ? (int64_t)ns + room : ns < 0 ? INT64_MIN : INT64_MAX;
}

void cop_select_pick(struct cop_select *s, bool meta, struct cop_trace_pick *out)
{
	static const unsigned words[COP_SELECT_TEXTS] = {
		[COP_SELECT_NAME] = COP_TRACE_WORD_NAME,
		[COP_SELECT_CAT] = COP_TRACE_WORD_CAT,
		[COP_SELECT_HOST] = COP_TRACE_WORD_HOST,
		[COP_SELECT_FILE] = COP_TRACE_WORD_FILE,
	};

	*out = (struct cop_trace_pick){.word = pick_word,
		.arg = s,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.meta = meta};
	for (unsigned i = 0; i < COP_SELECT_TEXTS; i++)
		out->words |= (unsigned)s->rule[i].active << words[i];
	if (s->conf.number[COP_SELECT_PID].n + s->conf.not_number[COP_SELECT_PID].n)
		out->words |= 1u << COP_TRACE_WORD_PID;
	if (s->conf.number[COP_SELECT_TID].n + s->conf.not_number[COP_SELECT_TID].n)
		out->words |= 1u << COP_TRACE_WORD_TID;
	if (s->times)
		out->from_ns = absolute(s, s->conf.from_s, -COP_SELECT_ROOM_NS);
	if (s->times && s->conf.to_s >= 0)
		out->to_ns = absolute(s, s->conf.to_s, COP_SELECT_ROOM_NS);
}
