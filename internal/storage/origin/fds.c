/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches descriptors between the reads of a file, in a fixed table keyed by path and version.
 * Descriptors are closed without the lock held, because close may block on the storage. */
#include "storage/origin/origin_priv.h"

void cop_origin_fds_init(struct cop_origin_fds *f)
{
	pthread_mutex_init(&f->lock, NULL);
}

/* Empties the slot and returns its descriptor, which the caller must close. Called with the lock
 * held. */
static int clear_slot(struct cop_origin_kept *s)
{
	int fd = s->fd;

	free(s->path);
	*s = (struct cop_origin_kept){0};
	return fd;
}

void cop_origin_fds_fini(struct cop_origin_fds *f)
{
	for (unsigned i = 0; i < COP_ORIGIN_KEPT_FDS; i++)
		if (f->slot[i].path)
			close(clear_slot(&f->slot[i]));
	pthread_mutex_destroy(&f->lock);
}

/* Called with the lock held. */
static struct cop_origin_kept *find_kept(
	struct cop_origin_fds *f, const char *path, uint64_t version)
{
	uint64_t hash = cop_hash64(path, strlen(path), version);

	for (unsigned i = 0; i < COP_ORIGIN_KEPT_FDS; i++) {
		struct cop_origin_kept *s = &f->slot[i];

		if (s->path && !s->doomed && s->hash == hash && s->version == version &&
			strcmp(s->path, path) == 0)
			return s;
	}
	return NULL;
}

struct cop_origin_kept *cop_origin_fds_get(
	struct cop_origin_fds *f, const char *path, uint64_t version)
{
	struct cop_origin_kept *found;

	pthread_mutex_lock(&f->lock);
	found = find_kept(f, path, version);
	if (found)
		found->users++;
	pthread_mutex_unlock(&f->lock);
	return found;
}

void cop_origin_fds_put(struct cop_origin_fds *f, struct cop_origin_kept *slot, bool drop)
{
	int fd = -1;

	pthread_mutex_lock(&f->lock);
	slot->doomed |= drop;
	slot->used_ms = cop_now_ms();
	if (--slot->users == 0 && slot->doomed)
		fd = clear_slot(slot);
	pthread_mutex_unlock(&f->lock);
	if (fd >= 0)
		close(fd);
}

/* Returns a free slot, else the least recently used idle one, else NULL. Called with the lock
 * held. */
static struct cop_origin_kept *best_slot(struct cop_origin_fds *f)
{
	struct cop_origin_kept *best = NULL;

	for (unsigned i = 0; i < COP_ORIGIN_KEPT_FDS; i++) {
		struct cop_origin_kept *s = &f->slot[i];

		if (!s->path)
			return s;
		if (!s->users && (!best || s->used_ms < best->used_ms))
			best = s;
	}
	return best;
}

void cop_origin_fds_keep(struct cop_origin_fds *f, const char *path, uint64_t version, int fd)
{
	struct cop_origin_kept *s;
	char *copy = strdup(path);
	int old = -1;

	pthread_mutex_lock(&f->lock);
	/* Parallel reads of a file open it several times; one cached descriptor is enough. */
	s = copy && !find_kept(f, path, version) ? best_slot(f) : NULL;
	if (s) {
		if (s->path)
			old = clear_slot(s);
		*s = (struct cop_origin_kept){.path = copy,
			.hash = cop_hash64(path, strlen(path), version),
			.version = version,
			.used_ms = cop_now_ms(),
			.fd = fd};
	}
	pthread_mutex_unlock(&f->lock);
	if (!s) {
		free(copy);
		old = fd;
	}
	if (old >= 0)
		close(old);
}

/* Closes descriptors that have been idle for keep_ms and returns their number. Sets *next to the ms
 * until the next one is due; 0: none. */
static unsigned close_unused(struct cop_origin_fds *f, uint64_t keep_ms, uint64_t *next)
{
	uint64_t now = cop_now_ms();
	int old[COP_ORIGIN_KEPT_FDS];
	unsigned n = 0;

	*next = 0;
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < COP_ORIGIN_KEPT_FDS; i++) {
		struct cop_origin_kept *s = &f->slot[i];
		uint64_t left;

		/* Skips a descriptor in use; its user calls this again when done. */
		if (!s->path || s->users)
			continue;
		left = s->used_ms + keep_ms;
		left = left > now ? left - now : 0;
		if (!left)
			old[n++] = clear_slot(s);
		else if (!*next || left < *next)
			*next = left;
	}
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < n; i++)
		close(old[i]);
	return n;
}

unsigned cop_origin_fds_expire_idle(struct cop_origin_fds *f)
{
	uint64_t next;

	close_unused(f, COP_ORIGIN_KEPT_MS, &next);
	return (unsigned)next;
}

bool cop_origin_fds_drop(struct cop_origin_fds *f)
{
	uint64_t next;

	return close_unused(f, 0, &next) > 0;
}
