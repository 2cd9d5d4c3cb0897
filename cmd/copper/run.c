/* SPDX-License-Identifier: BSD-3-Clause */
/* run: queries the node, creates the view, and then becomes the command, or stays as its parent if
 * only a parent can report the exit status to the node. */
#include <limits.h>
#include <sys/stat.h>
#include <libgen.h>

#include "child.h"
#include "cmd.h"
#include "job/conf/conf.h"
#include "base/log/log.h"
#include "base/opt/opt.h"
#include "run_node.h"
#include "run_tree.h"
#include "mount/view/view.h"

/* One warning is enough for thousands of tasks. */
static bool is_first_task(void)
{
	static const char *const ranks[] = {"SLURM_PROCID", "PMIX_RANK", "PMI_RANK", "PALS_RANKID",
		"OMPI_COMM_WORLD_RANK", "FLUX_TASK_RANK"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(ranks); i++) {
		const char *rank = getenv(ranks[i]);

		if (rank && strcmp(rank, "0") != 0)
			return false;
	}
	return true;
}

/* Warns if the working directory was writable before the view was created and no longer is, because
 * output files there would fail with EROFS during the run. */
static void warn_outputs(bool was_writable)
{
	char cwd[PATH_MAX];

	if (was_writable && access(".", W_OK) && errno == EROFS && cop_log_on(COP_LOG_WARNING) &&
		is_first_task() && getcwd(cwd, sizeof(cwd)))
		fprintf(stderr,
			"copper run: warning: the working directory %s is read-only in the tree: with --direct %s the command can write there as without copper\n",
			cwd, cwd);
}

/* Finds a directory that the command will probably modify and that this user owns, but whose group
 * is not mapped in an ordinary user's namespace; "" if there is none. Call it before creating the
 * view. */
static void find_foreign_group(const struct cop_view *v, char dir[PATH_MAX], gid_t *group)
{
	const char *const places[] = {
		".", getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), v->source};
	struct stat st;

	for (size_t i = 0; v->writable && v->user_ns >= 0 && i < COP_ARRAY_SIZE(places); i++) {
		if (!places[i] || !realpath(places[i], dir) || !cop_view_is_below(dir, v->source) ||
			stat(dir, &st) || st.st_uid != geteuid() || st.st_gid == getegid())
			continue;
		*group = st.st_gid;
		return;
	}
	dir[0] = '\0';
}

/* dir is from cop_run_find_foreign_group. */
static void warn_group(const char *dir, gid_t group)
{
	if (*dir && cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: %s belongs to the group %u, and --writable can change only files of the current group (others give EOVERFLOW, 'Value too large for defined data type'): start the node and the command with that group, by sg(1)\n",
			dir, (unsigned)group);
}

/* Without the warning, a program that finds its files by absolute paths would silently read all of
 * them from the storage. */
/* Warns that the view consists only of variables, although the user did not request that. */
static void warn_variables(const struct cop_view *v, const struct cop_view_made *made)
{
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: the tree cannot take the place of %s here (%s): only variables such as PATH lead to it; absolute paths in scripts, in arguments and in the program read the storage past Copper. --view env says that this is meant\n",
			v->source, made->why);
}

/* MPI libraries would fail during startup, with incomprehensible messages. */
/* Warns that the command is in a user namespace of its own. */
static void warn_neighbours(void)
{
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: this process was in another user namespace already (a view, or a container), so such commands cannot reach each other's memory, as MPI libraries try: give the options to the outer copper run, and use one tree of two sources, with --below for each\n");
}

/* ---- launchers ---- */

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* Launchers of the first kind start programs through daemons, even on this machine; the others
 * start local programs directly. */
static bool starts_outside(const char *name)
{
	static const char *const by_daemons[] = {"srun", "sbatch", "aprun", "jsrun", "prun", NULL};
	static const char *const by_itself[] = {"mpiexec", "mpirun", "mpiexec.hydra",
		"mpirun.mpich", "mpiexec.mpich", "mpirun.openmpi", "mpiexec.openmpi", "orterun",
		NULL};

	return is_one_of(name, by_daemons) ||
	       (is_one_of(name, by_itself) &&
		       (getenv("SLURM_JOB_ID") || getenv("PBS_NODEFILE") || getenv("LSB_HOSTS")));
}

