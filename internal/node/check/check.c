/* SPDX-License-Identifier: BSD-3-Clause */
/* `copper mount --check`, `copper serve --check`: checks what a start requires, point by point,
 * with the same functions as the start and thus the same messages. It does not mount, and creates
 * only the folder of control sockets. It opens the endpoint and the port, closes them again, and
 * probes ports of the other hosts. If a check fails, those that depend on it are skipped. */
#include "node/check/check_priv.h"
#include "mount/view/view.h"

#include "node/mountdir/mountdir.h"
#include "tree/prefetch/prefetch.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

void cop_check_say(struct check *c, const char *name, enum check_state state, const char *fmt, ...)
{
	static const char *const words[] = {"ok", "warning", "failed"};
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->failed += state == CHECK_FAILED;
	c->warnings += state == CHECK_WARNING;
	if (!c->conf->json) {
		cop_buf_printf(c->out, "%-8s %-12s %s\n", words[state], name, text);
		return;
	}
	cop_json_object(&c->json, NULL);
	cop_json_str(&c->json, "name", name);
	cop_json_str(&c->json, "state", words[state]);
	cop_json_str(&c->json, "text", text);
	cop_json_end(&c->json);
}

/* ---- the kernel and the mount ---- */

static void check_fuse(struct check *c)
{
	struct cop_err err = {0};

	if (c->conf->serve_only)
		return;
	if (cop_fuse_check_machine(&err))
		cop_check_say(c, "fuse", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "fuse", CHECK_OK, "/dev/fuse can be opened, and %s",
			geteuid() ? "fusermount3 is installed" : "this user is root");
	if (!c->conf->allow_other)
		return;
	if (cop_fuse_check_allow_other(&err))
		cop_check_say(c, "allow_other", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "allow_other", CHECK_OK, "%s",
			geteuid() ? "/etc/fuse.conf has user_allow_other" : "root may");
}

static void check_kernel(struct check *c)
{
	struct cop_buf lacks = {0};
	char release[65];

	if (c->conf->serve_only)
		return;
	cop_fuse_check_kernel(release, &lacks);
	if (lacks.len)
		cop_check_say(c, "kernel", CHECK_WARNING,
			"Linux %s is too old for %s, unless its vendor added them: it works, but more requests reach the node; 5.14 has all",
			release, lacks.data);
	else
		cop_check_say(
			c, "kernel", CHECK_OK, "Linux %s has all that the mount asks for", release);
	cop_buf_free(&lacks);
}

/* Checks the view that copper run would create for programs. */
static void check_view(struct check *c)
{
	struct cop_view_made made;
	struct cop_err err = {0};

	if (c->conf->serve_only)
		return;
	if (cop_view_probe(-1, &made, &err))
		cop_check_say(c, "view", CHECK_WARNING, "%s", err.text);
	else if (made.kind == COP_VIEW_OVERLAY)
		cop_check_say(c, "view", CHECK_OK,
			"copper run can put an overlay of the tree in place of its source");
	else
		cop_check_say(c, "view", CHECK_WARNING, "copper run can only use the view %s: %s",
			cop_view_name(made.kind), made.why);
}

static void check_mountpoint(struct check *c)
{
	struct cop_buf place = {0};
	struct cop_err err = {0};
	char path[4096];

	if (c->conf->serve_only)
		return;
	if (cop_mountdir_check(c->conf, &place, &err))
		cop_check_say(c, "mountpoint", CHECK_FAILED, "%s", err.text);
	else if (cop_mountdir_name(c->conf, path, &err) == 0 && cop_fuse_check_shared(path, &err))
		cop_check_say(c, "mountpoint", CHECK_WARNING, "%s", err.text);
	else
		cop_check_say(c, "mountpoint", CHECK_OK, "%s", place.data);
	cop_buf_free(&place);
}

