/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks called by fetch. */
#include "tree/guess/guess_priv.h"

struct cop_guess *cop_guess_new(struct cop_fetch *fetch, const struct cop_fetch_conf *conf)
{
	struct cop_guess *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->fetch = fetch;
	g->conf = conf;
	pthread_mutex_init(&g->lock, NULL);
	cop_guess_absence_init(&g->absence);
	return g;
}

void cop_guess_free(struct cop_guess *g)
{
	if (!g)
		return;
	cop_guess_absence_fini(&g->absence);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

bool cop_guess_ask(struct cop_guess *g, const struct cop_ask *ask)
{
	struct cop_obj *obj;
	int rc = cop_fetch_get(g->fetch, ask, NULL, &obj);

	if (rc == 1)
		cop_obj_put(g->conf->cache, obj);
	return rc == 0;
}

bool cop_guess_path(
	char buf[4096], const char *dir, size_t dir_len, const char *name, size_t name_len)
{
	size_t slash = dir_len > 0;

	if (dir_len + slash + name_len >= 4096)
		return false;
	memcpy(buf, dir, dir_len);
	if (slash)
		buf[dir_len] = '/';
	memcpy(buf + dir_len + slash, name, name_len);
	buf[dir_len + slash + name_len] = '\0';
	return true;
}

/* Whether a program waits for the request. Guesses do not trigger further guesses. */
static bool is_awaited(const struct cop_ask *ask)
{
	return !ask->background && !ask->along;
}

void cop_guess_before(struct cop_guess *g, struct cop_ask *ask)
{
	if (!g->conf->bundle || ask->kind != COP_ASK_ENTRY || !is_awaited(ask))
		return;
	cop_guess_met_library(g, ask);
	pthread_mutex_lock(&g->lock);
	ask->first = cop_bundle_may_ask_first(&g->policy, cop_bundle_id(ask->path).kind);
	pthread_mutex_unlock(&g->lock);
}

void cop_guess_after(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj)
{
	if (!g->conf->bundle || ask->background)
		return;
	if (cop_guess_is_small(g, ask))
		cop_guess_siblings(g, ask);
	else if (ask->kind == COP_ASK_CHECK && !ask->along && g->conf->enoent_ttl_ms)
		cop_guess_checks(g, obj->key.path);
	else if (ask->kind == COP_ASK_LISTING)
		cop_guess_companions(g, obj->key.path);
	else if (ask->kind == COP_ASK_ENTRY && !ask->along)
		cop_guess_targets(g, obj->key.path);
	if (cop_guess_has_mentions(g, ask))
		cop_guess_bring_mentioned(g);
}

bool cop_guess_met(struct cop_guess *g, const struct cop_ask *ask, struct cop_obj *obj)
{
	bool met;

	if (!g->conf->bundle || ask->kind != COP_ASK_LISTING || ask->background)
		return false;
	/* Each lookup of a name uses a listing; only the first one takes the lock. */
	if (obj && (!atomic_load_explicit(&obj->bundled, memory_order_relaxed) ||
			   !atomic_exchange(&obj->bundled, false)))
		return false;
	pthread_mutex_lock(&g->lock);
	met = cop_bundle_met(&g->policy, ask->path);
	pthread_mutex_unlock(&g->lock);
	cop_stats_add(g->conf->stats, COP_BUNDLE_USED_LISTINGS, met);
	return met;
}

void cop_guess_completed(struct cop_guess *g, const struct cop_ask *ask, const struct cop_obj *obj,
	const struct cop_completion *l)
{
	if (l->rc)
		return;
	if (ask->kind == COP_ASK_CHUNK && ask->along) {
		cop_stats_add(g->conf->stats, COP_BUNDLE_FILES, 1);
		cop_stats_add(g->conf->stats, COP_BUNDLE_BYTES, ask->size);
	}
	if (ask->mentioned && cop_guess_may_mention(g, &obj->key))
		cop_guess_note_mentions(g, &obj->key, l->data, l->len, l->packed, false);
	if (ask->guess)
		cop_guess_listed_mentioned(g, obj, l->data);
}

bool cop_guess_may_come(struct cop_guess *g)
{
	bool may;

	pthread_mutex_lock(&g->lock);
	may = cop_bundle_may_come(&g->policy);
	pthread_mutex_unlock(&g->lock);
	return may;
}

void cop_guess_came(struct cop_guess *g, const char *path, uint64_t bytes, bool asked)
{
	uint64_t kind = asked ? cop_bundle_id(path).kind : 0;

	pthread_mutex_lock(&g->lock);
	cop_bundle_came_first(&g->policy, kind, bytes);
	pthread_mutex_unlock(&g->lock);
}
