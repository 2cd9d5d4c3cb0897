/* SPDX-License-Identifier: BSD-3-Clause */
/* copper predict: estimates how long a program takes to start on many nodes. */
#include <limits.h>

#include "base/base/json.h"
#include "base/opt/opt.h"
#include "cmd.h"
#include "report/predict/predict.h"
#include "tree/prefetch/prefetch.h"

#define ROWS_MAX 16
#define NODES_MAX 1000000u
/* An image's share of the bytes that a program uses, if its size is not given. */
#define IMAGE_USED 1.4

struct args {
	const char *manifest, *source, *nodes;
	uint64_t image;
	uint32_t run_ms, processors;
	struct cop_opt_list set;
	bool json;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "nodes", struct args, nodes, "numbers of nodes", .arg = "N,...",
		.initial = "1,8,64,512,4096"),
	COP_OPT(STRING, "source", struct args, source, "the tree on the storage", .arg = "DIR",
		.shown = "the recording's"),
	COP_OPT(SIZE, "image", struct args, image, "size of an image of this environment",
		.arg = "SIZE", .shown = "a guess"),
	COP_OPT(MS, "run", struct args, run_ms, "start time in ms with everything in memory",
		.arg = "MS", .initial = "0"),
	COP_OPT(U32, "processors", struct args, processors,
		"processors shared by all nodes; 0: not shared", .arg = "N", .initial = "0"),
	COP_OPT(LIST, "set", struct args, set, "set a storage parameter instead of measuring it",
		.arg = "NAME=VALUE"),
	COP_OPT(FLAG, "json", struct args, json, "one JSON object instead of the table"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "MANIFEST", .offset = offsetof(struct args, manifest)}};
static const struct cop_opt_table table = {.command = "copper predict",
	.summary = "predict how long a recorded program takes to start on N nodes",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

struct prediction {
	struct cop_predict_needs needs;
	struct cop_predict_storage storage;
	struct cop_predict_job job;
	char source[PATH_MAX], manifest[COP_PREFETCH_PATH];
	uint32_t nodes[ROWS_MAX];
	struct cop_predict_row row[ROWS_MAX];
	unsigned rows;
};

/* ---- arguments ---- */

static int parse_nodes(const char *text, struct prediction *p, struct cop_err *err)
{
	char copy[256], *rest = copy, *word;
	uint64_t value;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, ","))) {
		if (strlen(text) >= sizeof(copy) || cop_parse_u64(word, &value) || value < 1 ||
			value > NODES_MAX || p->rows == ROWS_MAX)
			return cop_err_set(err, EINVAL,
				"--nodes %s: up to %d numbers from 1 to %u are needed, separated by commas",
				text, ROWS_MAX, NODES_MAX);
		p->nodes[p->rows++] = (uint32_t)value;
	}
	return 0;
}

static int parse_figures(const struct args *a, struct prediction *p, struct cop_err *err)
{
	int rc = parse_nodes(a->nodes, p, err);

	p->storage = (struct cop_predict_storage){-1, -1, -1, -1, -1, -1, -1, 0};
	for (unsigned i = 0; i < a->set.n && !rc; i++)
		rc = cop_predict_set(&p->storage, a->set.at[i], err);
	if (!rc && !a->manifest && !a->source)
		rc = cop_err_set(
			err, EINVAL, "give a MANIFEST, or the --source of a job that was recorded");
	return rc;
}

/* Finds the recording: the one given, or the one that copper mount keeps for this source. */
static int find_manifest(const struct args *a, struct prediction *p, struct cop_err *err)
{
	if (a->manifest) {
		snprintf(p->manifest, sizeof(p->manifest), "%s", a->manifest);
		return 0;
	}
	if (!realpath(a->source, p->source))
		return cop_err_set(
			err, errno, "cannot read the source %s: %s", a->source, strerror(errno));
	if (cop_prefetch_kept_at(p->source, p->manifest) && access(p->manifest, F_OK) == 0)
		return 0;
	if (cop_prefetch_is_system(p->source))
		return cop_err_set(err, ENOENT,
			"of %s, which is the system's own, nothing is recorded unless --prefetch auto or FILE asks for it: give the MANIFEST",
			p->source);
	return cop_err_set(err, ENOENT,
		"there is no recording of %s in %s: a job that uses it through Copper leaves one when it stops, or give a MANIFEST",
		p->source, p->manifest);
}

