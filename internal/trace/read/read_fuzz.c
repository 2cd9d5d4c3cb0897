/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a file of any format, plain or gzip. Every event must have valid
 * strings, and a kind and a count that make sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sum;

static int batch(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	(void)arg;
	if (worker)
		abort();
	for (size_t i = 0; i < n; i++, e++) {
		const struct cop_trace_str all[] = {e->name, e->cat, e->pid, e->tid, e->file,
			e->host, e->id, e->scope, e->raw, e->of, e->rank, e->args, e->end_args};

		if (e->id_kind > COP_TRACE_ID_ALL || (e->unfinished && e->dur_ns))
			abort();
		if (e->kind >= COP_TRACE_KINDS || (e->kind == COP_TRACE_SPAN && e->count != 1))
			abort();
		for (size_t k = 0; k < COP_ARRAY_SIZE(all); k++)
			for (size_t b = 0; b < all[k].len; b++)
				sum += (unsigned char)all[k].at[b];
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_trace_result result;
	struct cop_trace_files *files;
	struct cop_buf notes = {0};
	char path[64], *paths[] = {path};
	int fd = memfd_create("trace", 0);

	if (fd < 0 || cop_write_full(fd, data, size) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (cop_trace_files_new(paths, 1, &files, &notes, NULL))
		abort();
	cop_trace_read(files,
		&(struct cop_trace_conf){.threads = 1,
			.names = true,
			.args = true,
			.unfinished = true,
			.batch = batch},
		&result, &notes, NULL);
	cop_trace_faults(files, &result, &notes);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	close(fd);
	return 0;
}