/* Reports whether a name that is missing from a directory listing is sure not to exist. */
static void tell_listings(struct check *c, struct cop_origin *o)
{
	bool all = cop_origin_lists_all(o);
	char type[COP_MOUNT_TYPE_SIZE];

	if (cop_mount_type(c->source, type) || !*type)
		snprintf(type, sizeof(type), "of an unknown type");
	if (all && cop_conf_trusts_listings(c->conf))
		cop_check_say(c, "listings", CHECK_OK,
			"the file system is %s; its listings are believed to have all names (--hidden none)",
			type);
	else if (all)
		cop_check_say(c, "listings", CHECK_OK,
			"the file system is %s, which lists all its names", type);
	else
		cop_check_say(c, "listings", CHECK_OK,
			"the file system is %s, which may have names that it does not list: it is asked once for each absent name (--hidden none: believe its listings)",
			type);
}

static void check_source(struct check *c)
{
	struct cop_origin_conf conf = {.source = c->source,
		.max_ops = 1,
		.trusts_listings = cop_conf_trusts_listings(c->conf)};
	struct cop_origin *o = NULL;
	struct cop_err err = {0};

	if (!realpath(c->conf->source, c->source))
		cop_check_say(c, "source", CHECK_FAILED, "--source %s: %s", c->conf->source,
			strerror(errno));
	else if (cop_origin_open(&conf, &o, &err))
		cop_check_say(c, "source", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "source", CHECK_OK, "%s can be read%s", c->source,
			strcmp(c->source, "/")
				? ""
				: "; a --source without /proc and /tmp below it saves requests");
	if (o)
		tell_listings(c, o);
	cop_origin_close(o);
}

/* ---- the job ---- */

/* Truncates a path to the part that exists. */
static void cut_to_existing(char *path)
{
	while (access(path, F_OK) && errno == ENOENT) {
		char *slash = strrchr(path, '/');

		if (!slash)
			strcpy(path, ".");
		else if (slash == path)
			slash[1] = '\0';
		else
			*slash = '\0';
	}
}

static void check_job_dir(struct check *c)
{
	const char *dir = c->conf->job_dir;
	struct cop_err err = {0};
	char path[PATH_MAX];
	struct stat st;

	if (!dir) {
		cop_check_say(c, "job_dir", CHECK_OK, "none is given (-d): no log, no reports");
		return;
	}
	snprintf(path, sizeof(path), "%s", dir);
	cut_to_existing(path);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		cop_check_say(c, "job_dir", CHECK_FAILED,
			"%s is not a directory; choose one that all nodes share", path);
	else if (access(path, W_OK | X_OK))
		cop_check_say(c, "job_dir", CHECK_FAILED,
			"%s: %s; choose a directory that you may write to and all nodes share",
			path, strerror(errno));
	else if (!strcmp(path, dir) && cop_job_dir_check(dir, &err))
		cop_check_say(c, "job_dir", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "job_dir", CHECK_OK,
			strcmp(path, dir) ? "%s will be made" : "%s can be written", dir);
}

static void check_hosts(struct check *c)
{
	struct cop_job_want want = {
		c->conf->hosts, c->conf->port, c->conf->rank, c->conf->of_step, c->conf->step_tree};
	struct cop_err err = {0};

	if (cop_job_find(&want, &c->hosts, &c->rank, &err)) {
		cop_check_say(c, "hosts", CHECK_FAILED, "%s", err.text);
		return;
	}
	c->nodes = c->hosts.count ? c->hosts.count : 1;
	if (c->hosts.count == 0)
		cop_check_say(
			c, "hosts", CHECK_OK, "no --hosts and no scheduler: a tree of one node");
	else
		cop_check_say(c, "hosts", CHECK_OK, "%u from %s; this is rank %u, %s", c->nodes,
			c->hosts.origin ? c->hosts.origin : "--hosts", c->rank,
			cop_job_host_name(&c->hosts, c->rank));
}

