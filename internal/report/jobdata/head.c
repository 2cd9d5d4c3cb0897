/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the job's logs: the tree, the hosts, and the first lines of the first host's log. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "report/jobdata/jobdata_priv.h"
#include "writers/cluster/cluster.h"

#define LOG_HEAD_BYTES (16 * COP_KIB)

static int set_text(char **to, const char *text, size_t len)
{
	free(*to);
	*to = cop_jobdata_copy(text, len);
	return *to ? 0 : -ENOMEM;
}

/* How the job ended, in words. */
static int find_state(struct cop_jobdata *j)
{
	struct cop_buf text = {0};
	int end = cop_report_ending(j->dir, &text), rc;

	j->runs = end == COP_REPORT_END_NONE;
	rc = text.failed ? -ENOMEM : text.data ? set_text(&j->state, text.data, text.len) : 0;
	cop_buf_free(&text);
	return rc;
}

static int from_tree(struct cop_jobdata *j)
{
	struct cop_job_tree tree;
	int rc;

	if (cop_job_tree_read(j->dir, &tree, NULL))
		return 0;
	j->nodes = tree.hosts.count;
	j->fanout = tree.fanout;
	j->trees = tree.trees;
	j->has_ends = tree.has_ends;
	j->commands = tree.commands;
	j->good = tree.good;
	rc = find_state(j);
	rc = rc ? rc : set_text(&j->source, tree.source, strlen(tree.source));
	rc = rc ? rc : set_text(&j->net_type, tree.net_type, strlen(tree.net_type));
	if (!rc && tree.hosts.count)
		rc = set_text(
			&j->first_host, tree.hosts.host[0].name, strlen(tree.hosts.host[0].name));
	cop_job_tree_free(&tree);
	return rc;
}

/* Copper 1.0 has only the list of hosts. */
static int from_hosts(struct cop_jobdata *j)
{
	struct cop_job_hosts hosts = {0};
	char *path;
	int rc = 0;

	if (j->nodes)
		return 0;
	if (asprintf(&path, "%s/logs/node_file.txt", j->dir) < 0)
		return -ENOMEM;
	if (!cop_job_hosts_load(path, COP_JOB_PORT, &hosts, NULL)) {
		j->nodes = hosts.count;
		if (hosts.count)
			rc = set_text(
				&j->first_host, hosts.host[0].name, strlen(hosts.host[0].name));
		cop_job_hosts_free(&hosts);
	}
	free(path);
	return rc;
}

/* ---- the log of the first host ---- */

/* Copies the text after key, up to a space or, if to_end is set, to the end of the line. */
static int find_word(const char *log, const char *key, bool to_end, char **to)
{
	const char *at = strstr(log, key);
	size_t len;

	if (!at)
		return 0;
	at += strlen(key);
	len = strcspn(at, to_end ? "\n" : " \n");
	return len ? set_text(to, at, len) : 0;
}

static bool log_says(const char *log, const char *key, const char *value)
{
	const char *at = strstr(log, key);

	return at && strncmp(at + strlen(key), value, strlen(value)) == 0;
}

int cop_jobdata_parse_log(struct cop_jobdata *j, const char *log)
{
	const char *line = strstr(log, ") copper "), *open;
	char *top = NULL;
	int rc = 0;

	if (!line)
		return 0;
	if (strlen(log) > 19)
		rc = set_text(&j->began, log, 19);
	rc = rc ? rc : find_word(line, ") copper ", false, &j->version);
	open = strstr(line + 2, " (");
	if (!rc && open && strcspn(open, "\n") > strcspn(open, ")"))
		rc = set_text(&j->build, open + 2, strcspn(open + 2, ")"));
	if (!rc && !j->source)
		rc = find_word(line, " source=", false, &j->source);
	rc = rc ? rc : find_word(log, " provider=", false, &j->provider);
	rc = rc ? rc : find_word(log, "profile_top_n: ", true, &top);
	j->has_profile_lines = strstr(log, "profile_metrics: ");
	j->profile = log_says(log, "profile_metrics: ", "enabled");
	j->paths_full = log_says(log, "profile_paths_full: ", "enabled");
	j->top_n = top ? (unsigned)strtoul(top, NULL, 10) : 0;
	free(top);
	return rc;
}

/* Whether the file is HOST-PID-output.log. */
static bool is_log_of(const char *name, const char *host)
{
	size_t len = strlen(host), digits;

	if (strncmp(name, host, len) != 0 || name[len] != '-')
		return false;
	digits = strspn(name + len + 1, "0123456789");
	return digits && strcmp(name + len + 1 + digits, "-output.log") == 0;
}

/* Finds the newest log, because a directory may contain several jobs. */
static void find_log(const char *logs, const char *host, char name[NAME_MAX + 1])
{
	DIR *d = opendir(logs);
	struct timespec newest = {0};
	struct dirent *e;
	struct stat st;

	*name = '\0';
	while (d && (e = readdir(d))) {
		if (!is_log_of(e->d_name, host) || fstatat(dirfd(d), e->d_name, &st, 0))
			continue;
		if (*name && (st.st_mtim.tv_sec < newest.tv_sec ||
				     (st.st_mtim.tv_sec == newest.tv_sec &&
					     st.st_mtim.tv_nsec < newest.tv_nsec)))
			continue;
		newest = st.st_mtim;
		snprintf(name, NAME_MAX + 1, "%s", e->d_name);
	}
	if (d)
		closedir(d);
}

static int from_log(struct cop_jobdata *j)
{
	char name[NAME_MAX + 1], text[LOG_HEAD_BYTES + 1];
	char *path = NULL;
	uint64_t size;
	ssize_t n = -1;
	int fd;

	if (asprintf(&path, "%s/logs", j->dir) < 0)
		return -ENOMEM;
	find_log(path, j->first_host ? j->first_host : "localhost", name);
	free(path);
	if (!*name)
		return 0;
	if (asprintf(&path, "%s/logs/%s", j->dir, name) < 0)
		return -ENOMEM;
	fd = cop_open_regular(AT_FDCWD, path, &size);
	free(path);
	if (fd >= 0) {
		n = cop_read_full(fd, text, LOG_HEAD_BYTES);
		close(fd);
	}
	if (n < 0)
		return 0;
	text[n] = '\0';
	return cop_jobdata_parse_log(j, text);
}

int cop_jobdata_head(struct cop_jobdata *j)
{
	int rc = from_tree(j);

	rc = rc ? rc : from_hosts(j);
	return rc ? rc : from_log(j);
}
