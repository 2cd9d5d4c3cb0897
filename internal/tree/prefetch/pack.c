/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores the objects of the next manifest as a pack: listings, with attributes for the names in the
 * manifest and their parent directories; chunks in the manifest; and then whatever else of those
 * files is cached. Objects that this job did not need, because their program has not begun, are
 * copied from the last pack. */
#include "tree/prefetch/prefetch_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/log/log.h"

/* The pack is written once programs have needed nothing new for this long. */
#define QUIET_MS 2000
#define QUIET_MOST_MS 32000
#define FINISH_MS 500
/* Time for the thread to notice the end of the job. It may hang in the pack's file system. */
#define JOIN_MS 3000
/* The last pack is good enough if at most one in this many records is missing. */
#define LACKS_PART 50

struct cop_prefetch_pack {
	struct cop_prefetch_pack_conf conf;
	const struct cop_prefetch_manifest_conf *of;
	struct cop_packfile
		*latest; /* written by this job; NULL: the one found at the start, if any */
	char path[COP_PREFETCH_PATH]; /* of latest */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum { RUNS, FINISHES, STOPS } state; /* under lock, like the next one */
	uint64_t end_ms;                      /* deadline in state FINISHES */
	bool joined, left;                    /* left: it missed the deadline */
	bool failed;                          /* writing failed and is not retried */
};

/* One pass over everything that a pack may contain. Without a writer, the pass only counts. */
struct look {
	struct cop_prefetch_pack *p;
	struct cop_packfile *last;
	struct cop_packfile_writer *to;
	struct cop_buf text;
	size_t body;
	struct cop_seen wanted, dirs; /* hashes of paths */
	struct cop_buf dir;           /* NUL-terminated paths of directories */
	uint64_t bytes;               /* size of the chunks so far */
	size_t all, lacks;            /* records that could be written; those missing in last */
	bool full;
	int rc;
};

static bool may_continue(struct cop_prefetch_pack *p)
{
	bool may;

	pthread_mutex_lock(&p->lock);
	may = p->state == RUNS || (p->state == FINISHES && cop_now_ms() < p->end_ms);
	pthread_mutex_unlock(&p->lock);
	return may;
}

/* ---- which names and directories ---- */

static uint64_t hash_of(const char *path, size_t len)
{
	return cop_hash64(path, len, 0) | 1;
}

static void want_dir(struct look *k, const char *path, size_t len)
{
	if (cop_seen_add(&k->dirs, hash_of(path, len), SIZE_MAX) != COP_SEEN_NEW)
		return;
	cop_buf_add(&k->dir, path, len);
	cop_buf_add(&k->dir, "", 1);
}

/* Adds the name and those of its parent directories. */
static void want(struct look *k, const struct cop_manifest_item *item)
{
	want_dir(k, "", 0);
	for (size_t at = 0; at <= item->len && item->len; at++) {
		if (at < item->len && item->path[at] != '/')
			continue;
		cop_seen_add(&k->wanted, hash_of(item->path, at), SIZE_MAX);
		if (at < item->len || item->kind == COP_MANIFEST_DIR)
			want_dir(k, item->path, at);
	}
}

/* ---- listings ---- */

static bool is_old_enough(uint64_t version)
{
	return version && !cop_version_is_young(version);
}

static struct cop_obj *cached(struct look *k, enum cop_ask_kind kind, const char *path)
{
	struct cop_obj *obj =
		cop_fetch_peek(k->p->conf.fetch, &(struct cop_ask){.kind = kind, .path = path});

	if (!obj || !obj->error)
		return obj;
	cop_obj_put(k->p->conf.cache, obj);
	return NULL;
}

/* Looks up a name's attributes in the cache; in a pack, attributes in a listing only mark the name
 * as needed. */
static bool find_attr(struct look *k, const char *path, struct cop_attr *attr)
{
	struct cop_fetch_name at = cop_fetch_split(path);
	struct cop_obj *obj = cached(k, COP_ASK_ENTRY, path);
	struct cop_listing_entry e;
	bool found = obj != NULL;

	if (obj)
		cop_entry_get(obj->data, attr, NULL, NULL);
	else
		obj = cop_fetch_listed(k->p->conf.fetch, path, at.dir_len);
	if (!found && obj && !obj->error && cop_listing_find(obj->data, at.name, at.name_len, &e) &&
		e.has_attr) {
		*attr = e.attr;
		found = true;
	}
	if (obj)
		cop_obj_put(k->p->conf.cache, obj);
	return found;
}

