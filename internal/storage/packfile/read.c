/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a pack. The tail is read at once and stays in memory. Chunks are copied from pieces of the
 * file: the first user of a piece reads it, and concurrent users wait. */
#include "storage/packfile/packfile_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "fabric/wire/wire.h"
#include "storage/manifest/manifest.h"

#define PIECE (2 * COP_MIB)
#define PIECES 4

struct piece {
	enum { EMPTY, READING, READY } state;
	uint64_t number;
	char *data;
	size_t len;
	unsigned users;
	uint64_t used; /* time of last use */
	int rc;
};

struct cop_packfile {
	int fd;
	uint64_t bytes, tail_at;
	char *tail;
	struct cop_packfile_record *record;
	size_t records;
	struct cop_htab table;
	pthread_mutex_t lock; /* protects the pieces; no I/O with it held */
	pthread_cond_t ready;
	struct piece piece[PIECES];
	uint64_t clock;
};

static uint64_t hash_of(uint8_t kind, const char *path, uint64_t index)
{
	return cop_hash64(path, strlen(path), index << 8 | kind);
}

/* ---- opening ---- */

static int check_owner(int fd, uid_t owner, uint64_t *size)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*size = (uint64_t)st.st_size;
	if (st.st_uid && st.st_uid != geteuid() && st.st_uid != owner)
		return -EPERM;
	return st.st_mode & (S_IWGRP | S_IWOTH) ? -EPERM : 0;
}

static int read_at(int fd, uint64_t at, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (char *)data + got, len - got, (off_t)(at + got));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int read_head(struct cop_packfile *p, size_t chunk_bytes, struct packfile_head *h)
{
	int rc = p->bytes < sizeof(*h) ? -EBADMSG : read_at(p->fd, 0, h, sizeof(*h));

	if (rc)
		return rc;
	if (memcmp(h->magic, PACKFILE_MAGIC, sizeof(h->magic)) != 0 ||
		h->sum != cop_hash64(h, offsetof(struct packfile_head, sum), 0))
		return -EBADMSG;
	if (h->version != COP_PACKFILE_VERSION)
		return -EPROTO;
	if (h->tail < sizeof(*h) || h->tail % 8 || h->tail > p->bytes || h->tail_len > TAIL_MAX ||
		h->tail + h->tail_len != p->bytes || h->source_at > h->tail_len ||
		h->source_len > h->tail_len - h->source_at ||
		h->records > h->tail_len / sizeof(struct packfile_index))
		return -EBADMSG;
	return h->chunk_bytes == chunk_bytes ? 0 : -ESTALE;
}

static int read_tail(struct cop_packfile *p, const struct packfile_head *h, const char *source)
{
	int rc;

	p->tail_at = h->tail;
	p->tail = malloc(h->tail_len + 1);
	p->record = calloc(h->records + 1u, sizeof(*p->record));
	if (!p->tail || !p->record)
		return -ENOMEM;
	rc = read_at(p->fd, h->tail, p->tail, h->tail_len);
	if (rc)
		return rc;
	if (h->tail_sum != cop_hash64(p->tail, h->tail_len, 0))
		return -EBADMSG;
	if (h->source_len != strlen(source) ||
		memcmp(p->tail + h->source_at, source, h->source_len) != 0)
		return -ESTALE;
	return 0;
}

/* For a listing, `at` is an offset in the tail. */
static bool is_valid(const struct cop_packfile *p, const struct packfile_head *h,
	const struct cop_packfile_record *r)
{
	if (!r->version || cop_version_is_young(r->version))
		return false;
	if (r->kind == COP_PACKFILE_LISTING) {
		struct cop_attr dir;

		if (r->packed || r->at % 8 || r->at > h->source_at ||
			r->len > h->source_at - r->at || cop_listing_check(p->tail + r->at, r->len))
			return false;
		cop_listing_dir(p->tail + r->at, &dir);
		return dir.version == r->version;
	}
	return r->kind == COP_PACKFILE_CHUNK && *r->path && r->len && r->len <= h->chunk_bytes &&
	       r->at >= sizeof(*h) && r->at <= h->tail && r->len <= h->tail - r->at;
}

