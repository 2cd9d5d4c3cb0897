/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/conf/conf_priv.h"

#include <limits.h>

/* Log levels from log.h, which conf does not include. */
enum { LEVEL_WARNING = 3, LEVEL_INFO = 4, LEVEL_OPEN = UINT_MAX };
enum { ENOENT_TTL_MS = 2000, ENOENT_MOST_MS = 60000 };
#define ENOENT_OPEN UINT32_MAX

static int check_tags(const struct cop_opt_list *tags, struct cop_err *err)
{
	for (unsigned i = 0; i < tags->n; i++)
		if (tags->at[i][0] == '=' || !strchr(tags->at[i], '='))
			return cop_err_set(err, EINVAL, "--tag: '%s' is not of the form KEY=VALUE",
				tags->at[i]);
	return 0;
}

static bool is_port(uint64_t n)
{
	return n >= 1 && n <= UINT16_MAX;
}

/* Parses PORT or LOW-HIGH. */
static int parse_fabric_port(struct cop_conf *conf, struct cop_err *err)
{
	char text[16], *dash;
	uint64_t low = 0, high = 0;
	bool fits;

	conf->fabric_port_low = conf->fabric_port_high = 0;
	if (!conf->fabric_port)
		return 0;
	fits = (size_t)snprintf(text, sizeof(text), "%s", conf->fabric_port) < sizeof(text);
	dash = strchr(text, '-');
	if (dash)
		*dash++ = '\0';
	if (!fits || cop_parse_u64(text, &low) || cop_parse_u64(dash ? dash : text, &high) ||
		!is_port(low) || !is_port(high) || low > high)
		return cop_err_set(err, EINVAL,
			"--fabric-port: '%s' is neither a port (1 to 65535) nor a range of ports such as 21000-21015",
			conf->fabric_port);
	if (conf->address_book && conf->address_source != COP_CONF_ADDRESS_DISCOVER)
		return cop_err_set(err, EINVAL,
			"--fabric-port and --address-book contradict each other: the book has the address and port of each node");
	conf->fabric_port_low = (uint16_t)low;
	conf->fabric_port_high = (uint16_t)high;
	return 0;
}

static bool is_hidden(const struct cop_conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->hidden.n; i++)
		if (strcmp(conf->hidden.at[i], name) == 0)
			return true;
	return false;
}

bool cop_conf_trusts_listings(const struct cop_conf *conf)
{
	return is_hidden(conf, "none");
}

/* A TTL that the user gave does not grow. */
static void set_absence(struct cop_conf *conf)
{
	if (conf->enoent_most_ms != ENOENT_OPEN)
		return;
	conf->enoent_most_ms = ENOENT_MOST_MS;
	if (conf->enoent_ttl_ms == ENOENT_OPEN)
		conf->enoent_ttl_ms = ENOENT_TTL_MS;
	else
		conf->enoent_most_ms = conf->enoent_ttl_ms;
}

int cop_conf_check(struct cop_conf *conf, struct cop_err *err)
{
	if (!conf->serve_only && !conf->mountpoint && !conf->check && !strcmp(conf->source, "/"))
		return cop_err_set(err, EINVAL,
			"without a MOUNTPOINT, give a --source other than /: the directory whose programs and files the job uses");
	if (conf->allow_other && !conf->mountpoint)
		return cop_err_set(err, EINVAL,
			"--allow-other needs a MOUNTPOINT: a directory that Copper creates is for this user only");
	if (conf->json && !conf->check)
		return cop_err_set(err, EINVAL,
			"--json needs --check; for a running node use copper cache-stats --json");
	if (conf->chunk & (conf->chunk - 1))
		return cop_err_set(err, EINVAL, "--chunk: %llu bytes is not a power of two",
			(unsigned long long)conf->chunk);
	if (cop_conf_check_cache(conf, err))
		return -EINVAL;
	if (conf->insecure && conf->secret_file)
		return cop_err_set(err, EINVAL,
			"--insecure and --secret-file contradict each other: give one");
	if (conf->address_source == COP_CONF_ADDRESS_FACILITY && !conf->address_book)
		return cop_err_set(err, EINVAL,
			"--address-source facility needs an address book: give --address-book FILE");
	if (conf->address_source == COP_CONF_ADDRESS_DISCOVER && conf->address_book)
		return cop_err_set(err, EINVAL,
			"--address-source discover asks the nodes: leave --address-book out");
	conf->profile |=
		conf->profile_top_n || conf->profile_paths_full || conf->profile_interval_s;
	if (conf->profile && !conf->job_dir)
		return cop_err_set(err, EINVAL,
			"--profile writes its reports to the job directory: give --job-dir DIR");
	if (conf->trace && !conf->job_dir)
		return cop_err_set(
			err, EINVAL, "--trace writes to the job directory: give --job-dir DIR");
	if (conf->otel && !conf->job_dir)
		return cop_err_set(
			err, EINVAL, "--otel writes to the job directory: give --job-dir DIR");
	if (cop_conf_trusts_listings(conf) && is_hidden(conf, "*"))
		return cop_err_set(err, EINVAL,
			"--hidden none and --hidden '*' contradict each other: leave one of them out");
	if (parse_fabric_port(conf, err) || check_tags(&conf->tags, err))
		return -EINVAL;
	conf->discover = !conf->address_book;
	set_absence(conf);
	if (conf->log_level == LEVEL_OPEN)
		conf->log_level = conf->job_dir ? LEVEL_INFO : LEVEL_WARNING;
	return 0;
}

