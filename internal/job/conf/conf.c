/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/conf/conf_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levels of log.h, which conf does not include. */
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

/* PORT or LOW-HIGH. */
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

/* Settings that the check derives from others do not count as changes. */
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
	/* A TTL that was given does not grow, so it counts as a change even if it equals the
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

#define AT(field) .offset = offsetof(struct cop_conf, field)
#define SECONDS(n) ((uint64_t)(n)*1000)

/* Both tables share these rows; those of mount alone follow at the end. */
#define COMMON_ROWS                                                                                \
	{.name = "hosts",                                                                          \
		AT(hosts),                                                                         \
		.kind = COP_OPT_STRING,                                                            \
		.arg = "FILE|LIST",                                                                \
		.help = "in rank order: n[1-4],login:7721",                                        \
		.shown = "scheduler's"},                                                           \
		{.name = "rank",                                                                   \
			AT(rank),                                                                  \
			.kind = COP_OPT_I64,                                                       \
			.arg = "I",                                                                \
			.max = UINT32_MAX - 1,                                                     \
			.help = "this node's place among them, from 0",                            \
			.shown = "found"},                                                         \
		{.name = "port",                                                                   \
			AT(port),                                                                  \
			.kind = COP_OPT_U16,                                                       \
			.arg = "N",                                                                \
			.min = 1,                                                                  \
			.max = 65535,                                                              \
			.help = "TCP port to exchange fabric addresses",                           \
			.shown = "7720; from the job's id in a batch job",                         \
			.rare = true},                                                             \
		{.name = "fabric-port",                                                            \
			AT(fabric_port),                                                           \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "PORT|LOW-HIGH",                                                    \
			.help = "TCP port on which the fabric listens",                            \
			.shown = "the kernel's choice",                                            \
			.rare = true},                                                             \
		{.name = "source",                                                                 \
			AT(source),                                                                \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "DIR",                                                              \
			.help = "the tree on the storage",                                         \
			.initial = "/"},                                                           \
		{.name = "job-dir",                                                                \
			.letter = 'd',                                                             \
			AT(job_dir),                                                               \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "DIR",                                                              \
			.help = "write logs and the job's secret here"},                           \
		{.name = "log-level",                                                              \
			.letter = 'l',                                                             \
			AT(log_level),                                                             \
			.kind = COP_OPT_U32,                                                       \
			.arg = "0-5",                                                              \
			.max = 5,                                                                  \
			.help = "none fatal error warning info debug",                             \
			.shown = "3; 4 with -d"},                                                  \
		{.name = "log-type",                                                               \
			.letter = 't',                                                             \
			AT(log_type),                                                              \
			.kind = COP_OPT_ENUM,                                                      \
			.arg = "TYPE",                                                             \
			.words = log_types,                                                        \
			.help = "file, stdout or both",                                            \
			.initial = "file",                                                         \
			.rare = true},                                                             \
		{.name = "trees",                                                                  \
			.letter = 'T',                                                             \
			AT(trees),                                                                 \
			.kind = COP_OPT_U32,                                                       \
			.arg = "N",                                                                \
			.help = "nodes that share large files; 0: all",                            \
			.initial = "0"},                                                           \
		{.name = "fanout",                                                                 \
			.letter = 'k',                                                             \
			AT(fanout),                                                                \
			.kind = COP_OPT_U32,                                                       \
			.arg = "N",                                                                \
			.min = 1,                                                                  \
			.max = 64,                                                                 \
			.help = "children of a node",                                              \
			.initial = "4",                                                            \
			.rare = true},                                                             \
		{.name = "enoent-ttl-ms",                                                          \
			.letter = 'E',                                                             \
			AT(enoent_ttl_ms),                                                         \
			.kind = COP_OPT_MS,                                                        \
			.arg = "MS",                                                               \
			.max = ENOENT_OPEN - 1,                                                    \
			.help = "check an absent name again after",                                \
			.shown = "2000, growing to 60000",                                         \
			.rare = true},                                                             \
		{.name = "net-type",                                                               \
			.letter = 'n',                                                             \
			AT(net_type),                                                              \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "NET",                                                              \
			.help = "tcp, tcp://lo, cxi://cxi1, verbs, shm",                           \
			.initial = "tcp"},                                                         \
		{.name = "address-book",                                                           \
			.letter = 'F',                                                             \
			AT(address_book),                                                          \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "FILE",                                                             \
			.help = "the site's 'hostname address' lines"},                            \
		{.name = "address-source",                                                         \
			.letter = 'a',                                                             \
			AT(address_source),                                                        \
			.kind = COP_OPT_ENUM,                                                      \
			.arg = "WORD",                                                             \
			.words = address_sources,                                                  \
			.help = "facility or discover",                                            \
			.shown = "discover without -F",                                            \
			.rare = true},                                                             \
		{.name = "compress",                                                               \
			AT(compress),                                                              \
			.kind = COP_OPT_ENUM,                                                      \
			.arg = "WORD",                                                             \
			.words = compressions,                                                     \
			.help = "compress chunks (LZ4): auto, on or off",                          \
			.initial = "auto",                                                         \
			.rare = true},                                                             \
		{.name = "runtime-dir",                                                            \
			AT(runtime_dir),                                                           \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "DIR",                                                              \
			.help = "directory of the control socket",                                 \
			.shown = "$XDG_RUNTIME_DIR/copper or /tmp/copper-UID",                     \
			.rare = true},                                                             \
		{.name = "cpus",                                                                   \
			.letter = 'b',                                                             \
			AT(cpus),                                                                  \
			.kind = COP_OPT_CPUS,                                                      \
			.arg = "LIST",                                                             \
			.words = cpu_words,                                                        \
			.help = "bind threads to these: 0-3,8; near: the network card's",          \
			.shown = "any",                                                            \
			.rare = true},                                                             \
		{.letter = 's',                                                                    \
			.kind = COP_OPT_IGNORED,                                                   \
			.hidden = true,                                                            \
			.help = "only old scripts give it"},                                       \
		{.name = "cache-size",                                                             \
			AT(cache_size),                                                            \
			.kind = COP_OPT_SIZE,                                                      \
			.arg = "SIZE",                                                             \
			.min = COP_CONF_CACHE_MIN,                                                 \
			.max = UINT64_C(1) << 50,                                                  \
			.help = "limit on cached bytes",                                           \
			.shown = "a tenth of memory"},                                             \
		{.name = "spill",                                                                  \
			AT(spill),                                                                 \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "DIR[,SIZE]",                                                       \
			.help = "a disk of each node takes what its cache cannot hold",            \
			.shown = "none",                                                           \
			.rare = true},                                                             \
		{.name = "max-cacheable-bytes",                                                    \
			.letter = 'M',                                                             \
			AT(max_cacheable),                                                         \
			.kind = COP_OPT_SIZE,                                                      \
			.arg = "SIZE",                                                             \
			.min = 1,                                                                  \
			.max = UINT64_C(1) << 62,                                                  \
			.help = "larger files bypass the tree",                                    \
			.shown = "none",                                                           \
			.rare = true},                                                             \
		{.name = "chunk",                                                                  \
			AT(chunk),                                                                 \
			.kind = COP_OPT_SIZE,                                                      \
			.arg = "SIZE",                                                             \
			.min = COP_CONF_CHUNK_MIN,                                                 \
			.max = COP_CONF_CHUNK_MAX,                                                 \
			.help = "size of file pieces, a power of two",                             \
			.initial = "1M",                                                           \
			.rare = true},                                                             \
		{.name = "secret-file",                                                            \
			AT(secret_file),                                                           \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "FILE",                                                             \
			.help = "the secret that all nodes share; mode 0600"},                     \
		{.name = "insecure",                                                               \
			AT(insecure),                                                              \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "start several nodes without a secret"},                           \
		{.name = "foreground",                                                             \
			.letter = 'f',                                                             \
			AT(foreground),                                                            \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "do not go to the background"},                                    \
		{.name = "ready-timeout",                                                          \
			AT(ready_timeout_ms),                                                      \
			.kind = COP_OPT_DURATION,                                                  \
			.arg = "TIME",                                                             \
			.min = 100,                                                                \
			.max = SECONDS(86400),                                                     \
			.help = "give up if a host is missing",                                    \
			.initial = "120s",                                                         \
			.rare = true},                                                             \
		{.name = "peer-timeout",                                                           \
			AT(peer_timeout_ms),                                                       \
			.kind = COP_OPT_DURATION,                                                  \
			.arg = "TIME",                                                             \
			.min = 100,                                                                \
			.max = SECONDS(3600),                                                      \
			.help = "a node silent for this long is dead",                             \
			.initial = "3s",                                                           \
			.rare = true},                                                             \
		{.name = "origin-ops",                                                             \
			AT(origin_ops),                                                            \
			.kind = COP_OPT_U32,                                                       \
			.arg = "N",                                                                \
			.min = 1,                                                                  \
			.max = 4096,                                                               \
			.help = "a root's storage operations in flight",                           \
			.initial = "64",                                                           \
			.rare = true},                                                             \
		{.name = "listing-max",                                                            \
			AT(listing_max),                                                           \
			.kind = COP_OPT_U32,                                                       \
			.arg = "N",                                                                \
			.min = 1,                                                                  \
			.max = 262144,                                                             \
			.help = "look up names singly in larger directories",                      \
			.initial = "65536",                                                        \
			.rare = true},                                                             \
		{.name = "prefetch",                                                               \
			AT(prefetch),                                                              \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "FILE|auto|off",                                                    \
			.help = "fetch what a manifest names ahead of its use",                    \
			.shown = "auto",                                                           \
			.rare = true},                                                             \
		{.name = "pack-limit",                                                             \
			AT(pack_limit),                                                            \
			.kind = COP_OPT_SIZE,                                                      \
			.arg = "SIZE",                                                             \
			.max = UINT64_C(1) << 50,                                                  \
			.help = "limit on what is kept for the next job; 0: keep nothing",         \
			.initial = "1G",                                                           \
			.rare = true},                                                             \
		{.name = "bundle",                                                                 \
			AT(bundle),                                                                \
			.kind = COP_OPT_ENUM,                                                      \
			.arg = "WORD",                                                             \
			.words = bundles,                                                          \
			.help = "bring small files beside those that are read: auto or off",       \
			.initial = "auto",                                                         \
			.rare = true},                                                             \
		{.name = "keep-symlinks",                                                          \
			AT(keep_symlinks),                                                         \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "leave absolute links as they are",                                \
			.rare = true},                                                             \
		{.name = "trace",                                                                  \
			AT(trace),                                                                 \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "each node writes what it does to the job directory",              \
			.rare = true},                                                             \
		{.name = "trace-limit",                                                            \
			AT(trace_limit),                                                           \
			.kind = COP_OPT_SIZE,                                                      \
			.arg = "SIZE",                                                             \
			.min = COP_CONF_TRACE_MIN,                                                 \
			.max = UINT64_C(1) << 50,                                                  \
			.help = "limit on the bytes of a node's trace",                            \
			.initial = "512M",                                                         \
			.rare = true},                                                             \
		{.name = "store",                                                                  \
			AT(store),                                                                 \
			.kind = COP_OPT_STRING,                                                    \
			.arg = "FILE",                                                             \
			.help = "record this run in FILE, for copper runs",                        \
			.shown = "$COPPER_STORE",                                                  \
			.rare = true},                                                             \
		{.name = "tag",                                                                    \
			AT(tags),                                                                  \
			.kind = COP_OPT_LIST,                                                      \
			.arg = "KEY=VALUE",                                                        \
			.help = "a tag of this run; name= and group= name it",                     \
			.rare = true},                                                             \
		{.name = "store-interval",                                                         \
			AT(store_interval_ms),                                                     \
			.kind = COP_OPT_DURATION,                                                  \
			.arg = "TIME",                                                             \
			.min = 100,                                                                \
			.max = SECONDS(3600),                                                      \
			.help = "how often the run's telemetry is taken",                          \
			.initial = "5s",                                                           \
			.rare = true},                                                             \
		{.name = "telemetry",                                                              \
			AT(telemetry_ms),                                                          \
			.kind = COP_OPT_DURATION,                                                  \
			.arg = "TIME",                                                             \
			.max = SECONDS(3600),                                                      \
			.help = "how often a run's machines are sampled; 0: never",                \
			.initial = "5s",                                                           \
			.rare = true},                                                             \
		{.name = "otel",                                                                   \
			AT(otel),                                                                  \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "rank 0 writes traces, metrics and logs of OpenTelemetry",         \
			.rare = true},                                                             \
		{.name = "hidden",                                                                 \
			AT(hidden),                                                                \
			.kind = COP_OPT_LIST,                                                      \
			.arg = "NAME",                                                             \
			.help = "a name that directories may have and not list; *: any; none: "    \
				"there are no others",                                             \
			.rare = true},                                                             \
		{.name = "check",                                                                  \
			AT(check),                                                                 \
			.kind = COP_OPT_FLAG,                                                      \
			.help = "do not start: check whether it would work"},                      \
	{                                                                                          \
		.name = "json", AT(json), .kind = COP_OPT_FLAG,                                    \
		.help = "the result of --check, for scripts", .rare = true                         \
	}