/* Warns that the command is a launcher whose tasks run outside the view. */
static void warn_order(char *const *command)
{
	char copy[PATH_MAX], *name;

	snprintf(copy, sizeof(copy), "%s", command[0]);
	name = basename(copy);
	if (strcmp(name, "flux") == 0 && command[1] &&
		(strcmp(command[1], "run") == 0 || strcmp(command[1], "submit") == 0))
		name = strcpy(copy, "flux run");
	else if (!starts_outside(name))
		return;
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: the programs that %s starts are outside of the view, and read the storage itself: put copper run after it, as in '%s [options] copper run [options] -- PROGRAM'\n",
			name, name);
}

/* Whether the launcher's environment shows other tasks of this program. */
static bool is_one_of_several(void)
{
	static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_LOCAL_SIZE",
		"SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE"};
	uint64_t n;

	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		const char *text = getenv(sizes[i]);

		if (text && cop_parse_u64(text, &n) == 0 && n > 1)
			return true;
	}
	return false;
}

/* Logs at level info that the command is one of several tasks and in a user namespace. */
static void inform_tasks(void)
{
	if (is_one_of_several() && is_first_task())
		cop_log_info(
			"tasks in a view reach each other's memory, but tasks outside of it cannot reach them, and MPI libraries fail: run all tasks of an MPI program with copper run, or use --view env");
}

/* Exit status if copper run itself fails, as in env(1), timeout(1) and others. */
#define FAILED 125

struct args {
	struct cop_conf mount; /* mount.source: if set, there is no node yet */
	pid_t parent;          /* the copper run that remains as parent; 0: none */
	struct cop_run_where where;
	unsigned view;
	struct cop_opt_list direct, below;
	const char *writable; /* NULL: not given; "": in memory */
	uint32_t log_level;
	bool check;
	char **command;
};

static const struct cop_opt_word views[] = {
	{"overlay", COP_VIEW_OVERLAY}, {"bind", COP_VIEW_BIND}, {"env", COP_VIEW_ENV}, {NULL, 0}};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "mount", struct args, where.mountpoint,
		"use the tree of this mount, if there are several", .arg = "MOUNTPOINT"),
	COP_OPT(ENUM, "view", struct args, view, "overlay, bind or env", .arg = "WORD",
		.words = views, .shown = "the first that works here"),
	COP_OPT(LIST, "direct", struct args, direct,
		"keep the storage's own DIR visible and writable", .arg = "DIR"),
	COP_OPT(OPTIONAL, "writable", struct args, writable,
		"allow private changes, kept in memory or DIR", .arg = "DIR"),
	COP_OPT(LIST, "below", struct args, below, "replace only this part of the source",
		.arg = "DIR"),
	COP_OPT(FLAG, "check", struct args, check, "show which view would be used, and why"),
	COP_OPT(U32, "log-level", struct args, log_level, "none fatal error warning info debug",
		.letter = 'l', .arg = "0-5", .max = 5, .initial = "3"),
	COP_OPT(STRING, "runtime-dir", struct args, where.runtime_dir,
		"directory of control sockets, as for mount", .arg = "DIR", .rare = true),
};

static int check_mount(struct args *a, struct cop_err *err)
{
	if (a->where.mountpoint)
		return cop_err_set(err, EINVAL,
			"--source starts a node, --mount names a running one: give only one of them");
	if (a->check)
		return cop_err_set(err, EINVAL,
			"--check asks a running node; copper mount --check tells whether a node can be started");
	a->mount.runtime_dir = a->where.runtime_dir;
	if (strcmp(a->mount.source, "/") == 0 && !a->below.n)
		return cop_err_set(err, EINVAL,
			"--source / cannot be replaced as a whole: name what the tree should replace, for example --below /soft");
	return cop_conf_check(&a->mount, err);
}

static int check_args(void *into, struct cop_err *err)
{
	struct args *a = into;

	if (!a->command && !a->check)
		return cop_err_set(err, EINVAL, "COMMAND is missing (see copper run --help)");
	if (a->mount.source)
		return check_mount(a, err);
	if (a->writable && (a->view == COP_VIEW_BIND || a->view == COP_VIEW_ENV))
		return cop_err_set(err, EINVAL, "--writable needs the view overlay");
	if (a->view == COP_VIEW_ENV && a->direct.n)
		return cop_err_set(err, EINVAL,
			"--direct needs the view overlay or bind: with env the source stays where it is");
	if (a->writable && *a->writable && a->below.n > 1)
		return cop_err_set(err, EINVAL, "--writable=DIR keeps the changes of one --below");
	return 0;
}

static void init_args(void *into)
{
	struct args *a = into;

	*a = (struct args){.view = COP_VIEW_BEST};
	cop_conf_init(&a->mount, false);
	a->mount.source = NULL;
}

