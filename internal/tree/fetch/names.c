/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps a directory's names consistent when the storage has a newer version of it.
 *
 * A program that has read some files of a directory must not then read others from a different
 * version of that directory. So this node and every node below keep the names that they know and
 * add only the new names from a newer listing. When the bytes of a known file are no longer
 * available, the whole directory is replaced by the newer version. First the kernel forgets its
 * names, then this node does, and only then is the requester answered. */
#include "tree/fetch/fetch_priv.h"

#include "base/log/log.h"

static void forget(struct cop_fetch *c, enum cop_table table, const char *path, size_t path_len)
{
	cop_cache_forget(c->conf.cache,
		&(struct cop_key){.table = table, .path = path, .path_len = path_len});
}

void cop_fetch_forget_name(struct cop_fetch *c, const char *path)
{
	struct cop_fetch_name at = cop_fetch_split(path);

	forget(c, COP_TABLE_METADATA, path, strlen(path));
	forget(c, COP_TABLE_TREE, path, at.dir_len);
	cop_cache_drop_facet(c->conf.cache, COP_TABLE_TREE, COP_FACET_PAGE, path, at.dir_len);
	cop_fetch_trust_pages(c);
	/* Everything is forgotten, here and on the nodes below, so the root has room again. */
	if (!*path)
		atomic_store(&c->lends, false);
}

/* A reference to the cached object of this path; NULL if there is none or it is an error. */
static struct cop_obj *peek(
	struct cop_fetch *c, enum cop_table table, const char *path, size_t path_len)
{
	struct cop_obj *obj = cop_cache_peek(c->conf.cache,
		&(struct cop_key){.table = table, .path = path, .path_len = path_len});

	if (obj && obj->error) {
		cop_obj_put(c->conf.cache, obj);
		obj = NULL;
	}
	return obj;
}

static struct cop_obj *listing_where(
	struct cop_fetch *c, const char *path, uint64_t version, bool same)
{
	struct cop_obj *obj = peek(c, COP_TABLE_TREE, path, strlen(path));
	struct cop_attr dir;

	if (!obj)
		return NULL;
	cop_listing_dir(obj->data, &dir);
	if ((dir.version == version) == same)
		return obj;
	cop_obj_put(c->conf.cache, obj);
	return NULL;
}

struct cop_obj *cop_fetch_listing_of(struct cop_fetch *c, const char *path, uint64_t version)
{
	return listing_where(c, path, version, true);
}

struct cop_obj *cop_fetch_listing_but(struct cop_fetch *c, const struct cop_ask *newer)
{
	return listing_where(c, newer->path, newer->version, false);
}

/* ---- the directory has been replaced ---- */

/* A listing to drop after the kernel has forgotten its names. */
struct leaving {
	struct cop_fetch *fetch;
	struct cop_obj *obj; /* a reference */
};

static void left(void *arg)
{
	struct leaving *l = arg;

	cop_cache_drop(l->fetch->conf.cache, l->obj);
	cop_obj_put(l->fetch->conf.cache, l->obj);
	free(l);
}

/* Asks the kernel to forget the names; this node drops them afterwards. Takes the reference on
 * success. */
static bool leave_after_kernel(struct cop_fetch *c, const char *dir, struct cop_obj *obj)
{
	struct leaving *l = malloc(sizeof(*l));

	if (!l)
		return false;
	*l = (struct leaving){c, obj};
	if (c->conf.forget_names(c->conf.ctx, dir, left, l) == 0)
		return true;
	free(l);
	return false;
}

/* Takes the reference. A listing that is already being dropped is not reported twice. If there is
 * no memory for the request to the kernel, the listing stays, consistently in one version, until
 * the next stale file is found. */
static void drop_names(struct cop_fetch *c, const char *dir, struct cop_obj *obj)
{
	if (!atomic_exchange(&obj->disproved, true)) {
		cop_log_info(
			"names are old path=\"/%s\" why=\"the storage has another version\"", dir);
		if (!c->conf.forget_names)
			cop_cache_drop(c->conf.cache, obj);
		else if (leave_after_kernel(c, dir, obj))
			return;
		else
			atomic_store(&obj->disproved, false);
	}
	cop_obj_put(c->conf.cache, obj);
}

static bool matches(const struct cop_ask *ask, const struct cop_attr *attr)
{
	return cop_version_same(attr->version, ask->version) &&
	       (ask->kind != COP_ASK_CHUNK || attr->size == ask->size);
}

/* The storage contradicts the file in the request. If the requester got the file's version from
 * this node, the directory's names are dropped here and requested again on the next use. A wrong
 * request from another node proves nothing about them. */
