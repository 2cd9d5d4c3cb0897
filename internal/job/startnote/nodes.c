/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that cannot start notifies the others, which would otherwise wait for it until they time
 * out. It may have no network yet, so it writes a message to the job directory. The root checks for
 * it, as do nodes that get no reply from their parent; all others get it from the root, in the
 * reply to their request for the end of the start barrier. The file is removed when the tree is
 * ready. */
#include "job/dir/dir.h"
#include "job/startnote/startnote.h"

#include <poll.h>

#define LOOK_MS 1000
#define STAY_MS (5 * LOOK_MS / 2)
/* Less than a node is allowed to take to exit. */
#define STAY_LATE_MS 7000
/* Messages at least this old are from an earlier start in the same directory. */
#define AGE_NS (60 * COP_NS_PER_S)

void cop_startnote_leave(
	const char *job_dir, const char *host, uint32_t rank, const struct cop_err *failure)
{
	char text[COP_STARTNOTE_WHY_SIZE];

	/* Only a node that had started and was waiting for the others is interrupted. */
	if (failure->code == EINTR)
		snprintf(text, sizeof(text),
			COP_STARTNOTE_NOT_READY "%.250s (rank %" PRIu32 ") %.700s", host, rank,
			failure->text);
	else
		snprintf(text, sizeof(text), "%s", failure->text);
	cop_job_failure_write(job_dir, rank, text);
}

void cop_startnote_begin(
	struct cop_startnote_watch *w, const char *job_dir, uint32_t rank, const char *log_path)
{
	*w = (struct cop_startnote_watch){
		.job_dir = job_dir, .began_ns = cop_job_file_time(log_path)};
	/* If the log is in another directory, it does not tell the job directory's time. We need
	 * the file system's time, because this machine's clock may differ. */
	if (!w->began_ns)
		w->began_ns = cop_job_dir_time(job_dir);
	cop_startnote_pass(w, cop_now_ms());
	cop_job_failure_clear(job_dir, rank);
}

void cop_startnote_begin_in(struct cop_startnote_watch *w, const char *dir)
{
	*w = (struct cop_startnote_watch){
		.job_dir = dir, .began_ns = cop_wall_ns() - AGE_NS, .of_step = true};
	cop_startnote_pass(w, cop_now_ms());
}

void cop_startnote_end(const struct cop_startnote_watch *w)
{
	if (w->began_ns && !w->of_step)
		cop_job_failure_clear(w->job_dir, -1);
}

void cop_startnote_remove_empty(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%.4000s/logs", dir);
	rmdir(path);
	rmdir(dir);
}

bool cop_startnote_is_left(const char *dir, uint32_t rank)
{
	char text[COP_STARTNOTE_WHY_SIZE];
	uint32_t whose;

	return cop_job_failure_read(dir, cop_wall_ns() - AGE_NS, &whose, text, sizeof(text)) &&
	       whose != rank;
}

static void stay_for(const char *dir, enum cop_startnote_stay how)
{
	unsigned ms = how == COP_STARTNOTE_STAY_NOT ? 0 : STAY_MS;

	poll(NULL, 0, (int)ms);
	while (how == COP_STARTNOTE_STAY_LATE && ms < STAY_LATE_MS &&
		!cop_startnote_is_left(dir, 0)) {
		poll(NULL, 0, LOOK_MS / 2);
		ms += LOOK_MS / 2;
	}
}

void cop_startnote_remove(const char *dir, enum cop_startnote_stay stay)
{
	char path[4200];

	if (access(dir, F_OK))
		return;
	/* The next start may begin while this one is still waiting, and needs a new secret. */
	snprintf(path, sizeof(path), "%.4000s/secret", dir);
	unlink(path);
	stay_for(dir, stay);
	cop_job_failure_clear(dir, -1);
	cop_startnote_uncome(dir, -1);
	cop_startnote_remove_empty(dir);
}

void cop_startnote_withdraw(const char *dir, uint32_t rank, bool wait)
{
	if (access(dir, F_OK))
		return;
	if (wait)
		poll(NULL, 0, STAY_MS);
	cop_startnote_uncome(dir, rank);
	cop_job_failure_clear(dir, rank);
	cop_startnote_remove_empty(dir);
}

void cop_startnote_pass(struct cop_startnote_watch *w, uint64_t now_ms)
{
	w->looked_ms = now_ms;
}

bool cop_startnote_look(
	struct cop_startnote_watch *w, uint64_t now_ms, struct cop_startnote_word *out)
{
	size_t skip = strlen(COP_STARTNOTE_NOT_READY);

	if (!w->began_ns || now_ms - w->looked_ms < LOOK_MS)
		return false;
	cop_startnote_pass(w, now_ms);
	if (!cop_job_failure_read(
		    w->job_dir, w->began_ns, &out->rank, out->text, sizeof(out->text)))
		return false;
	out->of_tree = strncmp(out->text, COP_STARTNOTE_NOT_READY, skip) == 0;
	if (out->of_tree)
		memmove(out->text, out->text + skip, strlen(out->text + skip) + 1);
	return true;
}

void cop_startnote_why(
	const struct cop_startnote_word *word, const char *host, char why[COP_STARTNOTE_WHY_SIZE])
{
	if (word->of_tree)
		snprintf(why, COP_STARTNOTE_WHY_SIZE, "%s", word->text);
	else
		snprintf(why, COP_STARTNOTE_WHY_SIZE, "%.250s (rank %" PRIu32 ") did not start: %s",
			host, word->rank, word->text);
}
