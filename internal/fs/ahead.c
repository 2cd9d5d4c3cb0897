/* SPDX-License-Identifier: BSD-3-Clause */
/* Read-ahead over the tree. The first read of a file of moderate size fetches all of it, in order, a window of chunks at a time,
 * whatever the program goes on to read: shared libraries are mapped and touched here and there, and a whole file comes down the tree
 * at the speed of the network. Of larger files, and where memory is short, only a window after each read is fetched. */
#include "fs/fs_priv.h"

#include <stdlib.h>

#define WHOLE_FILE_MAX (256 * COP_MIB)
#define WINDOW_CHUNKS 8

static struct cop_ask chunk_of(const struct inode *i, const char *path, uint64_t index)
{
	return (struct cop_ask){.kind = COP_ASK_CHUNK, .path = path, .version = i->attr.version,
		.size = i->attr.size, .index = index};
}

/* ---- a file fetched whole: WINDOW_CHUNKS slots, each asks for the next chunk when its last one came ---- */

struct stream;

struct slot {
	struct cop_waiter waiter;
	struct stream *stream;
};

struct stream {
	struct cop_fs *fs;
	struct inode *inode; /* a reference */
	_Atomic uint64_t next;
	_Atomic unsigned slots; /* running */
	_Atomic bool over;      /* memory is short, or a chunk failed */
	struct slot slot[WINDOW_CHUNKS];
	char path[PATH_BYTES];
};

static void end_slot(struct stream *s)
{
	if (atomic_fetch_sub(&s->slots, 1) != 1)
		return;
	cop_fs_inode_put(s->fs, s->inode, 1);
	free(s);
}

static void run_slot(struct slot *slot)
{
	struct stream *s = slot->stream;
	struct cop_coop *coop = s->fs->conf.coop;
	struct cop_obj *obj;

	while (!atomic_load(&s->over)) {
		struct cop_ask ask = chunk_of(s->inode, s->path, atomic_fetch_add(&s->next, 1));
		size_t len = cop_coop_chunk_len(coop, ask.size, ask.index);
		int rc;

		if (len == 0 || !cop_cache_spare(s->fs->conf.cache, len))
			break;
		rc = cop_coop_get(coop, &ask, &slot->waiter, &obj);
		if (rc == 0)
			return;
		if (rc < 0)
			break;
		cop_obj_put(s->fs->conf.cache, obj);
	}
	atomic_store(&s->over, true);
	end_slot(s);
}

static void landed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct slot *slot = COP_CONTAINER_OF(w, struct slot, waiter);

	(void)obj;
	if (rc)
		atomic_store(&slot->stream->over, true);
	run_slot(slot);
}

static void start_stream(struct cop_fs *fs, struct inode *i)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	if (cop_fs_path(i, "", 0, s->path) < 0) {
		free(s);
		return;
	}
	s->fs = fs;
	s->inode = i;
	cop_fs_inode_ref(i);
	atomic_init(&s->slots, WINDOW_CHUNKS + 1);
	for (unsigned k = 0; k < WINDOW_CHUNKS; k++) {
		s->slot[k].waiter.landed = landed;
		s->slot[k].stream = s;
		run_slot(&s->slot[k]);
	}
	end_slot(s);
}

/* ---- a window after each read ---- */

/* ahead is the chunk that a reader in order is expected at next, or the end of what was asked for. A reader that jumps gets no window
 * until it reads on from there: random reads would fetch eight times what they use. */
static void slide(struct cop_fs *fs, struct inode *i, uint64_t index)
{
	uint64_t ahead = atomic_load(&i->ahead), end = index + 1 + WINDOW_CHUNKS;
	uint64_t chunk = cop_coop_chunk_bytes(fs->conf.coop);
	char path[PATH_BYTES];

	if (ahead < index || ahead > end) {
		atomic_store(&i->ahead, index + 1);
		return;
	}
	/* Refill by halves, so that a window is asked for in few steps. */
	if (ahead == index + 1 || ahead > index + 1 + WINDOW_CHUNKS / 2)
		return;
	atomic_store(&i->ahead, end);
	if (cop_fs_path(i, "", 0, path) < 0)
		return;
	for (ahead = COP_MAX(ahead, index + 1); ahead < end && ahead * chunk < i->attr.size; ahead++) {
		struct cop_ask ask = chunk_of(i, path, ahead);

		cop_coop_ahead(fs->conf.coop, &ask);
	}
}

void cop_fs_read_ahead(struct cop_fs *fs, struct inode *i, uint64_t index)
{
	uint64_t size = i->attr.size;
	struct cop_cache_usage u;

	if (size <= cop_coop_chunk_bytes(fs->conf.coop))
		return;
	if (size <= WHOLE_FILE_MAX && !atomic_exchange(&i->streamed, true)) {
		cop_cache_usage(fs->conf.cache, &u);
		if (size <= u.limit_bytes / 4) {
			start_stream(fs, i);
			return;
		}
	}
	slide(fs, i, index);
}