static bool take_record(
	struct cop_packfile *p, const struct packfile_head *h, const char **at, const char *end)
{
	struct cop_packfile_record *r = &p->record[p->records];
	struct packfile_index i;

	if ((size_t)(end - *at) < sizeof(i))
		return false;
	memcpy(&i, *at, sizeof(i));
	*at += sizeof(i);
	if ((size_t)(end - *at) <= i.path_len || (*at)[i.path_len] ||
		!cop_manifest_path_ok(*at, i.path_len))
		return false;
	*r = (struct cop_packfile_record){.path = *at,
		.version = i.version,
		.size = i.size,
		.index = i.index,
		.at = i.at,
		.sum = i.sum,
		.len = i.len,
		.kind = i.kind,
		.packed = i.packed};
	*at += i.path_len + 1u;
	if (i.packed > 1 || !is_valid(p, h, r))
		return false;
	cop_htab_add(&p->table, &r->link, hash_of(r->kind, r->path, r->index));
	p->records++;
	return true;
}

static int take_records(struct cop_packfile *p, const struct packfile_head *h)
{
	const char *at = p->tail + h->source_at + h->source_len, *end = p->tail + h->tail_len;

	for (uint32_t i = 0; i < h->records; i++)
		if (!take_record(p, h, &at, end))
			return -EBADMSG;
	return at == end ? 0 : -EBADMSG;
}

int cop_packfile_open_fd(
	int fd, const char *source, size_t chunk_bytes, uid_t owner, struct cop_packfile **out)
{
	struct cop_packfile *p = calloc(1, sizeof(*p));
	struct packfile_head head;
	int rc;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->ready, NULL);
	p->fd = fd;
	rc = check_owner(fd, owner, &p->bytes);
	if (!rc)
		rc = read_head(p, chunk_bytes, &head);
	if (!rc)
		rc = read_tail(p, &head, source);
	if (!rc)
		rc = take_records(p, &head);
	if (rc)
		cop_packfile_free(p);
	else
		*out = p;
	return rc;
}

int cop_packfile_open(const char *path, const char *source, size_t chunk_bytes, uid_t owner,
	struct cop_packfile **out)
{
	struct stat st;
	uint64_t size;
	int fd;

	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return -ELOOP;
	fd = cop_open_regular(AT_FDCWD, path, &size);
	return fd < 0 ? fd : cop_packfile_open_fd(fd, source, chunk_bytes, owner, out);
}

void cop_packfile_free(struct cop_packfile *p)
{
	if (!p)
		return;
	cop_packfile_rest(p);
	if (p->fd >= 0)
		close(p->fd);
	cop_htab_fini(&p->table);
	pthread_cond_destroy(&p->ready);
	pthread_mutex_destroy(&p->lock);
	free(p->record);
	free(p->tail);
	free(p);
}

/* ---- lookup ---- */

size_t cop_packfile_count(const struct cop_packfile *p)
{
	return p ? p->records : 0;
}

uint64_t cop_packfile_bytes(const struct cop_packfile *p)
{
	return p ? p->bytes : 0;
}

static const struct cop_packfile_record *find(const struct cop_packfile *p, uint8_t kind,
	const char *path, uint64_t index, const struct cop_packfile_record *version)
{
	struct cop_hlink *l = p ? cop_htab_first(&p->table, hash_of(kind, path, index)) : NULL;

	for (; l; l = cop_htab_next(l)) {
		const struct cop_packfile_record *r =
			COP_CONTAINER_OF(l, struct cop_packfile_record, link);

		if (r->kind == kind && r->index == index && strcmp(r->path, path) == 0 &&
			(!version || (r->version == version->version && r->size == version->size)))
			return r;
	}
	return NULL;
}