/* The options of copper mount that apply to nodes started by copper run --source. */
static const char *const of_mount[] = {"source", "job-dir", "cache-size", "spill", "prefetch",
	"pack-limit", "kernel-ahead", "profile", "profile-top-n", "profile-paths-full",
	"profile-snapshot-interval", "observe", "max-cacheable-bytes", "enoent-ttl-ms", "chunk",
	"origin-ops", "listing-max", "keep-symlinks", "hidden", "cpus", "ready-timeout", "hosts",
	"port", "fabric-port", "net-type", "secret-file", "insecure", "trees", "fanout", "compress",
	"bundle", "rank-files", "peer-timeout", "address-book", "address-source", "trace",
	"trace-limit", "store", "tag", "store-interval", "telemetry", "otel"};

static struct cop_opt all_rows[COP_ARRAY_SIZE(rows) + COP_ARRAY_SIZE(of_mount)];

static struct cop_opt_table table = {.command = "copper run",
	.summary = "run COMMAND with the job's tree in place of its source",
	.init = init_args,
	.check = check_args,
	.rest = "COMMAND [ARGUMENT]...",
	.rest_offset = offsetof(struct args, command),
	.row = all_rows,
	.old = cop_conf_old};

static bool is_of_mount(const char *name)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(of_mount); i++)
		if (name && strcmp(name, of_mount[i]) == 0)
			return true;
	return false;
}

/* Joins the options of run and copper mount. */
static void make_table(void)
{
	memcpy(all_rows, rows, sizeof(rows));
	table.rows = COP_ARRAY_SIZE(rows);
	for (size_t i = 0; i < cop_conf_mount_table.rows; i++) {
		struct cop_opt row = cop_conf_mount_table.row[i];

		if (!is_of_mount(row.name))
			continue;
		row.offset += offsetof(struct args, mount);
		if (strcmp(row.name, "source") == 0) {
			row.initial = NULL;
			row.help = "start this tree, and stop it at the end";
		} else {
			row.rare = strcmp(row.name, "job-dir") != 0;
		}
		all_rows[table.rows++] = row;
	}
}

static int report_failure(const struct cop_err *err)
{
	fprintf(stderr, "copper run: %s\n", err->text);
	return FAILED;
}

/* Resolves links in the given directories; the caller frees the results. */
static int resolve_dirs(
	const char *option, const struct cop_opt_list *given, char **out, struct cop_err *err)
{
	for (unsigned i = 0; i < given->n; i++) {
		out[i] = realpath(given->at[i], NULL);
		if (!out[i])
			return cop_err_set(
				err, errno, "%s %s: %s", option, given->at[i], strerror(errno));
	}
	return 0;
}

static int check_source(const struct cop_view *v, struct cop_err *err)
{
	if (strcmp(v->source, "/") == 0 && !v->belows)
		return cop_err_set(err, EINVAL,
			"the source of %s is /, which cannot be replaced as a whole: name what the tree should replace, for example --below /soft",
			v->mountpoint);
	for (unsigned i = 0; i < v->belows; i++)
		if (!cop_view_is_below(v->below[i], v->source) || !strcmp(v->below[i], "/"))
			return cop_err_set(err, EINVAL,
				"--below %s: that is not below %s, the source of %s", v->below[i],
				v->source, v->mountpoint);
	for (unsigned i = 0; i < v->directs; i++)
		if (!cop_view_is_below(v->direct[i], v->source))
			return cop_err_set(err, EINVAL,
				"--direct %s: that is not below %s, the source of %s, and is the storage's own without it",
				v->direct[i], v->source, v->mountpoint);
	return 0;
}

/* Prints how a user namespace affects the command (user_namespaces(7)). */
static void print_limits(const struct cop_view_made *made)
{
	printf("%-8s %-12s %s\n", "note", "tasks",
		"run all tasks of an MPI program in the view, or none: --view env for mixed programs");
	printf("%-8s %-12s %s\n", "note", "owners",
		"files of root and of others show as nobody, so ssh and sudo refuse their configuration: the kernel lets an ordinary user map only its own numbers");
	if (made->loses_groups)
		printf("%-8s %-12s %s\n", "note", "groups",
			"chgrp to another group of this user fails with EINVAL: give rsync --no-group, or have the groups allowed in /etc/subgid, for newgidmap");
}