static int add_entry(struct look *k, struct cop_listing_builder *b, const char *dir,
	const struct cop_listing_entry *e)
{
	struct cop_attr attr = e->attr;
	char path[COP_MANIFEST_PATH_MAX + 258];
	int len = snprintf(
		path, sizeof(path), "%s%s%.*s", dir, *dir ? "/" : "", (int)e->name_len, e->name);

	if (cop_seen_has(&k->wanted, hash_of(path, (size_t)len)) &&
		(e->has_attr || find_attr(k, path, &attr)))
		return cop_listing_add(
			b, e->name, e->name_len, e->type, &attr, e->target, e->target_len);
	return cop_listing_add_bare(b, e->name, e->name_len, e->type, e->ino);
}

static int trim_listing(struct look *k, const char *dir, const void *from, void **blob, size_t *len)
{
	struct cop_listing_builder b = {0};
	struct cop_listing_entry e;
	struct cop_attr attr;
	int rc = 0;

	for (uint32_t i = 0; i < cop_listing_count(from) && !rc; i++) {
		cop_listing_at(from, i, &e);
		rc = add_entry(k, &b, dir, &e);
	}
	if (rc) {
		cop_listing_builder_free(&b);
		return rc;
	}
	cop_listing_dir(from, &attr);
	return cop_listing_build(&b, &attr, cop_listing_flags(from), blob, len);
}

/* Number of names that have attributes in the first listing but not in the second. */
static size_t count_bare(const void *has, const void *lacks)
{
	struct cop_listing_entry e, f;
	size_t n = 0;

	for (uint32_t i = 0; i < cop_listing_count(has); i++) {
		cop_listing_at(has, i, &e);
		n += e.has_attr && !(cop_listing_find(lacks, e.name, e.name_len, &f) && f.has_attr);
	}
	return n;
}

static void add_record(
	struct look *k, const struct cop_packfile_record *r, const void *body, size_t len)
{
	int rc = cop_packfile_add(k->to, r, body, len);

	/* Other directories may still fit. */
	if (rc == -EFBIG)
		k->full = r->kind == COP_PACKFILE_CHUNK;
	else if (rc)
		k->rc = rc;
}

static void take_listing(struct look *k, const char *dir, const void *from, const void *last)
{
	struct cop_packfile_record r = {.path = dir, .kind = COP_PACKFILE_LISTING};
	struct cop_attr attr, before;
	void *blob;
	size_t len;

	if (trim_listing(k, dir, from, &blob, &len))
		return;
	cop_listing_dir(blob, &attr);
	if (last)
		cop_listing_dir(last, &before);
	k->all += 1;
	if (!last || before.version != attr.version)
		k->lacks++;
	else
		k->lacks += count_bare(blob, last);
	r.version = attr.version;
	if (k->to)
		add_record(k, &r, blob, len);
	free(blob);
}

static void take_dir(struct look *k, const char *dir)
{
	const void *last = cop_packfile_listing(k->last, dir);
	struct cop_obj *obj = cached(k, COP_ASK_LISTING, dir);
	struct cop_attr attr;

	if (obj)
		cop_listing_dir(obj->data, &attr);
	if (obj && is_old_enough(attr.version))
		take_listing(k, dir, obj->data, last);
	else if (last)
		take_listing(k, dir, last, last);
	if (obj)
		cop_obj_put(k->p->conf.cache, obj);
}

/* ---- chunks ---- */

struct chunk {
	const char *path;
	bool known; /* attr is the current version of the file */
	struct cop_attr attr;
	uint64_t index;
};

static void add_cached(struct look *k, const struct chunk *c, const struct cop_obj *obj)
{
	struct cop_packfile_record r = {.path = c->path,
		.version = c->attr.version,
		.size = c->attr.size,
		.index = c->index,
		.kind = COP_PACKFILE_CHUNK,
		.packed = obj->packed};

	k->all++;
	k->bytes += obj->len;
	k->lacks += !cop_packfile_chunk(k->last, c->path, c->attr.version, c->attr.size, c->index);
	if (k->to)
		add_record(k, &r, obj->data, obj->len);
}

static void add_last(struct look *k, const struct cop_packfile_record *r)
{
	void *body = k->to ? malloc(r->len) : NULL;

	k->all++;
	k->bytes += r->len;
	if (k->to && !body)
		k->rc = -ENOMEM;
	if (body && !cop_packfile_read(k->last, r, body))
		add_record(k, r, body, r->len);
	free(body);
}

static void take_chunk(struct look *k, const struct chunk *c)
{
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = c->path,
		.version = c->attr.version,
		.size = c->attr.size,
		.index = c->index};
	struct cop_obj *obj = c->known ? cop_fetch_peek(k->p->conf.fetch, &ask) : NULL;
	const struct cop_packfile_record *last =
		c->known ? cop_packfile_chunk(k->last, c->path, ask.version, ask.size, c->index)
			 : cop_packfile_any(k->last, c->path, c->index);

	if (obj && !obj->error && obj->len)
		add_cached(k, c, obj);
	else if (last)
		add_last(k, last);
	if (obj)
		cop_obj_put(k->p->conf.cache, obj);
	k->full |= k->bytes >= k->p->of->pack_limit;
}