const void *cop_packfile_listing(const struct cop_packfile *p, const char *path)
{
	const struct cop_packfile_record *r = find(p, COP_PACKFILE_LISTING, path, 0, NULL);

	return r ? p->tail + r->at : NULL;
}

const struct cop_packfile_record *cop_packfile_chunk(const struct cop_packfile *p, const char *path,
	uint64_t version, uint64_t size, uint64_t index)
{
	struct cop_packfile_record of = {.version = version, .size = size};

	return find(p, COP_PACKFILE_CHUNK, path, index, &of);
}

const struct cop_packfile_record *cop_packfile_any(
	const struct cop_packfile *p, const char *path, uint64_t index)
{
	return find(p, COP_PACKFILE_CHUNK, path, index, NULL);
}

/* ---- pieces ---- */

/* Returns the piece, or a slot for it: an empty one, else the least recently used; NULL: all are in
 * use. Called with the lock held. */
static struct piece *choose(struct cop_packfile *p, uint64_t number)
{
	struct piece *best = NULL;

	for (unsigned i = 0; i < PIECES; i++) {
		struct piece *q = &p->piece[i];

		if (q->state != EMPTY && q->number == number)
			return q;
		if (!q->users && (!best || q->state < best->state ||
					 (q->state == best->state && q->used < best->used)))
			best = q;
	}
	return best;
}

static void fill(struct cop_packfile *p, struct piece *q)
{
	uint64_t at = q->number * PIECE;
	size_t len = (size_t)COP_MIN((uint64_t)PIECE, p->tail_at - at);

	q->state = READING;
	pthread_mutex_unlock(&p->lock);
	if (!q->data)
		q->data = malloc(PIECE);
	q->len = len;
	q->rc = q->data ? read_at(p->fd, at, q->data, len) : -ENOMEM;
	pthread_mutex_lock(&p->lock);
	q->state = READY;
	pthread_cond_broadcast(&p->ready);
}

static struct piece *get_piece(struct cop_packfile *p, uint64_t number)
{
	struct piece *q;

	pthread_mutex_lock(&p->lock);
	while (!(q = choose(p, number)))
		pthread_cond_wait(&p->ready, &p->lock);
	q->users++;
	q->used = ++p->clock;
	if (q->state == EMPTY || q->number != number) {
		q->number = number;
		fill(p, q);
	}
	while (q->state == READING)
		pthread_cond_wait(&p->ready, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return q;
}

static void put_piece(struct cop_packfile *p, struct piece *q)
{
	pthread_mutex_lock(&p->lock);
	if (--q->users == 0) {
		if (q->rc)
			q->state = EMPTY;
		pthread_cond_broadcast(&p->ready);
	}
	pthread_mutex_unlock(&p->lock);
}

int cop_packfile_read(struct cop_packfile *p, const struct cop_packfile_record *r, void *out)
{
	int rc = 0;

	for (size_t got = 0; got < r->len && !rc;) {
		uint64_t at = r->at + got;
		struct piece *q = get_piece(p, at / PIECE);
		size_t n = COP_MIN(r->len - got, (size_t)(PIECE - at % PIECE));

		rc = q->rc ? q->rc : at % PIECE + n > q->len ? -EBADMSG : 0;
		if (!rc)
			memcpy((char *)out + got, q->data + at % PIECE, n);
		put_piece(p, q);
		got += n;
	}
	return rc ? rc : cop_hash64(out, r->len, 0) == r->sum ? 0 : -EBADMSG;
}

void cop_packfile_rest(struct cop_packfile *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < PIECES; i++)
		if (!p->piece[i].users) {
			free(p->piece[i].data);
			p->piece[i] = (struct piece){.state = EMPTY};
		}
	pthread_mutex_unlock(&p->lock);
}
