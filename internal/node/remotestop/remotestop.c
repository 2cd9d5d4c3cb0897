/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the request to the root and, if a node is dead, to the nodes below it instead, as every
 * node does (tree/op). Then it repeats the request directly to the silent nodes; gone.c determines
 * whether those that stay silent are still running. */
#include "node/remotestop/remotestop_priv.h"

#include <time.h>

#include "base/log/log.h"
#include "writers/rank/rank.h"

#define NAMED_MAX 20 /* how many nodes to list by name; others are only counted */

/* ---- requests ---- */

static void init_answer(struct client *g)
{
	pthread_mutex_init(&g->lock, NULL);
	cop_cond_init(&g->wake);
}

static void answer_came(struct client *g)
{
	pthread_mutex_lock(&g->lock);
	g->come = true;
	pthread_cond_signal(&g->wake);
	pthread_mutex_unlock(&g->lock);
}

/* Waits for the answer; until NULL: without a limit. False: timeout. */
static bool await_answers(struct client *g, const struct timespec *until)
{
	bool came;
	int rc = 0;

	pthread_mutex_lock(&g->lock);
	while (!g->come && !rc)
		rc = until ? pthread_cond_timedwait(&g->wake, &g->lock, until)
			   : pthread_cond_wait(&g->wake, &g->lock);
	came = g->come;
	g->come = false;
	pthread_mutex_unlock(&g->lock);
	return came;
}

/* On a timeout it cancels outstanding calls, which then end immediately. */
static void await_all(struct client *g)
{
	struct timespec until = cop_moment(g->deadline_ms * COP_NS_PER_MS);

	if (await_answers(g, &until))
		return;
	cop_rpc_quiet(g->rpc);
	await_answers(g, NULL);
}

static void note_answer(void *arg, struct cop_op_sum *got)
{
	struct client *g = arg;

	cop_op_sum_move(&g->got, got);
	answer_came(g);
}

_Static_assert(COP_OP_SILENT_MAX >= COP_JOB_MAX_HOSTS, "a sum holds every silent rank of a tree");

static void note_silent(struct client *g)
{
	for (uint32_t i = 0; i < cop_op_sum_silents(&g->got); i++) {
		uint32_t rank = cop_op_sum_silent(&g->got, i);

		if (rank < g->topo.nodes)
			g->state[rank] = NODE_SILENT;
	}
}

struct once_more {
	struct client *client;
	uint32_t rank;
};

static void one_done(struct client *g)
{
	if (atomic_fetch_sub(&g->pending, 1) == 1)
		answer_came(g);
}

static void on_answer(void *arg, const struct cop_rpc_result *r)
{
	struct once_more o = *(struct once_more *)arg;

	free(arg);
	if (r->answered && !r->status) {
		struct cop_op_sum part = {0};

		o.client->state[o.rank] = NODE_LATE;
		o.client->late++;
		if (cop_op_sum_decode(r->body, r->body_len, &part) == 0)
			cop_op_sum_add(&o.client->more, &part, '\n');
		cop_op_sum_free(&part);
	}
	one_done(o.client);
}

static void ask_once_more(struct client *g)
{
	atomic_init(&g->pending, 1);
	for (uint32_t r = 0; r < g->topo.nodes; r++) {
		struct once_more *o = g->state[r] != NODE_SILENT || atomic_load(&g->looked[r])
					      ? NULL
					      : malloc(sizeof(*o));
		struct cop_rpc_call call = {
			.rank = r, .op = COP_OP_STOP, .payload = "", .done = on_answer, .arg = o};

		if (!o)
			continue;
		*o = (struct once_more){g, r};
		atomic_fetch_add(&g->pending, 1);
		cop_rpc_call(g->rpc, &call);
	}
	one_done(g);
	await_all(g);
}

/* ---- unreached ranks ---- */

/* Whether to stop the rank, since after an earlier stop only a few may be left. */
static bool is_wanted(const struct client *g, uint32_t rank)
{
	for (uint32_t i = 0; i < g->tree.left_count; i++)
		if (g->tree.left[i] == rank)
			return true;
	return !g->tree.left_count;
}

