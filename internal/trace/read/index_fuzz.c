/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses arbitrary bytes as the last part of an index with a valid head. Reading the file with it
 * must not crash, whatever the result. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/read/index_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/copper-index-fuzz.XXXXXX", file[64], index_file[96];

static void clean_up(void)
{
	unlink(index_file);
	unlink(file);
	rmdir(dir);
}

static void set_up(void)
{
	struct cop_buf text = {0};

	if (!mkdtemp(dir))
		abort();
	snprintf(file, sizeof(file), "%s/t.pfw", dir);
	snprintf(index_file, sizeof(index_file), "%s" COP_TRACE_INDEX_END, file);
	atexit(clean_up);
	unsetenv("HOME");
	unsetenv("XDG_CACHE_HOME");
	for (unsigned i = 0; i < 200; i++)
		cop_buf_printf(&text,
			"{\"name\":\"n%u\",\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":1,\"ph\":\"X\"}\n",
			i % 5, i);
	if (cop_write_file(file, text.data, text.len, 0600))
		abort();
	cop_buf_free(&text);
}

static bool any(void *arg, unsigned what, struct cop_trace_str text)
{
	(void)arg;
	return (what + text.len) % 2;
}

static void write_index(const uint8_t *data, size_t size)
{
	struct index_head head = {.magic = INDEX_MAGIC};
	uint64_t at = sizeof(head);
	int fd = open(file, O_RDONLY), out = open(index_file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || out < 0 || cop_index_key(fd, &head.key) ||
		lseek(out, (off_t)at, SEEK_SET) < 0 ||
		cop_index_put_blob(out, &at, data, size, &head.rest))
		abort();
	head.hash = cop_hash64(&head, offsetof(struct index_head, hash), 0);
	if (pwrite(out, &head, sizeof(head), 0) != sizeof(head))
		abort();
	close(fd);
	close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_trace_pick pick = {.word = any, .words = 63, .from_ns = 50000, .to_ns = 60000};
	char *paths[] = {file};
	struct cop_trace_result result;
	struct cop_trace_files *files;
	struct cop_buf notes = {0};

	if (!*file)
		set_up();
	write_index(data, size);
	if (cop_trace_files_new(paths, 1, &files, &notes, NULL))
		abort();
	cop_trace_read(files, &(struct cop_trace_conf){.threads = 1, .names = true, .pick = &pick},
		&result, &notes, NULL);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	return 0;
}
