/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a directory's names when the storage says something else.
 *
 * A program that has read some files of a directory shall not read others there of another version.
 * So what is known of a directory stays as it is, here and on all nodes that ask through this one:
 * of a newer listing come only the names that are new. That ends where the bytes of what is known
 * can not be had any more. Then the directory is the newer one as a whole: the kernel forgets its
 * names first, then this node does, and only then does the node hear of it that had asked. */
#include "coop/coop_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"

static void forget(struct cop_coop *c, enum cop_ask_kind kind, const char *path)
{
	struct cop_ask ask = {.kind = kind, .path = path};
	struct cop_key key = cop_coop_key(&ask);

	cop_cache_forget(c->conf.cache, &key);
}

/* The directory of a path; dir has room for 4096 bytes. */
static void parent_of(const char *path, char *dir)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	memcpy(dir, path, len);
	dir[len] = '\0';
}

void cop_coop_forget_name(struct cop_coop *c, const char *path)
{
	char dir[4096];

	forget(c, COP_ASK_ENTRY, path);
	parent_of(path, dir);
	forget(c, COP_ASK_LISTING, dir);
}

/* What is here under the path, if it is no error, with a reference. */
static struct cop_obj *peek(struct cop_coop *c, enum cop_ask_kind kind, const char *path)
{
	struct cop_obj *obj = cop_coop_peek(c, &(struct cop_ask){.kind = kind, .path = path});

	if (obj && obj->error) {
		cop_obj_put(c->conf.cache, obj);
		obj = NULL;
	}
	return obj;
}

static struct cop_obj *listing_where(
	struct cop_coop *c, const char *path, uint64_t version, bool same)
{
	struct cop_obj *obj = peek(c, COP_ASK_LISTING, path);
	struct cop_attr dir;

	if (!obj)
		return NULL;
	cop_listing_dir(obj->data, &dir);
	if ((dir.version == version) == same)
		return obj;
	cop_obj_put(c->conf.cache, obj);
	return NULL;
}

struct cop_obj *cop_coop_listing_of(struct cop_coop *c, const char *path, uint64_t version)
{
	return listing_where(c, path, version, true);
}

struct cop_obj *cop_coop_listing_but(struct cop_coop *c, const struct cop_ask *newer)
{
	return listing_where(c, newer->path, newer->version, false);
}

/* ---- the directory is another one ---- */

/* What this node knows and forgets once the kernel has. */
struct leaving {
	struct cop_coop *coop;
	struct cop_obj *obj; /* a reference */
};

static void left(void *arg)
{
	struct leaving *l = arg;

	cop_cache_drop(l->coop->conf.cache, l->obj);
	cop_obj_put(l->coop->conf.cache, l->obj);
	free(l);
}

/* Whether the kernel will forget the names, and then this node; takes the reference then. */
static bool leave_after_kernel(struct cop_coop *c, const char *dir, struct cop_obj *obj)
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

/* Takes the reference. What leaves already is not told twice. Without memory to tell the kernel it
 * stays, all of one version, until somebody meets the next file that is stale. */
static void leave(struct cop_coop *c, const char *dir, struct cop_obj *obj)
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

static bool says(const struct cop_ask *ask, const struct cop_attr *attr)
{
	return cop_version_same(attr->version, ask->version) &&
	       (ask->kind != COP_ASK_CHUNK || attr->size == ask->size);
}

/* The file is not what the question says. Where that was learned from this node, what it says of
 * the name goes with the directory that it stands in, and is asked again next time. Somebody's
 * wrong question proves nothing against it. */
static void disprove(struct cop_coop *c, const struct cop_ask *ask)
{
	const char *slash = strrchr(ask->path, '/'), *name = slash ? slash + 1 : ask->path;
	struct cop_obj *entry = peek(c, COP_ASK_ENTRY, ask->path), *list;
	struct cop_listing_entry e;
	struct cop_attr attr;
	char dir[4096];

	parent_of(ask->path, dir);
	list = peek(c, COP_ASK_LISTING, dir);
	if (entry) {
		cop_entry_get(entry->data, &attr, NULL, NULL);
		if (says(ask, &attr))
			leave(c, dir, cop_obj_get(entry));
		cop_obj_put(c->conf.cache, entry);
	}
	if (list) {
		if (cop_listing_find(list->data, name, strlen(name), &e) && e.has_attr &&
			says(ask, &e.attr))
			leave(c, dir, cop_obj_get(list));
		cop_obj_put(c->conf.cache, list);
	}
}

bool cop_coop_disproves(int rc)
{
	return rc == -ESTALE || rc == -ENOENT || rc == -ENOTDIR || rc == -EISDIR || rc == -ELOOP;
}

void cop_coop_doubt(struct cop_coop *c, const char *path, uint64_t version)
{
	struct cop_ask ask = {.kind = COP_ASK_HOLES, .path = path, .version = version};
	struct cop_obj *obj;

	if (cop_coop_get(c, &ask, NULL, &obj) == 1)
		cop_obj_put(c->conf.cache, obj);
}

/* Bytes are not those of the version that was asked for. With several trees they came on another
 * way than the name: the question goes on to the tree of the directory, as one about holes, which
 * depends on the version alone. */
static void bytes_gone(struct flight *f)
{
	struct cop_coop *c = f->coop;

	if (c->conf.topo.trees == 1 || f->ask.kind == COP_ASK_HOLES)
		disprove(c, &f->ask);
	else if (f->local)
		cop_coop_doubt(c, f->ask.path, f->ask.version);
}

/* ---- the directory has changed ---- */

/* A check passed through this node: what it found true is true of this node's listing too. */
static void note_check(struct cop_coop *c, const struct cop_ask *ask)
{
	struct cop_obj *obj = cop_coop_listing_of(c, ask->path, ask->version);

	if (!obj)
		return;
	atomic_store(&obj->stamp_ms, cop_now_ms());
	cop_obj_put(c->conf.cache, obj);
}

/* The listing that came, with what is known here: for who asked, and as a copy for this node. */
static int add_known(struct flight *f, struct cop_obj *known, struct cop_completion *l)
{
	struct cop_cache *cache = f->coop->conf.cache;
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
	if (!cop_coop_reserve_up_to(f, len))
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, both, len);
	cop_cache_replace(cache, known, copy, len);
	return 0;
}

/* What is known may have become another listing while this one was under way, so it is looked up
 * now. */
static void take_newer(struct flight *f, struct cop_completion *l)
{
	struct cop_coop *c = f->coop;
	struct cop_obj *known = peek(c, COP_ASK_LISTING, f->ask.path);

	if (!known)
		return;
	if (!l->rc)
		l->rc = add_known(f, known, l);
	/* Too much to keep beside what is known, or no listing any more. */
	if (l->rc == -E2BIG)
		leave(c, f->ask.path, cop_obj_get(known));
	cop_obj_put(c->conf.cache, known);
}

void cop_coop_learn(struct flight *f, struct cop_completion *l)
{
	/* A failure of this node says nothing about the storage. */
	if (cop_coop_is_own(l->rc))
		return;
	switch (f->ask.kind) {
	case COP_ASK_CHUNK:
	case COP_ASK_HOLES:
		if (cop_coop_disproves(l->rc))
			bytes_gone(f);
		break;
	case COP_ASK_CHECK:
		if (!l->rc)
			note_check(f->coop, &f->ask);
		break;
	case COP_ASK_NEWER:
		take_newer(f, l);
		break;
	default:
		break;
	}
}
