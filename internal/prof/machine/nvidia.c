/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA GPUs. Their driver does not export these values as files, so we run nvidia-smi, which
 * prints all of them periodically until the node ends. Looking up the program, starting it, and the
 * driver can each hang, so a separate thread starts it and reads its output, and samples never wait
 * for it.
 *
 * If nvidia-smi exits, as it does without a driver, it is restarted after one minute, then two,
 * four, and so on up to an hour. If it hangs, there are no values, and it is killed when the node
 * ends. If the node is killed, nvidia-smi gets SIGPIPE at its next write. */
#include "prof/machine/machine_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#define PROGRAM "nvidia-smi"
#define AGAIN_MS 60000u
#define AGAIN_MOST_MS 3600000u
/* How long to wait for a killed nvidia-smi and for the thread to exit. */
#define KILL_MS 2000u
#define END_MS 3000u
#define TEXT_MAX 8192u /* nvidia-smi does not print longer lines */

extern char **environ;

struct cop_nvidia {
	uint64_t every_ms;
	pthread_t thread;
	int wake; /* eventfd: the node is ending */

	/* Used only by the thread. */
	pid_t pid;
	int out; /* its output */
	size_t len;
	char text[TEXT_MAX]; /* an incomplete line */

	pthread_mutex_t lock; /* protects the following fields */
	struct cop_nvidia_row row[COP_MACHINE_GPUS];
	uint64_t read_ms[COP_MACHINE_GPUS]; /* 0: the row was never read */
};

/* ---- a line ---- */

/* Parses a number with an optional unit. Rejects words such as "[N/A]" and "[Not Supported]". */
static bool read_value(const char *text, double *out)
{
	double of = 1;
	int digits = 0;

	text += strspn(text, " ");
	for (*out = 0; *text >= '0' && *text <= '9' && digits < 15; text++, digits++)
		*out = *out * 10 + (*text - '0');
	if (!digits)
		return false;
	text += *text == '.';
	for (; *text >= '0' && *text <= '9' && digits < 15; text++, digits++)
		*out += (*text - '0') * (of /= 10);
	return true;
}

bool cop_nvidia_parse(char *line, struct cop_nvidia_row *out)
{
	double value[COP_NVIDIA_FIELDS] = {0};
	char *rest = line;
	unsigned n = 0;

	*out = (struct cop_nvidia_row){.known = 0};
	for (; rest && n < COP_NVIDIA_FIELDS; n++)
		if (read_value(strsep(&rest, ","), &value[n]))
			out->known |= 1u << n;
	if (n < COP_NVIDIA_FIELDS || rest || !(out->known & 1) || value[0] >= COP_MACHINE_GPUS)
		return false;
	out->index = (unsigned)value[0];
	memcpy(out->value, value, sizeof(value));
	return true;
}

/* ---- the program ---- */

/* Starts it with default signal handling, in its own process group because nvidia-smi may be a
 * wrapper script with children. */
