/* SPDX-License-Identifier: BSD-3-Clause */
/* The session: worker threads, mount and unmount.
 *
 * The workers run our own loop around fuse_session_receive_buf instead of libfuse's
 * fuse_session_loop_mt. Only the kernel can end the latter, and it never does for a mount that was
 * lazily detached with open files. To stop a worker, a signal without SA_RESTART interrupts its
 * read(2). */
#include "base/base/compat.h"
#include "mount/dirops/dirops.h"
#include "mount/fuse/fuse_priv.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#define WAKE_SIGNAL SIGUSR2

static void signal_gone(struct cop_fuse *fs)
{
	uint64_t one = 1;

	if (!atomic_exchange(&fs->gone, true) && write(fs->gone_fd, &one, sizeof(one)) < 0)
		cop_log_error("cannot signal the end of the mount error=\"%s\"", strerror(errno));
}

static void *worker_main(void *arg)
{
	struct cop_fuse *fs = arg;
	struct fuse_buf buf = {0};
	sigset_t wake;

	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	while (!atomic_load(&fs->stopping)) {
		int n = fuse_session_receive_buf(fs->session, &buf);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		if (!cop_fuse_refuse_tmpfile(fs, &buf))
			fuse_session_process_buf(fs->session, &buf);
	}
	free(buf.mem);
	signal_gone(fs);
	return NULL;
}

static void on_wake(int sig)
{
	(void)sig;
}

static unsigned worker_count(const struct cop_fuse_conf *conf)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (conf->workers)
		return COP_MIN(conf->workers, WORKERS_MAX);
	return cpus < 4 ? 2 : cpus < 32 ? 4 : 8;
}

static int start_workers(struct cop_fuse *fs)
{
	struct sigaction sa = {.sa_handler = on_wake};
	unsigned want = worker_count(&fs->conf);
	char name[16];
	int rc = 0;

	sigaction(WAKE_SIGNAL, &sa, NULL);
	while (!rc && fs->n_workers < want) {
		snprintf(name, sizeof(name), "fuse-%u", fs->n_workers);
		rc = cop_thread_start(&fs->worker[fs->n_workers], name, worker_main, fs);
		if (!rc)
			fs->n_workers++;
	}
	return rc;
}

/* A signal that arrives just before a worker blocks in read(2) is lost, so signals are repeated
 * until the worker has ended. A timed join would depend on the wall clock. */
static void stop_workers(struct cop_fuse *fs)
{
	const struct timespec pause = {.tv_nsec = COP_NS_PER_MS};

	atomic_store(&fs->stopping, true);
	for (unsigned i = 0; i < fs->n_workers; i++)
		pthread_kill(fs->worker[i], WAKE_SIGNAL);
	for (unsigned i = 0; i < fs->n_workers; i++)
		while (pthread_tryjoin_np(fs->worker[i], NULL)) {
			nanosleep(&pause, NULL);
			pthread_kill(fs->worker[i], WAKE_SIGNAL);
		}
	fs->n_workers = 0;
}

