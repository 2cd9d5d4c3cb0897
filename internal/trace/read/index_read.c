/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads an index. Its bytes are untrusted: every number is checked before use, and memory use is
 * proportional to the size of the file. */
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "trace/read/index_priv.h"

/* Minimum bytes per item, used to reject counts that cannot fit into the remaining bytes. */
#define POINT_LEAST 3u
#define WORD_LEAST 2u
#define BLOB_LEAST 11u
#define CHUNK_LEAST 30u

struct reading {
	const unsigned char *at, *end;
	bool bad;
	size_t ids; /* capacity of index.ids */
};

static uint64_t number(struct reading *r, uint64_t most)
{
	uint64_t v = 0;

	if (r->bad || !cop_varint(&r->at, r->end, &v) || v > most) {
		r->bad = true;
		return 0;
	}
	return v;
}

static int64_t signed_number(struct reading *r)
{
	uint64_t v = number(r, UINT64_MAX);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Reads the number of items that follow, each at least `least` bytes long. */
static size_t count(struct reading *r, size_t least)
{
	return (size_t)number(r, (uint64_t)(r->end - r->at) / least);
}

static struct cop_trace_str text(struct reading *r)
{
	size_t len = count(r, 1);
	struct cop_trace_str out = {(const char *)r->at, len};

	if (r->bad || len > (size_t)(r->end - r->at)) {
		r->bad = true;
		return (struct cop_trace_str){"", 0};
	}
	r->at += len;
	return out;
}

static void *items(struct reading *r, size_t n, size_t size)
{
	void *out = calloc(n + 1, size);

	r->bad |= !out;
	return out;
}

/* Reads the position of a blob and checks it against the size of the index file. */
static struct index_blob blob(struct reading *r, uint64_t file_size, uint64_t raw_most)
{
	struct index_blob b = {.at = number(r, file_size)};

	b.len = number(r, file_size - b.at);
	b.raw = number(r, raw_most);
	if (r->end - r->at < (ptrdiff_t)sizeof(b.hash)) {
		r->bad = true;
		return b;
	}
	memcpy(&b.hash, r->at, sizeof(b.hash));
	r->at += sizeof(b.hash);
	return b;
}

static void take_points(struct reading *r, struct index *x, uint64_t file_size)
{
	x->points = count(r, POINT_LEAST);
	x->point = items(r, x->points, sizeof(*x->point));
	for (size_t i = 0; i < x->points && !r->bad; i++) {
		struct index_point *p = &x->point[i];
		unsigned flags;

		p->at.raw = number(r, INT64_MAX);
		p->at.packed = number(r, INT64_MAX);
		flags = (unsigned)number(r, 15);
		p->at.bits = flags >> 1;
		p->at.inside = flags & 1;
		r->bad |= p->at.bits && (!p->at.inside || !p->at.packed);
		if (p->at.inside)
			p->window = blob(r, file_size, COP_INFLATE_WINDOW);
	}
}

static void take_words(struct reading *r, struct index *x)
{
	for (unsigned f = 0; f < COP_TRACE_WORDS && !r->bad; f++) {
		struct index_words *w = &x->words[f];

		w->lost = number(r, 1);
		w->n = count(r, WORD_LEAST);
		w->at = items(r, w->n, sizeof(*w->at));
		for (size_t i = 0; i < w->n && !r->bad; i++) {
			unsigned flags = (unsigned)number(r, 2 * WORD_HASH_TEXT + 1);

			w->at[i].form = flags >> 1;
			w->at[i].rare = flags & 1;
			w->at[i].text = text(r);
		}
	}
}

static struct index_ids take_ids(struct reading *r, struct index *x, const struct index_words *w)
{
	struct index_ids ids = {x->id_count, count(r, 1)};

	for (size_t i = 0; i < ids.n && !r->bad; i++) {
		uint64_t id = number(r, w->n ? w->n - 1 : 0);

		r->bad |= !w->n || x->id_count == r->ids;
		if (!r->bad)
			x->ids[x->id_count++] = (uint32_t)id;
	}
	return ids;
}

static void take_chunk(struct reading *r, struct index *x, struct index_chunk *c)
{
	unsigned flags;
	struct cop_trace_str rank;
	uint64_t group_raw;

	c->start = number(r, INT64_MAX);
	c->line = number(r, INT64_MAX);
	c->point = (size_t)number(r, x->points);
	flags = (unsigned)number(r, 7);
	c->always = flags & 1;
	c->where = flags & 2 ? AT_ARRAY : AT_TOP;
	c->has_base = flags & 4;
	c->base_ns = signed_number(r);
	rank = text(r);
	r->bad |= rank.len >= sizeof(c->rank);
	c->rank_len = r->bad ? 0 : rank.len;
	memcpy(c->rank, rank.at, c->rank_len);
	for (unsigned k = 0; k < COP_TRACE_KINDS; k++) {
		c->events[k] = number(r, UINT64_MAX);
		c->digested[k] = number(r, c->events[k]);
	}
	c->first_ns = signed_number(r);
	c->begin_ns = signed_number(r);
	c->end_ns = signed_number(r);
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		c->word[f] = take_ids(r, x, &x->words[f]);
	c->group = (size_t)number(r, x->groups);
	group_raw = c->group < x->groups ? x->group[c->group].raw : 0;
	c->digest = (size_t)number(r, group_raw);
	c->digest_len = (size_t)number(r, group_raw - c->digest);
}

static bool is_in_order(const struct index *x, const struct index_chunk *c)
{
	if (c->point && x->point[c->point - 1].at.raw > c->start)
		return false;
	return c == x->chunk || (c->start > c[-1].start && c->line >= c[-1].line);
}

static void take_chunks(struct reading *r, struct index *x)
{
	x->chunks = count(r, CHUNK_LEAST);
	r->bad |= !x->chunks;
	x->chunk = items(r, x->chunks, sizeof(*x->chunk));
	r->ids = (size_t)(r->end - r->at);
	x->ids = items(r, r->ids, sizeof(*x->ids));
	for (size_t i = 0; i < x->chunks && !r->bad; i++) {
		take_chunk(r, x, &x->chunk[i]);
		r->bad |= !r->bad && !is_in_order(x, &x->chunk[i]);
	}
}

/* Parses the inflated last part. */
static struct index *parse_index(char *data, size_t len, uint64_t file_size)
{
	struct reading r = {
		.at = (const unsigned char *)data, .end = (const unsigned char *)data + len};
	struct index *x = calloc(1, sizeof(*x));

	if (!x) {
		free(data);
		return NULL;
	}
	x->fd = -1;
	x->text = data;
	x->tail_base_ns = signed_number(&r);
	take_points(&r, x, file_size);
	take_words(&r, x);
	x->groups = r.bad ? 0 : count(&r, BLOB_LEAST);
	x->group = items(&r, x->groups, sizeof(*x->group));
	for (size_t i = 0; i < x->groups && !r.bad; i++)
		x->group[i] = blob(&r, file_size, BLOCK_MAX);
	if (!r.bad)
		take_chunks(&r, x);
	if (!r.bad && r.at == r.end)
		return x;
	cop_index_free(x);
	return NULL;
}

void cop_index_free(struct index *x)
{
	if (!x)
		return;
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		free(x->words[f].at);
	if (x->fd >= 0)
		close(x->fd);
	free(x->point);
	free(x->group);
	free(x->chunk);
	free(x->ids);
	free(x->text);
	free(x);
}

static char *read_blob(int fd, const struct index_blob *b)
{
	char *packed = malloc(b->len + 1), *out = malloc(b->raw + COP_JSON_PAD);
	uLongf len = b->raw;
	bool fine = packed && out && pread(fd, packed, b->len, (off_t)b->at) == (ssize_t)b->len &&
		    cop_hash64(packed, b->len, 0) == b->hash &&
		    uncompress((Bytef *)out, &len, (const Bytef *)packed, b->len) == Z_OK &&
		    len == b->raw;

	free(packed);
	if (fine)
		return out;
	free(out);
	return NULL;
}

char *cop_index_blob(const struct index *x, const struct index_blob *b)
{
	return read_blob(x->fd, b);
}

/* ---- finding ---- */

static bool is_same_key(const struct index_key *a, const struct index_key *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->head == b->head &&
	       a->tail == b->tail;
}

static enum index_fault check_head(
	const struct index_head *h, uint64_t size, const struct index_key *key)
{
	static const char magic[24] = INDEX_MAGIC;

	if (memcmp(h->magic, magic, sizeof(magic)))
		return INDEX_FOREIGN;
	if (h->hash != cop_hash64(h, offsetof(struct index_head, hash), 0))
		return INDEX_DAMAGED;
	if (!is_same_key(&h->key, key))
		return INDEX_STALE;
	if (h->rest.at > size || h->rest.len > size - h->rest.at || h->rest.raw > INDEX_META_MAX)
		return INDEX_DAMAGED;
	return INDEX_FINE;
}

/* Whether the index belongs to the file's owner, root or this user; anyone else could forge
 * results. */
static bool is_trusted(int fd, int of)
{
	struct stat st, file;

	return !fstat(fd, &st) && !fstat(of, &file) &&
	       (st.st_uid == file.st_uid || st.st_uid == geteuid() || !st.st_uid);
}

/* Opens the index at path if it belongs to the file `of`. */
static struct index *open_at(const char *path, int of, enum index_fault *fault)
{
	struct index_head head;
	struct index_key key;
	struct index *x = NULL;
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, path, &size);
	char *data;

	*fault = INDEX_NONE;
	if (fd < 0)
		return NULL;
	*fault = !is_trusted(fd, of)       ? INDEX_OF_OTHERS
		 : cop_index_key(of, &key) ? INDEX_STALE
		 : cop_read_full(fd, &head, sizeof(head)) == sizeof(head)
			 ? check_head(&head, size, &key)
			 : INDEX_FOREIGN;
	if (*fault == INDEX_FINE) {
		data = read_blob(fd, &head.rest);
		x = data ? parse_index(data, head.rest.raw, size) : NULL;
		*fault = x ? INDEX_FINE : INDEX_DAMAGED;
	}
	if (x)
		x->fd = fd;
	else
		close(fd);
	return x;
}

struct index *cop_index_open(const char *file, int fd, char **place, enum index_fault *fault)
{
	struct index *x = NULL;
	enum index_fault one = INDEX_NONE;

	*fault = INDEX_NONE;
	for (unsigned i = 0; i < INDEX_PLACES && !x; i++) {
		char *path = cop_index_place(file, i);

		x = path ? open_at(path, fd, &one) : NULL;
		if (path && (x || one != INDEX_NONE))
			*fault = one;
		if (x && place)
			*place = path;
		else
			free(path);
	}
	return x;
}
