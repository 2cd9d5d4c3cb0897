/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <time.h>

/* Long waits are split into steps, so that a queue of several seconds does not delay an unmount. */
#define WAIT_STEP_NS (200 * COP_NS_PER_MS)
#define HANG_STEP_NS (5 * COP_NS_PER_MS)

static void sleep_until(uint64_t when_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(when_ns / COP_NS_PER_S),
		.tv_nsec = (long)(when_ns % COP_NS_PER_S),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void wait_until(struct cop_slowfs *fs, uint64_t when_ns)
{
	uint64_t now;

	while ((now = cop_now_ns()) < when_ns && !fuse_session_exited(fs->session))
		sleep_until(COP_MIN(when_ns, now + WAIT_STEP_NS));
}

void cop_slowfs_count(struct cop_slowfs *fs, enum cop_slowfs_counter counter, uint64_t amount)
{
	cop_slowfs_state_count(fs->share, counter, amount);
	if (fs->counters)
		cop_slowfs_state_count(fs->counters, counter, amount);
}

/* The path of ino/name from the root of the mount, without slashes at either end. The kernel has
 * the current path of an O_PATH descriptor, so no names are stored here. */
static int inode_path(
	struct cop_slowfs *fs, fuse_ino_t ino, const char *name, char out[2 * COP_SLOWFS_PATH_MAX])
{
	char proc[64], path[COP_SLOWFS_PATH_MAX];
	size_t skip = strlen(fs->source);
	ssize_t len;

	cop_slowfs_inode_proc_path(fs, ino, proc);
	len = readlink(proc, path, sizeof(path) - 1);
	if (len < 0)
		return -errno;
	path[len] = '\0';
	if ((size_t)len < skip || strncmp(path, fs->source, skip))
		return -ENOENT;
	while (path[skip] == '/')
		skip++;
	if (name && path[skip])
		snprintf(out, 2 * COP_SLOWFS_PATH_MAX, "%s/%s", path + skip, name);
	else
		snprintf(out, 2 * COP_SLOWFS_PATH_MAX, "%s", name ? name : path + skip);
	return 0;
}

/* Returns false if no fault can apply. */
static bool faulty_path(
	struct cop_slowfs *fs, fuse_ino_t ino, const char *name, char path[2 * COP_SLOWFS_PATH_MAX])
{
	if (!cop_slowfs_fault_any(fs->share) &&
		!(fs->counters && cop_slowfs_fault_any(fs->counters)))
		return false;
	return inode_path(fs, ino, name, path) == 0;
}

void cop_slowfs_lie(struct cop_slowfs *fs, fuse_ino_t ino, const char *name, struct stat *st)
{
	char path[2 * COP_SLOWFS_PATH_MAX];
	int64_t bytes;

	if (!S_ISREG(st->st_mode) || !faulty_path(fs, ino, name, path))
		return;
	bytes = cop_slowfs_fault_size(fs->share, path);
	if (!bytes && fs->counters)
		bytes = cop_slowfs_fault_size(fs->counters, path);
	st->st_size = COP_MAX((int64_t)st->st_size + bytes, 0);
}

static enum cop_slowfs_fault fault_of(struct cop_slowfs *fs, fuse_ino_t ino, const char *name)
{
	char path[2 * COP_SLOWFS_PATH_MAX];
	enum cop_slowfs_fault fault = SLOWFS_NO_FAULT;

	if (!faulty_path(fs, ino, name, path))
		return SLOWFS_NO_FAULT;
	fault = cop_slowfs_fault_of(fs->share, path);
	if (fault == SLOWFS_NO_FAULT && fs->counters)
		fault = cop_slowfs_fault_of(fs->counters, path);
	return fault;
}

/* A reader killed while it hangs must be released; otherwise it would stay in the kernel
 * forever. */
static int apply_fault(struct cop_slowfs *fs, fuse_req_t req, fuse_ino_t ino, const char *name)
{
	enum cop_slowfs_fault fault;

	while ((fault = fault_of(fs, ino, name)) == SLOWFS_HANG) {
		if (fuse_req_interrupted(req))
			return EINTR;
		if (fuse_session_exited(fs->session))
			return EIO;
		sleep_until(cop_now_ns() + HANG_STEP_NS);
	}
	return fault == SLOWFS_EIO ? EIO : fault == SLOWFS_ENOENT ? ENOENT : 0;
}

int cop_slowfs_begin(struct cop_slowfs *fs, fuse_req_t req, enum cop_slowfs_counter op,
	fuse_ino_t ino, const char *name)
{
	int rc;

	cop_slowfs_count(fs, op, 1);
	cop_slowfs_state_enter(fs->share, fs->mount_index);
	if (fs->counters)
		cop_slowfs_state_enter(fs->counters, fs->counters_index);
	rc = apply_fault(fs, req, ino, name);
	if (rc || op == SLOWFS_READ)
		return rc;
	wait_until(fs, cop_slowfs_state_reserve(fs->share, &fs->costs, fs->costs.meta_ns, 0));
	return 0;
}

void cop_slowfs_charge_read(struct cop_slowfs *fs, uint64_t bytes)
{
	cop_slowfs_count(fs, SLOWFS_BYTES, bytes);
	wait_until(fs, cop_slowfs_state_reserve(fs->share, &fs->costs, fs->costs.read_ns, bytes));
}

static void round_down(const struct cop_slowfs *fs, struct timespec *t)
{
	t->tv_sec -= ((t->tv_sec % fs->tick_s) + fs->tick_s) % fs->tick_s;
	t->tv_nsec = 0;
}

void cop_slowfs_round(const struct cop_slowfs *fs, struct stat *st)
{
	if (!fs->tick_s)
		return;
	round_down(fs, &st->st_atim);
	round_down(fs, &st->st_mtim);
	round_down(fs, &st->st_ctim);
}

void cop_slowfs_done(struct cop_slowfs *fs)
{
	cop_slowfs_state_exit(fs->share, fs->mount_index);
	if (fs->counters)
		cop_slowfs_state_exit(fs->counters, fs->counters_index);
}

void cop_slowfs_reply_err(struct cop_slowfs *fs, fuse_req_t req, int code)
{
	if (code == ENOENT)
		cop_slowfs_count(fs, SLOWFS_NEGATIVE, 1);
	else if (code)
		cop_slowfs_count(fs, SLOWFS_ERRORS, 1);
	fuse_reply_err(req, code);
}
