/* SPDX-License-Identifier: BSD-3-Clause */
#include "joblog.h"

#include "job/dir/dir.h"
#include "base/log/log.h"

int cop_joblog_open(
	const struct cop_conf *conf, const char *host, struct cop_joblog *out, struct cop_err *err)
{
	char self[256] = "localhost";
	int rc;

	*out = (struct cop_joblog){.path = ""};
	if (!conf->job_dir)
		return cop_log_open(conf->log_level, conf->log_type, NULL, err);
	rc = cop_job_dir_make(conf->job_dir, err);
	if (rc)
		return rc;
	/* An absolute path, because the node changes its working directory later. */
	if (!realpath(conf->job_dir, out->job_dir))
		return cop_err_set(err, errno, "%s: %s", conf->job_dir, strerror(errno));
	rc = cop_job_dir_check(out->job_dir, err);
	if (rc)
		return rc;
	gethostname(self, sizeof(self) - 1);
	snprintf(out->path, sizeof(out->path), "%s/logs/%s-%d-output.log", out->job_dir,
		host ? host : self, (int)getpid());
	rc = cop_log_open(conf->log_level, conf->log_type, out->path, err);
	if (rc)
		out->path[0] = '\0';
	return rc;
}

void cop_joblog_begin(const struct cop_conf *c, uint32_t rank, uint32_t nodes, const char *source,
	const char *mountpoint)
{
	cop_log_info("copper %s (%s) rank=%u nodes=%u source=%s mountpoint=%s", cop_version,
		cop_build, rank, nodes, source, *mountpoint ? mountpoint : "none");
	cop_log_info("user-facing log_level: %u", c->log_level);
	cop_log_info("profile_metrics: %s", c->profile ? "enabled" : "disabled");
	cop_log_info("profile_top_n: %" PRIu32, c->profile_top_n);
	cop_log_info("profile_paths_full: %s", c->profile_paths_full ? "enabled" : "disabled");
	cop_log_debug("fanout=%" PRIu32 " trees=%" PRIu32 " chunk=%" PRIu64 " cache_size=%" PRIu64
		      " enoent_ttl_ms=%" PRIu32 " max_cacheable=%" PRIu64
		      " peer_timeout_ms=%" PRIu32 " origin_ops=%" PRIu32
		      " (0: as the node finds fit)",
		c->fanout, c->trees, c->chunk, c->cache_size, c->enoent_ttl_ms, c->max_cacheable,
		c->peer_timeout_ms, c->origin_ops);
}

void cop_joblog_note(const char *text)
{
	if (!text || !*text)
		return;
	fprintf(stderr, "copper: note: %s\n", text);
	cop_log_info("note: %s", text);
}