/* Decides this without a message to any node. */
static bool is_nobody_left(struct client *g)
{
	char why[COP_REMOTESTOP_GONE_WHY];

	for (uint32_t r = 0; r < g->topo.nodes; r++)
		if (is_wanted(g, r) && !cop_remotestop_is_gone(g, r, g->tree.left_count > 0, why))
			return false;
	return true;
}

static void mark_wanted(struct client *g)
{
	for (uint32_t r = 0; r < g->topo.nodes; r++)
		g->state[r] = is_wanted(g, r) ? NODE_SILENT : NODE_FINE;
}

/* Judges each silent node; those that are certainly not running need no further stop. */
static void judge_stop(struct client *g, struct cop_remotestop_stopped *out)
{
	/* This stop or the previous one reached other nodes. */
	bool others = out->stopped > 0 || g->tree.left_count > 0;
	uint32_t silent = 0;

	for (uint32_t r = 0; r < g->topo.nodes; r++) {
		char why[COP_REMOTESTOP_GONE_WHY];
		bool gone;

		if (g->state[r] != NODE_SILENT)
			continue;
		gone = cop_remotestop_is_gone(g, r, others, why);
		out->unknown += !gone;
		g->state[r] = gone ? NODE_GONE : NODE_SILENT;
		if (silent++ < NAMED_MAX)
			cop_buf_printf(
				&out->remarks, "%s (rank %" PRIu32 ") %s\n", host_of(g, r), r, why);
	}
	if (silent > NAMED_MAX)
		cop_buf_printf(&out->remarks, "and %" PRIu32 " more nodes\n", silent - NAMED_MAX);
}

/* ---- the whole ---- */

/* Removes the rank from the list of ranks whose sums are missing. */
static void drop_from_missing(struct cop_op_sum *got, uint32_t rank)
{
	uint32_t named = COP_MIN(got->missing, (uint32_t)COP_OP_NAMED);

	for (uint32_t i = 0; i < named; i++)
		if (got->lost[i] == rank) {
			memmove(got->lost + i, got->lost + i + 1,
				(named - i - 1) * sizeof(got->lost[0]));
			got->missing--;
			return;
		}
}

/* Adds the counts of nodes that replied late. If one of them also forwarded counts of other nodes,
 * which may have replied on their own as well, none are added, and these nodes stay listed as
 * missing. */
static void add_late(struct client *g)
{
	if (!g->late || g->more.nodes != g->late || !(g->more.prof || g->more.telemetry))
		return;
	cop_op_sum_add(&g->got,
		&(struct cop_op_sum){.stats = g->more.stats,
			.prof = g->more.prof,
			.telemetry = g->more.telemetry},
		'\n');
	for (uint32_t r = 0; r < g->topo.nodes; r++)
		if (g->state[r] == NODE_LATE)
			drop_from_missing(&g->got, r);
}

/* Writes the sums if the root is dead; otherwise it has written them, with the names of the silent
 * nodes. */
static void write_sums(struct client *g, struct cop_buf *remarks)
{
	struct cop_buf notes = {0};
	struct cop_tally_job job = {.job_dir = g->job_dir,
		.source = g->tree.source,
		.topo = g->topo,
		.hosts = &g->hosts};
	struct cop_err err = {0};

	if (!g->got.prof && g->state[cop_topo_root(&g->topo, 0)] == NODE_FINE)
		return;
	add_late(g);
	cop_tally_warn(&g->got, &notes);
	if (notes.len)
		cop_buf_printf(remarks, "%s\n", notes.data);
	cop_buf_free(&notes);
	if (cop_tally_write_sums(&job, &g->got, &err))
		cop_op_sum_unwritten(&g->got, "this host", err.text);
}

static int ask_tree(struct client *g, struct cop_remotestop_stopped *out, struct cop_err *err)
{
	cop_op_all(g->treeop, &(struct cop_op_request){COP_OP_STOP, ""}, note_answer, g);
	await_all(g);
	if (!g->got.nodes && !g->got.missing)
		return cop_err_set(err, ENOMEM, "out of memory");
	note_silent(g);
	if (g->got.text.len)
		cop_buf_printf(&out->remarks, "%s\n", g->got.text.data);
	out->unknown += g->got.refused + g->got.failed;
	ask_once_more(g);
	write_sums(g, &out->remarks);
	cop_op_sum_say_unwritten(&g->got, &out->remarks);
	out->unwritten = g->got.unwritten;
	out->mounted = g->got.mounted;
	return 0;
}