static const struct cop_opt mount_rows[] = {
	COMMON_ROWS,
	{.name = "view",
		.letter = 'v',
		AT(mountpoint),
		.kind = COP_OPT_STRING,
		.arg = "MOUNTPOINT",
		.help = "another way to give the mount point",
		.hidden = true},
	{.name = "kernel-ahead",
		AT(kernel_ahead),
		.kind = COP_OPT_ENUM,
		.arg = "WORD",
		.words = kernel_ahead,
		.help = "give the kernel what a manifest brought: auto, on or off",
		.initial = "auto",
		.rare = true},
	{.name = "profile",
		.letter = 'P',
		AT(profile),
		.kind = COP_OPT_FLAG,
		.help = "report operations in the job directory",
		.rare = true},
	{.name = "profile-top-n",
		.letter = 'N',
		AT(profile_top_n),
		.kind = COP_OPT_U32,
		.arg = "N",
		.min = 1,
		.max = 65536,
		.help = "also the N most used paths of each kind",
		.rare = true},
	{.name = "profile-paths-full",
		.letter = 'A',
		AT(profile_paths_full),
		.kind = COP_OPT_FLAG,
		.help = "and every path",
		.rare = true},
	{.name = "profile-snapshot-interval",
		.letter = 'I',
		AT(profile_interval_s),
		.kind = COP_OPT_U32,
		.arg = "SECONDS",
		.min = 1,
		.max = 86400,
		.help = "also write reports while it runs",
		.rare = true},
	{.name = "rank-files",
		AT(rank_files),
		.kind = COP_OPT_ENUM,
		.arg = "WORD",
		.words = rank_files,
		.help = "who writes reports: all, root or none",
		.initial = "all",
		.rare = true},
	{.name = "observe",
		AT(observe),
		.kind = COP_OPT_FLAG,
		.help = "no kernel caching: every request is seen and counted; slow",
		.rare = true},
	{.name = "allow-other",
		AT(allow_other),
		.kind = COP_OPT_FLAG,
		.help = "other users may use the mount",
		.rare = true},
};

static const struct cop_opt serve_rows[] = {COMMON_ROWS};

/* The long options of Copper 1.0's cu_fuse that have a letter here; a table without the option
 * does not take the word. */
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

static const struct cop_opt_operand mount_operands[] = {{.name = "MOUNTPOINT", AT(mountpoint)}};

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
