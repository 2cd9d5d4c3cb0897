/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes roots_and_counts.txt and paths_summary.md: the same numbers as text and as Markdown. */
#include <limits.h>

#include "report/paths/paths_priv.h"

static const char warning[] =
	"This proves nothing about deleting. It is what one run of one program on one set of nodes asked for; the next run, another input, an "
	"error message or another user may need what is listed here as not observed. Try a reduced copy, and keep the original.";

static const struct {
	enum path_list list;
	const char *meaning, *text;
} meanings[] = {
	{LIST_ALL, "All possible existing paths under the selected roots",
		"what exists now below the usage roots, the roots included"},
	{LIST_USED, "Actually used in this run", "observed paths below the roots that exist"},
	{LIST_UNUSED, "Not seen in this run, but exists", "what exists there and was not observed"},
	{LIST_MISSING, "Probed but absent",
		"observed paths below the roots that do not exist: usually searches that continued elsewhere"},
	{LIST_KEEP, "Needed by what was used",
		"used paths with the directories above them and what their links point to, for rsync --files-from"},
	{LIST_PRUNE, "Not needed by what was used", "the rest, for rsync --files-from"},
};

/* "6.81%"; "0.00%" if whole is 0. */
static void add_percent(struct cop_buf *out, uint64_t part, uint64_t whole)
{
	cop_buf_printf(out, "%.2f%%", whole ? 100.0 * (double)part / (double)whole : 0.0);
}

/* Appends bytes, or "-" if they are unknown. */
static void add_bytes(struct cop_buf *out, const struct lists *l, uint64_t bytes)
{
	if (l->sizes)
		cop_buf_printf(out, "%" PRIu64, bytes);
	else
		cop_buf_str(out, "-");
}

/* Quotes text as one shell word. */
static void shell_word(struct cop_buf *out, const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";

	if (text[strspn(text, plain)] == '\0') {
		cop_buf_str(out, text);
		return;
	}
	cop_buf_str(out, "'");
	for (; *text; text++)
		cop_buf_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
	cop_buf_str(out, "'");
}

void cop_paths_rsync(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct lists *l = &p->usage->lists;
	char *from, *base;

	if (!l->base || asprintf(&from, "--files-from=%s/%s", p->output,
				l->odd_names ? "keep.nul" : "keep.txt") < 0)
		return;
	if (asprintf(&base, "%s/", l->base[1] ? l->base : "") >= 0) {
		cop_buf_printf(out, "rsync -a %s", l->odd_names ? "--from0 " : "");
		shell_word(out, from);
		cop_buf_str(out, " ");
		shell_word(out, base);
		cop_buf_str(out, " COPY/");
		free(base);
	}
	free(from);
}

static void put_size(struct cop_buf *out, const struct lists *l, uint64_t bytes)
{
	char text[16];

	cop_buf_str(out, l->sizes ? cop_format_size(bytes, text) : "-");
}

/* ---- roots_and_counts.txt ---- */

static void text_roots(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct cop_walk_dir *top = &p->usage->use.tree->top;

	cop_buf_str(out, "Selected roots:\n");
	for (uint32_t i = 0; i < top->n; i++) {
		cop_buf_str(out, "- ");
		cop_csv_escaped(out, top->entry[i].name, top->entry[i].len);
		cop_buf_str(out, top->entry[i].type ? "\n" : " (not there)\n");
	}
	if (!top->n)
		cop_buf_str(out, "- none inferred\n");
	cop_buf_str(out, "\n");
}

static void put_coverage(struct cop_buf *out, const char *code, const struct lists *l)
{
	const struct path_total *used = &l->total[LIST_USED], *all = &l->total[LIST_ALL];
	const struct {
		const char *what;
		uint64_t part, whole;
	} row[] = {{"files", used->files, all->files}, {"directories", used->dirs, all->dirs},
		{"bytes of files", used->bytes, all->bytes}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(row) - !l->sizes; i++) {
		cop_buf_printf(out, "- Observed %s: %s%" PRIu64 "%s of %s%" PRIu64 "%s (%s",
			row[i].what, code, row[i].part, code, code, row[i].whole, code, code);
		add_percent(out, row[i].part, row[i].whole);
		cop_buf_printf(out, "%s)\n", code);
	}
	cop_buf_str(out, "\n");
}

