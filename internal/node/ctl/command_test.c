/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands through the control socket: the text and the status of each reply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/ctl/ctl.h"

/* A node, and a thread that acts as its main thread. A tree of several nodes has no network here,
 * so the other nodes cannot be reached. */
struct node {
	_Atomic pid_t ended_pid;
	_Atomic int ended_status;
	pthread_mutex_t why_lock;
	char why[64]; /* of a fallback */
	char dir[64], path[COP_CTL_PATH_SIZE];
	struct cop_op_conf treeop;
	struct cop_command_conf conf;
	struct cop_op *op;
	struct cop_command *command;
	struct cop_ctl *ctl;
	struct cop_gate gate;
	struct cop_defer deferred;
	pthread_t thread;
	_Atomic bool ending, over;
	_Atomic unsigned woken, late_nodes, forgot;
	const char *_Atomic cannot_write;
	_Atomic bool writes_none;
	const char *unwritten;
	_Atomic bool ready;  /* the tree, for views */
	_Atomic int user_ns; /* the descriptor for a view */
	_Atomic unsigned offered, offered_fds;
};

/* ---- the node's own operations ---- */

static struct cop_rpc *no_rpc(void *ctx)
{
	(void)ctx;
	return NULL;
}

static const char *host(void *ctx, uint32_t rank)
{
	static const char *const names[] = {"a", "b", "c"};

	(void)ctx;
	return names[rank];
}

#define NODELINE "0\tok\t0\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\ta\t"

static void own(void *ctx, struct cop_op_sum *out, uint8_t op)
{
	(void)ctx;
	out->nodes = 1;
	cop_buf_str(&out->text, op == COP_OP_TABLE ? NODELINE : "{\"rank\":0}");
}

static int forget(void *ctx, const char *path, void (*then)(void *arg), void *arg)
{
	struct node *n = ctx;

	n->forgot += strcmp(path, "lib/x") == 0;
	then(arg);
	return 0;
}

static int report(void *ctx, struct cop_err *err)
{
	struct node *n = ctx;

	if (n->writes_none)
		return -ENOENT;
	return n->cannot_write ? cop_err_set(err, EIO, "%s", n->cannot_write) : 0;
}

static void on_end(void *ctx)
{
	struct node *n = ctx;

	n->ending = true;
}

static int complete_sum(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	(void)ctx, (void)sum, (void)err;
	return 0;
}

static void status(void *ctx, struct cop_buf *out)
{
	(void)ctx;
	cop_buf_str(out, "{\"rank\":0}");
}

static void table(void *ctx, struct cop_buf *out)
{
	(void)ctx;
	cop_buf_str(out, "rank 0 of 1\n");
}

static void watch(void *ctx, struct cop_buf *out)
{
	(void)ctx;
	cop_buf_str(out, "fuse.lookup 3\n\nrank 0 of 1\n");
}

static bool view(void *ctx, const char **source, int *user_ns)
{
	struct node *n = ctx;

	*source = "/soft";
	*user_ns = n->user_ns;
	return n->ready;
}

static void program(void *ctx, pid_t pid, struct cop_buf *out)
{
	(void)ctx;
	cop_buf_printf(out, "COPPER_JOB_DIR=/job/%d\n", (int)pid);
}

static void ended(void *ctx, pid_t pid, int status)
{
	struct node *n = ctx;

	n->ended_pid = pid;
	n->ended_status = status;
}

static void fallback(void *ctx, const char *why)
{
	struct node *n = ctx;

	pthread_mutex_lock(&n->why_lock);
	snprintf(n->why, sizeof(n->why), "%s", why);
	pthread_mutex_unlock(&n->why_lock);
}

static void sizes(void *ctx, struct cop_buf *out)
{
	(void)ctx;
	cop_buf_str(out, "budget 10 5\n");
}