void cop_conf_init(struct cop_conf *conf, bool serve_only)
{
	cop_opt_defaults(serve_only ? &cop_conf_serve_table : &cop_conf_mount_table, conf);
}

const char *cop_conf_prefetch(const struct cop_conf *conf)
{
	const char *given = conf->prefetch ? conf->prefetch : getenv("COPPER_PREFETCH");

	if (!given)
		return "";
	return strcmp(given, "off") == 0 ? NULL : given;
}

/* Settings that the check derives do not count as changes. */
void cop_conf_each_changed(const struct cop_conf *conf,
	void (*visit)(void *arg, const char *name, const char *value), void *arg)
{
	struct cop_conf as_is;
	struct cop_err ignored;

	cop_conf_init(&as_is, conf->serve_only);
	as_is.mountpoint = conf->mountpoint;
	as_is.source = conf->source;
	as_is.job_dir = conf->job_dir;
	(void)cop_conf_check(&as_is, &ignored);
	/* A TTL that the user gave does not grow, so it counts as a change even if it equals the
	 * default. */
	if (conf->enoent_most_ms == conf->enoent_ttl_ms)
		as_is.enoent_ttl_ms = ENOENT_OPEN;
	as_is.source = "/";
	as_is.job_dir = NULL;
	cop_opt_each_changed(conf->serve_only ? &cop_conf_serve_table : &cop_conf_mount_table, conf,
		&as_is, visit, arg);
}

static void init(struct cop_conf *conf)
{
	*conf = (struct cop_conf){.rank = -1,
		.log_level = LEVEL_OPEN,
		.enoent_ttl_ms = ENOENT_OPEN,
		.enoent_most_ms = ENOENT_OPEN};
}

static void init_mount(void *into)
{
	init(into);
}

static void init_serve(void *into)
{
	struct cop_conf *conf = into;

	init(conf);
	conf->serve_only = true;
}

static int check(void *into, struct cop_err *err)
{
	return cop_conf_check(into, err);
}

/* In the order of enum cop_log_type. */
static const struct cop_opt_word log_types[] = {
	{"file", 0}, {"stdout", 1}, {"file_and_stdout", 2}, {"both", 2}, {NULL, 0}};

static const struct cop_opt_word address_sources[] = {{"facility", COP_CONF_ADDRESS_FACILITY},
	{"discover", COP_CONF_ADDRESS_DISCOVER}, {NULL, 0}};

static const struct cop_opt_word kernel_ahead[] = {{"auto", COP_CONF_KERNEL_AHEAD_AUTO},
	{"on", COP_CONF_KERNEL_AHEAD_ON}, {"off", COP_CONF_KERNEL_AHEAD_OFF}, {NULL, 0}};

static const struct cop_opt_word compressions[] = {{"auto", COP_CONF_COMPRESS_AUTO},
	{"on", COP_CONF_COMPRESS_ON}, {"off", COP_CONF_COMPRESS_OFF}, {NULL, 0}};

static const struct cop_opt_word bundles[] = {
	{"auto", COP_CONF_BUNDLE_AUTO}, {"off", COP_CONF_BUNDLE_OFF}, {NULL, 0}};

static const struct cop_opt_word cpu_words[] = {{"near", 0}, {NULL, 0}};
static const struct cop_opt_word rank_files[] = {{"all", COP_CONF_RANK_FILES_ALL},
	{"root", COP_CONF_RANK_FILES_ROOT}, {"none", COP_CONF_RANK_FILES_NONE}, {NULL, 0}};

