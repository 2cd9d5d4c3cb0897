/* SPDX-License-Identifier: BSD-3-Clause */
/* Read-ahead over the tree. If the root can read a file in one operation, the first read fetches
 * the whole file. So does the first read of a slightly larger program or library: programs used all
 * chunks of those up to 7 MiB (python, libcrypto, numpy), in whatever order the kernel asked for
 * them, one request each, and the data section is at the end of the file. Other files of that size
 * are fetched whole at the first read beyond the first chunk, since many programs read only the
 * head of a file. Larger files are fetched on demand, because most are shared libraries, mapped and
 * used in parts: importing torch touches 330 MiB of chunks in files of 503 MiB. A sequential reader
 * gets a read-ahead window that doubles with each chunk, up to tree/fetch's limit for that file. */
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

/* How many chunks to read ahead for a reader now at index; 0: request nothing new. Readers race
 * here, and one reader's requests may overtake each other; the worst result is a wrong guess. */
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

	/* Refill the window only when it is half empty, to save requests. */
	if (!window || from > index + 1 + window / 2)
		return;
	atomic_store(&i->ahead, end);
	ask_ahead(fs, i, from, end);
}

/* Whether the file's name or mode suggests that programs map it. */
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