static int write_late(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	struct node *n = ctx;

	n->late_nodes = sum->nodes + 1;
	return n->cannot_write ? cop_err_set(err, EIO, "%s", n->cannot_write) : 0;
}

static void wake(void *ctx)
{
	struct node *n = ctx;

	n->woken++;
}

static void ignore(void *ctx)
{
	(void)ctx;
}

/* ---- a node ---- */

static void *main_thread(void *arg)
{
	struct node *n = arg;

	while (!n->over) {
		cop_defer_run(&n->deferred, false);
		if (n->ending)
			cop_op_ended(n->op, NULL, n->unwritten, false);
		poll(NULL, 0, 1);
	}
	return NULL;
}

static void open_node(struct node *n, uint32_t rank, uint32_t nodes)
{
	static const struct cop_op_ops ops = {
		no_rpc, host, own, forget, report, report, on_end, complete_sum};
	static const struct cop_command_ops commands = {
		status, table, watch, view, program, ended, fallback, sizes, write_late, wake};
	struct cop_topo topo = {nodes, 2, 1};
	struct cop_err err = {0};

	strcpy(n->dir, "/tmp/copper-command-test-XXXXXX");
	assert_non_null(mkdtemp(n->dir));
	cop_gate_init(&n->gate);
	cop_gate_open(&n->gate);
	cop_defer_init(&n->deferred, ignore, n);
	n->treeop = (struct cop_op_conf){.topo = topo,
		.rank = rank,
		.ops = &ops,
		.ctx = n,
		.gate = &n->gate,
		.deferred = &n->deferred};
	n->op = cop_op_new(&n->treeop);
	n->conf.topo = topo;
	n->conf.rank = rank;
	n->conf.host = host(n, rank);
	n->conf.tree = "-";
	n->conf.last_pid = 17;
	n->conf.job_dir = "/job";
	n->conf.ops = &commands;
	n->conf.ctx = n;
	n->conf.treeop = n->op;
	n->conf.gate = &n->gate;
	n->conf.deferred = &n->deferred;
	n->command = cop_command_new(&n->conf);
	assert_non_null(n->command);
	assert_int_equal(cop_ctl_path(n->dir, "key", n->path, sizeof(n->path)), 0);
	assert_int_equal(
		cop_ctl_start(n->path, "key", cop_command_handle, n->command, &n->ctl, &err), 0);
	assert_int_equal(cop_thread_start(&n->thread, "main", main_thread, n), 0);
}

static void close_node(struct node *n)
{
	n->over = true;
	pthread_join(n->thread, NULL);
	cop_gate_close(&n->gate);
	cop_op_ended(n->op, NULL, NULL, false);
	cop_defer_run(&n->deferred, true);
	cop_gate_drain(&n->gate);
	cop_ctl_stop(n->ctl);
	assert_int_equal(cop_command_stops(n->command), 0);
	cop_command_free(n->command);
	cop_op_free(n->op);
	cop_defer_fini(&n->deferred);
	cop_gate_fini(&n->gate);
	rmdir(n->dir);
}

static void expect(struct node *n, const char *line, int code, const char *text)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err err = {0};

	assert_int_equal(cop_ctl_call(n->path, line, 60000, &reply, &err), 0);
	assert_string_equal(reply.text, text);
	assert_int_equal(reply.status, code);
	free(reply.text);
}

static void expect_all_stats(struct node *n)
{
	struct cop_op_sum sum = {.nodes = 1};
	struct cop_buf want = {0};

	cop_buf_str(&sum.text, "{\"rank\":0}");
	cop_status_all_json(&sum, &want);
	cop_buf_str(&want, "\n");
	expect(n, "stats all", 0, want.data);
	cop_buf_free(&want);
	cop_buf_free(&sum.text);
}

