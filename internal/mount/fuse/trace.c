/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports requests as events of the node's trace. An event belongs to the thread that made the
 * request, not to the one that answers it: a thread waits for its replies, so its events are in the
 * order of its calls. The kernel's read-ahead has no thread. */
#include "mount/fuse/fuse_priv.h"

static const char *const outcomes[COP_PROF_OUTCOMES] = {[COP_PROF_DONE] = "done",
	[COP_PROF_HIT] = "hit",
	[COP_PROF_MISS] = "miss",
	[COP_PROF_NEGATIVE] = "negative",
	[COP_PROF_ERROR] = "error"};

/* The result of the system call: bytes, 0, or -errno. Only file reads have bytes; the length of a
 * link's target would be counted as data read. */
static int64_t result_of(const struct op *op)
{
	if (op->rc)
		return op->rc;
	return op->kind == COP_PROF_OP_READ ? (int64_t)op->size : 0;
}

void cop_fuse_trace_op(struct op *op, enum cop_prof_outcome outcome, uint64_t end_ns)
{
	const struct cop_tracer_arg args[] = {{.key = "ret", .value = result_of(op)},
		{.key = "outcome", .text = outcomes[outcome]}, {.key = "offset", .value = op->off}};
	bool has_offset = op->kind == COP_PROF_OP_READ || op->kind == COP_PROF_OP_LSEEK ||
			  op->kind == COP_PROF_OP_READDIR || op->kind == COP_PROF_OP_READDIRPLUS;
	char path[PATH_BYTES];
	int len = cop_fuse_path(op->inode, op->name, op->name_len, path);
	struct cop_tracer_event e = {.phase = COP_TRACER_POSIX,
		.name = cop_prof_op_name((enum cop_prof_op)op->kind),
		.begin_ns = op->start_ns,
		.end_ns = end_ns,
		.tid = op->from,
		.path = len < 0 ? NULL : path,
		.path_len = (size_t)COP_MAX(len, 0),
		.arg = args,
		.args = COP_ARRAY_SIZE(args) - !has_offset};

	cop_tracer_event(op->fs->conf.tracer, &e);
}

void cop_fuse_trace_now(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op kind, int rc)
{
	struct cop_fuse *fs = cop_fuse_of(req);
	const struct cop_tracer_arg arg = {.key = "ret", .value = rc};
	char path[PATH_BYTES];
	int len = cop_fuse_path(cop_fuse_inode(fs, ino), "", 0, path);
	struct cop_tracer_event e = {.phase = COP_TRACER_POSIX,
		.name = cop_prof_op_name(kind),
		.begin_ns = cop_now_ns(),
		.tid = (uint32_t)fuse_req_ctx(req)->pid,
		.path = len < 0 ? NULL : path,
		.path_len = (size_t)COP_MAX(len, 0),
		.arg = &arg,
		.args = 1};

	e.end_ns = e.begin_ns;
	cop_tracer_event(fs->conf.tracer, &e);
}
