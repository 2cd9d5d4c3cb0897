/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/ctl/command_priv.h"

#include "node/ctl/ctl.h"

_Static_assert(COP_OP_TEXT_MAX + 16 * COP_MIB <= COP_CTL_REPLY_MAX,
	"a reply has room for the text of a whole tree");

struct cop_command *cop_command_new(const struct cop_command_conf *conf)
{
	struct cop_command *c = calloc(1, sizeof(*c));

	if (c)
		c->conf = *conf;
	return c;
}

void cop_command_free(struct cop_command *c)
{
	free(c);
}

unsigned cop_command_stops(const struct cop_command *c)
{
	return atomic_load(&c->stops);
}

/* ---- statistics ---- */

static void on_all(struct asked *q, uint8_t op, const char *argument, cop_op_done *done)
{
	struct cop_op_request request = {op, argument};

	cop_op_all(q->command->conf.treeop, &request, done, q);
}

static void all_stats(void *arg, struct cop_op_sum *all)
{
	struct cop_buf out = {0};

	cop_status_all_json(all, &out);
	cop_buf_str(&out, "\n");
	cop_command_answer(arg, 0, &out);
}

static void run_stats(struct asked *q, bool all)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	if (all) {
		on_all(q, COP_OP_STATS, "", all_stats);
		return;
	}
	conf->ops->status(conf->ctx, &out);
	cop_buf_str(&out, "\n");
	cop_command_answer(q, 0, &out);
}

static void all_table(void *arg, struct cop_op_sum *all)
{
	struct cop_buf out = {0};

	cop_status_all_table(all, &out);
	cop_command_answer(arg, 0, &out);
}

static void answer_table(struct asked *q, bool all)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	if (all) {
		on_all(q, COP_OP_TABLE, "", all_table);
		return;
	}
	conf->ops->table(conf->ctx, &out);
	cop_command_answer(q, 0, &out);
}

static void all_watched(void *arg, struct cop_op_sum *all)
{
	struct cop_buf out = {0};

	cop_stats_lines(&all->stats, &out);
	cop_status_all_table(all, &out);
	cop_command_answer(arg, 0, &out);
}

/* Sends the counters as numbers, and the rest of the table as text that is only displayed. */
static void run_watch(struct asked *q, bool all)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	if (all) {
		on_all(q, COP_OP_TABLE, "", all_watched);
		return;
	}
	conf->ops->watch(conf->ctx, &out);
	cop_command_answer(q, 0, &out);
}

/* Sends "nodes N" and a line per node, in any order, for a client that renders them. */
static void all_lines(void *arg, struct cop_op_sum *all)
{
	struct asked *q = arg;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "nodes %u\n", q->command->conf.topo.nodes);
	if (all->text.len)
		cop_buf_add(&out, all->text.data, all->text.len);
	cop_command_answer(q, 0, &out);
}

/* ---- other short commands ---- */

/* Sends "TREE PID". */
static void show_process(struct asked *q)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "%s %d\n", conf->tree, (int)conf->last_pid);
	cop_command_answer(q, 0, &out);
}

static void run_view(struct asked *q)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};
	const char *source;
	int user_ns;
	bool ready = conf->ops->view(conf->ctx, &source, &user_ns);

	cop_buf_str(&out,
		ready ? source : "the tree is not ready yet: copper mount returns when it is\n");
	cop_command_answer_with(q, ready ? 0 : -EAGAIN, &out, ready ? user_ns : -1);
}

static void run_program(struct asked *q, const char *arguments)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	conf->ops->program(conf->ctx, (pid_t)strtol(arguments, NULL, 10), &out);
	cop_command_answer(q, 0, &out);
}

static void run_ended(struct asked *q, const char *arguments)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};
	char *status;
	long pid = strtol(arguments, &status, 10);

	conf->ops->ended(conf->ctx, (pid_t)pid, (int)strtol(status, NULL, 10));
	cop_command_answer(q, 0, &out);
}

static void run_fallback(struct asked *q, const char *why)
{
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	conf->ops->fallback(conf->ctx, why);
	cop_command_answer(q, 0, &out);
}

static void all_invalidated(void *arg, struct cop_op_sum *all)
{
	struct asked *q = arg;
	struct cop_buf out = {0};

	cop_buf_printf(
		&out, "invalidated on %u/%u nodes\n", all->nodes, q->command->conf.topo.nodes);
	if (all->text.len)
		cop_buf_printf(&out, "%s\n", all->text.data);
	cop_op_say_silent(q->command->conf.treeop, all, &out);
	cop_command_answer(q, all->missing ? -EHOSTDOWN : 0, &out);
}

static void run_invalidate(struct asked *q, const char *path)
{
	while (*path == '/')
		path++;
	on_all(q, COP_OP_INVALIDATE, path, all_invalidated);
}

static void refuse_command(struct asked *q, const char *line)
{
	struct cop_buf out = {0};

	cop_buf_printf(&out,
		"this node does not know the command '%s'; it may run another version of copper\n",
		line);
	cop_command_answer(q, -EINVAL, &out);
}

/* ---- command parsing ---- */

/* "stop local" is "stop" with an argument. */
static bool is_command(const char *line, const char *name, bool *more, const char *with)
{
	size_t len = strlen(name);

	*more = strncmp(line, name, len) == 0 && line[len] == ' ' &&
		strcmp(line + len + 1, with) == 0;
	return *more || strcmp(line, name) == 0;
}

static void run_command(struct asked *q, const char *line)
{
	bool more;

	if (is_command(line, "stats", &more, "all"))
		run_stats(q, more);
	else if (is_command(line, "table", &more, "all"))
		answer_table(q, more);
	else if (is_command(line, "watch", &more, "all"))
		run_watch(q, more);
	else if (strcmp(line, "lines") == 0)
		on_all(q, COP_OP_TABLE, "", all_lines);
	else if (is_command(line, "stop", &more, "local"))
		cop_command_stop(q, more);
	else if (is_command(line, "snapshot", &more, "local"))
		cop_command_snapshot(q, more);
	else if (is_command(line, "reset", &more, "all"))
		cop_command_reset(q, more);
	else if (strcmp(line, "process") == 0)
		show_process(q);
	else if (strcmp(line, "view") == 0)
		run_view(q);
	else if (strncmp(line, "program ", 8) == 0)
		run_program(q, line + 8);
	else if (strncmp(line, "ended ", 6) == 0)
		run_ended(q, line + 6);
	else if (strncmp(line, "fallback ", 9) == 0)
		run_fallback(q, line + 9);
	else if (is_command(line, "release", &more, "again"))
		cop_command_release(q, more);
	else if (strcmp(line, "hold") == 0)
		cop_command_hold(q);
	else if (strcmp(line, "sizes") == 0)
		cop_command_sizes(q);
	else if (strncmp(line, "invalidate ", 11) == 0)
		run_invalidate(q, line + 11);
	else
		refuse_command(q, line);
}

void cop_command_handle(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	static const char ending[] = "the node here is ending\n";
	struct cop_command *c = ctx;
	struct asked *q;

	if (!cop_gate_enter(c->conf.gate, COP_GATE_OPEN)) {
		cop_ctl_reply(conn, -ESHUTDOWN, ending, sizeof(ending) - 1);
		return;
	}
	q = cop_command_asked_new(c, conn);
	if (q)
		run_command(q, line);
	cop_gate_leave(c->conf.gate);
}
