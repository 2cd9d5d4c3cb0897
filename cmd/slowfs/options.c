/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <getopt.h>

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

const char cop_slowfs_usage[] =
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

static int number_option(int which, struct cop_slowfs_options *o, struct cop_err *err)
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

static int set_option(int which, struct cop_slowfs_options *o, struct cop_err *err)
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
		o->mode = SLOWFS_PRINT + (enum cop_slowfs_mode)(which - OPT_PRINT);
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

int cop_slowfs_options_parse(
	int argc, char **argv, struct cop_slowfs_options *o, struct cop_err *err)
{
	int c, rc, want;

	*o = (struct cop_slowfs_options){.threads = DEFAULT_THREADS};
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
