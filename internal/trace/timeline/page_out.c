/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a timeline: the description of the columns (JSON), the columns (varints), and the page
 * that holds both. */
#include <math.h>
#include <sodium.h>
#include <zlib.h>

#include "base/base/json.h"
#include "trace/timeline/page_priv.h"

/* ---- the data ---- */

static void put_text(struct cop_json *j, const char *key, struct cop_trace_str s)
{
	cop_json_bytes(j, key, s.at, s.len);
}

static void put_track(struct cop_json *j, const struct track *l)
{
	cop_json_array(j, "rows");
	for (size_t i = 0; i < l->rows; i++)
		cop_json_u64(j, NULL, l->row[i].n);
	cop_json_end(j);
	cop_json_u64(j, "instants", l->instants);
}

static void put_process(struct cop_timeline *t, const struct cop_trace_files *files,
	struct cop_json *j, const struct process *p)
{
	struct cop_buf label = {0};

	cop_process_label(files, p, &label);
	cop_json_object(j, NULL);
	put_text(j, "name", (struct cop_trace_str){label.data ? label.data : "", label.len});
	cop_json_array(j, "threads");
	for (size_t k = 0; k < p->threads; k++) {
		const struct thread *thread = p->thread[k];

		cop_json_object(j, NULL);
		put_text(j, "name", thread->name);
		put_text(j, "tid", thread->tid);
		cop_json_u64(j, "lane", (uint64_t)(thread - t->crew.thread));
		put_track(j, &t->track[thread - t->crew.thread]);
		cop_json_end(j);
	}
	cop_json_end(j);
	cop_json_end(j);
	j->out->failed |= label.failed;
	cop_buf_free(&label);
}

static void put_left(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_object(j, "left");
	cop_json_u64(j, "spans", t->left[COP_TRACE_SPAN]);
	cop_json_u64(j, "shortest", t->shortest_ns);
	cop_json_u64(j, "instants", t->left[COP_TRACE_INSTANT] + t->left[COP_TRACE_AGGREGATE]);
	cop_json_u64(j, "counters", t->left[COP_TRACE_COUNTER]);
	cop_json_u64(j, "flows", t->left[COP_TRACE_FLOW]);
	cop_json_u64(j, "args", t->left_args);
	cop_json_end(j);
}

static void put_names(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "names");
	for (size_t i = 0; i < t->name_n; i++) {
		const struct name *n = t->name[i];

		cop_json_bytes(j, NULL, n->bytes, n->name_len);
		cop_json_bytes(j, NULL, n->bytes + n->name_len, n->cat_len);
	}
	cop_json_end(j);
}

static void put_extras(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "extras");
	for (size_t i = 0; i < t->extra_n; i++) {
		const struct extra *x = t->extra[i];

		cop_json_object(j, NULL);
		cop_json_u64(j, "process", x->process);
		cop_json_bytes(j, "name", x->cat, x->len);
		put_track(j, &x->track);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void put_counters(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "counters");
	for (size_t i = 0; i < t->counter_n; i++) {
		const struct counter *c = t->counter[i];

		cop_json_object(j, NULL);
		cop_json_u64(j, "process", c->process);
		cop_json_u64(j, "name", c->name);
		cop_json_bytes(j, "series", c->series, c->len);
		cop_json_u64(j, "n", c->n);
		cop_json_end(j);
	}
	cop_json_end(j);
}

void cop_timeline_put_head(
	struct cop_timeline *t, const struct cop_trace_files *files, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	uint64_t total = t->last_ns > t->first_ns ? (uint64_t)(t->last_ns - t->first_ns) : 0;

	cop_json_object(&j, NULL);
	cop_json_u64(&j, "total", total);
	cop_json_u64(&j, "spans", t->kept[COP_TRACE_SPAN]);
	cop_json_u64(&j, "files", cop_trace_files_count(files));
	cop_json_u64(&j, "arrows", t->arrows);
	put_left(t, &j);
	put_names(t, &j);
	cop_json_array(&j, "processes");
	for (size_t i = 0; i < t->crew.processes; i++)
		put_process(t, files, &j, &t->crew.process[i]);
	cop_json_end(&j);
	put_extras(t, &j);
	put_counters(t, &j);
	cop_json_end(&j);
}

static void put_rows(const struct cop_timeline *t, const struct track *l, struct cop_buf *out,
	struct cop_buf *args)
{
	for (size_t i = 0; i < l->rows; i++) {
		int64_t before = t->first_ns;

		for (size_t k = 0; k < l->row[i].n; k++) {
			const struct span *s = &l->row[i].at[k];

			cop_buf_varint(out, (uint64_t)(s->start - before));
			cop_buf_varint(out, s->dur);
			cop_buf_varint(out, (uint64_t)s->name << 1 | s->unfinished);
			before = s->start;
			cop_buf_varint(args, s->args_len);
			cop_buf_add(args, t->args.data + s->args, s->args_len);
		}
	}
}