static int ask_all(struct client *g, struct cop_remotestop_stopped *out, struct cop_err *err)
{
	int rc = 0;

	if (g->tree.left_count) {
		mark_wanted(g);
		ask_once_more(g);
	} else {
		rc = ask_tree(g, out, err);
	}
	out->stopped = g->got.nodes + g->late;
	if (!rc)
		judge_stop(g, out);
	return rc;
}

/* No node is left to record this, and the next start must not take this for a running tree. */
static void mark_stopped(struct client *g)
{
	g->tree.stopped = true;
	g->tree.left_count = 0;
	cop_job_secret_retire(g->job_dir, &g->secret);
}

/* Records the nodes that may still be running; the next stop handles only these. */
static void mark_left(struct client *g, const struct cop_remotestop_stopped *out)
{
	uint32_t left[COP_JOB_TREE_LEFT], count = 0;

	if (g->got.missing > COP_OP_NAMED || !out->stopped)
		return;
	for (uint32_t i = 0; i < g->got.missing; i++) {
		uint32_t rank = g->got.lost[i];

		if (rank < g->topo.nodes &&
			(g->state[rank] == NODE_SILENT || g->state[rank] == NODE_FINE))
			left[count++] = rank;
	}
	memcpy(g->tree.left, left, count * sizeof(left[0]));
	g->tree.left_count = count;
}

/* Records the result for the next stop. */
static void keep_word(struct client *g, const struct cop_remotestop_stopped *out)
{
	struct cop_err ignored;

	if (!out->unknown)
		mark_stopped(g);
	else if (!g->tree.left_count)
		mark_left(g, out);
	g->tree.hosts = g->hosts;
	cop_job_tree_write(g->job_dir, &g->tree, &ignored);
	g->tree.hosts = (struct cop_job_hosts){0};
}

static void adopt_tree(struct client *g)
{
	g->hosts = g->tree.hosts;
	g->tree.hosts = (struct cop_job_hosts){0};
	g->topo = (struct cop_topo){
		.nodes = g->hosts.count, .fanout = g->tree.fanout, .trees = g->tree.trees};
	g->rank = g->topo.nodes + (uint32_t)(cop_wire_random64() % COP_REACH_CLIENTS);
	cop_gate_init(&g->gate);
}

/* If no rank is left, this needs no secret. */
static int stop_those_left(struct client *g, const struct cop_remotestop_stop *what,
	struct cop_remotestop_stopped *out, struct cop_err *err)
{
	int rc = cop_remotestop_secret(g, what, err);

	if ((rc || g->tree.left_count) && is_nobody_left(g)) {
		mark_wanted(g);
		judge_stop(g, out);
		return 0;
	}
	if (!rc)
		rc = cop_remotestop_enter(g, what, err);
	return rc ? rc : ask_all(g, out, err);
}

/* Prepares a client of the tree that has been read. end_client must follow in any case. */
static int begin_client(struct client *g, struct cop_err *err)
{
	int rc;

	adopt_tree(g);
	g->looked = calloc(g->topo.nodes, sizeof(*g->looked));
	g->state = calloc(g->topo.nodes, 1);
	init_answer(g);
	/* Log only errors; failures to reach a node show up in the list of silent nodes. */
	cop_log_open(COP_LOG_ERROR, COP_LOG_FILE, NULL, NULL);
	rc = g->looked && g->state ? cop_topo_check(&g->topo, err)
				   : cop_err_set(err, ENOMEM, "out of memory");
	return rc ? rc : cop_remotestop_reach(g, err);
}

static void end_client(struct client *g)
{
	cop_op_sum_free(&g->got);
	cop_op_sum_free(&g->more);
	cop_remotestop_leave(g);
	cop_log_close();
	pthread_cond_destroy(&g->wake);
	pthread_mutex_destroy(&g->lock);
	free((void *)g->looked);
	free(g->state);
}

static int stop_from_outside(struct client *g, const struct cop_remotestop_stop *what,
	struct cop_remotestop_stopped *out, struct cop_err *err)
{
	int rc = begin_client(g, err);

