/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes in a job step of their own.
 *
 * Slurm ends every process of a step when the step's command returns, so where processes are
 * tracked by control groups, a background node of `srun copper mount` would be killed with it. A
 * command in the batch script (or in an interactive shell of the job) instead starts
 *
 *     srun --overlap --ntasks-per-node=1 ... copper mount --foreground ...
 *
 * as a step that lasts until it is stopped or the job ends, and waits for the reports of its
 * nodes: each writes one line to its standard output, which srun forwards. The step's processes
 * belong to Slurm: they end with the job.
 *
 * A shell that is itself a task of a step (srun --pty) does the same, and the step of the nodes
 * continues without its srun. */
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "job/scheduler/scheduler_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define END_MS 10000
/* Once one node reports that the tree is ready, the others have this long to report. */
#define ALL_MS 5000
/* How often to look for messages from srun, and how long a node named in one may take to report. */
#define LOOK_MS 500
#define LOST_MS 2000
#define ARGS_MAX 32        /* options for srun */
#define MESSAGES_SIZE 4096 /* how much of srun's messages we read, with the NUL */

struct step {
	pid_t srun;
	int out_fd, err_fd, signal_fd;
	off_t err_from; /* where srun's messages of this run begin */
	char line[COP_SLURM_LINE_SIZE];
	size_t len;
	uint32_t nodes;
	struct cop_slurm_heard heard;
};

/* ---- starting srun ---- */

/* Removes settings for the job's own tasks, which would conflict with the options for the nodes. */
static void clean_environment(void)
{
	static const char *const names[] = {"SLURM_BCAST", "SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST",
		"SLURM_CPU_BIND_TYPE", "SLURM_CPU_BIND_VERBOSE", "SLURM_CPUS_PER_GPU",
		"SLURM_CPUS_PER_TASK", "SLURM_DISTRIBUTION", "SLURM_EXACT", "SLURM_EXCLUSIVE",
		"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET", "SLURM_GPUS_PER_TASK",
		"SLURM_GPU_BIND", "SLURM_GRES", "SLURM_HINT", "SLURM_HOSTFILE", "SLURM_LABELIO",
		"SLURM_MEM_PER_GPU", "SLURM_MPI_TYPE", "SLURM_MULTI_PROG", "SLURM_NPROCS",
		"SLURM_NTASKS", "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU",
		"SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_TRES",
		"SLURM_OPEN_MODE", "SLURM_RESV_PORTS", "SLURM_STEP_GRES", "SLURM_STEP_ID",
		"SLURM_STEPID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES",
		"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
		"SLURM_TASK_EPILOG", "SLURM_TASK_PROLOG", "SLURM_THREADS_PER_CORE",
		"SLURM_TRES_BIND", "SLURM_TRES_PER_TASK", "SLURM_UNBUFFEREDIO", "SLURM_WAIT"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	setenv(COP_SLURM_IN_STEP, "1", 1);
}

/* The end of one node must not end the others, which carry on without it. */
static const char *const srun_args[] = {"srun", "--overlap", "--ntasks-per-node=1",
	"--job-name=copper", "--input=none", "--mpi=none", "--cpu-bind=none",
	"--kill-on-bad-exit=0", "--no-kill", "--wait=0", "--export=ALL"};

static char **build_args(uint32_t nodes, const char *exe, char **argv, char text[2][32])
{
	const unsigned components = cop_job_slurm_components();
	size_t n = 0, given = 0;
	char **out;

	while (argv[given])
		given++;
	out = calloc(ARGS_MAX + given + 1, sizeof(*out));
	if (!out)
		return NULL;
	for (size_t i = 0; i < COP_ARRAY_SIZE(srun_args); i++)
		out[n++] = (char *)srun_args[i];
	if (components > 1) {
		/* All nodes of all components; srun knows which they are. */
		snprintf(text[0], 32, "--het-group=0-%u", components - 1);
		out[n++] = text[0];
	} else {
		snprintf(text[0], 32, "--nodes=%" PRIu32, nodes);
		snprintf(text[1], 32, "--ntasks=%" PRIu32, nodes);
		out[n++] = text[0];
		out[n++] = text[1];
	}
	out[n++] = (char *)exe;
	out[n++] = argv[0];
	out[n++] = (char *)"--foreground";
	for (size_t i = 1; i < given; i++)
		out[n++] = argv[i];
	return out;
}

static void become_srun(const struct step *s, int out_fd, char **args)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	clean_environment();
	if (null >= 0)
		dup2(null, 0);
	dup2(out_fd, 1);
	dup2(s->err_fd, 2);
	execvp(args[0], args);
	fprintf(stderr, "cannot run srun: %s\n", strerror(errno));
	_exit(127);
}

