/* SPDX-License-Identifier: BSD-3-Clause */
#include "secret.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "job/startnote/startnote.h"

void cop_secret_init(
	struct cop_secret *s, const struct cop_conf *conf, uint32_t rank, uint32_t nodes)
{
	s->conf = conf;
	s->rank = rank;
	s->nodes = nodes;
	s->dir = rank == 0 && nodes > 1 && !conf->job_dir ? conf->secret_dir : NULL;
}

static int make_dir(const char *dir, struct cop_err *err)
{
	if (!dir || mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	return cop_err_set(err, errno,
		"cannot create %s for the secret that several nodes need: %s; give a job directory that all of them see (-d DIR)",
		dir, strerror(errno));
}

int cop_secret_find(struct cop_secret *s, bool (*in_vain)(void *ctx, struct cop_err *err),
	void *ctx, struct cop_err *err)
{
	const struct cop_conf *c = s->conf;
	struct cop_job_secret_from from = {c->secret_file, c->job_dir ? c->job_dir : c->secret_dir,
		s->rank, c->ready_timeout_ms, in_vain, ctx};
	int rc;

	if (s->nodes == 1 || c->insecure)
		return 0;
	rc = make_dir(s->dir, err);
	if (rc)
		return rc;
	rc = cop_job_secret(&from, &s->job, err);
	if (rc)
		return rc;
	if (!s->job.data)
		return cop_err_set(err, EINVAL,
			"several nodes need a secret that they share: give --secret-file FILE, or $COPPER_SECRET, or a job directory (-d DIR) in which the nodes keep one; --insecure does without");
	if (cop_wire_secret_from(s->job.data, s->job.len, &s->wire))
		return cop_err_set(err, EINVAL,
			"the job's secret is shorter than 16 bytes; make one with 'head -c 32 /dev/urandom | base64'");
	return 0;
}

static void drop_dir(struct cop_secret *s, bool wait)
{
	if (s->dir)
		cop_startnote_remove(s->dir, wait);
	s->dir = NULL;
}

void cop_secret_shared(struct cop_secret *s)
{
	drop_dir(s, false);
}

void cop_secret_fini(struct cop_secret *s)
{
	drop_dir(s, true);
	cop_job_secret_free(&s->job);
}
