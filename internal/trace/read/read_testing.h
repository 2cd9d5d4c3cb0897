/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: returns the events of a file as text. */
#ifndef COP_TRACE_READ_TESTING_H
#define COP_TRACE_READ_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/read/read.h"

struct told {
	pthread_mutex_t lock;
	char *line[4096];
	size_t n;
};

static inline int tell_events(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	static const char kinds[] = "SAICFM";
	struct told *t = arg;

	(void)worker;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n && t->n < COP_ARRAY_SIZE(t->line); i++, e++) {
		char size[32] = "-";

		if (e->has_size)
			snprintf(size, sizeof(size), "%llu", (unsigned long long)e->size);
		if (asprintf(&t->line[t->n++],
			    "%012lld %c %.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%llu|%llu|%s@%llu\n",
			    (long long)e->ts_ns, kinds[e->kind], (int)e->name.len, e->name.at,
			    (int)e->cat.len, e->cat.at, (int)e->pid.len, e->pid.at, (int)e->tid.len,
			    e->tid.at, (int)e->file.len, e->file.at, (int)e->host.len, e->host.at,
			    (unsigned long long)e->dur_ns, (unsigned long long)e->count, size,
			    (unsigned long long)e->line) < 0)
			abort();
	}
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the events of this file in time order, one per line; the caller frees the text. */
static inline char *events_of_file(
	const char *path, bool names, struct cop_trace_result *result, struct cop_buf *notes)
{
	struct told t = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct cop_trace_files *files;
	struct cop_buf out = {0};
	char *paths[] = {(char *)path};

	cop_buf_str(&out, "");
	if (cop_trace_files_new(paths, 1, &files, notes, NULL))
		return out.data;
	if (cop_trace_read(files,
		    &(struct cop_trace_conf){
			    .threads = 4, .names = names, .batch = tell_events, .arg = &t},
		    result, notes, NULL) == 0)
		cop_trace_faults(files, result, notes);
	cop_trace_files_free(files);
	qsort(t.line, t.n, sizeof(t.line[0]), by_text);
	for (size_t i = 0; i < t.n; i++) {
		cop_buf_str(&out, t.line[i]);
		free(t.line[i]);
	}
	return out.data;
}

/* The same for a file with this text, named F in notes. */
static inline char *events_of(const char *text, size_t len, bool names,
	struct cop_trace_result *result, struct cop_buf *notes)
{
	char path[] = "/tmp/copper-trace.XXXXXX", *events, *at;
	int fd = mkstemp(path);

	if (fd < 0 || cop_write_full(fd, text, len) < 0)
		abort();
	close(fd);
	events = events_of_file(path, names, result, notes);
	unlink(path);
	while (notes->data && (at = strstr(notes->data, path))) {
		*at = 'F';
		memmove(at + 1, at + strlen(path), strlen(at + strlen(path)) + 1);
	}
	return events;
}

/* Checks that the events of text are those in want, one per line, and that the notes equal told. */
static inline void check_len(
	const char *text, size_t len, bool names, const char *want, const char *told)
{
	struct cop_trace_result result;
	struct cop_buf notes = {0};
	char *got = events_of(text, len, names, &result, &notes);

	assert_string_equal(got, want);
	assert_string_equal(notes.data ? notes.data : "", told);
	free(got);
	cop_buf_free(&notes);
}
#define CHECK(text, want, told) check_len(text, sizeof(text) - 1, true, want, told)

#endif