/* srun outlives this command and must not hold its standard error open, so srun's messages go to
 * the logs. */
static int open_err(struct step *s, const char *job_dir)
{
	char path[4200];
	struct cop_err ignored;
	struct cop_dir at;

	s->err_fd = -1;
	if (job_dir && cop_job_dir_make(job_dir, &ignored) == 0) {
		snprintf(path, sizeof(path), "%.4000s/logs/srun.log", job_dir);
		if (cop_dir_of(path, &at) == 0)
			s->err_fd = openat(at.fd, at.name,
				O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
		cop_dir_done(&at);
	}
	if (s->err_fd < 0)
		s->err_fd = memfd_create("srun-output", MFD_CLOEXEC);
	if (s->err_fd < 0)
		return -errno;
	s->err_from = lseek(s->err_fd, 0, SEEK_END);
	return 0;
}

static int start_srun(struct step *s, const struct cop_conf *conf, char **argv, struct cop_err *err)
{
	char exe[4096], text[2][32], **args;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int fds[2], rc;

	if (n < 0)
		return cop_err_set(
			err, errno, "cannot find the copper binary: %s", strerror(errno));
	exe[n] = '\0';
	rc = open_err(s, conf->job_dir);
	if (rc || pipe2(fds, O_CLOEXEC))
		return cop_err_set(err, errno, "cannot create a descriptor: %s", strerror(errno));
	args = build_args(s->nodes, exe, argv, text);
	s->srun = args ? fork() : -1;
	if (s->srun == 0)
		become_srun(s, fds[1], args);
	free(args);
	close(fds[1]);
	s->out_fd = fds[0];
	return s->srun > 0 ? 0 : cop_err_set(err, errno, "cannot start srun: %s", strerror(errno));
}

/* ---- results of the step ---- */

static void handle_line(struct step *s)
{
	s->line[s->len] = '\0';
	s->len = 0;
	if (!cop_slurm_hear(&s->heard, s->line))
		puts(s->line); /* from a node with --log-type stdout */
}

/* Returns false at the end of the output. */
static bool read_output(struct step *s)
{
	char data[4096];
	ssize_t n = read(s->out_fd, data, sizeof(data));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (ssize_t i = 0; i < n; i++) {
		if (data[i] == '\n')
			handle_line(s);
		else if (s->len < sizeof(s->line) - 1)
			s->line[s->len++] = data[i];
	}
	return n > 0;
}

/* Reads what srun has written in this run, or "". */
static void read_messages(const struct step *s, char text[MESSAGES_SIZE])
{
	ssize_t n = pread(s->err_fd, text, MESSAGES_SIZE - 1, s->err_from);

	text[n > 0 ? n : 0] = '\0';
}

/* Whether srun has reported a node that cannot report itself. The others would wait for it until
 * they time out. */
static bool loses_one(struct step *s)
{
	char text[MESSAGES_SIZE];

	if (s->heard.ready || s->heard.lost[0])
		return false;
	read_messages(s, text);
	return cop_slurm_hear_srun(&s->heard, text);
}

static int say_why(const struct step *s, struct cop_err *err)
{
	if (s->heard.failure[0])
		return cop_err_set(err, EIO, "%s", s->heard.failure);
	if (s->heard.lost[0])
		return cop_err_set(
			err, EIO, "a node was not started, or ended at once: %s", s->heard.lost);
	return cop_err_set(err, EIO, "srun ended before the nodes were ready");
}

static int listen_to(struct step *s, uint32_t timeout_ms, struct cop_err *err)
{
	uint64_t deadline = cop_now_ms() + timeout_ms;
	struct pollfd fds[2] = {
		{.fd = s->out_fd, .events = POLLIN}, {.fd = s->signal_fd, .events = POLLIN}};

	while (s->heard.ready < s->nodes && !s->heard.failure[0]) {
		uint64_t now = cop_now_ms();

		if (now >= deadline)
			break;
		if (loses_one(s))
			deadline = COP_MIN(deadline, now + LOST_MS);
		if (poll(fds, 2, (int)COP_MIN(deadline - now, LOOK_MS)) <= 0)
			continue;
		if (fds[1].revents)
			return cop_err_set(err, EINTR, "interrupted before the tree was ready");
		if (fds[0].revents && !read_output(s))
			break;
		if (s->heard.ready)
			deadline = COP_MIN(deadline, now + ALL_MS);
	}
	if (s->heard.ready)
		return 0;
	if (cop_now_ms() >= deadline && !s->heard.lost[0])
		return cop_err_set(
			err, ETIMEDOUT, "srun did not start the nodes in %u s", timeout_ms / 1000);
	return say_why(s, err);
}

static void say_what_srun_said(const struct step *s)
{
	char text[MESSAGES_SIZE];

	read_messages(s, text);
	cop_write_full(STDERR_FILENO, text, strlen(text));
}

static bool ends_within(pid_t pid, uint64_t ms)
{
	uint64_t end = cop_now_ms() + ms;

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (cop_now_ms() >= end)
			return false;
		poll(NULL, 0, 20);
	}
	return true;
}

