/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of copper paths. */
#include "base/base/json.h"
#include "report/paths/paths_priv.h"

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

/* Appends an arbitrary name, but no bytes that control a terminal. */
static void put_plain(struct cop_buf *out, const char *text)
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
		put_plain(out, p->dir[i].path);
		cop_buf_str(out, "\n");
	}
}

void cop_paths_result_table(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct cop_paths_usage *u = p->usage;

	cop_buf_printf(
		out, "%zu paths in %" PRIu64 " tables of ", u->seen.set.table.count, u->seen.files);
	put_plain(out, p->input);
	cop_buf_printf(out, "; %" PRIu64 " of them are not below a usage root\n", u->use.elsewhere);
	for (size_t i = 0; i < u->roots.all.n; i++) {
		cop_buf_str(out, "usage root ");
		put_plain(out, u->roots.all.path[i]);
		cop_buf_str(out, u->use.tree->top.entry[i].type ? "\n" : " (not there)\n");
	}
	cop_buf_printf(
		out, "\n%-18s %12s %12s %12s %12s\n", "", "paths", "files", "directories", "bytes");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		print_total(out, rows[i].label, &u->lists.total[rows[i].list], u->lists.sizes);
	print_unused(&u->prune, u->lists.sizes, out);
	cop_buf_str(out, "\nlists and paths_summary.md are in ");
	put_plain(out, p->output);
	cop_buf_str(out, "\n");
	if (!u->lists.base)
		return;
	cop_buf_str(out, "a reduced copy to try: ");
	cop_paths_rsync(p, out);
	cop_buf_str(out,
		"\nThis proves nothing about deleting: another run may need what this one did not.\n");
}

/* Writes the bytes, or null if they are unknown. */
static void json_bytes(struct cop_json *j, const struct lists *l, uint64_t bytes)
{
	if (l->sizes)
		cop_json_u64(j, "bytes", bytes);
	else
		cop_json_null(j, "bytes");
}

static void json_totals(const struct lists *l, struct cop_json *j)
{
	cop_json_object(j, "totals");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		const struct path_total *t = &l->total[rows[i].list];

		cop_json_object(j, rows[i].key);
		cop_json_str(j, "file", cop_paths_list_name[rows[i].list]);
		cop_json_u64(j, "paths", t->paths);
		cop_json_u64(j, "files", t->files);
		cop_json_u64(j, "directories", t->dirs);
		json_bytes(j, l, t->bytes);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void json_list(struct cop_json *j, const char *key, uint64_t count, const char *list)
{
	cop_json_object(j, key);
	cop_json_u64(j, "count", count);
	cop_json_array(j, list);
}

static void json_list_end(struct cop_json *j)
{
	cop_json_end(j);
	cop_json_end(j);
}

static void json_unused(const struct prune *p, const struct lists *l, struct cop_json *j)
{
	json_list(j, "unused_directories", p->all_dirs, "largest");
	for (unsigned i = 0; i < p->dirs; i++) {
		cop_json_object(j, NULL);
		cop_json_str(j, "path", p->dir[i].path);
		cop_json_u64(j, "files", p->dir[i].files);
		cop_json_u64(j, "directories", p->dir[i].dirs);
		json_bytes(j, l, p->dir[i].bytes);
		cop_json_end(j);
	}
	json_list_end(j);
}

static void json_absent(const struct prune *p, struct cop_json *j)
{
	json_list(j, "absent_names", p->all_names, "most");
	for (unsigned i = 0; i < p->names; i++) {
		cop_json_object(j, NULL);
		cop_json_bytes(j, "name", p->name[i].name, p->name[i].len);
		cop_json_u64(j, "directories", p->name[i].directories);
		cop_json_u64(j, "probes", p->name[i].probes);
		cop_json_end(j);
	}
	json_list_end(j);
	json_list(j, "directories_in_vain", p->all_vains, "most");
	for (unsigned i = 0; i < p->vains; i++) {
		cop_json_object(j, NULL);
		cop_json_bytes(j, "path", p->vain[i].path, p->vain[i].len);
		cop_json_u64(j, "names", p->vain[i].names);
		cop_json_u64(j, "probes", p->vain[i].probes);
		cop_json_end(j);
	}
	json_list_end(j);
}

static void json_roots(const struct cop_walk_tree *t, struct cop_json *j)
{
	cop_json_array(j, "roots");
	for (uint32_t i = 0; i < t->top.n; i++) {
		cop_json_object(j, NULL);
		cop_json_str(j, "path", t->top.entry[i].name);
		cop_json_bool(j, "exists", t->top.entry[i].type);
		cop_json_end(j);
	}
	cop_json_end(j);
}

void cop_paths_result_json(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct cop_paths_usage *u = p->usage;
	const struct cop_walk_tree *t = u->use.tree;
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_str(&j, "input", p->input);
	cop_json_str(&j, "output", p->output);
	cop_json_u64(&j, "tables", u->seen.files);
	cop_json_u64(&j, "faults", p->faults);
	cop_json_u64(&j, "observed", u->seen.set.table.count);
	cop_json_u64(&j, "elsewhere", u->use.elsewhere);
	cop_json_u64(&j, "unknown", u->use.unknown);
	cop_json_u64(&j, "unreadable_directories", t->unreadable);
	cop_json_u64(&j, "mounts_not_entered", t->skipped);
	cop_json_u64(&j, "links_out", u->use.links_out.n);
	json_roots(t, &j);
	json_totals(&u->lists, &j);
	json_unused(&u->prune, &u->lists, &j);
	json_absent(&u->prune, &j);
	if (u->lists.base) {
		cop_json_str(&j, "base", u->lists.base);
		cop_json_str(&j, "keep", u->lists.odd_names ? "keep.nul" : "keep.txt");
	}
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}
