/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <getopt.h>

#include "mount/dirops/dirops.h"

#define DEFAULT_THREADS 256
#define MAX_THREADS 4096
#define MAX_US 3600000000ULL
#define MAX_MB_PER_S 1000000ULL

enum {
	OPT_META = 256,
	OPT_READ,
	OPT_MB,
	OPT_SLOTS,
	OPT_SHARE,
	OPT_COUNTERS,
	OPT_CACHE,
	OPT_DIRECT,
	OPT_KEEP,
	OPT_TICK,
	OPT_ALLOW,
	OPT_HIDE,
	OPT_THREADS,
	OPT_PRINT,
	OPT_RESET,
	OPT_FAULT
};

enum mode { SLOWFS_MOUNT, SLOWFS_PRINT, SLOWFS_RESET, SLOWFS_FAULT };

struct options {
	enum mode mode;
	const char *file, *fault; /* the values of --print, --reset, --fault */
	const char *source, *mountpoint, *share, *counters;
	struct cop_slowfs_costs costs;
	double cache_s;
	int64_t tick_s;
	bool direct_io, keep_pages, allow_other, foreground, help;
	struct cop_slowfs_names hidden;
	uint32_t threads;
};

static const char usage[] =
	"usage: slowfs [options] SOURCE MOUNTPOINT   mount SOURCE read-only with the costs of a busy file system\n"
	"       slowfs --print FILE                  counters, one `name value` a line\n"
	"       slowfs --reset FILE                  set them to zero\n"
	"       slowfs --fault FILE WHAT             eio=PATH, enoent=PATH, hang=PATH (until cleared), size=BYTES:PATH (sizes\n"
	"                                            of files are told wrong by so much) or clear; PATH counts from the\n"
	"                                            mount's root and includes what is below it\n"
	"\n"
	"  --meta-us N     cost of each metadata operation (lookup, getattr, readdir batch, readlink, open)\n"
	"  --read-us N     cost of each read\n"
	"  --mb-per-s N    bandwidth, shared by everyone (10^6 bytes per second)\n"
	"  --slots N       operations served at once; more wait, first come first served (0: no limit)\n"
	"  --share FILE    mounts with the same FILE share slots, bandwidth, counters and faults\n"
	"  --counters FILE counters (and faults) of this mount alone\n"
	"  --cache-s N     seconds that the kernel may keep names and attributes (0)\n"
	"  --tick SECONDS  time stamps are shown rounded down to this (0: as they are)\n"
	"  --keep-pages    what was read of a file stays in the page cache over its closing, as with a client that holds a lock on it\n"
	"  --direct-io     no page cache: every single read is charged and counted\n"
	"  --allow-other   other users may use the mount; modes are checked by the kernel\n"
	"  --hide NAME     directories do not list this name, but have it where the source does (up to 8 of these)\n"
	"  --threads N     most operations held at once (256)\n"
	"  -f              stay in the foreground\n"
	"  -h, --help      this text\n";

