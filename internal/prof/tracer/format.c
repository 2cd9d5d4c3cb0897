/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats lines as DFTracer 1.x does (copper-formats(5)): files and hosts are 64-bit hashes, and a
 * separate line names each once. The code avoids printf, because formatting is most of the cost of
 * tracing. */
#include "base/base/json.h"
#include "prof/tracer/tracer_priv.h"

#define LINE_BYTES 1024 /* enough: all names and keys are short constants in this program */
#define NAMES_MOST ((size_t)1 << 19) /* 8 MiB */

/* Keep it positive, because readers store the hash as a signed number. */
static uint64_t hash_of(const char *text, size_t len, uint64_t seed)
{
	return cop_hash64(text, len, seed) & INT64_MAX;
}

int cop_tracer_format_init(struct format *f, const struct cop_tracer_conf *conf)
{
	*f = (struct format){.pid = conf->pid,
		.host_hash = hash_of(conf->host, strlen(conf->host), 0),
		.source = strdup(conf->source),
		.host = strdup(conf->host),
		.source_len = strlen(conf->source),
		.source_hash = hash_of(conf->source, strlen(conf->source), 0),
		.base_ns = cop_wall_ns() - (int64_t)cop_now_ns()};
	while (f->source_len && f->source && f->source[f->source_len - 1] == '/')
		f->source_len--;
	if (f->source && f->host)
		return 0;
	cop_tracer_format_fini(f);
	return -ENOMEM;
}

void cop_tracer_format_fini(struct format *f)
{
	free(f->source);
	free(f->host);
	cop_seen_forget(&f->names);
	cop_buf_free(&f->path);
}

/* Whether the name must be written. If the table is full, names are written repeatedly, which
 * readers accept. */
static bool is_new(struct cop_seen *names, uint64_t hash)
{
	enum cop_seen_result seen = cop_seen_add(names, hash, NAMES_MOST);

	if (seen == COP_SEEN_FULL) {
		cop_seen_forget(names);
		cop_seen_add(names, hash, NAMES_MOST);
	}
	return seen != COP_SEEN_BEFORE;
}

/* ---- a line ---- */

static char *put_text(char *p, const char *text)
{
	size_t len = strlen(text);

	memcpy(p, text, len);
	return p + len;
}

static char *put_u64(char *p, uint64_t v)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static char *put_i64(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return put_u64(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static char *put_head(const struct format *f, char *p, uint64_t id, const char *name,
	const char *cat, uint32_t tid)
{
	p = put_u64(put_text(p, "{\"id\":"), id);
	p = put_text(put_text(p, ",\"name\":\""), name);
	p = put_text(put_text(p, "\",\"cat\":\""), cat);
	p = put_u64(put_text(p, "\",\"pid\":"), (uint64_t)f->pid);
	return put_u64(put_text(p, ",\"tid\":"), tid);
}

/* Rounds down to microseconds, so that nested spans stay nested in the file. */
static uint64_t stamp(const struct format *f, uint64_t now_ns)
{
	return (uint64_t)(((int64_t)now_ns + f->base_ns) / 1000);
}

static char *put_arg(char *p, const struct record *r, unsigned i)
{
	p = put_text(put_text(p, "\""), r->arg[i].key);
	p = put_text(p, "\":");
	if (!(r->texts & 1u << i))
		return put_i64(p, r->arg[i].value);
	return put_text(put_text(put_text(p, "\""), r->arg[i].text), "\"");
}

/* Writes the arguments from index first on. after: the JSON object already has a member. */
static char *put_args(char *p, const struct record *r, unsigned first, bool after)
{
	for (unsigned i = first; i < r->args; i++) {
		if (after)
			*p++ = ',';
		after = true;
		p = put_arg(p, r, i);
	}
	return put_text(p, "}}\n");
}

static void add_line(struct cop_buf *out, const char *line, const char *end)
{
	cop_buf_add(out, line, (size_t)(end - line));
}

/* ---- names and metadata ---- */

/* Replaces characters that some readers of this format take for the end of a string. */
static void spare_readers(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] && strchr("()\\\"'|", text[i]))
			text[i] = ' ';
		else if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
}

/* value: NULL if the line has none. */
static void meta(struct format *f, const char *name, uint32_t tid, const char *text,
	const uint64_t *value, struct cop_buf *out)
{
	char head[LINE_BYTES];
	struct cop_json j = cop_json_to(out);

	add_line(out, head,
		put_text(put_head(f, head, f->id++, name, "dftracer", tid),
			",\"ph\":\"M\",\"args\":"));
	cop_json_object(&j, NULL);
	cop_json_u64(&j, "hhash", f->host_hash);
	cop_json_str(&j, "name", text);
	if (value)
		cop_json_u64(&j, "value", *value);
	cop_json_end(&j);
	cop_buf_str(out, "}\n");
}

void cop_tracer_left_out(struct format *f, const char *why, uint64_t count, struct cop_buf *out)
{
	meta(f, "LO", cop_tracer_tid(), why, &count, out);
}