static void put_instants(const struct cop_timeline *t, const struct track *l, struct cop_buf *out)
{
	int64_t before = t->first_ns;

	for (size_t i = 0; i < l->instants; i++) {
		cop_buf_varint(out, (uint64_t)(l->instant[i].at - before));
		cop_buf_varint(out, l->instant[i].name);
		before = l->instant[i].at;
	}
}

static void put_values(const struct cop_timeline *t, const struct counter *c, struct cop_buf *out)
{
	int64_t before = t->first_ns;

	for (size_t k = 0; k < c->n; k++) {
		cop_buf_varint(out, (uint64_t)(c->at[k].at - before));
		cop_buf_add(out, &c->at[k].value, sizeof(c->at[k].value));
		before = c->at[k].at;
	}
}

void cop_timeline_put_columns(
	const struct cop_timeline *t, struct cop_buf *out, struct cop_buf *args)
{
	for (size_t i = 0; i < t->crew.threads; i++) {
		put_rows(t, &t->track[i], out, args);
		put_instants(t, &t->track[i], out);
	}
	for (size_t i = 0; i < t->extra_n; i++) {
		put_rows(t, &t->extra[i]->track, out, args);
		put_instants(t, &t->extra[i]->track, out);
	}
	for (size_t i = 0; i < t->counter_n; i++)
		put_values(t, t->counter[i], out);
	for (size_t i = 0; i < t->arrows; i++) {
		const struct arrow *a = &t->arrow[i];

		cop_buf_varint(out, a->from);
		cop_buf_varint(out, (uint64_t)COP_MAX(a->at[0] - t->first_ns, 0));
		cop_buf_varint(out, a->to);
		cop_buf_varint(out, (uint64_t)COP_MAX(a->at[1] - t->first_ns, 0));
	}
}

/* ---- the page ---- */

static int put(const struct cop_page_out *to, const char *text)
{
	return to->write(to->arg, text, strlen(text));
}

static int put_base64(const struct cop_page_out *to, const unsigned char *data, size_t len)
{
	enum { PART = 3 * 16384 };
	char text[PART / 3 * 4 + 1];
	int rc = 0;

	for (size_t at = 0; at < len && !rc; at += PART) {
		size_t n = COP_MIN(len - at, (size_t)PART);

		sodium_bin2base64(text, sizeof(text), data + at, n, sodium_base64_VARIANT_ORIGINAL);
		rc = put(to, text);
	}
	return rc;
}

/* Writes the deflated bytes in a script element of a type that browsers do not execute. */
static int put_data(const struct cop_page_out *to, const char *id, const struct cop_buf *b)
{
	uLongf len = compressBound(b->len);
	unsigned char *packed = b->failed ? NULL : malloc(len);
	int rc = -ENOMEM;

	if (packed && compress2(packed, &len, (const Bytef *)(b->data ? b->data : ""), b->len, 6) ==
			      Z_OK) {
		rc = put(to, "<script type=\"text/plain\" id=\"");
		rc = rc ? rc : put(to, id);
		rc = rc ? rc : put(to, "\">");
		rc = rc ? rc : put_base64(to, packed, len);
		rc = rc ? rc : put(to, "</script>\n");
	}
	free(packed);
	return rc;
}

/* Writes a content security policy that allows only this script and this style sheet, and no
 * loads. */
static int put_policy(const struct cop_page_out *to)
{
	const char *const parts[] = {cop_timeline_js, cop_timeline_css};
	unsigned char sum[2][crypto_hash_sha256_BYTES];
	char text[2][64];
	struct cop_buf b = {0};
	int rc;

	for (size_t i = 0; i < 2; i++) {
		crypto_hash_sha256(sum[i], (const unsigned char *)parts[i], strlen(parts[i]));
		sodium_bin2base64(text[i], sizeof(text[i]), sum[i], sizeof(sum[i]),
			sodium_base64_VARIANT_ORIGINAL);
	}
	cop_buf_printf(&b,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:\">\n",
		text[0], text[1]);
	rc = b.failed ? -ENOMEM : put(to, b.data);
	cop_buf_free(&b);
	return rc;
}

int cop_timeline_put_page(const struct cop_page_out *to, const struct cop_buf *head,
	const struct cop_buf *columns, const struct cop_buf *args)
{
	int rc = put(to,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");

	rc = rc ? rc : put_policy(to);
	rc = rc ? rc
		: put(to, "<link rel=\"icon\" href=\"data:,\">\n<title>Timeline - Copper</title>\n<style>");
	rc = rc ? rc : put(to, cop_timeline_css);
	rc = rc ? rc : put(to, "</style>\n</head>\n");
	rc = rc ? rc : put(to, cop_timeline_html);
	rc = rc ? rc : put_data(to, "head", head);
	rc = rc ? rc : put_data(to, "columns", columns);
	rc = rc ? rc : put_data(to, "args", args);
	rc = rc ? rc : put(to, "<script>");
	rc = rc ? rc : put(to, cop_timeline_js);
	return rc ? rc : put(to, "</script>\n</body>\n</html>\n");
}