/* Whether rank 0 will create the secret at the start; the check itself does not create it. */
static bool will_be_made(const struct cop_conf *conf)
{
	const char *text = getenv("COPPER_SECRET");

	return !conf->secret_file && !(text && *text) && conf->job_dir &&
	       cop_job_secret_to_come(conf->job_dir);
}

static void check_secret(struct check *c)
{
	const struct cop_conf *conf = c->conf;
	struct cop_job_secret_from from = {
		.file = conf->secret_file, .job_dir = conf->job_dir, .rank = c->rank ? c->rank : 1};
	struct cop_wire_secret keys;
	struct cop_err err = {0};

	if (c->nodes <= 1)
		return;
	if (conf->insecure)
		cop_check_say(c, "secret", CHECK_WARNING,
			"--insecure: anyone who reaches the ports of this job can send requests and answers");
	else if (will_be_made(conf))
		cop_check_say(c, "secret", CHECK_OK,
			"rank 0 will create %s/secret, which all nodes must see", conf->job_dir);
	else if (cop_job_secret(&from, &c->secret, &err))
		cop_check_say(c, "secret", CHECK_FAILED, "%s", err.text);
	else if (!c->secret.data)
		cop_check_say(c, "secret", CHECK_FAILED,
			"several nodes need a secret that they share: give --secret-file FILE, or $COPPER_SECRET, or a job directory (-d DIR)");
	else if (cop_wire_secret_from(c->secret.data, c->secret.len, &keys))
		cop_check_say(c, "secret", CHECK_FAILED,
			"the job's secret is shorter than 16 bytes; make one with 'head -c 32 /dev/urandom | base64'");
	else
		cop_check_say(c, "secret", CHECK_OK, "exists, and nobody else may read it");
}

static void check_control(struct check *c)
{
	char dir[COP_CTL_PATH_SIZE];
	struct cop_err err = {0};

	if (cop_ctl_dir(c->conf->runtime_dir, dir, sizeof(dir), &err))
		cop_check_say(c, "runtime_dir", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "runtime_dir", CHECK_OK, "control sockets are in %s", dir);
}

static void check_cpus(struct check *c)
{
	const char *cpus = c->conf->cpus;
	struct cop_buf now = {0}, all = {0};
	struct cop_err err = {0};
	bool bound = !cpus && cop_cpus_bound(&now, &all);

	if (!bound)
		cop_cpus_list(&now);
	if (bound)
		cop_check_say(c, "cpus", CHECK_WARNING,
			"bound to %s of %s by the launcher: if the application runs there, give -b LIST, or "
			"start the node unbound (mpiexec or srun --cpu-bind=none)",
			now.data, all.data);
	else if (!cpus || strcmp(cpus, "near") == 0)
		cop_check_say(
			c, "cpus", CHECK_OK, "the node may run on %s", now.data ? now.data : "any");
	else if (cop_cpus_pin(cpus, &err))
		cop_check_say(c, "cpus", CHECK_FAILED, "--cpus %s: %s", cpus, err.text);
	else
		cop_check_say(c, "cpus", CHECK_OK, "all threads will run on %s", cpus);
	cop_buf_free(&now);
	cop_buf_free(&all);
}

/* ---- recordings ---- */

