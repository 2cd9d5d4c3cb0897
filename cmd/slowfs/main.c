/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "mount/dirops/dirops.h"

/* Each inode cached by the kernel has a descriptor here. */
static void raise_file_limit(void)
{
	struct rlimit most = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &most) == 0 || getrlimit(RLIMIT_NOFILE, &most) < 0)
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

static int open_source(
	struct cop_slowfs *fs, const struct cop_slowfs_options *o, struct cop_err *err)
{
	int fd, rc;
	size_t len;

	fs->source = realpath(o->source, NULL);
	if (!fs->source)
		return cop_err_set(err, errno, "source %s: %s", o->source, strerror(errno));
	len = strlen(fs->source);
	if (len == 1)
		fs->source[0] = '\0';
	fd = open(o->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cop_err_set(err, errno, "source %s: %s", o->source, strerror(errno));
	rc = cop_slowfs_inode_init(fs, fd);
	if (rc) {
		close(fd);
		return cop_err_set(err, -rc, "source %s: %s", o->source, strerror(-rc));
	}
	return 0;
}

static int make_session(
	struct cop_slowfs *fs, const struct cop_slowfs_options *o, struct cop_err *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int rc =
		fuse_opt_add_arg(&args, "slowfs") |
		fuse_opt_add_arg(&args, "-oro,nosuid,nodev,fsname=slowfs,subtype=slowfs") |
		(o->allow_other ? fuse_opt_add_arg(&args, "-oallow_other,default_permissions") : 0);

	if (!rc)
		fs->session = fuse_session_new(&args, &cop_slowfs_ops, sizeof(cop_slowfs_ops), fs);
	fuse_opt_free_args(&args);
	if (!fs->session)
		return cop_err_set(err, EINVAL, "libfuse refuses the session");
	if (fuse_set_signal_handlers(fs->session))
		return cop_err_set(err, EINVAL, "cannot set signal handlers");
	if (fuse_session_mount(fs->session, o->mountpoint))
		return cop_err_set(err, EINVAL, "cannot mount on %s", o->mountpoint);
	/* Clients of a parallel file system look up many names of a directory at once. */
	rc = cop_dirops_enable(fs->session);
	return rc == -ENOTSUP ? 0 : rc;
}

static int join_state(struct cop_slowfs *fs, struct cop_err *err)
{
	int rc = cop_slowfs_state_join(fs->share, &fs->mount_index);

	if (!rc && fs->counters)
		rc = cop_slowfs_state_join(fs->counters, &fs->counters_index);
	if (rc)
		return cop_err_set(
			err, -rc, "%d mounts share this file already", COP_SLOWFS_MAX_MOUNTS);
	return 0;
}

static void remove_mount(struct cop_slowfs *fs)
{
	cop_slowfs_state_leave(fs->share, fs->mount_index);
	if (fs->counters)
		cop_slowfs_state_leave(fs->counters, fs->counters_index);
}

/* The loop's threads inherit the timer slack: without it a sleep of 100 us takes 150. */
static int serve_requests(
	struct cop_slowfs *fs, const struct cop_slowfs_options *o, struct cop_err *err)
{
	int rc;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	rc = cop_slowfs_loop(fs->session, o->threads);
	if (rc < 0)
		return cop_err_set(err, -rc, "serving ended: %s", strerror(-rc));
	return 0;
}

static int run_mounted(const struct cop_slowfs_options *o, struct cop_err *err)
{
	struct cop_slowfs fs = {.costs = o->costs,
		.cache_s = o->cache_s,
		.tick_s = o->tick_s,
		.direct_io = o->direct_io,
		.keep_pages = o->keep_pages,
		.hidden = o->hidden};
	int rc;

	raise_file_limit();
	rc = cop_slowfs_state_open(o->share ? o->share : o->counters, &fs.share, err);
	if (!rc && o->share && o->counters)
		rc = cop_slowfs_state_open(o->counters, &fs.counters, err);
	if (!rc)
		rc = open_source(&fs, o, err);
	if (!rc)
		rc = make_session(&fs, o, err);
	if (!rc && fuse_daemonize(o->foreground))
		rc = cop_err_set(err, EIO, "cannot go to the background");
	if (!rc)
		rc = join_state(&fs, err);
	if (!rc) {
		rc = serve_requests(&fs, o, err);
		remove_mount(&fs);
	}
	if (fs.session) {
		fuse_session_unmount(fs.session);
		fuse_remove_signal_handlers(fs.session);
		fuse_session_destroy(fs.session);
	}
	cop_slowfs_inode_fini(&fs);
	free(fs.source);
	cop_slowfs_state_close(fs.counters);
	cop_slowfs_state_close(fs.share);
	return rc;
}

/* --print, --reset and --fault; only --fault creates a missing file, before the mount. */
static int run_control(const struct cop_slowfs_options *o, struct cop_err *err)
{
	struct cop_slowfs_state *s = NULL;
	struct cop_buf text = {0};
	int rc;

	if (o->mode != SLOWFS_FAULT && access(o->file, F_OK) < 0)
		return cop_err_set(err, errno, "%s: %s", o->file, strerror(errno));
	rc = cop_slowfs_state_open(o->file, &s, err);
	if (rc)
		return rc;
	if (o->mode == SLOWFS_PRINT) {
		cop_slowfs_state_print(s, &text);
		if (text.failed || cop_write_full(STDOUT_FILENO, text.data, text.len) < 0)
			rc = cop_err_set(err, EIO, "cannot print the counters");
		cop_buf_free(&text);
	} else if (o->mode == SLOWFS_RESET) {
		cop_slowfs_state_reset(s);
	} else {
		rc = cop_slowfs_fault_set(s, o->fault, err);
	}
	cop_slowfs_state_close(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct cop_slowfs_options o;
	struct cop_err err = {0};
	int rc;

	if (cop_slowfs_options_parse(argc, argv, &o, &err)) {
		fprintf(stderr, "slowfs: %s\n", err.text);
		return 2;
	}
	if (o.help) {
		fputs(cop_slowfs_usage, stdout);
		return 0;
	}
	rc = o.mode == SLOWFS_MOUNT ? run_mounted(&o, &err) : run_control(&o, &err);
	if (rc)
		fprintf(stderr, "slowfs: %s\n", err.text);
	return rc ? 1 : 0;
}
