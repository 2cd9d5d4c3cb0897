/* SPDX-License-Identifier: BSD-3-Clause */
/* Infers from its directory how a job ended: a job killed at its time limit gets no stop command,
 * and none of its processes can report it. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

#include "job/dir/dir.h"
#include "writers/cluster/cluster_priv.h"

#define HOSTS_MAX 32u /* maximum number of logs read; these are enough for larger jobs, too */
#define TAIL_BYTES 4096

static const char log_end[] = "-output.log", reason_key[] = "ending reason=\"";

struct one_log {
	const char *host;
	bool alone;              /* the node's log is named after localhost */
	char name[NAME_MAX + 1]; /* the host's newest log; "": none */
	struct timespec at;
};
struct logs {
	struct one_log of[HOSTS_MAX];
	unsigned n;
	unsigned ended, by_signal;
	time_t newest;
};

static bool is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Whether the file is HOST-PID-output.log. */
static bool is_log_of_host(const char *name, const char *host)
{
	size_t len = strlen(host), digits;

	if (strncmp(name, host, len) != 0 || name[len] != '-')
		return false;
	name += len + 1;
	digits = strspn(name, "0123456789");
	return digits && strcmp(name + digits, log_end) == 0;
}

static bool is_log_of(const char *name, const struct one_log *l)
{
	return is_log_of_host(name, l->host) || (l->alone && is_log_of_host(name, "localhost"));
}

static void take_newest(struct logs *logs, int dir, const char *name)
{
	struct stat st;

	for (unsigned i = 0; i < logs->n; i++) {
		struct one_log *l = &logs->of[i];

		if (!is_log_of(name, l) || fstatat(dir, name, &st, 0) ||
			(*l->name && !is_later(st.st_mtim, l->at)))
			continue;
		snprintf(l->name, sizeof(l->name), "%s", name);
		l->at = st.st_mtim;
		logs->newest = COP_MAX(logs->newest, st.st_mtim.tv_sec);
	}
}

/* Examines the last lines of a log. */
static void judge(struct logs *logs, int dir, const struct one_log *l)
{
	char tail[TAIL_BYTES + 1];
	uint64_t size;
	int fd = cop_open_regular(dir, l->name, &size);
	const char *at;
	ssize_t n;

	if (fd < 0)
		return;
	if (size > TAIL_BYTES)
		lseek(fd, (off_t)(size - TAIL_BYTES), SEEK_SET);
	n = cop_read_full(fd, tail, TAIL_BYTES);
	close(fd);
	tail[n > 0 ? n : 0] = '\0';
	at = strstr(tail, reason_key);
	logs->ended += at != NULL;
	logs->by_signal += at && strncmp(at + strlen(reason_key), "signal", 6) == 0;
}

static void read_logs(const char *job_dir, struct logs *logs)
{
	struct dirent *e;
	char *path;
	DIR *d;

	if (asprintf(&path, "%s/logs", job_dir) < 0)
		return;
	d = opendir(path);
	free(path);
	while (d && (e = readdir(d)))
		if (strstr(e->d_name, log_end))
			take_newest(logs, dirfd(d), e->d_name);
	for (unsigned i = 0; d && i < logs->n; i++)
		if (*logs->of[i].name)
			judge(logs, dirfd(d), &logs->of[i]);
	if (d)
		closedir(d);
}

/* Chooses each host once, even if several nodes share it. */
static void choose_hosts(const struct cop_job_tree *tree, struct logs *logs)
{
	for (uint32_t i = 0; i < tree->hosts.count && logs->n < HOSTS_MAX; i++) {
		const char *name = tree->hosts.host[i].name;
		bool known = false;

		for (unsigned k = 0; k < logs->n && !known; k++)
			known = strcmp(logs->of[k].host, name) == 0;
		if (!known)
			logs->of[logs->n++] =
				(struct one_log){.host = name, .alone = tree->socket[0] != '\0'};
	}
}

static void put_sentence(const struct logs *l, uint32_t nodes, struct cop_buf *out)
{
	const char *how = l->by_signal == l->ended ? "by a signal, as at a time limit,"
						   : "by themselves or by a signal,";
	char when[32] = "an unknown time";
	struct tm tm;

	if (l->ended == l->n)
		cop_buf_printf(out, "ended %s without copper stop", how);
	else if (l->ended)
		cop_buf_printf(out,
			"ended %s without copper stop on %u of the %u hosts looked at; the others were killed, or still run",
			how, l->ended, l->n);
	if (l->ended)
		return;
	if (l->newest && localtime_r(&l->newest, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	cop_buf_printf(out,
		"running, or killed: none of its %" PRIu32
		" nodes has logged an end; the last line of a log is of %s",
		nodes, when);
}

int cop_report_ending(const char *job_dir, struct cop_buf *out)
{
	struct cop_job_tree tree;
	struct logs *logs;
	int how;

	if (cop_job_tree_read(job_dir, &tree, NULL))
		return COP_REPORT_END_UNKNOWN;
	logs = tree.stopped ? NULL : calloc(1, sizeof(*logs));
	how = tree.stopped ? COP_REPORT_END_STOPPED : COP_REPORT_END_UNKNOWN;
	if (tree.stopped)
		cop_buf_str(out, "stopped");
	if (logs) {
		choose_hosts(&tree, logs);
		read_logs(job_dir, logs);
		put_sentence(logs, tree.hosts.count, out);
		how = logs->ended ? COP_REPORT_END_OTHER : COP_REPORT_END_NONE;
	}
	free(logs);
	cop_job_tree_free(&tree);
	return how;
}
