/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <sys/stat.h>

#include "job/dir/dir.h"
#include "report/paths/paths_priv.h"

static const char final_dir[] = "/tables/final";

static int no_memory(struct cop_err *err)
{
	return cop_err_set(err, ENOMEM, "no memory for the paths of this job");
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* ---- 1: input and output directories ---- */

static int choose_directories(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	char *cwd;

	out->job = realpath(what->job_dir, NULL);
	if (!out->job)
		return cop_err_set(err, errno, "cannot read the job directory %s: %s",
			what->job_dir, strerror(errno));
	if (!is_directory(out->job))
		return cop_err_set(err, ENOTDIR,
			"%s is not a directory: name the job directory that was given to copper mount -d",
			what->job_dir);
	if (asprintf(&out->input, "%s%s", out->job, final_dir) < 0)
		out->input = NULL;
	if (out->input && !is_directory(out->input))
		out->input[strlen(out->job)] = '\0';
	cwd = getcwd(NULL, 0);
	if (what->output_dir)
		out->output = cop_walk_path_normal(cwd ? cwd : "/", what->output_dir);
	else if (asprintf(&out->output, "%s/paths_dir", out->job) < 0)
		out->output = NULL;
	free(cwd);
	if (!out->input || !out->output)
		return no_memory(err);
	return what->output_dir ? 0 : cop_job_dir_check(out->job, err);
}

/* ---- 2: observed paths ---- */

static int nothing_found(const struct cop_paths_result *p, int rc, struct cop_err *err)
{
	struct cop_buf text = {0};

	if (rc == -ENOENT || rc == -ENODATA) {
		cop_buf_printf(&text, "failed to find raw tables (*.output) under: %s\n", p->input);
		cop_buf_str(&text,
			rc == -ENODATA
				? "  none of the files found is usable: the disk was full, or they are not Copper's"
				: "  likely: the job was not started with full paths (copper mount -A); this is not its directory (-d); it was not "
				  "stopped yet (copper stop); it died before it could write; or it kept no files of ranks (--rank-files none)");
		cop_observed_name_snapshots(p->job, "tables", "copper paths", &text);
	} else {
		cop_buf_printf(
			&text, "cannot read the raw tables in %s: %s", p->input, strerror(-rc));
	}
	cop_err_set(err, -rc, "%s", text.data ? text.data : "no memory");
	cop_buf_free(&text);
	return rc;
}

struct telling {
	const struct cop_paths_conf *what;
	const char *of;
};

static void report_progress(void *arg, uint64_t n)
{
	struct telling *t = arg;

	t->what->progress(t->what->arg, n, t->of);
}

static int read_observed(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	struct cop_observed *seen = &out->usage->seen;
	struct telling t = {what, "tables read"};
	int rc = cop_observed_read(seen, out->input, what->progress ? report_progress : NULL, &t);

	out->faults = seen->faults.count;
	cop_observed_faults_list(&seen->faults, &out->named);
	if (seen->set.full)
		cop_buf_printf(&out->notes,
			"the tables have more than %zu paths, or longer ones than a path can be; the rest was left out\n",
			seen->set.table.count);
	return rc ? nothing_found(out, rc, err) : 0;
}

/* ---- 3: usage roots ---- */

static bool any_below(const struct cop_pathset *s, const char *root)
{
	for (const struct cop_observed_path *p = NULL; (p = cop_observed_pathset_next(s, p));)
		if (cop_walk_path_below(p->text, p->len, root))
			return true;
	return false;
}

/* Tables contain real paths, so if no path was observed below a root that was given as a link, the
 * root's real path is used. */
static int give_root(struct cop_paths_result *out, const char *root)
{
	struct cop_roots *r = &out->usage->roots;
	const struct cop_pathset *s = &out->usage->seen.set;
	size_t before = r->given.n;
	char *real;
	int rc = cop_walk_roots_give(r, root);

	if (rc || r->given.n == before || any_below(s, r->given.path[before]))
		return rc;
	real = realpath(r->given.path[before], NULL);
	if (real && strcmp(real, r->given.path[before]) != 0 && any_below(s, real)) {
		cop_buf_printf(&out->notes, "usage root %s points to %s, which is used instead\n",
			root, real);
		free(r->given.path[before]);
		r->given.path[before] = real;
		real = NULL;
	}
	free(real);
	return 0;
}

/* The deepest common parent of all observed paths. */
static void name_common(struct cop_paths_result *out)
{
	const struct cop_pathset *s = &out->usage->seen.set;
	const char *common = NULL;
	size_t len = 0;

	for (const struct cop_observed_path *p = NULL; (p = cop_observed_pathset_next(s, p));) {
		size_t n = 0, end = 0;

		if (!common) {
			common = p->text;
			len = p->len;
			continue;
		}
		for (; n < len && n < p->len && common[n] == p->text[n]; n++)
			if (common[n] == '/')
				end = n;
		len = (n == len || common[n] == '/') && (n == p->len || p->text[n] == '/') ? n
											   : end;
	}
	if (common)
		cop_buf_printf(&out->notes, "; all that was observed is below %.*s",
			len ? (int)len : 1, common);
}

static int choose_roots(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	struct cop_roots *r = &out->usage->roots;
	const struct cop_pathset *s = &out->usage->seen.set;
	int rc = cop_walk_roots_init(r, what->home);

	for (unsigned i = 0; !rc && i < what->usage_roots; i++)
		rc = give_root(out, what->usage_root[i]);
	for (const struct cop_observed_path *p = NULL;
		!rc && (p = cop_observed_pathset_next(s, p));)
		rc = cop_walk_roots_observe(r, p->text, p->len);
	if (!rc)
		rc = cop_walk_roots_minimize(r);
	if (!rc && !r->all.n) {
		cop_buf_str(&out->notes,
			"no usage root: none was given, and no observed path suggests one");
		name_common(out);
		cop_buf_str(
			&out->notes, ": name the directory of the environment with --usage-root\n");
	}
	if (!rc && r->all.full)
		cop_buf_printf(&out->notes,
			"observed paths suggest more than %u usage roots; the rest was left out\n",
			COP_ROOTS_MAX);
	return rc ? no_memory(err) : 0;
}

/* ---- 4: paths on disk and their use ---- */

/* Roots inferred from a path component may not exist: /soft/conda_env of /soft/conda_env_torch. */
static void note_absent_roots(struct cop_paths_result *out)
{
	const struct cop_walk_dir *top = &out->usage->use.tree->top;

	for (uint32_t i = 0; i < top->n; i++)
		if (!top->entry[i].type)
			cop_buf_printf(&out->notes, "usage root %s does not exist%s\n",
				top->entry[i].name,
				strstr(top->entry[i].name, "/conda_env")
					? ": if the environment's name is longer, give it with --usage-root"
					: "");
}

/* Tables contain paths in the source, so a root given by its path in a mount matches none of
 * them. */
static void note_unused(struct cop_paths_result *out)
{
	if (!out->usage->roots.all.n || !out->usage->seen.set.table.count ||
		out->usage->use.elsewhere < out->usage->seen.set.table.count)
		return;
	cop_buf_str(&out->notes, "nothing that the job asked for is below a usage root");
	name_common(out);
	cop_buf_str(&out->notes, ": name roots as they are in the source, not through a mount\n");
}

static void note_unreadable(struct cop_paths_result *out)
{
	const struct cop_walk_tree *t = out->usage->use.tree;

	for (unsigned i = 0; i < t->faults; i++)
		cop_buf_printf(&out->notes, "cannot read directory %s: %s\n", t->fault[i].path,
			strerror(t->fault[i].error));
	if (t->unreadable > t->faults)
		cop_buf_printf(&out->notes, "and %" PRIu64 " more directories\n",
			t->unreadable - t->faults);
	if (t->skipped)
		cop_buf_printf(&out->notes,
			"%" PRIu64
			" mounts of node-local or pseudo file systems, or of Copper, were not entered\n",
			t->skipped);
	if (out->usage->use.unknown)
		cop_buf_printf(&out->notes,
			"%" PRIu64 " observed paths could not be examined and are in no list\n",
			out->usage->use.unknown);
}

static int look_at_roots(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	struct cop_paths_usage *u = out->usage;
	struct telling t = {what, "names found"};
	struct cop_walk_conf conf = {.root = (const char *const *)u->roots.all.path,
		.roots = u->roots.all.n,
		.sizes = !what->no_sizes,
		.tick = what->progress ? report_progress : NULL,
		.arg = &t};
	int rc = cop_walk(&conf, &u->use.tree, err);

	if (rc)
		return rc;
	u->use.seen = &u->seen;
	u->use.roots = &u->roots;
	t.of = "observed paths looked at";
	rc = cop_paths_usage_find(&u->use, conf.tick, &t) ?: cop_paths_prune(&u->use, &u->prune);
	note_absent_roots(out);
	note_unused(out);
	note_unreadable(out);
	return rc ? no_memory(err) : 0;
}

/* ---- 5: output files ---- */

static int write_lists(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	struct cop_paths_usage *u = out->usage;
	int rc = cop_make_dirs(out->output, 0755);

	if (rc)
		return cop_err_set(err, -rc,
			"cannot create %s: %s; name another directory with --output-dir",
			out->output, strerror(-rc));
	rc = cop_paths_lists_write(&u->use, out->output, &u->lists, err);
	if (rc)
		return rc;
	u->lists.sizes = !what->no_sizes;
	if (u->lists.closed)
		cop_buf_printf(&out->notes,
			"programs that the job used and that you may execute but not read: %" PRIu64
			", for example %s: nodes cannot read them either (Permission denied); copper run --direct runs those of a directory from the storage\n",
			u->lists.all_closed, u->lists.closed);
	if (u->lists.odd_names)
		cop_buf_printf(&out->notes,
			"%" PRIu64
			" names contain line ends: keep.nul and prune_candidates.nul have all names, the .txt files "
			"leave these out\n",
			u->lists.odd_names);
	return cop_paths_write(out, err);
}

typedef int step(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err);

int cop_paths_run(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err)
{
	static step *const steps[] = {
		choose_directories, read_observed, choose_roots, look_at_roots, write_lists};
	int rc;

	*out = (struct cop_paths_result){0};
	out->usage = calloc(1, sizeof(*out->usage));
	if (!out->usage)
		return no_memory(err);
	cop_observed_init(&out->usage->seen);
	rc = 0;
	for (size_t i = 0; !rc && i < COP_ARRAY_SIZE(steps); i++)
		rc = steps[i](what, out, err);
	return rc;
}

void cop_paths_result_free(struct cop_paths_result *p)
{
	struct cop_paths_usage *u = p->usage;

	if (u) {
		cop_paths_prune_free(&u->prune);
		cop_paths_lists_free(&u->lists);
		cop_paths_usage_free(&u->use);
		cop_walk_tree_free(u->use.tree);
		cop_walk_roots_free(&u->roots);
		cop_observed_free(&u->seen);
	}
	free(u);
	free(p->job);
	free(p->input);
	free(p->output);
	cop_buf_free(&p->named);
	cop_buf_free(&p->notes);
	*p = (struct cop_paths_result){0};
}
