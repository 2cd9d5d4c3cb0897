/* SPDX-License-Identifier: BSD-3-Clause */
/* Read-ahead over the tree. The first read of a file that the root reads in one operation
 * fetches the whole file. So does the first read of a slightly larger program or library: all
 * chunks of those up to 7 MiB were used (python, libcrypto, numpy), in an order chosen by the
 * kernel, with a request each, and their data is at the end. For other files of that size, the
 * first read after the first chunk does so, since many programs read only a file's head. Larger
 * files are fetched on demand, because most are shared libraries, mapped and used in parts: an
 * import of torch touches 330 MiB of chunks in files of 503 MiB. A sequential reader gets a
 * read-ahead window that doubles with each chunk up to tree/fetch's limit for that file. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

static void ask_ahead(struct cop_fuse *fs, const struct inode *i, uint64_t from, uint64_t end)
{
	struct cop_ask ask = {
		.kind = COP_ASK_CHUNK, .version = i->attr.version, .size = i->attr.size};
	uint64_t chunk = cop_fetch_chunk_bytes(fs->conf.fetch);
	char path[PATH_BYTES];

	if (cop_fuse_path(i, "", 0, path) < 0)
		return;
	ask.path = path;
	for (ask.index = from; ask.index < end && ask.index * chunk < ask.size; ask.index++)
		cop_fetch_ahead(fs->conf.fetch, &ask);
}

/* How many chunks to read ahead for a reader now at index; 0: no change. Readers race here, and
 * requests of one reader overtake each other, which at worst causes a wrong guess. */
static unsigned window_at(struct cop_fuse *fs, struct inode *i, uint64_t index)
{
	uint64_t last = atomic_load(&i->last);
	unsigned window = atomic_load(&i->window);

	if (index <= last && last - index <= window)
		return 0;
	atomic_store(&i->last, index);
	if (index < last || index - last > window + 1) {
		atomic_store(&i->window, 0);
		atomic_store(&i->ahead, index + 1);
		return 0;
	}
	window = window ? COP_MIN(2 * window, cop_fetch_window(fs->conf.fetch, i->attr.size)) : 1;
	atomic_store(&i->window, (uint8_t)window);
	return window;
}

static void slide_window(struct cop_fuse *fs, struct inode *i, uint64_t index)
{
	unsigned window = window_at(fs, i, index);
	uint64_t from = COP_MAX(atomic_load(&i->ahead), index + 1), end = index + 1 + window;

	/* The window is refilled by halves, to reduce the number of requests. */
	if (!window || from > index + 1 + window / 2)
		return;
	atomic_store(&i->ahead, end);
	ask_ahead(fs, i, from, end);
}

/* By name or mode: a file that programs map. */
static bool is_program(const struct inode *i)
{
	static const char library[] = ".so";
	size_t len = sizeof(library) - 1;
	const char *found = memmem(i->name, i->name_len, library, len);

	if (i->attr.mode & (S_IXUSR | S_IXGRP | S_IXOTH))
		return true;
	return found && (found + len == i->name + i->name_len || found[len] == '.');
}

void cop_fuse_read_ahead(struct cop_fuse *fs, struct inode *i, uint64_t index)
{
	uint64_t chunk = cop_fetch_chunk_bytes(fs->conf.fetch), size = i->attr.size;

	if (size <= chunk)
		return;
	if (size > COP_MAX(COP_FETCH_MEDIUM_BYTES, chunk))
		slide_window(fs, i, index);
	else if ((index || size <= COP_FETCH_GROUP_BYTES || is_program(i)) &&
		 !atomic_exchange(&i->whole, true))
		ask_ahead(fs, i, 0, UINT64_MAX);
}
