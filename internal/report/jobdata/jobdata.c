/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <sys/stat.h>

#include "report/jobdata/jobdata_priv.h"

/* ---- telemetry and warnings ---- */

static bool is_there(const char *folder, const char *name)
{
	struct stat st;
	char *path;
	bool there;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return false;
	there = !stat(path, &st) && S_ISREG(st.st_mode);
	free(path);
	return there;
}

/* Whether the folder has any of the files; if so, stores its name in j. */
static int look_in(struct cop_jobdata *j, const char *folder)
{
	static const char *const files[] = {"cluster_nodes.csv", "cluster_telemetry.csv",
		"cluster_events.csv", "cluster_warnings.csv"};

	for (size_t f = 0; f < COP_ARRAY_SIZE(files); f++)
		if (is_there(folder, files[f])) {
			j->telemetry = strdup(folder);
			return j->telemetry ? 0 : -ENOMEM;
		}
	return 0;
}

/* Looks next to the sums if there are any, else in the final folder or that of a snapshot. */
static int find_telemetry(struct cop_jobdata *j)
{
	static const char *const places[] = {"cluster", "runtime-snapshot", "ioctl-snapshot"};
	int rc = j->folder ? look_in(j, j->folder) : 0;

	for (size_t p = 0; p < COP_ARRAY_SIZE(places) && !rc && !j->telemetry; p++) {
		char *folder;

		if (asprintf(&folder, "%s/profiling/%s", j->dir, places[p]) < 0)
			return -ENOMEM;
		rc = look_in(j, folder);
		free(folder);
	}
	return rc;
}

static int read_telemetry(struct cop_jobdata *j)
{
	static const struct {
		const char *name;
		cop_jobdata_from_fn *from;
	} files[] = {{"cluster_nodes.csv", cop_jobdata_nodes_from},
		{"cluster_telemetry.csv", cop_jobdata_times_from},
		{"cluster_events.csv", cop_jobdata_events_from},
		{"cluster_warnings.csv", cop_jobdata_warnings_from}};
	int rc = find_telemetry(j);

	for (size_t i = 0; i < COP_ARRAY_SIZE(files) && !rc && j->telemetry; i++)
		rc = cop_jobdata_with_file(j, j->telemetry, files[i].name, files[i].from);
	return rc;
}

static bool has_output(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		found = len > 7 && strcmp(e->d_name + len - 7, ".output") == 0;
	}
	if (d)
		closedir(d);
	return found;
}

static int find_tables(struct cop_jobdata *j)
{
	char *path;

	if (asprintf(&path, "%s/tables/final", j->dir) < 0)
		return -ENOMEM;
	j->has_tables = has_output(path);
	free(path);
	return 0;
}

static int nothing_to_show(const struct cop_jobdata *j, struct cop_err *err)
{
	return cop_err_set(err, ENOENT,
		"%s has nothing that a report could show: neither profiling/cluster, profiling/final nor a snapshot "
		"below profiling, nor tables, paths_dir or logs/copper_tree.txt; name the directory that was given to copper mount -d",
		j->dir);
}

int cop_jobdata_read(const char *job_dir, struct cop_jobdata *j, struct cop_err *err)
{
	struct stat st;
	int rc;

	*j = (struct cop_jobdata){.dir = realpath(job_dir, NULL)};
	if (!j->dir)
		return cop_err_set(err, errno, "cannot read the job directory %s: %s", job_dir,
			strerror(errno));
	if (stat(j->dir, &st) || !S_ISDIR(st.st_mode))
		return cop_err_set(err, ENOTDIR,
			"%s is not a directory: name the job directory that was given to copper mount -d",
			job_dir);
	rc = cop_jobdata_head(j);
	rc = rc ? rc : cop_jobdata_sums(j);
	rc = rc ? rc : cop_jobdata_top(j);
	rc = rc ? rc : read_telemetry(j);
	rc = rc ? rc : cop_jobdata_used(j);
	rc = rc ? rc : find_tables(j);
	if (rc)
		return cop_err_set(err, ENOMEM, "no memory to read %s", job_dir);
	if (!j->from && !j->telemetry && !j->has_use && !j->has_tables && !j->nodes)
		return nothing_to_show(j, err);
	return 0;
}

static void free_values(struct cop_jobdata_values *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->at[i].name);
	free(v->at);
}

static void free_telemetry(struct cop_jobdata *j)
{
	for (size_t i = 0; i < j->series_n; i++) {
		free(j->series[i]->host);
		free(j->series[i]);
	}
	for (size_t i = 0; i < j->node_n; i++)
		free(j->node[i].host);
	for (size_t i = 0; i < j->events; i++) {
		free(j->event[i].host);
		free(j->event[i].event);
		free(j->event[i].detail);
	}
	for (unsigned i = 0; i < j->phases; i++)
		free(j->phase[i]);
	for (size_t i = 0; i < j->warnings; i++) {
		free(j->warning[i].sentence);
		free(j->warning[i].option);
	}
	free(j->warning);
	free(j->series);
	free(j->node);
	free(j->event);
	free(j->telemetry);
}

void cop_jobdata_free(struct cop_jobdata *j)
{
	char *const texts[] = {j->dir, j->source, j->state, j->net_type, j->version, j->build,
		j->provider, j->first_host, j->began, j->folder};

	for (size_t i = 0; i < COP_ARRAY_SIZE(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < j->ops; i++)
		free(j->op[i].name);
	for (size_t i = 0; i < j->paths; i++)
		free(j->path[i].text);
	for (size_t i = 0; i < j->unused_n; i++)
		free(j->unused[i].directory);
	free(j->op);
	free(j->path);
	free(j->unused);
	free_values(&j->metrics);
	free_values(&j->fabric);
	free_values(&j->use);
	cop_pathclass_totals_free(&j->classes);
	free_telemetry(j);
	*j = (struct cop_jobdata){0};
}
