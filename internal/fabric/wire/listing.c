/* SPDX-License-Identifier: BSD-3-Clause */
/* A listing blob. All offsets are from its start; the areas are contiguous:
 *
 *     head | count records | attribute records of those that have any | names and targets | zeros
 *
 * A directory has exactly one encoding. Records are sorted by (hash of the name, name). A cookie
 * is the hash, or the preceding cookie plus one if that is larger. Attributes and strings are in
 * record order. The check accepts only this encoding: no offset is used without being recomputed
 * here, no name occurs twice, and two builds of one directory are identical.
 *
 * A cookie may be at most REACH above the hash of its name, so a lookup is a binary search for the
 * hash and a check of the few cookies within reach. Only deliberate collisions approach this bound,
 * and a directory beyond it gets no listing. */
#include "fabric/wire/listing_priv.h"

#include <assert.h>
#include <dirent.h>
#include <sys/stat.h>

#define LISTING_MAGIC 0x3253494cu /* "LIS2" */
#define LISTING_MAX_BYTES (64 * COP_MIB)
#define COOKIE_MIN 3
#define REACH 256

struct listing_head {
	uint32_t magic;
	uint32_t bytes; /* of the whole blob */
	uint32_t count;
	uint32_t flags;
	uint32_t attrs;   /* offset of the attribute records */
	uint32_t strings; /* offset of the string area */
	struct cop_attr dir;
};

struct record {
	uint64_t cookie;
	uint64_t ino;
	uint32_t name;   /* offset */
	uint32_t attr;   /* offset; 0: none */
	uint32_t target; /* offset; 0: none */
	uint16_t target_len;
	uint8_t name_len;
	uint8_t type;
};
_Static_assert(sizeof(struct listing_head) == 120, "listing heads have no padding");
_Static_assert(sizeof(struct record) == 32, "records have no padding");

/* One name in the builder's buffer: this head, the attributes if any, the name, the target, zeros
 * up to a multiple of 8. */
struct item {
	uint64_t hash, ino;
	uint32_t size; /* of the whole item */
	uint16_t target_len;
	uint8_t name_len;
	uint8_t type;
	uint8_t has_attr;
	uint8_t zero[7];
};

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

uint64_t cop_wire_name_hash(const char *name, size_t len)
{
	return cop_hash64(name, len, 0) >> (64 - COP_WIRE_HASH_BITS);
}

static uint64_t name_hash(const char *name, size_t len)
{
	return cop_wire_name_hash(name, len) + COOKIE_MIN;
}

