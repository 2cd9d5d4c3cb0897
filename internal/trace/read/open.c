/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens files, applies their indexes, and reads their names if needed. */
#include "trace/read/index_priv.h"

void cop_trace_note_file(struct reader *r, size_t index, const char *why, bool whole)
{
	r->files->file[index].why = why;
	r->files->file[index].whole = whole;
	if (r->notes && r->noted++ < TRACE_NOTES_MAX)
		cop_buf_printf(r->notes, "%s: %s\n", r->files->file[index].name, why);
}

/* Reads the whole file only for its names, while idle threads inflate ahead. */
static int read_names(struct worker *w, struct source *s)
{
	int rc;

	w->sink.names_only = true;
	w->sink.names = NULL;
	w->sink.numbers = s->first.number;
	while ((rc = cop_trace_source_fill(s, &w->block)) > 0) {
		w->sink.scratch.used = 0;
		rc = cop_trace_parse(&w->sink, &w->block);
		if (rc)
			break;
	}
	w->sink.names_only = false;
	cop_trace_source_end_names(s);
	return rc;
}

void cop_trace_forget_source(struct reader *r, const struct source *s)
{
	unsigned i = 0;

	while (r->active[i] != s)
		i++;
	r->active[i] = r->active[--r->actives];
}

/* Reads the names from the index and chooses the chunks to read. Closes an index that does not
 * allow any chunk to be skipped. */
static int follow_index(struct worker *w, struct source *s)
{
	const struct cop_trace_pick *pick = w->reader->conf->pick;
	int rc = 0;

	w->source = s;
	w->sink.names_only = true;
	w->sink.names = NULL;
	w->sink.numbers = s->first.number;
	if (w->reader->names && !w->reader->conf->peek)
		rc = cop_plan_names(s->plan, &w->sink, &w->block);
	w->sink.names_only = false;
	if (rc)
		return rc;
	s->tail_base_ns = s->tail_base_ns ? s->tail_base_ns : cop_plan_tail_base(s->plan);
	s->seeks_base = false;
	if (w->reader->conf->peek)
		cop_plan_count_only(s->plan);
	else if (pick)
		cop_plan_choose(
			s->plan, &s->names, pick, w->reader->files->file[s->index].shift_ns);
	if (cop_plan_skips(s->plan))
		return 0;
	cop_plan_free(s->plan);
	s->plan = NULL;
	return 0;
}

/* Uses the file's index if there is one; if it is damaged, the file is read without it. The index
 * does not contain clock offsets. */
static int try_index(struct worker *w, struct source *s, const char **note, bool *names)
{
	struct reader *r = w->reader;
	int rc;

	*names = r->names;
	*note = NULL;
	if (r->files->clocks)
		return 0;
	s->plan = cop_plan_new(&r->files->file[s->index], s, note);
	if (!s->plan)
		return 0;
	rc = follow_index(w, s);
	*names = rc == -EIO && r->names;
	if (rc != -EIO)
		return rc;
	cop_trace_names_free(&s->names);
	s->names = (struct names){0};
	cop_plan_free(s->plan);
	s->plan = NULL;
	return 0;
}

/* The caller holds the lock. */
static void note_index(struct reader *r, size_t index, const char *why)
{
	if (why && r->notes && r->noted++ < TRACE_NOTES_MAX)
		cop_buf_printf(r->notes, "%s: %s\n", r->files->file[index].name, why);
}

/* Reads the names, then rewinds. The caller holds the lock, which is released while reading. The
 * file is in the list of active files, so other threads help to inflate it, but none of them takes
 * blocks from it. */
static int take_names(struct worker *w, struct source *s)
{
	struct reader *r = w->reader;
	int rc;

	s->filling = true;
	s->users = 1;
	w->source = s;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	rc = read_names(w, s);
	pthread_mutex_lock(&r->lock);
	s->alone = true;
	while (s->users > 1)
		pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
	if (!rc)
		rc = cop_trace_source_rewind(s);
	pthread_mutex_lock(&r->lock);
	s->alone = s->filling = false;
	s->users = 0;
	return rc;
}

/* Whether to report that a file is not a trace. Unrelated files found below a directory that the
 * user named are skipped silently. */
static bool is_told(const struct file *file, const char *why)
{
	return file->meant || (file->likely && !cop_trace_is_other(why));
}

void cop_trace_open_next(struct worker *w)
{
	struct reader *r = w->reader;
	size_t index = r->next++;
	struct source *s;
	const char *why, *note = NULL;
	bool names = false;
	int rc;

	r->opening++;
	pthread_mutex_unlock(&r->lock);
	s = cop_trace_source_open(&r->files->file[index], index, &why, &rc);
	if (s)
		rc = try_index(w, s, &note, &names);
	pthread_mutex_lock(&r->lock);
	r->opening--;
	note_index(r, index, note);
	if (s) {
		r->active[r->actives++] = s;
		if (!rc)
			rc = names || s->seeks_base ? take_names(w, s) : 0;
	}
	if (s && rc) {
		cop_trace_forget_source(r, s);
		cop_trace_source_free(s);
		w->source = NULL;
	}
	if (rc == -ENOMEM)
		r->rc = rc;
	else if (rc || (!s && is_told(&r->files->file[index], why)))
		cop_trace_note_file(r, index, rc ? strerror(-rc) : why, true);
	pthread_cond_broadcast(&r->changed);
}
