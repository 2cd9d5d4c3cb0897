/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/launch/launch.h"

#include "mount/mountguard/mountguard.h"
#include "job/hosts/hosts.h"
#include "base/log/log.h"
#include "node/node/node.h"
#include "node/check/check.h"
#include "job/startnote/startnote.h"
#include "node/mountdir/mountdir.h"
#include "job/scheduler/scheduler.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- reports to other processes ---- */

/* Reports the outcome to the process that started the command; failure NULL: the tree is ready. */
static void report_failure(int fd, const struct cop_err *failure)
{
	if (fd < 0)
		return;
	if (cop_slurm_is_node())
		cop_slurm_tell(fd, failure);
	else
		cop_startnote_say(fd, failure);
}

void cop_launch_tell_others(const struct cop_conf *conf, const struct cop_err *failure)
{
	const char *dir = conf->job_dir ? conf->job_dir : conf->step_dir;
	struct cop_job_want want = {
		conf->hosts, conf->port, conf->rank, conf->of_step, conf->step_tree};
	struct cop_job_hosts hosts = {0};
	uint32_t rank = 0;
	bool others_fail = dir && cop_startnote_is_left(dir, 0);

	if (cop_job_find(&want, &hosts, &rank, NULL) == 0 && hosts.count > 1 && dir)
		cop_startnote_leave(dir, cop_job_host_name(&hosts, rank), rank, failure);
	/* Rank 0 would remove the directory when it ends, but there is no rank 0. */
	if (hosts.count > 1 && dir && !conf->job_dir && rank == 0)
		cop_startnote_remove(
			dir, others_fail ? COP_STARTNOTE_STAY : COP_STARTNOTE_STAY_LATE);
	cop_job_hosts_free(&hosts);
}

/* ---- the node's process ---- */

static void detach_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	cop_log_take_stderr();
	if (chdir("/"))
		cop_log_warn("cannot change to / error=\"%s\"", strerror(errno));
}

/* Many threads allocate and free chunks of a megabyte. By default glibc raises its mmap threshold
 * and serves them from its arenas, where freed memory stays resident between live blocks. With a
 * fixed threshold each chunk is a mapping of its own, whose memory returns to the system when freed
 * (mallopt(3)). */
static void tame_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_ARENA_MAX, 4);
}

/* The default limit is 1024, for programs that use select(2). A node needs a descriptor for each
 * child in the tree and each open file on the storage. */
static void raise_file_limit(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most))
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

static void report_start(void *arg, const struct cop_err *failure)
{
	const int *report_fd = arg;

	report_failure(*report_fd, failure);
	if (!failure && *report_fd >= 0)
		detach_stdio();
}

static void mount_is_gone(void *place)
{
	cop_mountdir_clear(place);
}

static struct cop_mountguard start_guard(const struct cop_conf *conf, struct cop_mountdir *place,
	const struct cop_launch_users *users)
{
	/* In the background this process has a session of its own, so take the session of its
	 * parent, the command's process, which is still waiting. */
	struct cop_mountguard_conf guard = {.mountpoint = place->path,
		.above = conf->foreground && (cop_slurm_is_node() || cop_slurm_in_a_step()),
		.session = getsid(conf->foreground ? 0 : getppid()),
		.gone = mount_is_gone,
		.arg = place};

	if (users) {
		guard.needed = users->live;
		guard.needed_arg = users->arg;
	}
	return cop_mountguard_start(&guard);
}

/* Runs one node from start to stop. report_fd: -1 in the foreground. users: not NULL if the starter
 * knows which programs use the mount, and stops the node. */
static int run_node(const struct cop_conf *conf, struct cop_mountdir *place, int report_fd,
	const struct cop_launch_users *users, struct cop_err *err)
{
	struct cop_mountguard guard = start_guard(conf, place, users);
	struct cop_node_run how = {.conf = conf,
		.place = place,
		.last_pid = cop_mountguard_last(&guard),
		.report_fd = report_fd,
		.started = report_start,
		.arg = &report_fd};
	bool left_dead = false;
	int rc;

	if (report_fd >= 0 && !users && cop_slurm_ends_with_step())
		how.note =
			"Slurm ends these nodes with the job step in which they were started: copper mount in the job script, without srun, --hosts and --rank, "
			"starts them in a step of their own; or keep them with --foreground";
	tame_malloc();
	raise_file_limit();
	rc = cop_node_run(&how, &left_dead, err);
	if (!left_dead)
		cop_mountdir_leave(place);
	cop_mountguard_end(&guard, left_dead);
	return rc;
}

/* ---- the command ---- */

static int take_place(const struct cop_conf *conf, struct cop_mountdir *place, struct cop_err *err)
{
	int rc = cop_check_file_limit(err);

	if (!rc)
		rc = cop_mountdir_acquire(conf, place, err);
	if (rc)
		cop_launch_tell_others(conf, err);
	return rc;
}

static int launch_here(const struct cop_conf *conf, struct cop_err *err)
{
	int fd = cop_slurm_is_node() ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	struct cop_mountdir place;
	int rc = take_place(conf, &place, err);

	if (rc) {
		report_failure(fd, err);
		return rc;
	}
	if (conf->foreground)
		return run_node(conf, &place, fd, NULL, err);
	rc = cop_startnote_background(&fd, place.folder_fd, err);
	if (rc == 1)
		exit(run_node(conf, &place, fd, NULL, err) ? 1 : 0);
	/* If the node was killed, it has not cleaned up. */
	if (rc)
		cop_mountdir_leave(&place);
	return rc;
}

/* Ends this node with its starter. Otherwise, if the starter were killed, the node would never
 * stop. */
static void end_with(pid_t starter)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != starter)
		exit(1);
}

int cop_launch_here(const struct cop_conf *conf, const struct cop_launch_users *users,
	char mountpoint[4096], struct cop_err *err)
{
	struct cop_mountdir place;
	pid_t starter = getpid();
	int fd = -1, rc = take_place(conf, &place, err);

	if (rc)
		return rc;
	memcpy(mountpoint, place.path, sizeof(place.path));
	rc = cop_startnote_background(&fd, place.folder_fd, err);
	if (rc == 1) {
		end_with(starter);
		exit(run_node(conf, &place, fd, users, err) ? 1 : 0);
	}
	/* On success, only the node keeps the folder's descriptor. */
	if (rc)
		cop_mountdir_leave(&place);
	else if (place.folder_fd >= 0)
		close(place.folder_fd);
	return rc;
}

int cop_launch(const struct cop_conf *conf, char **argv, struct cop_err *err)
{
	switch (cop_slurm_how(conf)) {
	case COP_SLURM_BY_STEP:
		return cop_slurm_launch(conf, argv, err);
	case COP_SLURM_REFUSED:
		return cop_slurm_refuse(argv[0], err);
	case COP_SLURM_HERE:
		break;
	}
	return launch_here(conf, err);
}