/* Whether the last job has left a pack next to its manifest. */
static bool find_pack(const struct prediction *p, char path[static COP_PREFETCH_PATH])
{
	static const char manifest[] = "manifest";
	size_t len = strlen(p->manifest), end = sizeof(manifest) - 1;

	if (len < end || strcmp(p->manifest + len - end, manifest) != 0)
		return false;
	snprintf(path, COP_PREFETCH_PATH, "%.*spack", (int)(len - end), p->manifest);
	return access(path, R_OK) == 0;
}

static int predict(const struct args *a, struct prediction *p, struct cop_err *err)
{
	int rc = find_manifest(a, p, err);
	char pack[COP_PREFETCH_PATH];
	bool packed;

	if (!rc)
		rc = cop_predict_read(p->manifest, &p->needs, err);
	if (!rc)
		snprintf(p->source, sizeof(p->source), "%s",
			a->source ? a->source : p->needs.source);
	if (!rc)
		rc = cop_predict_measure(p->source, &p->needs, &p->storage, err);
	if (!rc && p->needs.cut)
		fprintf(stderr,
			"copper predict: note: the end of %s is missing, so the program may need more\n",
			p->manifest);
	packed = !rc && find_pack(p, pack);
	if (p->storage.pack_mb_per_s < 0)
		p->storage.pack_mb_per_s = packed ? cop_predict_measure_pack(p->source, pack) : 0;
	p->job = (struct cop_predict_job){.needs = &p->needs,
		.storage = &p->storage,
		.packed = packed,
		.image_bytes =
			a->image ? a->image : (uint64_t)(IMAGE_USED * (double)p->needs.bytes),
		.own_s = a->run_ms / 1e3,
		.processors = a->processors};
	for (unsigned i = 0; i < p->rows && !rc; i++)
		if (cop_predict_row(&p->job, p->nodes[i], &p->row[i]))
			rc = cop_err_set(err, ENOMEM, "out of memory");
	return rc;
}

/* ---- output ---- */

static void print_json(const struct prediction *p, struct cop_buf *text)
{
	const struct cop_predict_storage *s = &p->storage;
	struct cop_json j = cop_json_to(text);
	char key[64];

	cop_json_object(&j, NULL);
	cop_json_str(&j, "manifest", p->manifest);
	cop_json_str(&j, "source", p->source);
	cop_json_object(&j, "storage");
	cop_json_double(&j, "metadata_us", s->metadata_us, 1);
	cop_json_double(&j, "read_us", s->read_us, 1);
	cop_json_double(&j, "stream_mb_per_s", s->stream_mb_per_s, 3);
	cop_json_double(&j, "mb_per_s", s->mb_per_s, 3);
	cop_json_double(&j, "slots", s->slots, 1);
	cop_json_double(&j, "children", s->children, 1);
	cop_json_double(&j, "pack_mb_per_s", s->pack_mb_per_s, 3);
	cop_json_double(&j, "measured_s", s->measured_s, 3);
	cop_json_end(&j);
	cop_json_object(&j, "needs");
	cop_json_u64(&j, "programs", p->needs.programs);
	cop_json_u64(&j, "directories", p->needs.directories);
	cop_json_u64(&j, "names", p->needs.names);
	cop_json_u64(&j, "files", p->needs.files);
	cop_json_u64(&j, "bytes", p->needs.bytes);
	cop_json_bool(&j, "packed", p->job.packed);
	cop_json_u64(&j, "image_bytes", p->job.image_bytes);
	cop_json_double(&j, "run_s", p->job.own_s, 3);
	cop_json_end(&j);
	cop_json_array(&j, "rows");
	for (unsigned i = 0; i < p->rows; i++) {
		cop_json_object(&j, NULL);
		cop_json_u64(&j, "nodes", p->nodes[i]);
		for (unsigned w = 0; w < COP_PREDICT_WAYS; w++) {
			snprintf(key, sizeof(key), "%s_s", cop_predict_name[w]);
			cop_json_double(&j, key, p->row[i].s[w], 3);
			snprintf(key, sizeof(key), "%s_operations", cop_predict_name[w]);
			cop_json_double(&j, key, p->row[i].operations[w], 0);
		}
		cop_json_end(&j);
	}
	cop_json_end(&j);
	cop_json_end(&j);
	cop_buf_str(text, "\n");
}

