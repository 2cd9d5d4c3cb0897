/* SPDX-License-Identifier: BSD-3-Clause */
/* JOBDIR/secret: how nodes that share a directory agree on one secret, and tell it from an older
 * job's.
 *
 * Rank 0 creates the file, complete before it becomes visible, and the other ranks wait for it. Its
 * second line names the scheduler job. A file that names another job is left over from one that was
 * killed: rank 0 replaces it, and the other ranks ignore it. Two processes may both be rank 0 (two
 * trees of one job), so the new file is first called JOBDIR/secret.JOB, a name that only one of
 * them can create. That process checks again, and renames the file if the old one still exists. A
 * file without such a line is the user's own and is used as it is. */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <time.h>

#include "job/dir/dir_priv.h"

#define RANDOM_BYTES 32
#define POLL_MS_FIRST 10
#define POLL_MS_MOST 200
#define MADE "made by copper" /* how the second line begins */
#define FOR " for job "       /* then the job, if there is one */
#define JOB_SIZE 80
#define NO_MEMORY "no memory for the secret"

/* ---- which job it is for ---- */

/* The scheduler's name for this job, made into a valid file name; "" if there is no scheduler. */
static void this_job(char job[JOB_SIZE])
{
	const char *slurm = getenv("SLURM_JOB_ID"), *pbs = getenv("PBS_JOBID");

	snprintf(job, JOB_SIZE, "%s", slurm && *slurm ? slurm : pbs ? pbs : "");
	for (char *c = job; *c; c++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-[]",
			    *c))
			*c = '_';
}

/* Whether Copper created the secret, and for which job ("" if unknown). */
static bool made_for(const struct cop_job_secret *s, char job[JOB_SIZE])
{
	const char *line = s->data ? strchr(s->data, '\n') : NULL;

	if (!line || strncmp(line + 1, MADE, strlen(MADE)))
		return false;
	line += 1 + strlen(MADE);
	snprintf(job, JOB_SIZE, "%s", strncmp(line, FOR, strlen(FOR)) ? "" : line + strlen(FOR));
	job[strcspn(job, "\n")] = '\0';
	return true;
}

/* Whether the secret belongs to another scheduler job, which is then stored in whose. */
static bool is_stale(const struct cop_job_secret *s, const char *job, char whose[JOB_SIZE])
{
	return *job && made_for(s, whose) && *whose && strcmp(whose, job) != 0;
}

/* ---- creation ---- */

/* Gives the complete file its final name. link(2) never replaces a file; where hard links are
 * unsupported, rename without replacement does the same. Returns 0, -EEXIST or another error. */
static int publish_secret(const struct cop_dir *at, const char *tmp)
{
	if (!linkat(at->fd, tmp, at->fd, at->name, 0))
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	return renameat2(at->fd, tmp, at->fd, at->name, RENAME_NOREPLACE) ? -errno : 0;
}

static int write_random(int fd, const char *job)
{
	unsigned char raw[RANDOM_BYTES];
	char text[2 * RANDOM_BYTES + sizeof("\n" MADE FOR "\n") + JOB_SIZE];
	int len = 2 * RANDOM_BYTES;
	ssize_t n;

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(text + 2 * i, 3, "%02x", raw[i]);
	len += snprintf(
		text + len, sizeof(text) - (size_t)len, "\n" MADE "%s%s\n", *job ? FOR : "", job);
	n = cop_write_full(fd, text, (size_t)len);
	explicit_bzero(raw, sizeof(raw));
	explicit_bzero(text, sizeof(text));
	return n < 0 ? (int)n : 0;
}

/* Creates a new secret under that name; -EEXIST if the name is taken. */
static int make_at(const struct cop_dir *at, const char *job)
{
	char *tmp = NULL;
	int fd = cop_open_temp(at, &tmp), rc = fd < 0 ? fd : write_random(fd, job);

	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	if (!rc)
		rc = publish_secret(at, tmp);
	if (fd >= 0)
		unlinkat(at->fd, tmp, 0);
	free(tmp);
	return rc;
}

static int make_secret(const char *path, const char *job, struct cop_err *err)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at);

	if (!rc)
		rc = make_at(&at, job);
	cop_dir_done(&at);
	return rc && rc != -EEXIST ? cop_err_set(err, -rc, "cannot create the job's secret %s: %s",
					     path, strerror(-rc))
				   : rc;
}

/* Replaces another job's secret. If another process claims it first, waits for that one to
 * finish. */
