/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges arbitrary bytes as a trace; the result must be strictly valid JSON. Also writes the
 * page. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/timeline/timeline_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that json-c accepts the whole text in strict mode, except for its depth. */
static void check(const struct cop_buf *text)
{
	struct json_tokener *t = json_tokener_new_ex(256);
	struct json_object *o;

	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, text->data, (int)text->len);
	if (!o || json_tokener_get_error(t) != json_tokener_success)
		abort();
	json_object_put(o);
	json_tokener_free(t);
}

struct both {
	struct cop_merge *merge;
	struct cop_timeline *page;
};

static int add_all(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	struct both *b = arg;
	int rc = cop_merge_add_all(b->merge, worker, e, n);

	for (size_t i = 0; i < n && !rc; i++)
		rc = cop_timeline_add(b->page, worker, &e[i]);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_merge *m = cop_merge_new(1, "/tmp");
	struct both both = {m, cop_timeline_new(1, "/tmp", 1000)};
	struct cop_trace_result result;
	struct cop_trace_files *files;
	struct cop_buf notes = {0}, text = {0};
	char path[64], *paths[] = {path};
	int fd = memfd_create("trace", 0);

	if (!m || !both.page || fd < 0 || cop_write_full(fd, data, size) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (cop_trace_files_new(paths, 1, &files, &notes, NULL))
		abort();
	cop_trace_read(files,
		&(struct cop_trace_conf){.threads = 1,
			.names = true,
			.args = true,
			.unfinished = true,
			.batch = add_all,
			.arg = &both},
		&result, &notes, NULL);
	if (cop_merge_write(m, files, cop_merge_put_in_buf, &text))
		abort();
	check(&text);
	text.len = 0;
	if (cop_timeline_write(both.page, files, cop_merge_put_in_buf, &text))
		abort();
	cop_timeline_free(both.page);
	cop_trace_files_free(files);
	cop_merge_free(m);
	cop_buf_free(&text);
	cop_buf_free(&notes);
	close(fd);
	return 0;
}