/* srun forwards SIGUSR1 to the nodes, which unmount and exit; after SIGTERM it would have them
 * killed. */
static void end_srun(const struct step *s)
{
	kill(s->srun, SIGUSR1);
	if (ends_within(s->srun, END_MS))
		return;
	kill(s->srun, SIGTERM);
	ends_within(s->srun, END_MS);
}

/* ---- detaching from srun ---- */

/* srun has a child that waits for srun to die and then cancels its step. When the enclosing step
 * ends, Slurm kills both, and sometimes the child still has time to cancel. So we stop both of
 * them, which form a process group of their own, and then kill them; that leaves no process to
 * cancel the step. */
static void abandon_srun(pid_t srun)
{
	kill(-srun, SIGSTOP);
	kill(-srun, SIGKILL);
	waitpid(srun, NULL, 0);
}

static int block_signals(struct step *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

static void step_fini(struct step *s)
{
	if (s->out_fd >= 0)
		close(s->out_fd);
	if (s->err_fd >= 0)
		close(s->err_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
}

int cop_slurm_launch(const struct cop_conf *conf, char **argv, struct cop_err *err)
{
	struct step s = {.out_fd = -1, .err_fd = -1, .signal_fd = -1};
	struct cop_job_hosts hosts = {0};
	int rc = cop_job_hosts_env(conf->port, &hosts, err);

	if (rc)
		return rc;
	s.nodes = hosts.count;
	rc = block_signals(&s);
	if (rc)
		cop_err_set(err, -rc, "cannot create a descriptor: %s", strerror(-rc));
	else
		rc = start_srun(&s, conf, argv, err);
	if (!rc) {
		rc = listen_to(&s, conf->ready_timeout_ms + COP_SLURM_STEP_MS, err);
		if (rc) {
			end_srun(&s);
			if (!s.heard.failure[0])
				say_what_srun_said(&s);
		} else if (cop_slurm_in_a_step()) {
			abandon_srun(s.srun);
		}
	}
	step_fini(&s);
	cop_job_hosts_free(&hosts);
	return rc;
}
