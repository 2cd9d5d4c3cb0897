/* SPDX-License-Identifier: BSD-3-Clause */
/* copper stop --job-dir: stops the nodes of a job directory, even if none runs on this machine. */
#include "stop_job.h"

#include <limits.h>

#include "cmd.h"
#include "ending.h"
#include "mount/fuse/fuse.h"
#include "node/remotestop/remotestop.h"
#include "socket.h"

/* A node that was killed together with its guard leaves its mount. */
static int clear_mount(const char *mountpoint)
{
	char path[PATH_MAX];
	int rc;

	if (!mountpoint || cop_cmd_realpath(mountpoint, path) || !cop_fuse_is_dead(path))
		return 0;
	rc = cop_fuse_unmount_dead(path);
	if (rc)
		fprintf(stderr,
			"copper stop: %s: the node there is dead, and its mount cannot be removed: %s\n",
			path, strerror(-rc));
	else
		fprintf(stderr, "copper stop: %s: the node there was dead; its mount was removed\n",
			path);
	return rc ? 1 : 0;
}

struct here {
	const char *runtime_dir;
	struct cop_cmd_ending ending;
};

static void note_tree(void *arg, const char *tree)
{
	struct here *h = arg;

	cop_cmd_ending_tree(&h->ending, h->runtime_dir, tree);
}

int cop_cmd_print_stopped(unsigned stopped, unsigned of)
{
	if (printf("stopped %u/%u nodes\n", stopped, of) >= 0 && !fflush(stdout))
		return 0;
	fprintf(stderr,
		"copper stop: stopped %u/%u nodes, but that cannot be written to standard output\n",
		stopped, of);
	return 1;
}

static int show_stopped(const struct cop_remotestop_stopped *s)
{
	int rc = cop_cmd_print_stopped(s->stopped, s->of);

	fprintf(stderr, "%s", s->remarks.data ? s->remarks.data : "");
	if (s->unknown)
		fprintf(stderr,
			"copper stop: %u of %u nodes may still run; run it again, or on a machine that can reach them\n",
			s->unknown, s->of);
	else if (!s->stopped)
		fprintf(stderr, "copper stop: no node of this job runs any more\n");
	return rc || s->unknown || s->unwritten || s->mounted ? 1 : 0;
}

int cop_cmd_stop_job(const struct cop_cmd_stop_job *what, char socket[108])
{
	struct here here = {.runtime_dir = what->runtime_dir};
	struct cop_remotestop_stopped result;
	struct cop_err err = {0};
	unsigned left;
	int rc = cop_remotestop_stop(&(struct cop_remotestop_stop){.job_dir = what->job_dir,
					     .secret_file = what->secret_file,
					     .timeout_ms = what->timeout_ms,
					     .known = note_tree,
					     .arg = &here},
		    &result, &err),
	    code = 1;

	socket[0] = '\0';
	if (rc == -EALREADY) {
		fprintf(stderr, "copper stop: nothing to stop: %s\n", err.text);
		code = cop_cmd_print_stopped(0, 0);
	} else if (rc) {
		fprintf(stderr, "copper stop: %s\n", err.text);
	} else if (result.socket[0]) {
		memcpy(socket, result.socket, sizeof(result.socket));
		code = 0;
	} else {
		code = show_stopped(&result);
	}
	left = cop_cmd_ending_wait(&here.ending);
	if (left)
		fprintf(stderr, "copper stop: %u processes of these nodes have not ended yet\n",
			left);
	cop_buf_free(&result.remarks);
	return clear_mount(what->mountpoint) | code;
}
