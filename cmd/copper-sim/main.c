/* SPDX-License-Identifier: BSD-3-Clause */
/* copper-sim: the command line, the sweep, the table. */
#include "base/base/json.h"
#include "base/log/log.h"
#include "base/opt/opt.h"
#include "sim.h"

#define SWEEP_MAX 32

struct args {
	const char *trace, *nodes, *trees, *fanout;
	unsigned manifest, bundle;
	uint32_t skew_ms, die, die_within_ms, seed;
	struct cop_opt_list set;
	bool shuffle, json, parameters;
};

enum { WORD_OFF, WORD_ON, WORD_BOTH };
static const struct cop_opt_word both_words[] = {
	{"off", WORD_OFF}, {"on", WORD_ON}, {"both", WORD_BOTH}, {NULL, 0}};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "nodes", struct args, nodes, "numbers of nodes", .arg = "N,...",
		.initial = "1,2,4,8,16,32"),
	COP_OPT(STRING, "trees", struct args, trees, "numbers of trees, each at most that of nodes",
		.letter = 'T', .arg = "N,...", .initial = "1"),
	COP_OPT(STRING, "fanout", struct args, fanout, "children per node", .letter = 'k',
		.arg = "N,...", .initial = "4"),
	COP_OPT(ENUM, "manifest", struct args, manifest, "prefetch what the trace asks for",
		.arg = "WORD", .words = both_words, .initial = "off"),
	COP_OPT(ENUM, "bundle", struct args, bundle, "nodes guess what the program needs next",
		.arg = "WORD", .words = both_words, .initial = "off"),
	COP_OPT(FLAG, "shuffle", struct args, shuffle,
		"each node reads chunks in an order of its own"),
	COP_OPT(DURATION, "skew", struct args, skew_ms, "the program starts within this time",
		.arg = "TIME", .initial = "0"),
	COP_OPT(U32, "die", struct args, die, "of a million nodes, how many die each second",
		.arg = "N", .initial = "0", .max = 1000000),
	COP_OPT(DURATION, "die-within", struct args, die_within_ms,
		"so many die within this time, and none later", .arg = "TIME", .initial = "0"),
	COP_OPT(U32, "seed", struct args, seed, "of the starts and deaths", .arg = "N",
		.initial = "1"),
	COP_OPT(LIST, "set", struct args, set, "a parameter of the model; may be repeated",
		.arg = "NAME=VALUE"),
	COP_OPT(FLAG, "parameters", struct args, parameters,
		"show the parameters and where they come from"),
	COP_OPT(FLAG, "json", struct args, json, "one JSON object a line, with all that is known"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "TRACE", .offset = offsetof(struct args, trace)}};
