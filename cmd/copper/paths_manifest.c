/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json.h"
#include "cmd.h"
#include "report/firsttouch/firsttouch.h"

/* Prints remarks about the manifest, one per line. */
static void print_notes(const struct cop_firsttouch *m)
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

int cop_cmd_paths_manifest(const char *job_dir, const char *file, bool json)
{
	struct cop_firsttouch m = {0};
	struct cop_err err = {0};
	int rc = cop_firsttouch_manifest(job_dir, file, &m, &err);

	print_notes(&m);
	if (rc)
		fprintf(stderr, "copper paths: %s\n", err.text);
	else
		rc = print_touched(&m, file, json);
	cop_firsttouch_free(&m);
	return rc ? 1 : 0;
}
