/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a scan: finds the processes that are programs of this user, with the cheap checks first. */
#include "node/bypass/bypass_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PIDS_MAX ((size_t)1 << 16)
/* Every n-th scan reads the start times of all processes, because a pid may have been reused. */
#define ELDERS_LOOKS 8

static int compare_processes(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Lists pids in ascending order, starting after the last process of the previous scan. */
static size_t list_processes(struct cop_bypass *p, struct cop_buf *out)
{
	int fd = openat(p->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	uint64_t number;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d)) && out->len < PIDS_MAX * sizeof(pid_t)) {
		pid_t pid;

		if (cop_parse_u64(e->d_name, &number) || number > INT32_MAX)
			continue;
		pid = (pid_t)number;
		if (pid > p->after)
			cop_buf_add(out, &pid, sizeof(pid));
	}
	closedir(d);
	if (out->failed || !out->len)
		return 0;
	qsort(out->data, out->len / sizeof(pid_t), sizeof(pid_t), compare_processes);
	return out->len / sizeof(pid_t);
}

/* ---- processes older than this one ---- */

static size_t elders(const struct cop_bypass *p)
{
	return p->elders.len / sizeof(pid_t);
}

static bool is_elder(const struct cop_bypass *p, pid_t pid)
{
	return elders(p) &&
	       bsearch(&pid, p->elders.data, elders(p), sizeof(pid), compare_processes);
}

static void add_elder(struct cop_bypass *p, pid_t pid)
{
	pid_t last = 0;

	if (p->elders.len >= PIDS_MAX * sizeof(pid))
		return;
	if (elders(p))
		memcpy(&last, p->elders.data + p->elders.len - sizeof(last), sizeof(last));
	cop_buf_add(&p->elders, &pid, sizeof(pid));
	if (pid < last)
		qsort(p->elders.data, elders(p), sizeof(pid), compare_processes);
}

/* Forgets processes that have exited, because their pids may be reused. */
static void keep_elders(struct cop_bypass *p, const struct cop_buf *pids, size_t n)
{
	struct cop_buf kept = {0};
	pid_t pid;

	for (size_t i = 0; i < n; i++) {
		memcpy(&pid, pids->data + i * sizeof(pid), sizeof(pid));
		if (is_elder(p, pid))
			cop_buf_add(&kept, &pid, sizeof(pid));
	}
	cop_buf_free(&p->elders);
	p->elders = kept;
}

/* The kernel assigns pids in ascending order. After a wrap-around, this list also contains newer
 * processes, which a later scan finds when it reads all start times. */
void cop_bypass_note_elders(struct cop_bypass *p)
{
	struct cop_buf pids = {0};
	size_t n = list_processes(p, &pids);
	char self[32];
	ssize_t len = readlinkat(p->proc, "self", self, sizeof(self) - 1);
	uint64_t own;
	pid_t pid;

	self[COP_MAX(len, 0)] = '\0';
	for (size_t i = 0; i < n && !cop_parse_u64(self, &own); i++) {
		memcpy(&pid, pids.data + i * sizeof(pid), sizeof(pid));
		if ((uint64_t)pid < own)
			cop_buf_add(&p->elders, &pid, sizeof(pid));
	}
	cop_buf_free(&pids);
}

/* ---- one process ---- */

/* A process that has changed its effective user is unreadable, and does not count as this
 * user's. */
static bool is_mine(int dir)
{
	char text[4096];
	const char *line;
	unsigned uid;

	if (cop_bypass_text(dir, "status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u", &uid) == 1 && uid == getuid();
}

/* Whether the process is a program as defined in bypass.h; if so, fills in the rest of q. */
static bool is_program(struct cop_bypass *p, struct cop_bypass_process *q)
{
	uint64_t id[2];

	if (cop_bypass_began(q->dir, &q->began))
		return false;
	if (q->began < p->began) {
		add_elder(p, q->pid);
		return false;
	}
	if (!is_mine(q->dir) || cop_bypass_identity(q->dir, "exe", id) ||
		memcmp(id, p->exe, sizeof(id)) == 0 || cop_bypass_identity(q->dir, "ns/mnt", id))
		return false;
	q->apart = memcmp(id, p->mnt_ns, sizeof(id)) != 0;
	return true;
}

static void look_at_maps(struct cop_bypass *p, struct cop_bypass_process *q, unsigned *left)
{
	unsigned max = COP_MIN(*left, COP_BYPASS_MAPS), n;
	char text[128];

	if (cop_bypass_text(q->dir, "statm", text, sizeof(text)) > 0)
		q->pages = strtoull(text, NULL, 10);
	if (cop_bypass_is_known(p, q))
		return;
	n = cop_bypass_maps(p, q, max);
	*left -= n;
	if (n < max || max == COP_BYPASS_MAPS)
		cop_bypass_know(p, q);
}

/* Returns whether the process counts towards the limit per scan. left: how many more lines the scan
 * may read. */
static bool look_at(struct cop_bypass *p, pid_t pid, unsigned *left)
{
	struct cop_bypass_process q = {.pid = pid};
	char name[16];
	struct stat st;
	bool is = false;

	snprintf(name, sizeof(name), "%d", (int)pid);
	if (fstatat(p->proc, name, &st, 0) || st.st_uid != geteuid())
		return false;
	q.dir = openat(p->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (q.dir < 0)
		return false;
	if (is_program(p, &q)) {
		look_at_maps(p, &q, left);
		*left -= cop_bypass_fds(p, &q, COP_MIN(*left, COP_BYPASS_FDS));
		is = true;
	}
	close(q.dir);
	return is;
}

void cop_bypass_look_now(struct cop_bypass *p)
{
	struct cop_buf pids = {0};
	size_t n = list_processes(p, &pids), i;
	unsigned processes = 0, left = COP_BYPASS_ENTRIES;
	pid_t pid = 0;

	if (!p->after && ++p->looks % ELDERS_LOOKS == 0)
		cop_buf_free(&p->elders);
	if (!p->after)
		keep_elders(p, &pids, n);
	for (i = 0; i < n && processes < COP_BYPASS_PROCESSES && left; i++) {
		memcpy(&pid, pids.data + i * sizeof(pid), sizeof(pid));
		if (is_elder(p, pid))
			continue;
		processes += look_at(p, pid, &left);
	}
	p->after = i < n ? pid : 0;
	cop_buf_free(&pids);
}