#define SECONDS(n) ((uint64_t)(n)*1000)

/* Rows in both tables; rows for mount alone follow at the end. */
#define COMMON_ROWS                                                                                \
	COP_OPT(STRING, "hosts", struct cop_conf, hosts, "in rank order: n[1-4],login:7721",       \
		.arg = "FILE|LIST", .shown = "scheduler's"),                                       \
		COP_OPT(I64, "rank", struct cop_conf, rank,                                        \
			"this node's index in that list, from 0", .arg = "I",                      \
			.max = UINT32_MAX - 1, .shown = "found"),                                  \
		COP_OPT(U16, "port", struct cop_conf, port,                                        \
			"TCP port to exchange fabric addresses", .arg = "N", .min = 1,             \
			.max = 65535, .shown = "7720; from the job's id in a batch job",           \
			.rare = true),                                                             \
		COP_OPT(STRING, "fabric-port", struct cop_conf, fabric_port,                       \
			"TCP port on which the fabric listens", .arg = "PORT|LOW-HIGH",            \
			.shown = "the kernel's choice", .rare = true),                             \
		COP_OPT(STRING, "source", struct cop_conf, source, "the tree on the storage",      \
			.arg = "DIR", .initial = "/"),                                             \
		COP_OPT(STRING, "job-dir", struct cop_conf, job_dir,                               \
			"write logs and the job's secret here", .letter = 'd', .arg = "DIR"),      \
		COP_OPT(U32, "log-level", struct cop_conf, log_level,                              \
			"none fatal error warning info debug", .letter = 'l', .arg = "0-5",        \
			.max = 5, .shown = "3; 4 with -d"),                                        \
		COP_OPT(ENUM, "log-type", struct cop_conf, log_type, "file, stdout or both",       \
			.letter = 't', .arg = "TYPE", .words = log_types, .initial = "file",       \
			.rare = true),                                                             \
		COP_OPT(U32, "trees", struct cop_conf, trees,                                      \
			"nodes that share large files; 0: all", .letter = 'T', .arg = "N",         \
			.initial = "0"),                                                           \
		COP_OPT(U32, "fanout", struct cop_conf, fanout, "children per node",               \
			.letter = 'k', .arg = "N", .min = 1, .max = 64, .initial = "4",            \
			.rare = true),                                                             \
		COP_OPT(MS, "enoent-ttl-ms", struct cop_conf, enoent_ttl_ms,                       \
			"recheck an absent name after", .letter = 'E', .arg = "MS",                \
			.max = ENOENT_OPEN - 1, .shown = "2000, growing to 60000", .rare = true),  \
		COP_OPT(STRING, "net-type", struct cop_conf, net_type,                             \
			"tcp, tcp://lo, cxi://cxi1, verbs, shm", .letter = 'n', .arg = "NET",      \
			.initial = "tcp"),                                                         \
		COP_OPT(STRING, "address-book", struct cop_conf, address_book,                     \
			"the site's file of 'hostname address' lines", .letter = 'F',              \
			.arg = "FILE"),                                                            \
		COP_OPT(ENUM, "address-source", struct cop_conf, address_source,                   \
			"facility or discover", .letter = 'a', .arg = "WORD",                      \
			.words = address_sources, .shown = "discover without -F", .rare = true),   \
		COP_OPT(ENUM, "compress", struct cop_conf, compress,                               \
			"compress chunks (LZ4): auto, on or off", .arg = "WORD",                   \
			.words = compressions, .initial = "auto", .rare = true),                   \
		COP_OPT(STRING, "runtime-dir", struct cop_conf, runtime_dir,                       \
			"directory for the control socket", .arg = "DIR",                          \
			.shown = "$XDG_RUNTIME_DIR/copper or /tmp/copper-UID", .rare = true),      \
		COP_OPT(CPUS, "cpus", struct cop_conf, cpus,                                       \
			"bind threads to these processors: 0-3,8; near: the network card's",       \
			.letter = 'b', .arg = "LIST", .words = cpu_words, .shown = "any",          \
			.rare = true),                                                             \
		{.letter = 's',                                                                    \
			.kind = COP_OPT_IGNORED,                                                   \
			.hidden = true,                                                            \
			.help = "only old scripts give it"},                                       \
		COP_OPT(SIZE, "cache-size", struct cop_conf, cache_size, "limit on cached bytes",  \
			.arg = "SIZE", .min = COP_CONF_CACHE_MIN, .max = UINT64_C(1) << 50,        \
			.shown = "a tenth of memory"),                                             \
		COP_OPT(STRING, "spill", struct cop_conf, spill,                                   \
			"local directory for what the cache cannot hold", .arg = "DIR[,SIZE]",     \
			.shown = "none", .rare = true),                                            \
		COP_OPT(SIZE, "max-cacheable-bytes", struct cop_conf, max_cacheable,               \
			"larger files bypass the tree", .letter = 'M', .arg = "SIZE", .min = 1,    \
			.max = UINT64_C(1) << 62, .shown = "none", .rare = true),                  \
		COP_OPT(SIZE, "chunk", struct cop_conf, chunk,                                     \
			"size of file pieces, a power of two", .arg = "SIZE",                      \
			.min = COP_CONF_CHUNK_MIN, .max = COP_CONF_CHUNK_MAX, .initial = "1M",     \
			.rare = true),                                                             \
		COP_OPT(STRING, "secret-file", struct cop_conf, secret_file,                       \
			"the secret that all nodes share; mode 0600", .arg = "FILE"),              \
		COP_OPT(FLAG, "insecure", struct cop_conf, insecure,                               \
			"start several nodes without a secret"),                                   \
		COP_OPT(FLAG, "foreground", struct cop_conf, foreground,                           \
			"do not go to the background", .letter = 'f'),                             \
		COP_OPT(DURATION, "ready-timeout", struct cop_conf, ready_timeout_ms,              \
			"give up if a host is missing", .arg = "TIME", .min = 100,                 \
			.max = SECONDS(86400), .initial = "120s", .rare = true),                   \
		COP_OPT(DURATION, "peer-timeout", struct cop_conf, peer_timeout_ms,                \
			"a node silent for this long is dead", .arg = "TIME", .min = 100,          \
			.max = SECONDS(3600), .initial = "3s", .rare = true),                      \
		COP_OPT(U32, "origin-ops", struct cop_conf, origin_ops,                            \
			"a root's storage operations in flight", .arg = "N", .min = 1,             \
			.max = 4096, .initial = "64", .rare = true),                               \
		COP_OPT(U32, "listing-max", struct cop_conf, listing_max,                          \
			"look up names one by one in larger directories", .arg = "N", .min = 1,    \
			.max = 262144, .initial = "65536", .rare = true),                          \
		COP_OPT(STRING, "prefetch", struct cop_conf, prefetch,                             \
			"prefetch what a manifest names", .arg = "FILE|auto|off", .shown = "auto", \
			.rare = true),                                                             \
		COP_OPT(SIZE, "pack-limit", struct cop_conf, pack_limit,                           \
			"limit on data kept for the next job; 0: keep none", .arg = "SIZE",        \
			.max = UINT64_C(1) << 50, .initial = "1G", .rare = true),                  \
		COP_OPT(ENUM, "bundle", struct cop_conf, bundle,                                   \
			"fetch small files along with their siblings: auto or off", .arg = "WORD", \
			.words = bundles, .initial = "auto", .rare = true),                        \
		COP_OPT(FLAG, "keep-symlinks", struct cop_conf, keep_symlinks,                     \
			"do not rewrite absolute symbolic links", .rare = true),                   \
		COP_OPT(FLAG, "trace", struct cop_conf, trace,                                     \
			"each node writes what it does to the job directory", .rare = true),       \
		COP_OPT(SIZE, "trace-limit", struct cop_conf, trace_limit,                         \
			"limit on the bytes of a node's trace", .arg = "SIZE",                     \
			.min = COP_CONF_TRACE_MIN, .max = UINT64_C(1) << 50, .initial = "512M",    \
			.rare = true),                                                             \
		COP_OPT(STRING, "store", struct cop_conf, store,                                   \
			"record this run in FILE, for copper runs", .arg = "FILE",                 \
			.shown = "$COPPER_STORE", .rare = true),                                   \
		COP_OPT(LIST, "tag", struct cop_conf, tags,                                        \
			"a tag of this run; name= and group= name it", .arg = "KEY=VALUE",         \
			.rare = true),                                                             \
		COP_OPT(DURATION, "store-interval", struct cop_conf, store_interval_ms,            \
			"interval of the run's telemetry", .arg = "TIME", .min = 100,              \
			.max = SECONDS(3600), .initial = "5s", .rare = true),                      \
		COP_OPT(DURATION, "telemetry", struct cop_conf, telemetry_ms,                      \
			"sampling interval of the machines of a run; 0: off", .arg = "TIME",       \
			.max = SECONDS(3600), .initial = "5s", .rare = true),                      \
		COP_OPT(FLAG, "otel", struct cop_conf, otel,                                       \
			"rank 0 writes OpenTelemetry traces, metrics and logs", .rare = true),     \
		COP_OPT(LIST, "hidden", struct cop_conf, hidden,                                   \
			"a name that exists unlisted; *: any name; none: only listed ones",        \
			.arg = "NAME", .rare = true),                                              \
		COP_OPT(FLAG, "check", struct cop_conf, check,                                     \
			"check this machine and exit, without starting"),                          \
		COP_OPT(FLAG, "json", struct cop_conf, json,                                       \
			"print the result of --check as JSON", .rare = true)

