/* SPDX-License-Identifier: BSD-3-Clause */
/* What copper paths prints. */
#include <inttypes.h>
#include <string.h>

#include "report/usage_priv.h"

static const struct {
	enum path_list list;
	const char *label, *key;
} rows[] = {
	{LIST_ALL, "existing", "existing"},
	{LIST_USED, "used", "used"},
	{LIST_UNUSED, "not observed", "not_observed"},
	{LIST_MISSING, "absent", "absent"},
	{LIST_KEEP, "to keep", "keep"},
	{LIST_PRUNE, "prune candidates", "prune_candidates"},
};

/* A name of any bytes, without those that steer a terminal. */
static void plain(struct cop_buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			cop_buf_printf(out, "\\x%02x", c);
		else
			cop_buf_add(out, text, 1);
	}
}

static void print_total(
	struct cop_buf *out, const char *label, const struct path_total *t, bool sizes)
{
	char size[16];

	cop_buf_printf(out, "%-18s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12s\n", label,
		t->paths, t->files, t->dirs, sizes ? cop_format_size(t->bytes, size) : "-");
}

static void print_unused(const struct prune *p, bool sizes, struct cop_buf *out)
{
	char size[16];

	if (!p->dirs)
		return;
	cop_buf_str(out, "\nlargest directories that nothing used needs:\n");
	for (unsigned i = 0; i < p->dirs && i < 5; i++) {
		cop_buf_printf(out, "%12s %9" PRIu64 " files  ",
			sizes ? cop_format_size(p->dir[i].bytes, size) : "-", p->dir[i].files);
		plain(out, p->dir[i].path);
		cop_buf_str(out, "\n");
	}
}

void cop_report_pathed_table(const struct cop_report_pathed *p, struct cop_buf *out)
{
	const struct cop_report_usage *u = p->usage;

	cop_buf_printf(
		out, "%zu paths in %" PRIu64 " tables of ", u->seen.set.table.count, u->seen.files);
	plain(out, p->input);
	cop_buf_printf(out, "; %" PRIu64 " of them are below no usage root\n", u->use.elsewhere);
	for (size_t i = 0; i < u->roots.all.n; i++) {
		cop_buf_str(out, "usage root ");
		plain(out, u->roots.all.path[i]);
		cop_buf_str(out, u->use.tree->top.entry[i].type ? "\n" : " (not there)\n");
	}
	cop_buf_printf(
		out, "\n%-18s %12s %12s %12s %12s\n", "", "paths", "files", "directories", "bytes");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		print_total(out, rows[i].label, &u->lists.total[rows[i].list], u->lists.sizes);
	print_unused(&u->prune, u->lists.sizes, out);
	cop_buf_str(out, "\nlists and paths_summary.md are in ");
	plain(out, p->output);
	cop_buf_str(out, "\n");
	if (!u->lists.base)
		return;
	cop_buf_str(out, "a reduced copy to try: ");
	cop_report_rsync(p, out);
	cop_buf_str(out,
		"\nThis proves nothing about deleting: another run may need what this one did not.\n");
}

static void json_text(struct cop_buf *out, const char *key, const char *text)
{
	cop_buf_printf(out, "\"%s\":", key);
	cop_buf_json_str(out, text, strlen(text));
}

/* Bytes, or null where they are not known. */
static void json_bytes(struct cop_buf *out, const struct lists *l, uint64_t bytes)
{
	cop_buf_str(out, ",\"bytes\":");
	if (l->sizes)
		cop_buf_printf(out, "%" PRIu64, bytes);
	else
		cop_buf_str(out, "null");
}

static void json_totals(const struct lists *l, struct cop_buf *out)
{
	cop_buf_str(out, ",\"totals\":{");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		const struct path_total *t = &l->total[rows[i].list];

		cop_buf_printf(out,
			"%s\"%s\":{\"file\":\"%s\",\"paths\":%" PRIu64 ",\"files\":%" PRIu64
			",\"directories\":%" PRIu64,
			i ? "," : "", rows[i].key, cop_report_list_name[rows[i].list], t->paths,
			t->files, t->dirs);
		json_bytes(out, l, t->bytes);
		cop_buf_str(out, "}");
	}
	cop_buf_str(out, "}");
}

static void json_prune(const struct prune *p, const struct lists *l, struct cop_buf *out)
{
	cop_buf_printf(
		out, ",\"unused_directories\":{\"count\":%" PRIu64 ",\"largest\":[", p->all_dirs);
	for (unsigned i = 0; i < p->dirs; i++) {
		cop_buf_str(out, i ? ",{" : "{");
		json_text(out, "path", p->dir[i].path);
		cop_buf_printf(out, ",\"files\":%" PRIu64 ",\"directories\":%" PRIu64,
			p->dir[i].files, p->dir[i].dirs);
		json_bytes(out, l, p->dir[i].bytes);
		cop_buf_str(out, "}");
	}
	cop_buf_printf(out, "]},\"absent_names\":{\"count\":%" PRIu64 ",\"most\":[", p->all_names);
	for (unsigned i = 0; i < p->names; i++) {
		cop_buf_str(out, i ? ",{\"name\":" : "{\"name\":");
		cop_buf_json_str(out, p->name[i].name, p->name[i].len);
		cop_buf_printf(out, ",\"directories\":%" PRIu64 ",\"probes\":%" PRIu64 "}",
			p->name[i].directories, p->name[i].probes);
	}
	cop_buf_printf(
		out, "]},\"directories_in_vain\":{\"count\":%" PRIu64 ",\"most\":[", p->all_vains);
	for (unsigned i = 0; i < p->vains; i++) {
		cop_buf_str(out, i ? ",{\"path\":" : "{\"path\":");
		cop_buf_json_str(out, p->vain[i].path, p->vain[i].len);
		cop_buf_printf(out, ",\"names\":%" PRIu64 ",\"probes\":%" PRIu64 "}",
			p->vain[i].names, p->vain[i].probes);
	}
	cop_buf_str(out, "]}");
}

void cop_report_pathed_json(const struct cop_report_pathed *p, struct cop_buf *out)
{
	const struct cop_report_usage *u = p->usage;
	const struct walk_tree *t = u->use.tree;

	cop_buf_str(out, "{");
	json_text(out, "input", p->input);
	cop_buf_str(out, ",");
	json_text(out, "output", p->output);
	cop_buf_printf(out,
		",\"tables\":%" PRIu64 ",\"faults\":%" PRIu64
		",\"observed\":%zu,\"elsewhere\":%" PRIu64 ",\"unknown\":%" PRIu64
		",\"unreadable_directories\":%" PRIu64 ",\"mounts_not_entered\":%" PRIu64
		",\"links_out\":%zu,\"roots\":[",
		u->seen.files, p->faults, u->seen.set.table.count, u->use.elsewhere, u->use.unknown,
		t->unreadable, t->skipped, u->use.links_out.n);
	for (uint32_t i = 0; i < t->top.n; i++) {
		cop_buf_str(out, i ? ",{" : "{");
		json_text(out, "path", t->top.entry[i].name);
		cop_buf_printf(out, ",\"exists\":%s}", t->top.entry[i].type ? "true" : "false");
	}
	cop_buf_str(out, "]");
	json_totals(&u->lists, out);
	json_prune(&u->prune, &u->lists, out);
	if (u->lists.base) {
		cop_buf_str(out, ",");
		json_text(out, "base", u->lists.base);
		cop_buf_printf(
			out, ",\"keep\":\"%s\"", u->lists.odd_names ? "keep.nul" : "keep.txt");
	}
	cop_buf_str(out, "}\n");
}