static void print_storage(const struct prediction *p, struct cop_buf *text)
{
	const struct cop_predict_storage *s = &p->storage;

	cop_buf_printf(text, "storage     %s\n", p->source);
	cop_buf_printf(text,
		"            %.3f ms a metadata operation, %.3f ms a small read, %.0f MB/s one reader, %.0f several, ",
		s->metadata_us / 1e3, s->read_us / 1e3, s->stream_mb_per_s, s->mb_per_s);
	if (s->slots > 0)
		cop_buf_printf(text, "%.0f operations at once", COP_MAX(s->slots, 1.0));
	else
		cop_buf_str(text, "no limit of operations at once");
	if (s->measured_s > 0)
		cop_buf_printf(text, " (measured in %.1f s)\n", s->measured_s);
	else
		cop_buf_str(text, " (given)\n");
}

static void print_needs(const struct prediction *p, struct cop_buf *text)
{
	const struct cop_predict_needs *n = &p->needs;
	char bytes[16], image[16];

	cop_buf_printf(text,
		"recording   %s\n            %" PRIu64 " program%s: %" PRIu64
		" directories, %" PRIu64 " names, %" PRIu64
		" files of which %s are read%s; an image of %s\n",
		p->manifest, n->programs, n->programs == 1 ? "" : "s, all of them", n->directories,
		n->names, n->files, cop_format_size(n->bytes, bytes),
		p->job.packed ? ", and a pack of them" : "",
		cop_format_size(p->job.image_bytes, image));
	if (p->job.own_s > 0)
		cop_buf_printf(text, "program     %.3f s of its own\n", p->job.own_s);
}

static unsigned fastest_of(const struct cop_predict_row *r)
{
	unsigned best = 0;

	for (unsigned w = 1; w < COP_PREDICT_WAYS; w++)
		if (r->s[w] < r->s[best])
			best = w;
	return best;
}

static void print_fastest(const struct prediction *p, struct cop_buf *text)
{
	cop_buf_str(text, "\nfastest   ");
	for (unsigned w = 0; w < COP_PREDICT_WAYS; w++) {
		bool named = false;

		for (unsigned i = 0; i < p->rows; i++) {
			if (fastest_of(&p->row[i]) != w)
				continue;
			if (named)
				cop_buf_printf(text, ", %u", p->nodes[i]);
			else
				cop_buf_printf(
					text, "  %s with %u", cop_predict_name[w], p->nodes[i]);
			named = true;
		}
	}
	cop_buf_str(text, "\n");
}

/* Rounds a number that is too wide for its column. */
static void print_cell(struct cop_buf *text, int width, double value, int decimals)
{
	if (value < 1e5)
		cop_buf_printf(text, "%*.*f", width, decimals, value);
	else if (value < 1e9)
		cop_buf_printf(text, "%*.0f", width, value);
	else
		cop_buf_printf(text, "%*.1e", width, value);
}

static void print_table(const struct prediction *p, struct cop_buf *text)
{
	print_storage(p, text);
	print_needs(p, text);
	cop_buf_printf(text, "\n%8s  %-39s  %s\n%8s", "", "seconds until the last node has started",
		"operations at the storage", "nodes");
	for (int twice = 0; twice < 2; twice++)
		for (unsigned w = 0; w < COP_PREDICT_WAYS; w++)
			cop_buf_printf(text, "%*s", w ? 10 : 11, cop_predict_name[w]);
	for (unsigned i = 0; i < p->rows; i++) {
		cop_buf_printf(text, "\n%8u", p->nodes[i]);
		for (unsigned w = 0; w < COP_PREDICT_WAYS; w++)
			print_cell(text, w ? 10 : 11, p->row[i].s[w], 2);
		for (unsigned w = 0; w < COP_PREDICT_WAYS; w++)
			print_cell(text, w ? 10 : 11, p->row[i].operations[w], 0);
	}
	print_fastest(p, text);
}

int cop_cmd_predict(int argc, char **argv)
{
	struct prediction *p = calloc(1, sizeof(*p));
	struct cop_buf text = {0};
	struct args a = {0};
	struct cop_err err = {0};
	int code;

	if (!p)
		return 1;
	if (!cop_opt_start(&table, argc, argv, &a, &code)) {
		free(p);
		return code;
	}
	if (parse_figures(&a, p, &err)) {
		code = cop_opt_misuse(&table, &err);
	} else if (predict(&a, p, &err)) {
		fprintf(stderr, "copper predict: %s\n", err.text);
		code = 1;
	} else {
		(a.json ? print_json : print_table)(p, &text);
		code = cop_cmd_print("copper predict", &text, NULL);
	}
	cop_predict_free(&p->needs);
	cop_buf_free(&text);
	free(p);
	return code;
}