static void disprove(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_fetch_name at = cop_fetch_split(ask->path);
	struct cop_obj *entry = peek(c, COP_TABLE_METADATA, ask->path, strlen(ask->path));
	struct cop_obj *list = peek(c, COP_TABLE_TREE, ask->path, at.dir_len);
	struct cop_obj *page = cop_fetch_page_with(c, &at);
	struct cop_listing_entry e;
	struct cop_attr attr;
	char dir[4096];

	memcpy(dir, at.path, at.dir_len);
	dir[at.dir_len] = '\0';
	if (entry) {
		cop_entry_get(entry->data, &attr, NULL, NULL);
		if (matches(ask, &attr))
			drop_names(c, dir, cop_obj_get(entry));
		cop_obj_put(c->conf.cache, entry);
	}
	if (list) {
		if (cop_listing_find(list->data, at.name, at.name_len, &e) && e.has_attr &&
			matches(ask, &e.attr))
			drop_names(c, dir, cop_obj_get(list));
		cop_obj_put(c->conf.cache, list);
	}
	if (page) {
		if (cop_listing_find(page->data, at.name, at.name_len, &e) &&
			matches(ask, &e.attr)) {
			cop_fetch_doubt_pages(c, page);
			drop_names(c, dir, cop_obj_get(page));
		}
		cop_obj_put(c->conf.cache, page);
	}
}

bool cop_fetch_disproves(int rc)
{
	return rc == -ESTALE || rc == -ENOENT || rc == -ENOTDIR || rc == -EISDIR || rc == -ELOOP;
}

void cop_fetch_doubt(struct cop_fetch *c, const char *path, uint64_t version)
{
	struct cop_ask ask = {.kind = COP_ASK_HOLES, .path = path, .version = version};
	struct cop_obj *obj;

	if (cop_fetch_get(c, &ask, NULL, &obj) == 1)
		cop_obj_put(c->conf.cache, obj);
}

/* The bytes do not match the requested version. The bytes of a large file or a lent chunk may have
 * taken a different path from the name's. The request then continues along the path of the names,
 * as a request for holes, which depends only on the version. The root has the names of all nodes
 * and answers the nodes below it that wait on that path. */
static void bytes_gone(struct flight *f)
{
	struct cop_fetch *c = f->fetch;

	if (f->local)
		cop_telemetry_event(
			c->conf.telemetry, COP_TELEMETRY_FILE_CHANGED, "/%s", f->ask.path);
	if (f->ask.home ? c->conf.rank == cop_topo_root(&c->conf.topo, 0) : f->tree == 0)
		disprove(c, &f->ask);
	else if (f->local)
		cop_fetch_doubt(c, f->ask.path, f->ask.version);
}

/* ---- the directory has changed ---- */

/* A check that passed through this node also confirms this node's listing. */
static void note_check(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_obj *obj = cop_fetch_listing_of(c, ask->path, ask->version);

	if (!obj)
		return;
	atomic_store(&obj->stamp_ms, cop_now_ms());
	cop_obj_put(c->conf.cache, obj);
}

/* Merges the received listing with the known names: one copy for the requester, one for this node.
 * */
static int add_known(struct flight *f, struct cop_obj *known, struct cop_completion *l)
{
	struct cop_cache *cache = f->fetch->conf.cache;
	void *both, *copy;
	size_t len;
	int rc = atomic_load(&known->disproved)
			 ? -ESTALE
			 : cop_listing_merge(known->data, l->data, &both, &len);

	if (rc)
		return rc;
	free(l->data);
	l->data = both;
	l->len = len;
	if (!cop_fetch_reserve_up_to(f, len))
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, both, len);
	cop_cache_replace(cache, known, copy, len);
	return 0;
}

/* Another flight may have replaced the known listing, so look it up now. */
static void merge_newer(struct flight *f, struct cop_completion *l)
{
	struct cop_fetch *c = f->fetch;
	struct cop_obj *known = peek(c, COP_TABLE_TREE, f->ask.path, f->obj->key.path_len);

	if (!known)
		return;
	if (!l->rc)
		l->rc = add_known(f, known, l);
	/* The merged listing is too large to cache, or the path is no longer a directory. */
	if (l->rc == -E2BIG)
		drop_names(c, f->ask.path, cop_obj_get(known));
	cop_obj_put(c->conf.cache, known);
}

void cop_fetch_learn(struct flight *f, struct cop_completion *l)
{
	/* A failure of this node proves nothing about the storage. */
	if (cop_fetch_is_own(l->rc))
		return;
	switch (f->ask.kind) {
	case COP_ASK_CHUNK:
	case COP_ASK_HOLES:
		/* A background flight has no reader: no local program has read this file, so none
		 * may suddenly see other names. A reader will notice the change by its own request.
		 */
		if (cop_fetch_disproves(l->rc) && !atomic_load(&f->obj->background))
			bytes_gone(f);
		break;
	case COP_ASK_CHECK:
		if (!l->rc)
			note_check(f->fetch, &f->ask);
		break;
	case COP_ASK_NEWER:
		merge_newer(f, l);
		break;
	default:
		break;
	}
}