static const struct cop_opt_table table = {.command = "copper-sim",
	.summary = "simulate the cold start of a recorded program on many nodes",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

/* ---- the sweep ---- */

struct sweep {
	uint32_t at[SWEEP_MAX];
	unsigned n;
};

/* Numbers separated by commas, each from 1 to most. */
static int parse_list(
	const char *name, const char *text, uint32_t most, struct sweep *out, struct cop_err *err)
{
	char copy[512], *rest = copy, *word;
	uint64_t value;

	if (strlen(text) >= sizeof(copy))
		return cop_err_set(err, EINVAL, "--%s: the list is too long", name);
	strcpy(copy, text);
	while ((word = strsep(&rest, ","))) {
		if (cop_parse_u64(word, &value) || value < 1 || value > most || out->n == SWEEP_MAX)
			return cop_err_set(err, EINVAL,
				"--%s %s: up to %d numbers from 1 to %u are needed, separated by commas",
				name, text, SWEEP_MAX, most);
		out->at[out->n++] = (uint32_t)value;
	}
	return 0;
}

static double seconds_of(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void print_head(void)
{
	printf("%7s %3s %3s %8s %6s  %8s %8s %8s  %8s %8s  %9s %8s %8s  %5s  %9s\n", "nodes", "T",
		"k", "manifest", "bundle", "first", "median", "last", "storage", "MB", "messages",
		"link", "node", "MB", "direct");
	printf("%7s %3s %3s %8s %6s  %8s %8s %8s  %8s %8s  %9s %8s %8s  %5s  %9s\n", "", "", "", "",
		"", "s", "s", "s", "ops", "read", "a node", "MB", "MB out", "held", "s");
}

static void print_row(const struct sim_conf *c, const struct sim_result *r)
{
	printf("%7u %3u %3u %8s %6s  %8.3f %8.3f %8.3f  %8" PRIu64
	       " %8.1f  %9.1f %8.1f %8.1f  %5.0f  %9.1f\n",
		c->topo.nodes, c->topo.trees, c->topo.fanout, c->manifest ? "yes" : "no",
		c->bundle ? "yes" : "no", seconds_of(r->first_ns), seconds_of(r->median_ns),
		seconds_of(r->last_ns), r->storage_ops, (double)r->storage_bytes / 1e6,
		(double)r->messages / c->topo.nodes, (double)r->link_bytes / 1e6,
		(double)r->node_bytes / 1e6, (double)r->cache_bytes / 1e6, cop_sim_direct_s(c));
	if (r->died || r->finished < c->topo.nodes)
		printf("%7s %u nodes died, %u were done; %" PRIu64 " ways around a dead one\n", "",
			r->died, r->finished, r->failovers);
}

static void put_conf(struct cop_json *j, const struct sim_conf *c)
{
	cop_json_u64(j, "nodes", c->topo.nodes);
	cop_json_u64(j, "trees", c->topo.trees);
	cop_json_u64(j, "fanout", c->topo.fanout);
	cop_json_bool(j, "manifest", c->manifest);
	cop_json_bool(j, "bundle", c->bundle);
	cop_json_bool(j, "shuffle", c->shuffle);
	cop_json_u64(j, "skew_ms", c->skew_ns / COP_NS_PER_MS);
	cop_json_u64(j, "die", c->die_per_million);
	cop_json_u64(j, "die_within_ms", c->die_within_ns / COP_NS_PER_MS);
	cop_json_u64(j, "seed", c->seed);
}

static void put_result(struct cop_json *j, const struct sim_result *r)
{
	cop_json_double(j, "first_s", seconds_of(r->first_ns), 6);
	cop_json_double(j, "median_s", seconds_of(r->median_ns), 6);
	cop_json_double(j, "last_s", seconds_of(r->last_ns), 6);
	cop_json_double(j, "waiting_s", seconds_of(r->waiting_ns), 6);
	cop_json_u64(j, "finished", r->finished);
	cop_json_u64(j, "died", r->died);
	cop_json_u64(j, "storage_operations", r->storage_ops);
	cop_json_u64(j, "storage_bytes", r->storage_bytes);
	cop_json_u64(j, "storage_clients", r->storage_clients);
	cop_json_u64(j, "requests", r->requests);
	cop_json_u64(j, "messages", r->messages);
	cop_json_u64(j, "bundle_bytes", r->bundle_bytes);
	cop_json_u64(j, "bundle_used_bytes", r->bundle_used_bytes);
	cop_json_u64(j, "failovers", r->failovers);
	cop_json_u64(j, "link_bytes", r->link_bytes);
	cop_json_u64(j, "node_bytes", r->node_bytes);
	cop_json_u64(j, "bytes", r->bytes);
	cop_json_u64(j, "cache_bytes", r->cache_bytes);
}

static void print_json(const struct sim_conf *c, const struct sim_result *r)
{
	struct cop_buf line = {0};
	struct cop_json j = cop_json_to(&line);

	cop_json_object(&j, NULL);
	put_conf(&j, c);
	put_result(&j, r);
	cop_json_double(&j, "direct_s", cop_sim_direct_s(c), 3);
	cop_json_u64(&j, "direct_operations", c->trace->direct_ops * c->topo.nodes);
	cop_json_u64(&j, "events", r->events);
	cop_json_end(&j);
	if (line.failed)
		fprintf(stderr, "copper-sim: out of memory for a row\n");
	else
		puts(line.data);
	cop_buf_free(&line);
}

static uint64_t available_bytes(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib ? kib * 1024 : UINT64_MAX;
}

/* Without this check, the OOM killer might kill any process on this machine. */
static bool has_memory(const struct sim_conf *conf)
{
	uint64_t needs = cop_sim_memory_needed(conf), has = available_bytes();
	char a[16], b[16];

	if (needs <= has)
		return true;
	fprintf(stderr,
		"copper-sim: %u nodes need about %s of memory and %s are free: give fewer --nodes\n",
		conf->topo.nodes, cop_format_size(needs, a), cop_format_size(has, b));
	return false;
}

static int run_one(const struct args *a, const struct sim_conf *conf)
{
	struct sim_result r;

	if (!has_memory(conf))
		return 1;
	cop_sim_simulate(conf, &r);
	if (a->json)
		print_json(conf, &r);
	else
		print_row(conf, &r);
	fprintf(stderr,
		"# %u nodes: %.1f s of this machine, %" PRIu64 " events, %" PRIu64
		" bytes a node of %" PRIu64 " expected\n",
		conf->topo.nodes, r.wall_s, r.events, r.process_bytes,
		cop_sim_memory_needed(conf) / conf->topo.nodes);
	if (fflush(stdout))
		return 1;
	if (r.finished + r.died == conf->topo.nodes)
		return 0;
	fprintf(stderr, "copper-sim: %u of %u living nodes were never done\n",
		conf->topo.nodes - r.died - r.finished, conf->topo.nodes - r.died);
	return 1;
}

static int sweep_settings(const struct args *a, struct sim_conf *conf, struct sim_trace trace[2],
	const struct sweep *nodes, const struct sweep *trees, const struct sweep *fanouts)
{
	int status = 0;

	for (unsigned i = 0; i < nodes->n * trees->n * fanouts->n; i++) {
		conf->topo.nodes = nodes->at[i / fanouts->n / trees->n];
		conf->topo.trees = trees->at[i / fanouts->n % trees->n];
		conf->topo.fanout = fanouts->at[i % fanouts->n];
		conf->topo.trees = COP_MIN(conf->topo.trees, conf->topo.nodes);
		for (unsigned m = 0; m < 4; m++) {
			conf->manifest = m % 2 == WORD_ON;
			conf->bundle = m / 2 == WORD_ON;
			conf->trace = &trace[conf->bundle];
			if ((a->manifest == WORD_BOTH || a->manifest == m % 2) &&
				(a->bundle == WORD_BOTH || a->bundle == m / 2))
				status |= run_one(a, conf);
		}
	}
	return status;
}

static int64_t wall_clock(void)
{
	return (int64_t)cop_sim_now();
}

static int read_trace(const struct args *a, struct sim_trace trace[2], struct cop_err *err)
{
	int rc = cop_sim_trace_read(a->trace, trace, err);

	if (!rc && a->bundle != WORD_OFF && !trace[1].lines) {
		rc = cop_err_set(err, EINVAL,
			"%s: it has no recording with bundles (scripts/sim/record.sh makes one): give --bundle off",
			a->trace);
		cop_sim_trace_free(trace);
	}
	if (rc)
		fprintf(stderr, "copper-sim: %s\n", err->text);
	return rc;
}

static int simulate(const struct args *a, struct sim_conf *conf, struct cop_err *err)
{
	struct sweep nodes = {.n = 0}, trees = {.n = 0}, fanouts = {.n = 0};
	struct sim_trace trace[2];
	int status;

	if (parse_list("nodes", a->nodes, 1000000, &nodes, err) ||
		parse_list("trees", a->trees, 1000000, &trees, err) ||
		parse_list("fanout", a->fanout, COP_TOPO_MAX_FANOUT, &fanouts, err))
		return cop_opt_misuse(&table, err);
	if (!a->trace) {
		cop_err_set(err, EINVAL, "a TRACE is missing (testdata/sim has three)");
		return cop_opt_misuse(&table, err);
	}
	if (read_trace(a, trace, err))
		return 1;
	/* fetch would log each request to a dead node. */
	if (cop_log_open(COP_LOG_NONE, COP_LOG_STDOUT, NULL, err)) {
		fprintf(stderr, "copper-sim: %s\n", err->text);
		cop_sim_trace_free(trace);
		return 1;
	}
	cop_clocks_for_test(cop_sim_now, wall_clock);
	if (!a->json)
		print_head();
	status = sweep_settings(a, conf, trace, &nodes, &trees, &fanouts);
	cop_log_close();
	cop_sim_trace_free(trace);
	return status;
}

int main(int argc, char **argv)
{
	struct args a = {0};
	struct sim_conf conf = {0};
	struct cop_err err;
	int code;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	cop_model_default(&conf.model);
	for (unsigned i = 0; i < a.set.n; i++)
		if (cop_model_set(&conf.model, a.set.at[i], &err))
			return cop_opt_misuse(&table, &err);
	if (a.parameters) {
		cop_model_print(&conf.model);
		return fflush(stdout) ? 1 : 0;
	}
	conf.shuffle = a.shuffle;
	conf.skew_ns = a.skew_ms * COP_NS_PER_MS;
	conf.die_per_million = a.die;
	conf.die_within_ns = a.die_within_ms * COP_NS_PER_MS;
	conf.seed = a.seed;
	return simulate(&a, &conf, &err);
}