static int start_program(struct cop_nvidia *n, int out)
{
	char seconds[24];
	char *argv[] = {PROGRAM,
		"--query-gpu=index,utilization.gpu,memory.used,memory.total,power.draw,power.limit",
		"--format=csv,noheader,nounits", "-l", seconds, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	snprintf(seconds, sizeof(seconds), "%" PRIu64, COP_MAX(n->every_ms / 1000, 1));
	sigemptyset(&none);
	sigfillset(&all);
	/* A child must not keep the node's connections open after the node exits. */
	cop_close_on_exec(3);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(&n->pid, PROGRAM, &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* Returns false if nvidia-smi is not installed or cannot be started. */
static bool start_reading(struct cop_nvidia *n)
{
	int ends[2];
	bool started;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	started = start_program(n, ends[1]) == 0;
	close(ends[1]);
	if (started)
		n->out = ends[0];
	else
		close(ends[0]);
	n->len = 0;
	return started;
}

/* Returns false if it does not exit, because it is blocked in the driver. */
static bool kill_program(struct cop_nvidia *n)
{
	uint64_t end_ms = cop_now_ms() + KILL_MS;
	pid_t got;

	close(n->out);
	kill(-n->pid, SIGKILL);
	while ((got = waitpid(n->pid, NULL, WNOHANG)) == 0 && cop_now_ms() < end_ms)
		usleep(1000);
	return got != 0;
}

/* ---- the thread ---- */

static bool take_line(struct cop_nvidia *n, char *line)
{
	struct cop_nvidia_row row;

	if (!cop_nvidia_parse(line, &row))
		return false;
	pthread_mutex_lock(&n->lock);
	n->row[row.index] = row;
	n->read_ms[row.index] = cop_now_ms();
	pthread_mutex_unlock(&n->lock);
	return true;
}

static bool take_lines(struct cop_nvidia *n)
{
	char *at = n->text, *end;
	bool any = false;

	while ((end = memchr(at, '\n', n->len - (size_t)(at - n->text)))) {
		*end = '\0';
		any |= take_line(n, at);
		at = end + 1;
	}
	n->len -= (size_t)(at - n->text);
	memmove(n->text, at, n->len);
	if (n->len == TEXT_MAX)
		n->len = 0;
	return any;
}

/* Waits for input on fd (-1: none) or for the timeout. Returns false if the node is ending. */
static bool wait_for(struct cop_nvidia *n, int fd, int timeout_ms)
{
	struct pollfd p[] = {{.fd = n->wake, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	while (poll(p, 2, timeout_ms) < 0 && errno == EINTR)
		continue;
	return !p[0].revents;
}

/* Reads until the program exits (true) or the node ends. Sets *any once it prints a line about a
 * GPU. */
static bool read_program(struct cop_nvidia *n, bool *any)
{
	while (wait_for(n, n->out, -1)) {
		ssize_t got = read(n->out, n->text + n->len, TEXT_MAX - n->len);

		if (got == 0 || (got < 0 && errno != EINTR))
			return true;
		n->len += got > 0 ? (size_t)got : 0;
		*any |= take_lines(n);
	}
	return false;
}

static void *run_nvidia(void *arg)
{
	struct cop_nvidia *n = arg;
	uint32_t again_ms = AGAIN_MS;
	bool more = true;

	while (more && start_reading(n)) {
		bool any = false;

		more = read_program(n, &any);
		more = kill_program(n) && more && wait_for(n, -1, (int)again_ms);
		again_ms = any ? AGAIN_MS : COP_MIN(2 * again_ms, AGAIN_MOST_MS);
	}
	return NULL;
}

/* ---- interface ---- */

struct cop_nvidia *cop_nvidia_new(uint64_t every_ms)
{
	struct cop_nvidia *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->every_ms = every_ms;
	pthread_mutex_init(&n->lock, NULL);
	n->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->wake >= 0 && cop_thread_start(&n->thread, "nvidia", run_nvidia, n) == 0)
		return n;
	if (n->wake >= 0)
		close(n->wake);
	pthread_mutex_destroy(&n->lock);
	free(n);
	return NULL;
}

void cop_nvidia_free(struct cop_nvidia *n)
{
	if (!n)
		return;
	eventfd_write(n->wake, 1);
	/* Looking up the program may hang. */
	if (!cop_thread_join_within(n->thread, END_MS))
		return;
	close(n->wake);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void set_row(const struct cop_nvidia_row *r, unsigned first, struct cop_machine_sum *s)
{
	const double *v = r->value;
	bool memory = r->known >> COP_NVIDIA_USED & 1, all = r->known >> COP_NVIDIA_TOTAL & 1;
	bool watts = r->known >> COP_NVIDIA_WATTS & 1, limit = r->known >> COP_NVIDIA_LIMIT & 1;

	if (r->known >> COP_NVIDIA_PERCENT & 1)
		cop_machine_set(s, first + COP_MACHINE_GPU_PERCENT,
			(uint64_t)(v[COP_NVIDIA_PERCENT] * 1e3));
	if (memory) /* MiB */
		cop_machine_set(s, first + COP_MACHINE_GPU_MEMORY_MB,
			(uint64_t)(v[COP_NVIDIA_USED] * 1048.576 + 0.5));
	if (memory && all && v[COP_NVIDIA_TOTAL] > 0)
		cop_machine_set_share(s, first + COP_MACHINE_GPU_MEMORY_PERCENT,
			(uint64_t)v[COP_NVIDIA_USED], (uint64_t)v[COP_NVIDIA_TOTAL]);
	if (watts)
		cop_machine_set(s, first + COP_MACHINE_GPU_WATTS,
			(uint64_t)(v[COP_NVIDIA_WATTS] * 1e3 + 0.5));
	if (watts && limit && v[COP_NVIDIA_LIMIT] > 0)
		cop_machine_set_share(s, first + COP_MACHINE_GPU_WATTS_PERCENT,
			(uint64_t)(v[COP_NVIDIA_WATTS] * 1e3),
			(uint64_t)(v[COP_NVIDIA_LIMIT] * 1e3));
}

void cop_nvidia_look(struct cop_nvidia *n, unsigned gpus, struct cop_machine_sum *s)
{
	uint64_t now_ms = cop_now_ms();

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	/* A row older than three intervals is stale: nvidia-smi hangs or has exited. */
	for (unsigned i = 0; i + gpus < COP_MACHINE_GPUS; i++)
		if (n->read_ms[i] && now_ms - n->read_ms[i] <= 3 * COP_MAX(n->every_ms, 1000))
			set_row(&n->row[i], COP_MACHINE_GPU + (i + gpus) * COP_MACHINE_GPU_METRICS,
				s);
	pthread_mutex_unlock(&n->lock);
}