static const struct cop_opt mount_rows[] = {
	COMMON_ROWS,
	COP_OPT(STRING, "view", struct cop_conf, mountpoint, "another way to give the mount point",
		.letter = 'v', .arg = "MOUNTPOINT", .hidden = true),
	COP_OPT(ENUM, "kernel-ahead", struct cop_conf, kernel_ahead,
		"push prefetched objects into the kernel: auto, on or off", .arg = "WORD",
		.words = kernel_ahead, .initial = "auto", .rare = true),
	COP_OPT(FLAG, "profile", struct cop_conf, profile, "report operations in the job directory",
		.letter = 'P', .rare = true),
	COP_OPT(U32, "profile-top-n", struct cop_conf, profile_top_n,
		"also report the N most used paths of each kind", .letter = 'N', .arg = "N",
		.min = 1, .max = 65536, .rare = true),
	COP_OPT(FLAG, "profile-paths-full", struct cop_conf, profile_paths_full,
		"also report every path", .letter = 'A', .rare = true),
	COP_OPT(U32, "profile-snapshot-interval", struct cop_conf, profile_interval_s,
		"also write reports at this interval", .letter = 'I', .arg = "SECONDS", .min = 1,
		.max = 86400, .rare = true),
	COP_OPT(ENUM, "rank-files", struct cop_conf, rank_files,
		"which ranks write reports: all, root or none", .arg = "WORD", .words = rank_files,
		.initial = "all", .rare = true),
	COP_OPT(FLAG, "observe", struct cop_conf, observe,
		"disable kernel caching, so that every request is counted; slow", .rare = true),
	COP_OPT(FLAG, "allow-other", struct cop_conf, allow_other, "other users may use the mount",
		.rare = true),
};

