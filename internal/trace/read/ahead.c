/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a gzip member is known only after inflating it, so the start of the next member is
 * guessed by searching for its first bytes. A guess may be wrong: these bytes may occur within a
 * member, and may even begin a complete one there. The result of a guess is therefore used only if
 * the reader, which goes from the end of each member to the next, arrives at exactly that offset;
 * results for offsets that the reader has passed are dropped. If there is no result, or the member
 * is damaged, the reader inflates the member itself. */
#include <zlib.h>

#include "trace/read/inflate_priv.h"

#define SCAN_BYTES (64 * COP_KIB)
#define SCAN_MOST (8 * COP_MIB) /* search at most this far for a start */
#define HEADER_BYTES 10u
#define INPUT_BYTES (64 * COP_KIB)
#define TEXT_FIRST (256 * COP_KIB)
/* Stop guessing after this many wrong guesses. */
#define FAILURES_MAX 16u

void cop_ahead_init(struct ahead *a)
{
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->done, NULL);
	a->scanned = 1;
}

void cop_ahead_fini(struct ahead *a)
{
	for (unsigned i = 0; i < MEMBERS_MAX; i++)
		free(a->member[i].text);
	pthread_cond_destroy(&a->done);
	pthread_mutex_destroy(&a->lock);
}

/* ---- the reader ---- */

/* The caller holds the lock. */
static struct member *member_at(struct ahead *a, uint64_t start)
{
	struct member *found = NULL;

	for (unsigned i = 0; i < MEMBERS_MAX; i++) {
		struct member *m = &a->member[i];

		if (m->state == MEMBER_FREE)
			continue;
		if (m->start == start)
			found = m;
		else if (m->start < start && m->state != MEMBER_BUSY)
			m->state = MEMBER_FREE;
	}
	return found;
}

struct member *cop_ahead_take(struct ahead *a, uint64_t start)
{
	struct member *m;

	pthread_mutex_lock(&a->lock);
	a->reader = start;
	a->scanned = COP_MAX(a->scanned, start + 1);
	m = member_at(a, start);
	while (m && m->state == MEMBER_BUSY)
		pthread_cond_wait(&a->done, &a->lock);
	if (m && m->state != MEMBER_READY) {
		m->state = MEMBER_FREE;
		m = NULL;
	}
	if (m)
		m->state = MEMBER_TAKEN;
	pthread_mutex_unlock(&a->lock);
	return m;
}

void cop_ahead_give(struct ahead *a, struct member *m)
{
	pthread_mutex_lock(&a->lock);
	m->state = MEMBER_FREE;
	pthread_mutex_unlock(&a->lock);
}

/* ---- guessing ---- */

/* Whether p may be a gzip header (RFC 1952): method deflate, no reserved flags, a valid XFL byte,
 * and an OS byte that is assigned or 255 (unknown). */
static bool may_begin(const unsigned char *p)
{
	return p[0] == 0x1f && p[1] == 0x8b && p[2] == 8 && !(p[3] & 0xe0) &&
	       (p[8] == 0 || p[8] == 2 || p[8] == 4) && (p[9] <= 13 || p[9] == 255);
}

/* Searches one buffer, from offset *from on, for a possible start of a member, and moves *from
 * there. If there is none, returns false and moves *from to where the search continues; *from is
 * unchanged at the end of the file. */
static bool scan_for_member(int fd, uint64_t *from)
{
	unsigned char data[SCAN_BYTES], *p = data, *last;
	ssize_t n = pread(fd, data, sizeof(data), (off_t)*from);

	if (n < (ssize_t)HEADER_BYTES)
		return false;
	last = data + n - HEADER_BYTES + 1;
	while (p < last && (p = memchr(p, 0x1f, (size_t)(last - p)))) {
		if (may_begin(p)) {
			*from += (uint64_t)(p - data);
			return true;
		}
		p++;
	}
	*from += (uint64_t)(last - data);
	return false;
}

/* Returns a free member with the offset of the next guess, or NULL. The caller holds the lock,
 * which is released during the search. */
static struct member *guess_member(struct ahead *a, int fd, unsigned most)
{
	const uint64_t first = a->scanned;
	uint64_t from = first, before;
	struct member *m = NULL;
	bool found = false;

	for (unsigned i = 0; i < COP_MIN(most, MEMBERS_MAX) && !m; i++)
		if (a->member[i].state == MEMBER_FREE)
			m = &a->member[i];
	if (!m || a->scanning || a->failures >= FAILURES_MAX || from > a->reader + SCAN_MOST)
		return NULL;
	a->scanning = true;
	m->state = MEMBER_BUSY;
	m->start = UINT64_MAX;
	pthread_mutex_unlock(&a->lock);
	do {
		before = from;
		found = scan_for_member(fd, &from);
	} while (!found && from > before && from - first < SCAN_MOST);
	pthread_mutex_lock(&a->lock);
	a->scanning = false;
	a->scanned = COP_MAX(a->scanned, from + found);
	if (found && from > a->reader) {
		m->start = from;
		return m;
	}
	m->state = MEMBER_FREE;
	return NULL;
}

/* ---- inflating ---- */

static bool reserve_output(struct member *m)
{
	size_t size = m->size ? 2 * m->size : TEXT_FIRST;
	char *grown = size > COP_INFLATE_AHEAD_BYTES ? NULL : realloc(m->text, size);

	if (!grown)
		return false;
	m->text = grown;
	m->size = size;
	return true;
}

/* Inflates to the end of the member; returns false if it is damaged, cut off or too large. */
static bool inflate_member(struct member *m, int fd, z_stream *z, unsigned char *input)
{
	uint64_t at = m->start;
	int rc = Z_OK;

	for (m->len = 0; rc == Z_OK || rc == Z_BUF_ERROR;) {
		if (!z->avail_in) {
			ssize_t n = pread(fd, input, INPUT_BYTES, (off_t)at);

			if (n <= 0)
				return false;
			at += (uint64_t)n;
			z->next_in = input;
			z->avail_in = (unsigned)n;
		}
		if (m->len == m->size && !reserve_output(m))
			return false;
		z->next_out = (unsigned char *)m->text + m->len;
		z->avail_out = (unsigned)(m->size - m->len);
		rc = inflate(z, Z_NO_FLUSH);
		m->len = m->size - z->avail_out;
	}
	m->end = at - z->avail_in;
	return rc == Z_STREAM_END;
}

static bool try_member(struct member *m, int fd)
{
	unsigned char input[INPUT_BYTES];
	z_stream z = {0};
	bool whole;

	if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
		return false;
	whole = inflate_member(m, fd, &z, input);
	inflateEnd(&z);
	return whole;
}

bool cop_ahead_work(struct ahead *a, int fd, unsigned most)
{
	struct member *m;
	bool whole;

	pthread_mutex_lock(&a->lock);
	m = guess_member(a, fd, most);
	pthread_mutex_unlock(&a->lock);
	if (!m)
		return false;
	whole = try_member(m, fd);
	pthread_mutex_lock(&a->lock);
	m->state = whole ? MEMBER_READY : MEMBER_FAILED;
	a->failures += !whole;
	pthread_cond_broadcast(&a->done);
	pthread_mutex_unlock(&a->lock);
	return true;
}