static const struct option long_options[] = {
	{"meta-us", required_argument, NULL, OPT_META},
	{"read-us", required_argument, NULL, OPT_READ},
	{"mb-per-s", required_argument, NULL, OPT_MB},
	{"slots", required_argument, NULL, OPT_SLOTS},
	{"share", required_argument, NULL, OPT_SHARE},
	{"counters", required_argument, NULL, OPT_COUNTERS},
	{"cache-s", required_argument, NULL, OPT_CACHE},
	{"tick", required_argument, NULL, OPT_TICK},
	{"keep-pages", no_argument, NULL, OPT_KEEP},
	{"direct-io", no_argument, NULL, OPT_DIRECT},
	{"allow-other", no_argument, NULL, OPT_ALLOW},
	{"hide", required_argument, NULL, OPT_HIDE},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"print", required_argument, NULL, OPT_PRINT},
	{"reset", required_argument, NULL, OPT_RESET},
	{"fault", required_argument, NULL, OPT_FAULT},
	{"foreground", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int parse_number(uint64_t max, uint64_t *out, struct cop_err *err)
{
	if (cop_parse_u64(optarg, out) || *out > max)
		return cop_err_set(err, EINVAL, "'%s' is not a number from 0 to %llu", optarg,
			(unsigned long long)max);
	return 0;
}

static int number_option(int which, struct options *o, struct cop_err *err)
{
	static const struct {
		int which;
		uint64_t max;
	} limits[] = {
		{OPT_META, MAX_US},
		{OPT_READ, MAX_US},
		{OPT_MB, MAX_MB_PER_S},
		{OPT_SLOTS, COP_SLOWFS_MAX_SLOTS},
		{OPT_CACHE, 1000000},
		{OPT_TICK, 3600},
		{OPT_THREADS, MAX_THREADS},
	};
	uint64_t n = 0;
	int rc = -EINVAL;

	for (size_t i = 0; i < COP_ARRAY_SIZE(limits); i++) {
		if (limits[i].which == which)
			rc = parse_number(limits[i].max, &n, err);
	}
	if (which == OPT_META)
		o->costs.meta_ns = n * 1000;
	else if (which == OPT_READ)
		o->costs.read_ns = n * 1000;
	else if (which == OPT_MB)
		o->costs.bytes_per_s = n * 1000000;
	else if (which == OPT_SLOTS)
		o->costs.slots = (uint32_t)n;
	else if (which == OPT_CACHE)
		o->cache_s = (double)n;
	else if (which == OPT_TICK)
		o->tick_s = (int64_t)n;
	else
		o->threads = COP_MAX(2U, (uint32_t)n);
	return rc;
}

static int set_option(int which, struct options *o, struct cop_err *err)
{
	switch (which) {
	case OPT_SHARE:
		o->share = optarg;
		return 0;
	case OPT_COUNTERS:
		o->counters = optarg;
		return 0;
	case OPT_DIRECT:
		o->direct_io = true;
		return 0;
	case OPT_KEEP:
		o->keep_pages = true;
		return 0;
	case OPT_HIDE:
		if (o->hidden.n == COP_ARRAY_SIZE(o->hidden.at))
			return cop_err_set(err, EINVAL, "too many names are hidden");
		o->hidden.at[o->hidden.n++] = optarg;
		return 0;
	case OPT_ALLOW:
		o->allow_other = true;
		return 0;
	case OPT_PRINT:
	case OPT_RESET:
	case OPT_FAULT:
		o->mode = SLOWFS_PRINT + (enum mode)(which - OPT_PRINT);
		o->file = optarg;
		return 0;
	case 'f':
		o->foreground = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case '?':
		return cop_err_set(
			err, EINVAL, "unknown option, or one without its value; see slowfs --help");
	default:
		return number_option(which, o, err);
	}
}

static int parse_options(int argc, char **argv, struct options *o, struct cop_err *err)
{
	int c, rc, want;

	*o = (struct options){.threads = DEFAULT_THREADS};
	opterr = 0;
	while ((c = getopt_long(argc, argv, "fh", long_options, NULL)) != -1) {
		rc = set_option(c, o, err);
		if (rc)
			return rc;
	}
	if (o->help)
		return 0;
	want = o->mode == SLOWFS_MOUNT ? 2 : o->mode == SLOWFS_FAULT ? 1 : 0;
	if (argc - optind != want)
		return cop_err_set(err, EINVAL, "%s; see slowfs --help",
			want == 2 ? "SOURCE and MOUNTPOINT are wanted"
			: want    ? "one fault is wanted after the file"
				  : "too many words");
	if (o->mode == SLOWFS_MOUNT) {
		o->source = argv[optind];
		o->mountpoint = argv[optind + 1];
	} else if (o->mode == SLOWFS_FAULT) {
		o->fault = argv[optind];
	}
	return 0;
}

/* Each inode that the kernel caches has a descriptor here. */
static void raise_file_limit(void)
{
	struct rlimit most = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &most) == 0 || getrlimit(RLIMIT_NOFILE, &most) < 0)
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

static int open_source(struct cop_slowfs *fs, const struct options *o, struct cop_err *err)
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

static int make_session(struct cop_slowfs *fs, const struct options *o, struct cop_err *err)
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

/* The threads of the loop inherit the reduced timer slack; by default, a sleep of 100 us takes
 * 150. */
static int serve_requests(struct cop_slowfs *fs, const struct options *o, struct cop_err *err)
{
	int rc;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	rc = cop_slowfs_loop(fs->session, o->threads);
	if (rc < 0)
		return cop_err_set(err, -rc, "serving ended: %s", strerror(-rc));
	return 0;
}

static int run_mounted(const struct options *o, struct cop_err *err)
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
static int run_control(const struct options *o, struct cop_err *err)
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
	struct options o;
	struct cop_err err = {0};
	int rc;

	if (parse_options(argc, argv, &o, &err)) {
		fprintf(stderr, "slowfs: %s\n", err.text);
		return 2;
	}
	if (o.help) {
		fputs(usage, stdout);
		return 0;
	}
	rc = o.mode == SLOWFS_MOUNT ? run_mounted(&o, &err) : run_control(&o, &err);
	if (rc)
		fprintf(stderr, "slowfs: %s\n", err.text);
	return rc ? 1 : 0;
}