static bool is_named(const struct cop_manifest_item *item, uint64_t begin, uint64_t end)
{
	for (unsigned i = 0; i < item->ranges; i++)
		if (item->range[i].start < end && item->range[i].end > begin)
			return true;
	return false;
}

/* named: the chunks in the manifest; otherwise the remaining ones. */
static void take_file(struct look *k, const struct cop_manifest_item *item, bool named)
{
	uint64_t chunk = k->p->of->chunk_bytes, size;
	struct chunk c = {.path = item->path};

	c.known = find_attr(k, item->path, &c.attr);
	if (c.known && (!S_ISREG(c.attr.mode) || !is_old_enough(c.attr.version)))
		return;
	size = c.known ? c.attr.size : item->size;
	if (size >= COP_PACKFILE_LARGE)
		return;
	for (uint64_t at = 0; at < size && !k->full && !k->rc; at += chunk, c.index++)
		if (is_named(item, at, at + chunk) == named)
			take_chunk(k, &c);
}

/* ---- the whole pack ---- */

static void each_item(struct look *k, void (*fn)(struct look *k, struct cop_manifest_item *item))
{
	struct cop_manifest_reader *r = calloc(1, sizeof(*r));
	struct cop_manifest_item item;

	if (!r) {
		k->rc = -ENOMEM;
		return;
	}
	r->data = k->text.data + k->body;
	r->len = k->text.len - k->body;
	while (!k->rc && !k->full && cop_manifest_next(r, &item)) {
		fn(k, &item);
		if (!may_continue(k->p))
			k->rc = -ETIMEDOUT;
	}
	free(r);
}

static void want_item(struct look *k, struct cop_manifest_item *item)
{
	want(k, item);
}

static void take_named(struct look *k, struct cop_manifest_item *item)
{
	if (item->kind == COP_MANIFEST_FILE)
		take_file(k, item, true);
}

static void take_rest(struct look *k, struct cop_manifest_item *item)
{
	if (item->kind == COP_MANIFEST_FILE)
		take_file(k, item, false);
}

static void take_all(struct look *k)
{
	each_item(k, want_item);
	if (k->dir.failed)
		k->rc = -ENOMEM;
	for (size_t at = 0; at < k->dir.len && !k->rc && !k->full;
		at += strlen(k->dir.data + at) + 1)
		take_dir(k, k->dir.data + at);
	each_item(k, take_named);
	each_item(k, take_rest);
}

static void end_look(struct look *k)
{
	cop_buf_free(&k->text);
	cop_buf_free(&k->dir);
	cop_seen_forget(&k->wanted);
	cop_seen_forget(&k->dirs);
}

static int begin_look(struct look *k, struct cop_prefetch_pack *p)
{
	char source[COP_MANIFEST_PATH_MAX + 1];
	uint64_t items = 0;
	int rc;

	*k = (struct look){.p = p,
		.last = p->latest ? p->latest : cop_prefetch_manifest_pack(p->conf.manifest)};
	rc = cop_prefetch_make_next(p->conf.manifest, p->conf.begun(p->conf.arg), &k->text, &items);
	return rc ? rc : cop_manifest_head(k->text.data, k->text.len, source, &k->body, NULL);
}

/* Whether a new pack would be more complete than the last one. */
static bool is_worthwhile(struct cop_prefetch_pack *p)
{
	struct look k;
	bool yes = false;

	if (!begin_look(&k, p)) {
		take_all(&k);
		yes = !k.rc && k.all && k.lacks * LACKS_PART > k.all;
	}
	end_look(&k);
	return yes;
}

static int write_to(struct cop_prefetch_pack *p, const char *path)
{
	uint64_t bytes = 0;
	struct look k;
	int rc = begin_look(&k, p);

	if (!rc)
		rc = cop_packfile_create(
			path, p->of->source, p->of->chunk_bytes, p->of->pack_limit, &k.to);
	if (!rc) {
		take_all(&k);
		rc = k.rc;
		if (rc)
			cop_packfile_abandon(k.to);
		else
			rc = cop_packfile_commit(k.to, &bytes);
	}
	if (!rc)
		cop_log_info(
			"the pack for the next job was written path=\"%s\" records=%zu bytes=%" PRIu64,
			path, k.all, bytes);
	end_look(&k);
	return rc;
}

/* Replaces the last pack. The one found at the start stays open for its readers. */
static void use_latest(struct cop_prefetch_pack *p, const char *path)
{
	struct cop_packfile *latest = NULL;

	if (cop_packfile_open(path, p->of->source, p->of->chunk_bytes, geteuid(), &latest))
		return;
	cop_packfile_free(p->latest);
	p->latest = latest;
	strcpy(p->path, path);
}