static const struct cop_opt serve_rows[] = {COMMON_ROWS};

/* The long options of Copper 1.0's cu_fuse that are spelled with one dash; a table without the
 * option refuses the name. */
#define OLD_ROWS                                                                                   \
	{"tpath", "source", false}, {"log_output_dir", "job-dir", false},                          \
		{"log_level", "log-level", false}, {"log_type", "log-type", false},                \
		{"trees", "trees", false}, {"net_type", "net-type", false},                        \
		{"md_enoent_ttl_ms", "enoent-ttl-ms", false},                                      \
		{"facility_address_book", "address-book", false},                                  \
		{"max_cacheable_byte_size", "max-cacheable-bytes", true},                          \
		{"profile_metrics", "profile", false}, {"profile_top_n", "profile-top-n", true},   \
		{"profile_paths_full", "profile-paths-full", false},                               \
		{"profile_snapshot_interval_s", "profile-snapshot-interval", true},                \
	{                                                                                          \
		NULL, NULL, false                                                                  \
	}
const struct cop_opt_old cop_conf_old[] = {OLD_ROWS};
static const struct cop_opt_old mount_old[] = {{"vpath", "view", false}, OLD_ROWS};

static const struct cop_opt_operand mount_operands[] = {
	{.name = "MOUNTPOINT", .offset = offsetof(struct cop_conf, mountpoint)}};

const struct cop_opt_table cop_conf_mount_table = {
	.command = "copper mount",
	.summary = "join the job's tree, mount, return when ready",
	COP_OPT_ROWS(mount_rows),
	COP_OPT_OPERANDS(mount_operands),
	.old = mount_old,
	.init = init_mount,
	.check = check,
};

const struct cop_opt_table cop_conf_serve_table = {
	.command = "copper serve",
	.summary = "join the job's tree without a mount",
	COP_OPT_ROWS(serve_rows),
	.old = cop_conf_old,
	.init = init_serve,
	.check = check,
};