static int renew_secret(const char *path, const char *job, struct cop_err *err)
{
	struct cop_job_secret now = {0};
	char *claim, whose[JOB_SIZE];
	int rc;

	if (asprintf(&claim, "%s.%s", path, job) < 0)
		return cop_err_set(err, ENOMEM, NO_MEMORY);
	rc = make_secret(claim, job, err);
	if (rc == 0 && cop_job_secret_read(path, &now, NULL) == 0 && !is_stale(&now, job, whose))
		cop_unlink(claim);
	else if (rc == 0 && (rc = cop_rename(claim, path)))
		cop_err_set(err, -rc,
			"cannot replace the secret of an older job, %s: %s; remove it", path,
			strerror(-rc));
	cop_job_secret_free(&now);
	free(claim);
	return rc == -EEXIST ? 0 : rc;
}

/* Makes sure, on rank 0, that there is a secret. note is for a message to the user. */
static int provide_secret(
	const char *path, const char *job, char *note, size_t size, struct cop_err *err)
{
	struct cop_job_secret now = {0};
	char whose[JOB_SIZE];
	int rc = cop_job_secret_read(path, &now, err);

	if (rc == -ENOENT) {
		rc = make_secret(path, job, err);
		return rc == -EEXIST ? 0 : rc;
	}
	if (rc == 0 && is_stale(&now, job, whose)) {
		snprintf(note, size, "%s was left behind by job %s; this job, %s, has a new one",
			path, whose, job);
		rc = renew_secret(path, job, err);
	} else if (rc == 0 && made_for(&now, whose) && !*whose) {
		snprintf(note, size,
			"%s exists from an earlier start and is used again; to get a new one, remove the file before a start when no node of the earlier one runs any more",
			path);
	}
	cop_job_secret_free(&now);
	return rc;
}

/* ---- waiting ---- */

static void pause_ms(uint64_t ms)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};

	nanosleep(&ts, NULL);
}

static int too_late(const char *path, const char *job, const char *whose, uint32_t timeout_ms,
	struct cop_err *err)
{
	if (*whose)
		return cop_err_set(err, ETIMEDOUT,
			"waited %u ms for rank 0 to replace %s, which is of job %s while this is job %s: did rank 0 start, and does each running job have a job directory of its own?",
			timeout_ms, path, whose, job);
	return cop_err_set(err, ETIMEDOUT,
		"waited %u ms for %s, which rank 0 creates: did rank 0 start, and is the job directory on a file system "
		"that all nodes share?",
		timeout_ms, path);
}

static int await_secret(const char *path, const char *job, const struct cop_job_secret_from *from,
	struct cop_job_secret *out, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + from->timeout_ms, wait = POLL_MS_FIRST;

	for (;;) {
		char whose[JOB_SIZE] = "";
		int rc = cop_job_secret_read(path, out, err);
		uint64_t now = cop_now_ms();

		if (rc ? rc != -ENOENT : !is_stale(out, job, whose))
			return rc;
		cop_job_secret_free(out);
		if (now >= end)
			return too_late(path, job, rc ? "" : whose, from->timeout_ms, err);
		if (from->in_vain && from->in_vain(from->ctx, err))
			return -ECANCELED;
		pause_ms(COP_MIN(wait, end - now));
		wait = COP_MIN(wait * 2, (uint64_t)POLL_MS_MOST);
	}
}

int cop_job_secret_shared(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err)
{
	char *path, job[JOB_SIZE], note[sizeof(out->note)] = "";
	int rc = 0;

	this_job(job);
	if (asprintf(&path, "%s/secret", from->job_dir) < 0)
		return cop_err_set(err, ENOMEM, NO_MEMORY);
	if (from->rank == 0)
		rc = provide_secret(path, job, note, sizeof(note), err);
	if (!rc)
		rc = await_secret(path, job, from, out, err);
	free(path);
	snprintf(out->note, sizeof(out->note), "%s", note);
	return rc;
}

bool cop_job_secret_to_come(const char *job_dir)
{
	struct cop_job_secret now = {0};
	char *path, job[JOB_SIZE], whose[JOB_SIZE];
	bool yes;

	this_job(job);
	if (asprintf(&path, "%s/secret", job_dir) < 0)
		return false;
	yes = cop_job_secret_read(path, &now, NULL) == -ENOENT || is_stale(&now, job, whose);
	cop_job_secret_free(&now);
	free(path);
	return yes;
}

void cop_job_secret_retire(const char *job_dir, const struct cop_job_secret *s)
{
	struct cop_job_secret now = {0};
	char *path, job[JOB_SIZE];

	if (!made_for(s, job) || *job || asprintf(&path, "%s/secret", job_dir) < 0)
		return;
	if (cop_job_secret_read(path, &now, NULL) == 0 && now.len == s->len &&
		memcmp(now.data, s->data, s->len) == 0)
		cop_unlink(path);
	cop_job_secret_free(&now);
	free(path);
}