static void bracket(struct format *f, const char *name, struct cop_buf *out)
{
	char line[LINE_BYTES], *p = put_head(f, line, f->id++, name, "dftracer", cop_tracer_tid());

	p = put_u64(put_text(p, ",\"ts\":"), stamp(f, cop_now_ns()));
	p = put_text(p, ",\"dur\":0,\"ph\":\"X\",\"args\":{\"hhash\":");
	add_line(out, line, put_text(put_u64(p, f->host_hash), "}}\n"));
}

void cop_tracer_begin_lines(
	struct format *f, const struct cop_tracer_conf *conf, struct cop_buf *out)
{
	uint32_t tid = cop_tracer_tid();
	uint64_t rank = conf->rank;

	cop_buf_str(out, "[\n");
	bracket(f, "start", out);
	meta(f, "HH", tid, f->host, &f->host_hash, out);
	meta(f, "PR", tid, "rank", &rank, out);
	meta(f, "process_name", tid, "copper", NULL, out);
}

void cop_tracer_end_lines(struct format *f, struct cop_buf *out)
{
	bracket(f, "end", out);
	cop_buf_str(out, "]\n");
}

static uint64_t name_file(struct format *f, const struct record *r, struct cop_buf *out)
{
	const char *path = (const char *)&r->arg[r->args];
	uint64_t hash = hash_of(path, r->path_len, f->source_hash);

	if (!is_new(&f->names, hash))
		return hash;
	f->path.len = 0;
	cop_buf_add(&f->path, f->source, f->source_len);
	if (r->path_len || !f->source_len)
		cop_buf_add(&f->path, "/", 1);
	cop_buf_add(&f->path, path, r->path_len);
	if (f->path.failed) {
		cop_buf_free(&f->path);
		f->path = (struct cop_buf){0};
		return hash;
	}
	spare_readers(f->path.data, f->path.len);
	meta(f, "FH", r->tid, f->path.data, &hash, out);
	return hash;
}

/* ---- events ---- */

static void thread_line(struct format *f, const struct record *r, struct cop_buf *out)
{
	char name[16] = "";

	memcpy(name, &r->arg[r->args], COP_MIN(r->path_len, sizeof(name) - 1));
	meta(f, "thread_name", r->tid, name, NULL, out);
}

static void clock_line(struct format *f, const struct record *r, struct cop_buf *out)
{
	char line[LINE_BYTES], *p = put_head(f, line, f->id++, "CO", "dftracer", r->tid);

	p = put_u64(put_text(p, ",\"ts\":"), stamp(f, r->begin_ns));
	p = put_text(p, ",\"ph\":\"M\",\"args\":{\"hhash\":");
	p = put_text(put_u64(p, f->host_hash), ",\"name\":\"clock\"");
	add_line(out, line, put_args(p, r, 0, true));
}

/* The first argument is the id that both ends share. */
static void flow_line(struct format *f, const struct record *r, struct cop_buf *out)
{
	uint64_t id = r->args ? (uint64_t)r->arg[0].value : 0;
	char line[LINE_BYTES], *p = put_head(f, line, id, r->name, "copper", r->tid);

	p = put_u64(put_text(p, ",\"ts\":"), stamp(f, r->begin_ns));
	p = put_text(p, r->phase == COP_TRACER_LEAVES ? ",\"ph\":\"s\"" : ",\"ph\":\"f\"");
	p = put_u64(put_text(p, ",\"bp\":\"e\",\"args\":{\"hhash\":"), f->host_hash);
	add_line(out, line, put_args(p, r, 1, true));
}

/* Viewers draw each argument as a line in a chart, so write no others. */
static void counter_line(struct format *f, const struct record *r, struct cop_buf *out)
{
	char line[LINE_BYTES], *p = put_head(f, line, f->id++, r->name, "copper", r->tid);

	p = put_u64(put_text(p, ",\"ts\":"), stamp(f, r->begin_ns));
	p = put_text(p, ",\"ph\":\"C\",\"args\":{");
	add_line(out, line, put_args(p, r, 0, false));
}

static void span_line(struct format *f, const struct record *r, struct cop_buf *out)
{
	const char *cat = r->phase == COP_TRACER_POSIX ? "POSIX" : "copper";
	uint64_t begin = stamp(f, r->begin_ns), end = stamp(f, r->end_ns);
	uint64_t file = r->has_path ? name_file(f, r, out) : 0;
	char line[LINE_BYTES], *p = put_head(f, line, f->id++, r->name, cat, r->tid);

	p = put_u64(put_text(p, ",\"ts\":"), begin);
	p = put_u64(put_text(p, ",\"dur\":"), end > begin ? end - begin : 0);
	p = put_u64(put_text(p, ",\"ph\":\"X\",\"args\":{\"hhash\":"), f->host_hash);
	if (r->has_path)
		p = put_u64(put_text(p, ",\"fhash\":"), file);
	add_line(out, line, put_args(p, r, 0, true));
}

void cop_tracer_lines(struct format *f, const struct record *r, struct cop_buf *out)
{
	if (r->kind == KIND_THREAD)
		thread_line(f, r, out);
	else if (r->kind == KIND_CLOCK)
		clock_line(f, r, out);
	else if (r->phase == COP_TRACER_COUNTER)
		counter_line(f, r, out);
	else if (r->phase == COP_TRACER_LEAVES || r->phase == COP_TRACER_ARRIVES)
		flow_line(f, r, out);
	else
		span_line(f, r, out);
}