static int new_session(struct cop_fuse *fs)
{
	char *argv[] = {"copper", "-o",
		"ro,nosuid,nodev,default_permissions,fsname=copper,subtype=copper", "-o",
		"allow_other", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(fs->conf.allow_other ? 5 : 3, argv);

	fs->session = fuse_session_new(&args, &cop_fuse_ops, sizeof(cop_fuse_ops), fs);
	fuse_opt_free_args(&args);
	return fs->session ? 0 : -ENOMEM;
}

/* The initial namespace maps every number to itself. */
static bool in_user_namespace(void)
{
	unsigned inside, outside, count;
	bool first = true;
	char *text;
	size_t len;

	if (cop_read_file("/proc/self/uid_map", 4096, &text, &len))
		return false;
	if (sscanf(text, "%u %u %u", &inside, &outside, &count) == 3)
		first = inside == 0 && outside == 0 && count == UINT32_MAX;
	free(text);
	return !first;
}

static int refuse_mount(const struct cop_fuse *fs, int code, struct cop_err *err)
{
	const char *hint = "";

	if (fs->conf.allow_other)
		hint = " (--allow-other needs the line user_allow_other in /etc/fuse.conf)";
	else if (code == EPERM && in_user_namespace())
		hint = ": this process is in a user namespace (a view of copper run, or a container), where fusermount3 has no privilege; start the node outside";
	return cop_err_set(err, code ? code : EIO, "%s: mounting failed: %s%s", fs->conf.mountpoint,
		code ? strerror(code) : "fusermount3 refused", hint);
}

/* libfuse frees its copy of the mount point only in fuse_session_unmount, which is not called
 * because it would unmount the path a second time. */
static int mount_at(struct fuse_session *session, const char *mountpoint)
{
	int rc;

	cop_leak_begin();
	rc = fuse_session_mount(session, mountpoint);
	cop_leak_end();
	return rc;
}

static int mount_session(struct cop_fuse *fs, struct cop_err *err)
{
	errno = 0;
	if (mount_at(fs->session, fs->conf.mountpoint))
		return refuse_mount(fs, errno, err);
	fs->mounted = true;
	if (!(fs->caps_off & FUSE_CAP_PARALLEL_DIROPS) && cop_dirops_enable(fs->session)) {
		cop_log_warn(
			"lookups in one directory wait for each other: this libfuse has no custom io");
		fs->caps_off |= FUSE_CAP_PARALLEL_DIROPS;
	}
	return 0;
}

/* If the source is on proc, files that local.c restricts to the node's user would pass through the
 * tree. */
static int check_source(const struct cop_fuse_conf *conf, struct cop_err *err)
{
	char type[COP_MOUNT_TYPE_SIZE];

	if (!conf->allow_other || cop_mount_type(conf->source, type) || strcmp(type, "proc"))
		return 0;
	return cop_err_set(err, EPERM,
		"--source %s is on a proc file system, where other users would see what only you may see; leave out --allow-other",
		conf->source);
}

int cop_fuse_start(const struct cop_fuse_conf *conf, struct cop_fuse **out, struct cop_err *err)
{
	struct cop_cache_usage usage;
	struct cop_fuse *fs;
	int rc = check_source(conf, err);

	if (rc)
		return rc;
	fs = calloc(1, sizeof(*fs));
	if (!fs)
		return cop_err_set(err, ENOMEM, "out of memory");
	rc = cop_fuse_caps_parse(getenv("COPPER_DISABLE_CAPS"), &fs->caps_off, err);
	if (rc) {
		free(fs);
		return rc;
	}
	fs->conf = *conf;
	cop_cache_usage(conf->cache, &usage);
	fs->cache_bytes = usage.limit_bytes;
	cop_fuse_absent_init(&fs->absent);
	fs->watched = conf->prof || conf->tracer;
	fs->gone_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = fs->gone_fd < 0 ? -errno : cop_fuse_inodes_init(fs);
	if (!rc)
		rc = cop_fuse_places_find(fs);
	if (!rc)
		rc = new_session(fs);
	if (!rc)
		rc = cop_fuse_notify_start(fs);
	if (rc)
		cop_err_set(err, -rc, "cannot set up the mount: %s", strerror(-rc));
	else
		rc = mount_session(fs, err);
	if (!rc && (rc = start_workers(fs)))
		cop_err_set(err, -rc, "cannot start a thread: %s", strerror(-rc));
	if (rc) {
		cop_fuse_stop(fs, 0, NULL);
		cop_fuse_free(fs);
		return rc;
	}
	*out = fs;
	return 0;
}

/* Unmounts normally until the grace time expires, then lazily. 0; -errno: the mount remains. */
static int unmount_session(struct cop_fuse *fs, unsigned grace_ms, struct cop_buf *holders)
{
	uint64_t end = cop_now_ms() + grace_ms;
	int rc;

	while (!atomic_load(&fs->gone)) {
		rc = cop_fuse_umount(fs->conf.mountpoint, false);
		if (rc == 0 || rc == -EINVAL || rc == -ENOENT)
			return 0;
		if (cop_now_ms() >= end)
			break;
		usleep(50000);
	}
	if (atomic_load(&fs->gone))
		return 0;
	if (holders)
		cop_fuse_holders(fs->conf.mountpoint, holders);
	rc = cop_fuse_umount(fs->conf.mountpoint, true);
	if (rc)
		cop_log_error("lazy unmount failed mountpoint=%s error=\"%s\"", fs->conf.mountpoint,
			strerror(-rc));
	return rc;
}

int cop_fuse_stop(struct cop_fuse *fs, unsigned grace_ms, struct cop_buf *holders)
{
	int rc = 0;

	if (!fs)
		return 0;
	/* Counted here because libfuse calls destroy only when the session is freed, long after the
	 * last report. How long an unmount takes depends on the programs that use the mount, so
	 * that time is no request latency. */
	if (fs->mounted) {
		rc = unmount_session(fs, grace_ms, holders);
		cop_prof_op(fs->conf.prof, COP_PROF_OP_DESTROY, COP_PROF_DONE, 0);
	}
	fs->mounted = false;
	stop_workers(fs);
	cop_fuse_notify_stop(fs);
	return rc;
}

void cop_fuse_free(struct cop_fuse *fs)
{
	if (!fs)
		return;
	if (fs->session)
		fuse_session_destroy(fs->session);
	cop_fuse_absent_fini(&fs->absent);
	cop_fuse_inodes_fini(fs);
	cop_fuse_places_free(fs);
	if (fs->gone_fd >= 0)
		close(fs->gone_fd);
	free(fs);
}

int cop_fuse_gone_fd(const struct cop_fuse *fs)
{
	return fs->gone_fd;
}