static void expect_all_watched(struct node *n)
{
	struct cop_op_sum sum = {.nodes = 1};
	struct cop_stats none = {0};
	struct cop_buf want = {0};

	cop_buf_str(&sum.text, NODELINE);
	cop_stats_lines(&none, &want);
	cop_status_all_table(&sum, &want);
	expect(n, "watch all", 0, want.data);
	cop_buf_free(&want);
	cop_buf_free(&sum.text);
}

static int setup(void **state)
{
	struct node *n = calloc(1, sizeof(*n));

	*state = n;
	return n ? pthread_mutex_init(&n->why_lock, NULL) : -1;
}

static int teardown(void **state)
{
	close_node(*state);
	free(*state);
	return 0;
}

/* ---- one node ---- */

static void a_node_describes_itself(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 1);
	expect(n, "stats", 0, "{\"rank\":0}\n");
	expect_all_stats(n);
	expect(n, "table", 0, "rank 0 of 1\n");
	expect(n, "watch", 0, "fuse.lookup 3\n\nrank 0 of 1\n");
	expect_all_watched(n);
	expect(n, "lines", 0, "nodes 1\n" NODELINE);
	expect(n, "sizes", 0, "budget 10 5\n");
	expect(n, "process", 0, "- 17\n");
	expect(n, "program 7", 0, "COPPER_JOB_DIR=/job/7\n");
	expect(n, "ended 7 256", 0, "");
	assert_true(n->ended_pid == 7 && n->ended_status == 256);
	expect(n, "fallback this machine refuses", 0, "");
	pthread_mutex_lock(&n->why_lock);
	assert_string_equal(n->why, "this machine refuses");
	pthread_mutex_unlock(&n->why_lock);
	expect(n, "release", 0, "1 of 1 nodes are not needed any more\n");
	expect(n, "release", -EAGAIN, "there is nothing to do here yet\n");
	expect(n, "release again", 0, "1 of 1 nodes are not needed any more\n");
	expect(n, "invalidate //lib/x", 0, "invalidated on 1/1 nodes\n");
	assert_int_equal(n->forgot, 1);
}

static int fd_with_view(struct node *n)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err err = {0};

	assert_int_equal(cop_ctl_call(n->path, "view", 60000, &reply, &err), 0);
	assert_string_equal(reply.text, "/soft");
	assert_int_equal(reply.status, 0);
	free(reply.text);
	return reply.fd;
}

static void a_view_comes_with_its_namespace_when_the_tree_is_ready(void **state)
{
	struct node *n = *state;
	struct stat given, got;
	int fd;

	n->user_ns = -1;
	open_node(n, 0, 1);
	expect(n, "view", -EAGAIN, "the tree is not ready yet: copper mount returns when it is\n");
	n->ready = true;
	assert_int_equal(fd_with_view(n), -1);
	n->user_ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	assert_true(n->user_ns >= 0);
	fd = fd_with_view(n);
	assert_true(fd >= 0 && fd != n->user_ns);
	assert_int_equal(fstat(n->user_ns, &given) | fstat(fd, &got), 0);
	assert_int_equal(given.st_ino, got.st_ino);
	close(fd);
	close(n->user_ns);
}

static void an_unknown_command_is_refused(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 1);
	expect(n, "stop at once", -EINVAL,
		"this node does not know the command 'stop at once'; it may run another version of copper\n");
	expect(n, "statistics", -EINVAL,
		"this node does not know the command 'statistics'; it may run another version of copper\n");
	expect(n, "view 12", -EINVAL,
		"this node does not know the command 'view 12'; it may run another version of copper\n");
	expect(n, "", -EINVAL,
		"this node does not know the command ''; it may run another version of copper\n");
	assert_false(n->ending);
}

static void a_node_that_ends_refuses_all_of_them(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 1);
	cop_defer_run(&n->deferred, true);
	expect(n, "sizes", -ESHUTDOWN, "the node is stopping\n");
	cop_gate_close(&n->gate);
	expect(n, "stats", -ESHUTDOWN, "the node here is ending\n");
	expect(n, "stop", -ESHUTDOWN, "the node here is ending\n");
}

