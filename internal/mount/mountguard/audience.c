/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the programs on this machine that may still use the mount of a dead node:
 *
 *   - if a scheduler started the node, processes with the job's id in their environment;
 *   - else the processes of the command's session (setsid(2)): a shell or a script;
 *   - else, if that session existed only for the command (ssh, pdsh), all processes of this user.
 *
 * In the first case, a machine may have no such process between two launches of the job. In the
 * last case, the processes may have nothing to do with the job, so they count only for a day. Nodes
 * and guards of any job do not count, because they use no mount. */
#include "mount/mountguard/mountguard_priv.h"

#include "job/hosts/hosts.h"

#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#define ENVIRON_MAX (8 * COP_MIB)
#define QUIET_MS (600 * 1000ULL)
#define DAY_MS (24 * 3600 * 1000ULL)

void cop_mountguard_audience_init(struct audience *a, pid_t session)
{
	struct stat st;

	*a = (struct audience){.session = session};
	cop_job_mark(a->mark);
	if (stat("/proc/self/exe", &st) == 0) {
		a->exe_dev = st.st_dev;
		a->exe_ino = st.st_ino;
	}
}

static bool has_mark(const char *pid, const char *mark)
{
	char path[64], *text, *at;
	size_t len;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	if (cop_read_file(path, ENVIRON_MAX, &text, &len))
		return false;
	for (at = text; !found && at < text + len; at += strlen(at) + 1)
		found = strcmp(at, mark) == 0;
	free(text);
	return found;
}

static bool is_of_user(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* A zombie no longer runs a program, and its exe cannot be read. */
static bool is_program(const struct audience *a, const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	if (stat(path, &st))
		return errno == EACCES || errno == EPERM;
	return st.st_dev != a->exe_dev || st.st_ino != a->exe_ino;
}

static bool is_of_audience(const struct audience *a, const char *pid)
{
	if (a->mark[0])
		return has_mark(pid, a->mark);
	return a->session ? getsid((pid_t)atoi(pid)) == a->session : is_of_user(pid);
}

pid_t cop_mountguard_audience_one(const struct audience *a)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	pid_t found = 0;

	while (proc && !found && (d = readdir(proc)))
		if (isdigit((unsigned char)d->d_name[0]) && is_of_audience(a, d->d_name) &&
			is_program(a, d->d_name))
			found = (pid_t)atoi(d->d_name);
	if (proc)
		closedir(proc);
	return found;
}

void cop_mountguard_audience_begin(struct audience *a)
{
	if (!a->mark[0] && a->session && !cop_mountguard_audience_one(a))
		a->session = 0;
}

bool cop_mountguard_audience_gone(const struct audience *a, uint64_t unseen_ms)
{
	return (!a->mark[0] && a->session) || unseen_ms >= QUIET_MS;
}

bool cop_mountguard_audience_tells_little(const struct audience *a, uint64_t dead_ms)
{
	return !a->mark[0] && !a->session && dead_ms >= DAY_MS;
}