static bool name_valid(const char *name, size_t len)
{
	if (len == 0 || len > COP_WIRE_NAME_MAX || memchr(name, '/', len) ||
		memchr(name, '\0', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static bool type_valid(uint8_t type)
{
	return type == DT_UNKNOWN || type == DT_FIFO || type == DT_CHR || type == DT_DIR ||
	       type == DT_BLK || type == DT_REG || type == DT_LNK || type == DT_SOCK;
}

/* Order of two (hash, name) pairs: < 0, 0, > 0. */
static int compare_names(
	uint64_t ha, const char *a, size_t a_len, uint64_t hb, const char *b, size_t b_len)
{
	int c;

	if (ha != hb)
		return ha < hb ? -1 : 1;
	c = memcmp(a, b, COP_MIN(a_len, b_len));
	return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* ---- building ---- */

static const char *item_name(const struct item *it)
{
	return (const char *)(it + 1) + (it->has_attr ? sizeof(struct cop_attr) : 0);
}

static int item_order(const void *a, const void *b)
{
	const struct item *x = *(const struct item *const *)a, *y = *(const struct item *const *)b;

	return compare_names(
		x->hash, item_name(x), x->name_len, y->hash, item_name(y), y->name_len);
}

static bool item_valid(const struct item *it, const char *name, size_t name_len,
	const struct cop_attr *attr, const char *target, size_t target_len)
{
	if (!name_valid(name, name_len) || !type_valid(it->type))
		return false;
	if (attr && !cop_attr_valid(attr))
		return false;
	return !target_len || (it->type == DT_LNK && cop_attr_target_valid(target, target_len));
}

/* Sets type and ino even for a name without attributes. */
static int add_item(struct cop_listing_builder *b, struct item it, const char *name,
	size_t name_len, const struct cop_attr *attr, const char *target, size_t target_len)
{
	static const char zeros[8];
	struct cop_attr clean = {0};
	size_t size;

	if (attr) {
		clean = cop_attr_clean(attr);
		it.has_attr = 1;
		it.ino = clean.ino;
	}
	if (clean.mode & S_IFMT)
		it.type = IFTODT(clean.mode);
	if (!item_valid(&it, name, name_len, attr ? &clean : NULL, target, target_len))
		return -EINVAL;
	if (b->items.len > LISTING_MAX_BYTES)
		return -E2BIG;
	size = sizeof(it) + (attr ? sizeof(clean) : 0) + name_len + target_len;
	it.hash = name_hash(name, name_len);
	it.size = (uint32_t)align8(size);
	it.name_len = (uint8_t)name_len;
	it.target_len = (uint16_t)target_len;
	cop_buf_add(&b->items, &it, sizeof(it));
	if (attr)
		cop_buf_add(&b->items, &clean, sizeof(clean));
	cop_buf_add(&b->items, name, name_len);
	cop_buf_add(&b->items, target, target_len);
	cop_buf_add(&b->items, zeros, it.size - size);
	b->count++;
	b->failed |= b->items.failed;
	return b->failed ? -ENOMEM : 0;
}

int cop_listing_add(struct cop_listing_builder *b, const char *name, size_t name_len, uint8_t type,
	const struct cop_attr *attr, const char *target, size_t target_len)
{
	return add_item(b, (struct item){.type = type}, name, name_len, attr, target,
		target ? target_len : 0);
}

int cop_listing_add_bare(struct cop_listing_builder *b, const char *name, size_t name_len,
	uint8_t type, uint64_t ino)
{
	return add_item(b, (struct item){.type = type, .ino = ino}, name, name_len, NULL, NULL, 0);
}

/* Computes the final order of the items, and the head with its offsets. */
static int lay_out(
	struct cop_listing_builder *b, const struct item **sorted, struct listing_head *h)
{
	size_t at = 0, attrs = 0, strings = 0, total;

	for (uint32_t i = 0; i < b->count; i++) {
		const struct item *it = (const struct item *)(const void *)(b->items.data + at);

		sorted[i] = it;
		at += it->size;
		attrs += it->has_attr;
		strings += (size_t)it->name_len + it->target_len;
	}
	qsort(sorted, b->count, sizeof(sorted[0]), item_order);
	h->attrs = (uint32_t)(sizeof(*h) + b->count * sizeof(struct record));
	total = h->attrs + attrs * sizeof(struct cop_attr);
	h->strings = (uint32_t)total;
	total = align8(total + strings);
	if (total > LISTING_MAX_BYTES)
		return -E2BIG;
	h->bytes = (uint32_t)total;
	h->count = b->count;
	return 0;
}

/* Copies n bytes to *at and advances it; returns their offset. */
static uint32_t put_bytes(char *blob, uint32_t *at, const void *data, size_t n)
{
	uint32_t where = *at;

	memcpy(blob + where, data, n);
	*at += (uint32_t)n;
	return where;
}

static int fill_blob(char *blob, const struct listing_head *h, const struct item **sorted)
{
	struct record *r = (struct record *)(void *)(blob + sizeof(*h));
	uint32_t attrs = h->attrs, strings = h->strings;
	uint64_t next = 0;

	for (uint32_t i = 0; i < h->count; i++, r++) {
		const struct item *it = sorted[i];
		const char *name = item_name(it);

		if (i && item_order(&sorted[i - 1], &sorted[i]) == 0)
			return -EEXIST;
		r->cookie = COP_MAX(it->hash, next);
		if (r->cookie - it->hash > REACH)
			return -E2BIG;
		next = r->cookie + 1;
		r->ino = it->ino;
		r->name_len = it->name_len;
		r->type = it->type;
		r->target_len = it->target_len;
		if (it->has_attr)
			r->attr = put_bytes(blob, &attrs, it + 1, sizeof(struct cop_attr));
		r->name = put_bytes(blob, &strings, name, it->name_len);
		if (it->target_len)
			r->target = put_bytes(blob, &strings, name + it->name_len, it->target_len);
	}
	return 0;
}

int cop_listing_build(struct cop_listing_builder *b, const struct cop_attr *dir, uint32_t flags,
	void **blob, size_t *len)
{
	struct listing_head h = {
		.magic = LISTING_MAGIC, .flags = flags, .dir = cop_attr_clean(dir)};
	const struct item **sorted = calloc((size_t)b->count + 1, sizeof(*sorted));
	char *out = NULL;
	int rc = -ENOMEM;

	if (b->failed || !sorted)
		goto out;
	rc = cop_attr_valid(&h.dir) ? lay_out(b, sorted, &h) : -EINVAL;
	if (rc)
		goto out;
	out = calloc(1, h.bytes);
	if (!out) {
		rc = -ENOMEM;
		goto out;
	}
	memcpy(out, &h, sizeof(h));
	rc = fill_blob(out, &h, sorted);
	if (rc)
		goto out;
	*blob = out;
	*len = h.bytes;
	out = NULL;
out:
	free(out);
	free(sorted);
	cop_listing_builder_free(b);
	return rc;
}

void cop_listing_builder_free(struct cop_listing_builder *b)
{
	cop_buf_free(&b->items);
	*b = (struct cop_listing_builder){0};
}

/* ---- checking ---- */

static const struct record *records_of(const void *blob)
{
	return (const struct record *)(const void *)((const char *)blob +
						     sizeof(struct listing_head));
}

/* Progress of the check: everything before these offsets is valid. */
struct walk {
	const char *blob;
	const struct listing_head *h;
	uint64_t attr, string; /* next expected offsets */
	uint64_t cookie;       /* of the record before; 0: none */
	uint64_t hash;
	const char *name;
	size_t name_len;
};

static bool check_attr(struct walk *w, const struct record *r)
{
	const struct cop_attr *a;

	if (!r->attr)
		return true;
	if (r->attr != w->attr || w->attr + sizeof(*a) > w->h->strings)
		return false;
	w->attr += sizeof(*a);
	a = (const struct cop_attr *)(const void *)(w->blob + r->attr);
	return cop_attr_valid(a) && a->ino == r->ino &&
	       (!(a->mode & S_IFMT) || IFTODT(a->mode) == r->type);
}

static bool check_target(struct walk *w, const struct record *r)
{
	if (!r->target)
		return !r->target_len;
	if (r->type != DT_LNK || r->target != w->string || w->string + r->target_len > w->h->bytes)
		return false;
	w->string += r->target_len;
	return cop_attr_target_valid(w->blob + r->target, r->target_len);
}

static bool check_record(struct walk *w, const struct record *r)
{
	const char *name = w->blob + w->string;
	uint64_t hash;

	if (r->name != w->string || w->string + r->name_len > w->h->bytes ||
		!name_valid(name, r->name_len) || !type_valid(r->type))
		return false;
	w->string += r->name_len;
	hash = name_hash(name, r->name_len);
	if (w->name && compare_names(w->hash, w->name, w->name_len, hash, name, r->name_len) >= 0)
		return false;
	if (r->cookie != COP_MAX(hash, w->cookie + 1) || r->cookie - hash > REACH)
		return false;
	w->cookie = r->cookie;
	w->hash = hash;
	w->name = name;
	w->name_len = r->name_len;
	return check_attr(w, r) && check_target(w, r);
}

int cop_listing_check(const void *blob, size_t len)
{
	const struct listing_head *h = blob;
	struct walk w = {.blob = blob, .h = h};

	if ((uintptr_t)blob % 8 || len < sizeof(*h) || len > LISTING_MAX_BYTES || len % 8)
		return -EBADMSG;
	if (h->magic != LISTING_MAGIC || h->bytes != len || !cop_attr_valid(&h->dir))
		return -EBADMSG;
	if (h->attrs != sizeof(*h) + (uint64_t)h->count * sizeof(struct record) ||
		h->attrs > h->strings || h->strings > len)
		return -EBADMSG;
	w.attr = h->attrs;
	w.string = h->strings;
	for (uint32_t i = 0; i < h->count; i++)
		if (!check_record(&w, &records_of(blob)[i]))
			return -EBADMSG;
	if (w.attr != h->strings || align8(w.string) != len)
		return -EBADMSG;
	for (; w.string < len; w.string++)
		if (w.blob[w.string])
			return -EBADMSG;
	return 0;
}

/* ---- using ---- */

uint32_t cop_listing_count(const void *blob)
{
	return ((const struct listing_head *)blob)->count;
}

uint32_t cop_listing_flags(const void *blob)
{
	return ((const struct listing_head *)blob)->flags;
}

void cop_listing_dir(const void *blob, struct cop_attr *dir)
{
	*dir = ((const struct listing_head *)blob)->dir;
}

uint32_t cop_listing_seek(const void *blob, uint64_t cookie)
{
	const struct record *r = records_of(blob);
	uint32_t low = 0, high = cop_listing_count(blob);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (r[mid].cookie <= cookie)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool cop_listing_find(
	const void *blob, const char *name, size_t name_len, struct cop_listing_entry *e)
{
	const struct record *r = records_of(blob);
	uint64_t hash = name_hash(name, name_len);
	uint32_t count = cop_listing_count(blob);

	for (uint32_t i = cop_listing_seek(blob, hash - 1); i < count; i++) {
		if (r[i].cookie - hash > REACH)
			break;
		if (r[i].name_len == name_len &&
			memcmp((const char *)blob + r[i].name, name, name_len) == 0) {
			cop_listing_at(blob, i, e);
			return true;
		}
	}
	return false;
}

void cop_listing_at(const void *blob, uint32_t index, struct cop_listing_entry *e)
{
	const struct record *r = &records_of(blob)[index];

	assert(index < cop_listing_count(blob));
	*e = (struct cop_listing_entry){.cookie = r->cookie,
		.name = (const char *)blob + r->name,
		.name_len = r->name_len,
		.type = r->type,
		.ino = r->ino,
		.has_attr = r->attr != 0,
		.target = r->target ? (const char *)blob + r->target : NULL,
		.target_len = r->target_len};
	if (e->has_attr)
		memcpy(&e->attr, (const char *)blob + r->attr, sizeof(e->attr));
}
