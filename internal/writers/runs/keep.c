/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes to the store or, while it is unavailable, to a file with the whole record. */
#include "writers/runs/runlog_priv.h"

#include "base/log/log.h"
#include "writers/runs/runs.h"

static void file_in(const struct cop_runlog *r, char out[PATH_MAX + 64])
{
	snprintf(out, PATH_MAX + 64, "%s/runs/%s" COP_RUNREC_SUFFIX, r->job_dir, r->record.id);
}

static int keep_in_job_dir(struct cop_runlog *r, struct cop_err *err)
{
	char dir[PATH_MAX + 16], file[PATH_MAX + 64];
	struct cop_buf text = {0};
	int rc;

	snprintf(dir, sizeof(dir), "%s/runs", r->job_dir);
	rc = cop_make_dirs_said(dir, 0755, err);
	if (rc)
		return rc;
	file_in(r, file);
	cop_runrec_write(&r->record, &text);
	rc = text.failed ? -ENOMEM : cop_write_file(file, text.data, text.len, 0644);
	cop_buf_free(&text);
	r->kept |= rc == 0;
	return rc ? cop_err_set(err, -rc, "%s: %s", file, strerror(-rc)) : 0;
}

/* Logged once: the next write may succeed, or fail for another reason. */
static void log_failure(struct cop_runlog *r, const struct cop_err *why, const char *where)
{
	if (!r->complained)
		cop_log_warn("the run is not recorded in its store: %s; %s", why->text, where);
	r->complained = true;
}

/* Writes the file next to the store only if the store was locked: then the next reader can probably
 * import it. */
static void keep_elsewhere(struct cop_runlog *r, int why, const struct cop_err *err)
{
	struct cop_err ignored;

	if (why == -EBUSY || why == -ENOLCK)
		r->kept_beside |= cop_store_put_beside(r->store, &r->record, &ignored) == 0;
	if (*r->job_dir && keep_in_job_dir(r, &ignored) == 0)
		log_failure(r, err, "copper runs import JOBDIR takes it from the job directory");
	else if (r->kept_beside)
		log_failure(
			r, err, "the next copper runs takes it from the folder beside the store");
	else
		log_failure(r, err, "and nothing else keeps it");
}

static void drop_kept(struct cop_runlog *r)
{
	char file[PATH_MAX + 64];

	file_in(r, file);
	if (r->kept)
		cop_unlink(file);
	if (r->kept_beside)
		cop_store_drop_beside(r->store, r->record.id);
	r->kept = r->kept_beside = false;
}

void cop_runlog_keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err)
{
	int rc;

	r->record.seen_s = (double)cop_wall_ns() / 1e9;
	rc = cop_store_put(r->store, &r->record, r->stored_step, deadline_ms, err);
	if (rc) {
		keep_elsewhere(r, rc, err);
		return;
	}
	drop_kept(r);
	r->complained = false;
	r->stored_step = r->record.step + 1;
}

/* Failures are retried next time, or by copper runs import. */
void cop_runlog_take(struct cop_runlog *r, uint64_t deadline_ms)
{
	struct cop_buf notes = {0};
	char dir[PATH_MAX + 16];
	struct cop_err ignored;
	char *rest, *line;

	if (!*r->job_dir || !r->take || r->complained)
		return;
	snprintf(dir, sizeof(dir), "%s/runs", r->job_dir);
	(void)cop_take_logs(r->take, dir, r->record.id, r->store, deadline_ms, &notes, &ignored);
	for (rest = notes.data; rest && (line = strsep(&rest, "\n"));)
		if (*line)
			cop_log_warn("%s", line);
	cop_buf_free(&notes);
}
