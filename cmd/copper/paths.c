/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "base/opt/opt.h"
#include "report/paths/paths.h"
#include "base/base/json.h"
#include "report/firsttouch/firsttouch.h"

/* Prints remarks about the manifest, one per line. */
static void print_manifest_notes(const struct cop_firsttouch *m)
{
	if (m->faults)
		fprintf(stderr,
			"copper paths: %" PRIu64 " files under %s are unusable or truncated:\n%s",
			m->faults, m->input, m->named.data ? m->named.data : "");
	if (m->left_out)
		fprintf(stderr,
			"copper paths: %" PRIu64
			" items, those needed last, are left out, because a manifest may not be larger\n",
			m->left_out);
	if (m->unseen)
		fprintf(stderr,
			"copper paths: the job's source is not visible on this machine, so the sizes in the manifest are guesses\n");
}

static void print_json(const struct cop_firsttouch *m, const char *file, struct cop_buf *text)
{
	struct cop_json j = cop_json_to(text);

	cop_json_object(&j, NULL);
	cop_json_str(&j, "manifest", file);
	cop_json_u64(&j, "ranks", m->ranks);
	cop_json_u64(&j, "items", m->items);
	cop_json_u64(&j, "directories", m->directories);
	cop_json_u64(&j, "files", m->files);
	cop_json_u64(&j, "bytes", m->bytes);
	cop_json_u64(&j, "gone", m->gone);
	cop_json_u64(&j, "left_out", m->left_out);
	cop_json_u64(&j, "faults", m->faults);
	cop_json_end(&j);
	cop_buf_str(text, "\n");
}

static int print_touched(const struct cop_firsttouch *m, const char *file, bool json)
{
	struct cop_buf text = {0}, besides = {0};
	char size[16];
	int rc;

	if (json) {
		print_json(m, file, &text);
	} else {
		cop_buf_printf(&text,
			"%" PRIu64 " ranks: %" PRIu64 " directories, %" PRIu64 " names, %" PRIu64
			" files of which %s were read",
			m->ranks, m->directories, m->items - m->directories - m->files, m->files,
			cop_format_size(m->bytes, size));
		cop_buf_printf(&text, "%s%.0" PRIu64 "%s\nwrote %s\n", m->gone ? "; " : "", m->gone,
			m->gone ? " files are gone" : "", file);
	}
	cop_buf_printf(&besides, "the manifest is in %s", file);
	rc = cop_cmd_print("copper paths", &text, besides.data);
	cop_buf_free(&besides);
	cop_buf_free(&text);
	return rc;
}

/* Implements the option of copper paths that writes a manifest. */
static int write_manifest(const char *job_dir, const char *file, bool json)
{
	struct cop_firsttouch m = {0};
	struct cop_err err = {0};
	int rc = cop_firsttouch_manifest(job_dir, file, &m, &err);

	print_manifest_notes(&m);
	if (rc)
		fprintf(stderr, "copper paths: %s\n", err.text);
	else
		rc = print_touched(&m, file, json);
	cop_firsttouch_free(&m);
	return rc ? 1 : 0;
}

#define SILENT_MS 1000 /* shorter work shows no progress */

struct args {
	const char *job_dir, *output_dir, *manifest;
	struct cop_opt_list roots;
	bool skip_home, no_sizes, json;
};

static const struct cop_opt rows[] = {
	COP_OPT(LIST, "usage-root", struct args, roots, "examine the use of DIR; may be repeated",
		.arg = "DIR"),
	COP_OPT(STRING, "output-dir", struct args, output_dir, "write the lists here", .arg = "DIR",
		.shown = "JOBDIR/paths_dir"),
	COP_OPT(FLAG, "skip-home-inference", struct args, skip_home,
		"do not take $HOME as a usage root"),
	COP_OPT(FLAG, "no-sizes", struct args, no_sizes,
		"skip file sizes: half the load on the storage"),
	COP_OPT(STRING, "manifest", struct args, manifest,
		"write only FILE, for 'copper mount --prefetch'", .arg = "FILE"),
	COP_OPT(FLAG, "json", struct args, json, "print the totals as JSON; keys are stable"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, job_dir), .required = true},
};
static const struct cop_opt_table table = {.command = "copper paths",
	.summary = "list the paths that a job used and did not use",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

struct progress {
	uint64_t start_ms;
	bool shown;
};

static void show_progress(void *arg, uint64_t n, const char *what)
{
	struct progress *p = arg;

	if (cop_now_ms() - p->start_ms < SILENT_MS)
		return;
	fprintf(stderr, "\r\033[Kcopper paths: %" PRIu64 " %s ", n, what);
	p->shown = true;
}

static int print_result(const struct cop_paths_result *p, bool json)
{
	struct cop_buf text = {0}, besides = {0};
	int rc;

	if (json)
		cop_paths_result_json(p, &text);
	else
		cop_paths_result_table(p, &text);
	cop_buf_printf(&besides, "the lists are in %s", p->output);
	rc = cop_cmd_print("copper paths", &text, besides.data);
	cop_buf_free(&besides);
	cop_buf_free(&text);
	return rc;
}

static void print_notes(const struct cop_paths_result *p)
{
	if (p->faults)
		fprintf(stderr,
			"copper paths: %" PRIu64 " tables under %s are unusable or truncated:\n%s",
			p->faults, p->input, p->named.data ? p->named.data : "");
	if (p->notes.len)
		fputs(p->notes.data, stderr);
}

int cop_cmd_paths(int argc, char **argv)
{
	struct args a = {0};
	struct progress progress = {.start_ms = cop_now_ms()};
	struct cop_paths_result result;
	struct cop_err err = {0};
	int code, rc;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (a.manifest)
		return write_manifest(a.job_dir, a.manifest, a.json);
	rc = cop_paths_run(&(struct cop_paths_conf){.job_dir = a.job_dir,
				   .output_dir = a.output_dir,
				   .usage_root = a.roots.at,
				   .usage_roots = a.roots.n,
				   .home = a.skip_home ? NULL : getenv("HOME"),
				   .no_sizes = a.no_sizes,
				   .progress = isatty(2) ? show_progress : NULL,
				   .arg = &progress},
		&result, &err);
	if (progress.shown)
		fputs("\r\033[K", stderr);
	print_notes(&result);
	if (rc)
		fprintf(stderr, "copper paths: %s\n", err.text);
	else
		rc = print_result(&result, a.json);
	cop_paths_result_free(&result);
	return rc ? 1 : 0;
}