static int print_view(const struct cop_view *v, struct cop_err *err)
{
	struct cop_view_made made = {.kind = COP_VIEW_ENV};
	int rc = v->kind == COP_VIEW_ENV ? 0 : cop_view_probe(v->user_ns, &made, err);

	if (rc)
		return report_failure(err);
	printf("%-8s %-12s %s serves %s\n", "ok", "node", v->mountpoint, v->source);
	printf("%-8s %-12s %s%s%s\n", made.kind == COP_VIEW_OVERLAY ? "ok" : "warning", "view",
		cop_view_name(made.kind), made.why[0] ? ": " : "", made.why);
	if (made.kind != COP_VIEW_ENV && v->user_ns >= 0)
		print_limits(&made);
	return fflush(stdout) ? 1 : 0;
}

/* Returns in the child or, if fork fails, in this process: the command then still runs, but its
 * exit status remains unknown. */
static void stay_as_parent(struct args *a, const struct cop_run_node *node)
{
	struct cop_child_signals before;
	pid_t parent = getpid(), pid;
	int status;

	cop_child_expect(&before);
	cop_child_hold(&before);
	fflush(NULL);
	pid = fork();
	if (pid > 0) {
		cop_child_leave_streams(2);
		cop_close_range(3, ~0U);
		status = cop_child_wait(pid, NULL);
		cop_run_node_ended(node->socket, parent, status);
		sigprocmask(SIG_SETMASK, &before.blocked, NULL);
		exit(cop_child_end_as(status));
	}
	cop_child_restore(&before);
	if (pid == 0)
		a->parent = parent;
}

static int exec_command(struct args *a, const struct cop_run_node *node, const struct cop_view *v,
	struct cop_err *err)
{
	bool was_writable = access(".", W_OK) == 0;
	struct cop_view_made made;
	char foreign[PATH_MAX];
	gid_t group = 0;

	find_foreign_group(v, foreign, &group);
	if (cop_run_node_begin(node) && !a->parent)
		stay_as_parent(a, node);
	if (cop_view_make(v, &made, err))
		return report_failure(err);
	warn_group(foreign, group);
	warn_outputs(was_writable);
	if (made.kind == COP_VIEW_ENV && v->kind == COP_VIEW_BEST) {
		warn_variables(v, &made);
		cop_run_node_fell_back(node, made.why);
	}
	if (made.alone)
		warn_neighbours();
	if (made.kind != COP_VIEW_ENV && v->user_ns >= 0)
		inform_tasks();
	cop_log_close();
	/* Done last, because entering a user namespace would undo it. */
	if (a->parent)
		cop_child_tie(a->parent);
	return cop_view_exec(v, &made, a->command, err);
}

static int run_program(struct args *a, const struct cop_run_node *node, struct cop_err *err)
{
	char *direct[COP_OPT_LIST_MAX] = {NULL}, *below[COP_OPT_LIST_MAX] = {NULL};
	struct cop_view v = {.source = node->source,
		.mountpoint = node->mountpoint,
		.user_ns = node->user_ns,
		.kind = a->view,
		.below = (const char *const *)below,
		.belows = a->below.n,
		.direct = (const char *const *)direct,
		.directs = a->direct.n,
		.writable = a->writable != NULL,
		.writable_dir = a->writable && *a->writable ? a->writable : NULL};
	int code;

	if (a->check)
		return print_view(&v, err);
	if (resolve_dirs("--direct", &a->direct, direct, err) ||
		resolve_dirs("--below", &a->below, below, err) || check_source(&v, err))
		code = report_failure(err);
	else
		code = exec_command(a, node, &v, err);
	for (size_t i = 0; i < COP_OPT_LIST_MAX; i++) {
		free(direct[i]);
		free(below[i]);
	}
	return code;
}

static int find_and_run(struct args *a)
{
	struct cop_run_node node;
	struct cop_err err = {0};
	int code;

	if (cop_run_find_node(&a->where, &node, &err))
		return report_failure(&err);
	code = run_program(a, &node, &err);
	cop_run_node_close(&node);
	if (code == 126 || code == 127)
		fprintf(stderr, "copper run: %s\n", err.text);
	return code;
}

/* Runs in the process that becomes the command. */
static int run_below(void *arg, pid_t task, const char *mountpoint)
{
	struct args *a = arg;

	a->parent = task;
	a->where.mountpoint = mountpoint;
	return find_and_run(a);
}

int cop_cmd_run(int argc, char **argv)
{
	struct args a;
	int code;

	make_table();
	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	cop_log_open(a.log_level, COP_LOG_FILE, NULL, NULL);
	if (a.command && a.view != COP_VIEW_ENV)
		warn_order(a.command);
	a.where.command = a.command ? a.command[0] : NULL;
	return a.mount.source ? cop_run_tree(&a.mount, run_below, &a) : find_and_run(&a);
}