static void write_pack(struct cop_prefetch_pack *p)
{
	char path[2][COP_PREFETCH_PATH];
	int rc = -ENOENT;

	cop_prefetch_pack_places(p->conf.manifest, path);
	for (unsigned i = 0; i < 2 && rc && rc != -ETIMEDOUT; i++) {
		if (!*path[i])
			continue;
		rc = write_to(p, path[i]);
		if (!rc)
			use_latest(p, path[i]);
	}
	p->failed = rc && rc != -ETIMEDOUT;
	if (rc == -ETIMEDOUT)
		cop_log_info("the pack for the next job was not written: the job has ended");
	else if (rc)
		cop_log_warn(
			"the pack for the next job was not written error=\"%s\"", strerror(-rc));
}

/* Writes a pack if it is worthwhile; otherwise keeps the last one, which is in use. */
static void tend_pack(struct cop_prefetch_pack *p)
{
	const char *path = *p->path ? p->path : cop_prefetch_pack_from(p->conf.manifest);

	if (p->failed)
		return;
	if (is_worthwhile(p))
		write_pack(p);
	else if (*path && may_continue(p))
		utimensat(AT_FDCWD, path, NULL, 0);
}

/* ---- the thread ---- */

static bool is_calm(struct cop_prefetch_pack *p)
{
	unsigned queued, running;

	cop_origin_load(p->conf.origin, &queued, &running);
	return !queued && !running;
}

/* False: the job is ending. */
static bool wait_quiet(struct cop_prefetch_pack *p, uint64_t ms)
{
	struct timespec until = cop_moment(cop_now_ns() + ms * COP_NS_PER_MS);
	bool runs;

	pthread_mutex_lock(&p->lock);
	while (p->state == RUNS && pthread_cond_timedwait(&p->wake, &p->lock, &until) != ETIMEDOUT)
		;
	runs = p->state == RUNS;
	pthread_mutex_unlock(&p->lock);
	return runs;
}

static void *run_pack(void *arg)
{
	struct cop_prefetch_pack *p = arg;
	struct cop_manifest_set *record = cop_prefetch_manifest_record(p->conf.manifest);
	uint64_t pause_ms = QUIET_MS;
	size_t last = 0, tended = 0;

	while (wait_quiet(p, pause_ms)) {
		size_t now = cop_manifest_set_count(record);

		if (now == last && now != tended && is_calm(p)) {
			tend_pack(p);
			tended = now;
		}
		pause_ms = now == last ? COP_MIN(2 * pause_ms, QUIET_MOST_MS) : QUIET_MS;
		last = now;
	}
	if (cop_manifest_set_count(record) != tended && may_continue(p))
		tend_pack(p);
	return NULL;
}

struct cop_prefetch_pack *cop_prefetch_pack_start(const struct cop_prefetch_pack_conf *conf)
{
	struct cop_prefetch_pack *p;
	int rc = -ENOMEM;

	if (!cop_prefetch_manifest_record(conf->manifest) ||
		!cop_prefetch_manifest_conf(conf->manifest)->pack_limit)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p) {
		p->conf = *conf;
		p->of = cop_prefetch_manifest_conf(conf->manifest);
		pthread_mutex_init(&p->lock, NULL);
		cop_cond_init(&p->wake);
		rc = cop_thread_start(&p->thread, "pack", run_pack, p);
	}
	if (!rc)
		return p;
	cop_log_warn("no pack is kept for the next job error=\"%s\"", strerror(-rc));
	free(p);
	return NULL;
}

static void end(struct cop_prefetch_pack *p, int state)
{
	pthread_mutex_lock(&p->lock);
	p->state = state;
	p->end_ms = cop_now_ms() + (p->conf.finish_ms ? p->conf.finish_ms : FINISH_MS);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void cop_prefetch_pack_finish(struct cop_prefetch_pack *p)
{
	if (p)
		end(p, FINISHES);
}

bool cop_prefetch_pack_join(struct cop_prefetch_pack *p)
{
	if (!p || p->joined || p->left)
		return !p || p->joined;
	p->joined = cop_thread_join_within(p->thread, JOIN_MS + p->conf.finish_ms);
	p->left = !p->joined;
	if (p->left)
		cop_log_warn(
			"the pack for the next job was not written: its file system does not answer path=\"%s\"",
			*p->path ? p->path : cop_prefetch_pack_from(p->conf.manifest));
	return p->joined;
}

bool cop_prefetch_pack_free(struct cop_prefetch_pack *p)
{
	if (!p)
		return true;
	if (!p->joined && !p->left)
		end(p, STOPS);
	if (!cop_prefetch_pack_join(p))
		return false;
	cop_packfile_free(p->latest);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return true;
}