/* ---- reports ---- */

static void reports_that_were_written_and_that_were_not(void **state)
{
	struct node *n = *state;

	n->conf.counts = true;
	open_node(n, 0, 1);
	expect(n, "snapshot", 0, "reports of 1/1 nodes written to /job/profiling/ioctl-snapshot\n");
	expect(n, "snapshot local", 0,
		"reports of 1/1 nodes written to /job/profiling/ioctl-snapshot\n");
	expect(n, "reset", 0,
		"counters of 1/1 nodes set to zero\nreports from before the reset are in /job/profiling/pre-reset\n");
	n->cannot_write = "no space";
	expect(n, "snapshot", -EIO,
		"reports of 0/1 nodes written to /job/profiling/ioctl-snapshot\na: no space\n");
	expect(n, "reset all", -EIO, "counters of 0/1 nodes set to zero\na: no space\n");
	n->writes_none = true;
	expect(n, "snapshot", -EIO,
		"no reports were written: the job was started without --profile, or with --rank-files none\n");
}

static void a_reset_says_where_the_earlier_reports_are(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 1);
	expect(n, "reset", 0,
		"counters of 1/1 nodes set to zero\nno reports from before the reset: the job was started without --profile\n");
}

static void with_rank_files_root_only_the_root_has_files(void **state)
{
	struct node *n = *state;

	n->conf.counts = true;
	n->conf.rank_files = COP_CONF_RANK_FILES_ROOT;
	open_node(n, 1, 3);
	expect(n, "reset", 0,
		"counters of 1/1 nodes set to zero\nno reports from before the reset, because of --rank-files\n");
}

/* ---- stops ---- */

static void a_stop_of_one_node_says_so(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 1);
	expect(n, "stop", 0, "stopped 1/1 nodes\n");
	assert_true(n->ending);
	expect(n, "stop local", 0, "stopped 1/1 nodes\n");
	assert_int_equal(n->late_nodes, 0);
}

static void a_stop_whose_files_could_not_be_written_fails(void **state)
{
	struct node *n = *state;

	n->unwritten = "the disk is full";
	open_node(n, 0, 1);
	expect(n, "stop", -EIO, "stopped 1/1 nodes\na: the disk is full\n");
}

static void a_stop_that_misses_nodes_fails_and_names_them(void **state)
{
	struct node *n = *state;

	open_node(n, 0, 3);
	expect(n, "stop", -EHOSTDOWN,
		"stopped 1/3 nodes\nb (rank 1) failed: out of memory\nc (rank 2) failed: out of memory\n");
	assert_int_equal(n->late_nodes, 0);
}

static void without_the_root_the_sums_are_written_here(void **state)
{
	struct node *n = *state;

	n->cannot_write = "no cluster files";
	open_node(n, 1, 3);
	expect(n, "stop", -EHOSTDOWN,
		"stopped 0/3 nodes\na (rank 0) failed: out of memory; the 2 nodes below it are not counted either\nb: no cluster files\n");
	assert_int_equal(n->late_nodes, 1);
	/* The node is woken after the reply has been sent. */
	for (unsigned ms = 0; !n->woken && ms < 10000; ms++)
		usleep(1000);
	assert_true(n->woken > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_describes_itself),
		T(a_view_comes_with_its_namespace_when_the_tree_is_ready),
		T(an_unknown_command_is_refused),
		T(a_node_that_ends_refuses_all_of_them),
		T(reports_that_were_written_and_that_were_not),
		T(a_reset_says_where_the_earlier_reports_are),
		T(with_rank_files_root_only_the_root_has_files),
		T(a_stop_of_one_node_says_so),
		T(a_stop_whose_files_could_not_be_written_fails),
		T(a_stop_that_misses_nodes_fails_and_names_them),
		T(without_the_root_the_sums_are_written_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