static void check_prefetch(struct check *c)
{
	const char *prefetch = cop_conf_prefetch(c->conf);
	char path[COP_PREFETCH_PATH], pack[COP_PREFETCH_PATH], size[16], more[16], limit[16];
	struct stat st, kept;

	if (!prefetch)
		cop_check_say(c, "prefetch", CHECK_OK, "off: nothing is fetched ahead or recorded");
	else if (*prefetch && strcmp(prefetch, "auto"))
		cop_check_say(c, "prefetch", CHECK_OK, "%s is fetched ahead", prefetch);
	else if (!*c->source)
		return;
	else if (!*prefetch && cop_prefetch_is_system(c->source))
		cop_check_say(c, "prefetch", CHECK_OK,
			"nothing is recorded of %s, which is the system's own", c->source);
	else if (!cop_prefetch_kept_at(c->source, path))
		cop_check_say(c, "prefetch", CHECK_WARNING,
			"nothing can be recorded for the next job: set HOME or XDG_CACHE_HOME");
	else if (!stat(path, &st) && c->conf->pack_limit && cop_prefetch_pack_at(c->source, pack) &&
		 !stat(pack, &kept))
		cop_check_say(c, "prefetch", CHECK_OK,
			"what programs need is recorded for the next job, in %s (%s), and kept in %s (%s of at most %s; remove both to forget)",
			path, cop_format_size((uint64_t)st.st_size, size), pack,
			cop_format_size((uint64_t)kept.st_size, more),
			cop_format_size(c->conf->pack_limit, limit));
	else if (stat(path, &st))
		cop_check_say(c, "prefetch", CHECK_OK,
			"what programs need is recorded for the next job, in %s", path);
	else
		cop_check_say(c, "prefetch", CHECK_OK,
			"what programs need is recorded for the next job, in %s (%s; remove it to forget)",
			path, cop_format_size((uint64_t)st.st_size, size));
}

int cop_check_file_limit(struct cop_err *err)
{
	enum { FEWEST = 64 };
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) || most.rlim_max >= FEWEST)
		return 0;
	return cop_err_set(err, EMFILE,
		"only %ju files may be open here, and a node needs %d: raise the hard limit ('ulimit -Hn')",
		(uintmax_t)most.rlim_max, FEWEST);
}

static void check_files(struct check *c)
{
	struct cop_err err = {0};

	if (cop_check_file_limit(&err))
		cop_check_say(c, "files", CHECK_FAILED, "%s", err.text);
	else
		cop_check_say(c, "files", CHECK_OK, "enough files may be open");
}

/* ---- all ---- */

static void run_checks(struct check *c)
{
	static void (*const checks[])(struct check *) = {
		check_fuse,
		check_kernel,
		check_view,
		check_mountpoint,
		check_source,
		check_job_dir,
		check_hosts,
		check_secret,
		cop_check_network,
		cop_check_peers,
		check_cpus,
		check_files,
		cop_check_memory,
		cop_check_spill,
		check_prefetch,
		check_control,
	};

	for (size_t i = 0; i < COP_ARRAY_SIZE(checks); i++)
		checks[i](c);
}

static void free_check(struct check *c)
{
	for (uint32_t r = 0; c->book && r < c->hosts.count; r++)
		free(c->book[r]);
	free(c->book);
	cop_job_secret_free(&c->secret);
	cop_job_hosts_free(&c->hosts);
}

static void put_conclusion(const struct check *c)
{
	if (c->failed)
		cop_buf_printf(c->out, "not ready: %u failed\n", c->failed);
	else
		cop_buf_printf(
			c->out, c->warnings ? "ready, with %u warnings\n" : "ready\n", c->warnings);
}

static void run_checks_json(struct check *c)
{
	cop_json_object(&c->json, NULL);
	cop_json_array(&c->json, "checks");
	run_checks(c);
	cop_json_end(&c->json);
	cop_json_u64(&c->json, "warnings", c->warnings);
	cop_json_u64(&c->json, "failed", c->failed);
	cop_json_bool(&c->json, "ok", !c->failed);
	cop_json_end(&c->json);
	cop_buf_str(c->out, "\n");
}

int cop_check_run(const struct cop_conf *conf, struct cop_buf *out)
{
	struct check c = {.conf = conf, .out = out, .json = cop_json_to(out)};

	if (conf->json) {
		run_checks_json(&c);
	} else {
		run_checks(&c);
		put_conclusion(&c);
	}
	free_check(&c);
	return out->failed ? -ENOMEM : (int)c.failed;
}