static void text_file(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct lists *l = &p->usage->lists;
	const struct {
		const char *what;
		uint64_t n;
	} row[] = {
		{"All existing paths under selected roots", l->total[LIST_ALL].paths},
		{"Observed existing paths under selected roots", l->total[LIST_USED].paths},
		{"Observed missing probe paths under selected roots", l->total[LIST_MISSING].paths},
		{"Observed paths under selected roots",
			l->total[LIST_USED].paths + l->total[LIST_MISSING].paths},
		{"Candidate existing paths not observed in final outputs",
			l->total[LIST_UNUSED].paths},
		{"Observed paths elsewhere", p->usage->use.elsewhere},
		{"Kept paths", l->total[LIST_KEEP].paths},
		{"Kept bytes", l->total[LIST_KEEP].bytes},
		{"Prune candidates", l->total[LIST_PRUNE].paths},
		{"Prune candidate bytes", l->total[LIST_PRUNE].bytes},
	};
	const char *name = strrchr(p->job, '/');

	cop_buf_printf(out, "Paths of job %s\n\nTables: %s\n\n",
		name && name[1] ? name + 1 : p->job, p->input);
	text_roots(p, out);
	for (size_t i = 0; i < COP_ARRAY_SIZE(row); i++)
		if (l->sizes || !strstr(row[i].what, "bytes"))
			cop_buf_printf(out, "%s: %" PRIu64 "\n", row[i].what, row[i].n);
	cop_buf_str(out, "\nCoverage estimates:\n");
	put_coverage(out, "", l);
	if (l->base) {
		cop_buf_str(out,
			"A reduced copy (keep.txt and prune_candidates.txt are relative to this directory):\n- ");
		cop_paths_rsync(p, out);
		cop_buf_str(out, "\n\n");
	}
	cop_buf_str(out, "Files:\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(meanings); i++)
		cop_buf_printf(
			out, "- %s: %s\n", cop_paths_list_name[meanings[i].list], meanings[i].text);
	cop_buf_printf(out, "\n%s\n", warning);
}

/* ---- paths_summary.md ---- */

static void put_code(struct cop_buf *out, const char *text)
{
	cop_csv_markdown(out, text, strlen(text));
}

static void put_head(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct cop_walk_dir *top = &p->usage->use.tree->top;

	cop_buf_str(out, "# Path Usage Analysis\n\n- Job directory: ");
	put_code(out, p->job);
	cop_buf_str(out, "\n- Raw tables: ");
	put_code(out, p->input);
	cop_buf_printf(out, " (%" PRIu64 " files used", p->usage->seen.files);
	if (p->faults)
		cop_buf_printf(out, ", %" PRIu64 " with faults", p->faults);
	cop_buf_str(out, ")\n- Output directory: ");
	put_code(out, p->output);
	cop_buf_printf(out, "\n- Observed paths: `%zu`, of them below no root: `%" PRIu64 "`\n",
		p->usage->seen.set.table.count, p->usage->use.elsewhere);
	cop_buf_str(out, "\n## Selected roots\n\n");
	for (uint32_t i = 0; i < top->n; i++) {
		cop_buf_str(out, "- ");
		put_code(out, top->entry[i].name);
		cop_buf_str(out, top->entry[i].type ? "\n" : " (not there)\n");
	}
	if (!top->n)
		cop_buf_str(out, "- none inferred\n");
}

static void put_counts(const struct lists *l, struct cop_buf *out)
{
	cop_buf_str(out,
		"\n## Counts Table\n\n| Meaning | File | Total Paths | Files | Directories | Missing | Bytes |\n|---|---|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(meanings); i++) {
		const struct path_total *t = &l->total[meanings[i].list];

		cop_buf_printf(out,
			"| %s | `%s` | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | ",
			meanings[i].meaning, cop_paths_list_name[meanings[i].list], t->paths,
			t->files, t->dirs, t->missing);
		add_bytes(out, l, t->bytes);
		cop_buf_str(out, " |\n");
	}
	cop_buf_str(out,
		"\nEverything that is not a directory is a file, including links; bytes are the sizes of regular files, counted for each name.\n"
		"\n## Coverage Estimates\n\n");
	put_coverage(out, "`", l);
	cop_buf_printf(out, "**%s**\n", warning);
}

static void put_unused(const struct prune *p, const struct lists *l, struct cop_buf *out)
{
	cop_buf_str(out, "\n## Largest directories that nothing used needs\n\n");
	if (!p->dirs) {
		cop_buf_str(out, "None.\n");
		return;
	}
	cop_buf_printf(out,
		"The first %u of %" PRIu64
		"; none of them is inside another.\n\n| Directory | Bytes | Size | Files | Directories |\n"
		"|---|---:|---:|---:|---:|\n",
		p->dirs, p->all_dirs);
	for (unsigned i = 0; i < p->dirs; i++) {
		const struct unused_dir *d = &p->dir[i];

		cop_buf_str(out, "| ");
		put_code(out, d->path);
		cop_buf_str(out, " | ");
		add_bytes(out, l, d->bytes);
		cop_buf_str(out, " | ");
		put_size(out, l, d->bytes);
		cop_buf_printf(out, " | %" PRIu64 " | %" PRIu64 " |\n", d->files, d->dirs);
	}
}

static void put_searches(const struct prune *p, struct cop_buf *out)
{
	cop_buf_str(out, "\n## Names asked for in many directories and absent\n\n");
	if (p->names)
		cop_buf_printf(out,
			"Search paths that are longer than necessary (`__init__.*` is how Python looks for a package, which is normal). The first %u of %" PRIu64
			" names; probes are counted over all ranks.\n\n"
			"| Name | Directories | Probes |\n|---|---:|---:|\n",
			p->names, p->all_names);
	else
		cop_buf_str(out, "None.\n");
	for (unsigned i = 0; i < p->names; i++) {
		cop_buf_str(out, "| ");
		cop_csv_markdown(out, p->name[i].name, p->name[i].len);
		cop_buf_printf(out, " | %" PRIu64 " | %" PRIu64 " |\n", p->name[i].directories,
			p->name[i].probes);
	}
	cop_buf_str(out, "\n## Directories searched in vain\n\n");
	if (p->vains)
		cop_buf_printf(out,
			"They exist, names were asked for in them, and nothing in them was used: candidates to leave out of `LD_LIBRARY_PATH`, "
			"`PATH` and `PYTHONPATH`. The first %u of %" PRIu64
			".\n\n| Directory | Absent names | Probes |\n|---|---:|---:|\n",
			p->vains, p->all_vains);
	else
		cop_buf_str(out, "None.\n");
	for (unsigned i = 0; i < p->vains; i++) {
		cop_buf_str(out, "| ");
		cop_csv_markdown(out, p->vain[i].path, p->vain[i].len);
		cop_buf_printf(out, " | %" PRIu64 " | %" PRIu64 " |\n", p->vain[i].names,
			p->vain[i].probes);
	}
}

static void links_out(const struct usage *u, struct cop_buf *out)
{
	char target[PATH_MAX];
	ssize_t n;

	if (!u->links_out.n)
		return;
	cop_buf_printf(out,
		"\n## Links that lead out of the roots\n\nUsed links whose target is not below a root: a copy uses the target where it is now. The first "
		"%zu of %zu.\n\n",
		COP_MIN(u->links_out.n, (size_t)PRUNE_ROWS), u->links_out.n);
	for (size_t i = 0; i < u->links_out.n && i < PRUNE_ROWS; i++) {
		cop_buf_str(out, "- ");
		cop_csv_markdown(out, u->links_out.ref[i].text, u->links_out.ref[i].len);
		n = readlink(u->links_out.ref[i].text, target, sizeof(target));
		if (n > 0) {
			cop_buf_str(out, " to ");
			cop_csv_markdown(out, target, (size_t)n);
		}
		cop_buf_str(out, "\n");
	}
}

static void put_advice(const struct cop_paths_result *p, struct cop_buf *out)
{
	const struct prune *prune = &p->usage->prune;

	cop_buf_str(out, "\n## Kinds of paths\n\n");
	cop_pathclass_table(out, &prune->classes);
	cop_buf_str(out, "\n## Advice\n\n");
	cop_pathclass_advice(out, cop_pathclass_seen(&prune->classes), prune->absences);
	if (!p->usage->lists.base)
		return;
	cop_buf_str(out, "\n## A reduced copy\n\n```sh\n");
	cop_paths_rsync(p, out);
	cop_buf_str(
		out, "\n```\n\nPaths in `keep.txt` and `prune_candidates.txt` are relative to ");
	put_code(out, p->usage->lists.base);
	cop_buf_str(out,
		". Run the program from the copy, more than once, before anything depends on it.\n");
}

static void put_summary(const struct cop_paths_result *p, struct cop_buf *out)
{
	put_head(p, out);
	put_counts(&p->usage->lists, out);
	put_unused(&p->usage->prune, &p->usage->lists, out);
	put_searches(&p->usage->prune, out);
	links_out(&p->usage->use, out);
	put_advice(p, out);
}

static int write_list(const struct cop_paths_result *p, const char *name,
	void (*fill)(const struct cop_paths_result *p, struct cop_buf *out), struct cop_err *err)
{
	struct cop_buf text = {0};
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/%s", p->output, name) < 0) {
		path = NULL;
		rc = -ENOMEM;
	}
	fill(p, &text);
	if (!rc)
		rc = text.failed ? -ENOMEM : cop_write_file(path, text.data, text.len, 0644);
	cop_buf_free(&text);
	free(path);
	return rc ? cop_err_set(err, -rc, "cannot write %s/%s: %s", p->output, name, strerror(-rc))
		  : 0;
}

int cop_paths_write(const struct cop_paths_result *p, struct cop_err *err)
{
	return write_list(p, "roots_and_counts.txt", text_file, err)
		       ?: write_list(p, "paths_summary.md", put_summary, err);
}