	out->of = g->topo.nodes;
	if (!rc)
		rc = stop_those_left(g, what, out, err);
	if (!rc)
		keep_word(g, out);
	end_client(g);
	return rc;
}

static int ask_from_outside(struct client *g, const struct cop_remotestop_stop *what, uint8_t op,
	struct cop_op_sum *sum, struct cop_err *err)
{
	int rc = begin_client(g, err);

	if (!rc)
		rc = cop_remotestop_secret(g, what, err);
	if (!rc)
		rc = cop_remotestop_enter(g, what, err);
	if (!rc) {
		cop_op_all(g->treeop, &(struct cop_op_request){op, ""}, note_answer, g);
		await_all(g);
		cop_op_sum_move(sum, &g->got);
		if (!sum->nodes)
			rc = cop_err_set(err, EHOSTUNREACH,
				"none of the %" PRIu32 " nodes of %s answered: %" PRIu32
				" are dead or out of reach, %" PRIu32
				" refused (another secret, or an older version)",
				g->topo.nodes, what->job_dir, sum->dead,
				sum->refused + sum->failed);
	}
	end_client(g);
	return rc;
}

/* A tree of one node has no port, only its control socket. */
static int name_socket(const struct cop_job_tree *t, char out[108], struct cop_err *err)
{
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	if (strcmp(name, t->hosts.host[0].name))
		return cop_err_set(err, EHOSTUNREACH,
			"the tree of this job directory is one node on %s, which can be reached only there: run this command on %s",
			t->hosts.host[0].name, t->hosts.host[0].name);
	snprintf(out, 108, "%s", t->socket);
	return 0;
}

static int no_tree(const char *job_dir, int rc, struct cop_err *err)
{
	char path[4096 + 64];

	if (rc != -ENOENT)
		return rc;
	snprintf(path, sizeof(path), "%s/logs", job_dir);
	if (access(path, F_OK))
		return cop_err_set(err, EINVAL,
			"%s is not a job directory: it has no logs; name the one that was given to copper mount -d",
			job_dir);
	return cop_err_set(err, EINVAL,
		"%s/logs/copper_tree.txt is not there: rank 0 was not started with this job directory, or is an older version; stop the nodes on their hosts",
		job_dir);
}

/* Reads the tree's record from the job directory. Sets socket if the tree is a single node on this
 * machine, else to "". */
static int find_tree(struct client *g, const struct cop_remotestop_stop *what, char socket[108],
	struct cop_err *err)
{
	int rc;

	*socket = '\0';
	g->deadline_ms = cop_now_ms() + what->timeout_ms;
	rc = realpath(what->job_dir, g->job_dir)
		     ? 0
		     : cop_err_set(err, errno, "%s: %s", what->job_dir, strerror(errno));
	if (!rc)
		rc = no_tree(what->job_dir, cop_job_tree_read(g->job_dir, &g->tree, err), err);
	if (!rc && g->tree.stopped)
		rc = cop_err_set(
			err, EALREADY, "the tree of %s was stopped already", what->job_dir);
	else if (!rc && g->tree.socket[0])
		rc = name_socket(&g->tree, socket, err);
	return rc;
}

int cop_remotestop_stop(const struct cop_remotestop_stop *what, struct cop_remotestop_stopped *out,
	struct cop_err *err)
{
	struct client *g = calloc(1, sizeof(*g));
	int rc;

	*out = (struct cop_remotestop_stopped){0};
	if (!g)
		return cop_err_set(err, ENOMEM, "out of memory");
	rc = find_tree(g, what, out->socket, err);
	if (!rc && !out->socket[0])
		rc = stop_from_outside(g, what, out, err);
	cop_job_tree_free(&g->tree);
	free(g);
	return rc;
}

int cop_remotestop_ask(const struct cop_remotestop_stop *what, uint8_t op, struct cop_op_sum *sum,
	char socket[108], struct cop_err *err)
{
	struct client *g = calloc(1, sizeof(*g));
	int rc;

	*sum = (struct cop_op_sum){0};
	if (!g)
		return cop_err_set(err, ENOMEM, "out of memory");
	rc = find_tree(g, what, socket, err);
	if (!rc && !*socket)
		rc = ask_from_outside(g, what, op, sum, err);
	cop_job_tree_free(&g->tree);
	free(g);
	return rc;
}
