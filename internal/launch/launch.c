/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launch.h"

#include "ctl/ctl.h"
#include "guard/guard.h"
#include "job/job.h"
#include "log/log.h"
#include "node/node.h"
#include "outcome/outcome.h"
#include "place/place.h"
#include "slurm/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The process of a node. */
struct launch {
	const struct cop_conf *conf;
	int report_fd; /* whoever started it listens there until it is ready; -1: nobody */
	struct cop_slurm_watch *watch;
	bool watched_over; /* whoever started it stops it */
};

/* ---- what others hear ---- */

/* The control socket of the node that these settings mean. */
static int find_control(
	const struct cop_conf *conf, char control[COP_CTL_PATH_SIZE], struct cop_err *err)
{
	struct cop_job_want want = {conf->hosts, conf->port, conf->rank};
	char mountpoint[4096] = "", key[COP_CTL_KEY_MAX + 1];
	struct cop_job_hosts hosts = {0};
	uint32_t rank = 0;
	int rc = cop_job_find(&want, &hosts, &rank, err);

	if (!rc && !conf->serve_only)
		rc = cop_place_name(conf, mountpoint, err);
	if (!rc) {
		struct cop_ctl_place place = {conf->runtime_dir, mountpoint,
			cop_job_host_name(&hosts, rank),
			cop_job_host_port(&hosts, rank, conf->port)};

		rc = cop_ctl_place(&place, control, key, err);
	}
	cop_job_hosts_free(&hosts);
	return rc;
}

/* To whoever started the command; failure NULL: the tree is ready. */
static void report(const struct cop_conf *conf, int fd, const struct cop_err *failure)
{
	char control[COP_CTL_PATH_SIZE];

	if (cop_slurm_is_node())
		cop_slurm_tell(fd, find_control(conf, control, NULL) ? NULL : control, failure);
	else if (fd >= 0)
		cop_outcome_say(fd, failure);
}

/* Before there is a node: the others wait for it all the same. */
static void tell_others(const struct cop_conf *conf, const struct cop_err *failure)
{
	struct cop_job_want want = {conf->hosts, conf->port, conf->rank};
	struct cop_job_hosts hosts = {0};
	uint32_t rank;

	if (cop_job_find(&want, &hosts, &rank, NULL) == 0 && hosts.count > 1 && conf->job_dir)
		cop_outcome_leave(conf->job_dir, cop_job_host_name(&hosts, rank), rank, failure);
	cop_job_hosts_free(&hosts);
}

/* ---- the process of the node ---- */

static void detach_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (chdir("/"))
		cop_log_warn("cannot change to / error=\"%s\"", strerror(errno));
}

/* Chunks come and go by the megabyte, from many threads. glibc would learn to take them from its
 * arenas, where what is freed stays resident between what is not; as mappings of their own they go
 * back to the system (mallopt(3)). */
static void tame_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_ARENA_MAX, 4);
}

static void job_is_over(void *node)
{
	cop_log_info("ending reason=\"the job is over\"");
	cop_node_end_tree(node);
}

static void started(void *arg, struct cop_node *n, const struct cop_err *failure)
{
	struct launch *l = arg;

	report(l->conf, l->report_fd, failure);
	if (failure)
		return;
	if (l->report_fd >= 0)
		detach_stdio();
	/* In the foreground it is its launcher's to end. */
	if (!l->conf->foreground && !l->watched_over && cop_node_rank(n) == 0)
		l->watch = cop_slurm_watch_start(job_is_over, n);
}

static void ending(void *arg)
{
	struct launch *l = arg;

	cop_slurm_watch_stop(l->watch);
}

static void mount_is_gone(void *place)
{
	cop_place_clear(place);
}

static struct cop_guard start_guard(const struct cop_conf *conf, struct cop_place *place)
{
	/* In the background this is a session of its own, and whoever gave the command waits above.
	 */
	struct cop_guard_conf guard = {.mountpoint = place->path,
		.above = conf->foreground && (cop_slurm_is_node() || cop_slurm_ends_with_step()),
		.session = getsid(conf->foreground ? 0 : getppid()),
		.gone = mount_is_gone,
		.arg = place};

	return cop_guard_start(&guard);
}

/* One node from start to stop. report_fd: -1 in the foreground. */
static int run(const struct cop_conf *conf, struct cop_place *place, int report_fd,
	bool watched_over, struct cop_err *err)
{
	struct cop_guard guard = start_guard(conf, place);
	struct launch l = {.conf = conf, .report_fd = report_fd, .watched_over = watched_over};
	struct cop_node_run how = {.conf = conf,
		.place = place,
		.last_pid = cop_guard_last(&guard),
		.report_fd = report_fd,
		.started = started,
		.ending = ending,
		.arg = &l};
	bool left_dead = false;
	int rc;

	if (report_fd >= 0 && cop_slurm_ends_with_step())
		how.note =
			"Slurm ends these nodes with the job step in which they were started: without --hosts and --rank they get a step of their own; or keep "
			"them with --foreground";
	tame_malloc();
	rc = cop_node_run(&how, &left_dead, err);
	if (!left_dead)
		cop_place_leave(place);
	cop_guard_end(&guard, left_dead);
	return rc;
}

/* ---- the command ---- */

static int launch_here(const struct cop_conf *conf, struct cop_err *err)
{
	int fd = cop_slurm_is_node() ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	struct cop_place place;
	int rc = cop_place_take(conf, &place, err);

	if (rc) {
		tell_others(conf, err);
		report(conf, fd, err);
		return rc;
	}
	if (conf->foreground)
		return run(conf, &place, fd, false, err);
	rc = cop_outcome_background(&fd, place.folder_fd, err);
	if (rc == 1)
		exit(run(conf, &place, fd, false, err) ? 1 : 0);
	/* A node that was killed has not tidied up. */
	if (rc)
		cop_place_leave(&place);
	return rc;
}

int cop_launch_here(const struct cop_conf *conf, char mountpoint[4096], struct cop_err *err)
{
	struct cop_place place;
	int fd = -1, rc = cop_place_take(conf, &place, err);

	if (rc)
		return rc;
	memcpy(mountpoint, place.path, sizeof(place.path));
	rc = cop_outcome_background(&fd, place.folder_fd, err);
	if (rc == 1)
		exit(run(conf, &place, fd, true, err) ? 1 : 0);
	/* It is the node's alone. */
	if (rc)
		cop_place_leave(&place);
	else if (place.folder_fd >= 0)
		close(place.folder_fd);
	return rc;
}

static int await_task_0(const struct cop_conf *conf, struct cop_err *err)
{
	char control[COP_CTL_PATH_SIZE];
	int rc = find_control(conf, control, err);

	return rc ? rc : cop_slurm_await(conf, control, err);
}

int cop_launch(const struct cop_conf *conf, char **argv, struct cop_err *err)
{
	switch (cop_slurm_how(conf)) {
	case COP_SLURM_BY_STEP:
		return cop_slurm_launch(conf, argv, err);
	case COP_SLURM_BY_TASK_0:
		return await_task_0(conf, err);
	case COP_SLURM_HERE:
		break;
	}
	return launch_here(conf, err);
}
