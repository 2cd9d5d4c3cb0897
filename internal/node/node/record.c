/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include "base/log/log.h"

static int write_tree(
	const struct cop_record *r, const struct cop_op_sum *stopped, struct cop_err *err)
{
	const struct cop_conf *c = r->conf;
	struct cop_job_tree t = {.stopped = stopped && !stopped->missing,
		.insecure = c->insecure,
		.book = r->topo.nodes > 1 && c->address_book && !c->discover,
		.config_hash = r->config_hash,
		.fanout = r->topo.fanout,
		.trees = r->topo.trees,
		.peer_timeout_ms = c->peer_timeout_ms,
		.hosts = *r->hosts};
	char key[COP_CTL_KEY_MAX + 1], name[256] = "localhost", file[sizeof(t.secret_file)];
	struct cop_job_host alone = {.name = name, .port = COP_JOB_PORT};

	if (t.stopped) {
		t.has_ends = true;
		t.commands = stopped->exits.commands;
		t.good = stopped->exits.good;
	}
	for (uint32_t i = 0; stopped && i < stopped->missing; i++)
		t.left[t.left_count++] = stopped->lost[i];
	snprintf(t.net_type, sizeof(t.net_type), "%s", c->net_type);
	snprintf(t.source, sizeof(t.source), "%s", r->source);
	if (c->secret_file && strlen(c->secret_file) < sizeof(file) &&
		realpath(c->secret_file, file))
		snprintf(t.secret_file, sizeof(t.secret_file), "%s", file);
	if (r->topo.nodes == 1) {
		gethostname(name, sizeof(name) - 1);
		t.hosts = (struct cop_job_hosts){.host = &alone, .count = 1};
		if (cop_ctl_place(&r->at, t.socket, key, err))
			return -EINVAL;
	}
	return cop_job_tree_write(r->job_dir, &t, err);
}

static void write_or_warn(const struct cop_record *r, const struct cop_op_sum *stopped)
{
	struct cop_err err = {0};

	_Static_assert(COP_OP_NAMED <= COP_JOB_TREE_LEFT, "who is named is written");
	if (r->job_dir[0] && (!stopped || stopped->missing <= COP_OP_NAMED) &&
		write_tree(r, stopped, &err))
		cop_log_warn("%s", err.text);
}

void cop_record_write(const struct cop_record *r)
{
	write_or_warn(r, NULL);
}

void cop_record_stopped(const struct cop_record *r, const struct cop_op_sum *all)
{
	if (all->nodes + all->missing != r->topo.nodes)
		return;
	write_or_warn(r, all);
	if (!all->missing && r->job_dir[0])
		cop_job_secret_retire(r->job_dir, r->secret);
}
