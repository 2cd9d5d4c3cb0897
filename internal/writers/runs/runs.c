/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/grow.h"
#include "writers/runs/runs.h"

#include <math.h>
#include <strings.h>
#include <sys/random.h>

static const char *const statuses[] = {"RUNNING", "FINISHED", "FAILED", "LOST"};
static const char *const lists[] = {"param", "tag", "resource"};

_Static_assert(COP_ARRAY_SIZE(statuses) == COP_RUNREC_STATUSES, "each status has a name");
_Static_assert(COP_ARRAY_SIZE(lists) == COP_RUNREC_LISTS, "each list has a name");

const char *cop_runrec_status_name(enum cop_runrec_status s)
{
	return statuses[s];
}

int cop_runrec_status_of(const char *name, enum cop_runrec_status *out)
{
	for (unsigned i = 0; i < COP_RUNREC_STATUSES; i++)
		if (strcasecmp(name, statuses[i]) == 0) {
			*out = i;
			return 0;
		}
	return -EINVAL;
}

const char *cop_runrec_list_name(enum cop_runrec_list l)
{
	return lists[l];
}

void cop_runrec_free(struct cop_runrec *r)
{
	for (unsigned f = 0; f < COP_RUNREC_FIELDS; f++)
		free(r->field[f]);
	for (unsigned l = 0; l < COP_RUNREC_LISTS; l++) {
		for (size_t i = 0; i < r->list[l].n; i++) {
			free(r->list[l].at[i].key);
			free(r->list[l].at[i].value);
		}
		free(r->list[l].at);
	}
	for (size_t i = 0; i < r->series_n; i++) {
		free(r->series[i].key);
		free(r->series[i].point);
	}
	free(r->series);
	*r = (struct cop_runrec){0};
}

int cop_runrec_new_id(char id[COP_RUNREC_ID_LEN + 1])
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return errno ? -errno : -EIO;
	snprintf(id, COP_RUNREC_ID_LEN + 1, "%016llx", (unsigned long long)n);
	return 0;
}

/* ---- texts ---- */

/* The length of the text, truncated at a character boundary to at most `most` bytes. */
static size_t cut_text(const char *text, size_t most)
{
	size_t len = strnlen(text, most + 1);

	if (len <= most)
		return len;
	len = most;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

static char *copy_text(struct cop_runrec *r, const char *text, size_t most)
{
	char *c = strndup(text, cut_text(text, most));

	r->failed |= !c;
	return c;
}

const char *cop_runrec_get(const struct cop_runrec *r, enum cop_runrec_field f)
{
	return r->field[f] ? r->field[f] : "";
}

void cop_runrec_put(struct cop_runrec *r, enum cop_runrec_field f, const char *text)
{
	char *c = copy_text(r, text, COP_RUNREC_VALUE_MAX);

	if (!c)
		return;
	free(r->field[f]);
	r->field[f] = c;
}

/* ---- pairs ---- */

/* Finds the index of key, or its insertion point. things: n structs of this size, each beginning
 * with its key, sorted by key. */
static bool find_key(const void *things, size_t n, size_t size, const char *key, size_t *at)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		char *const *its = (char *const *)((const char *)things + middle * size);
		int order = strcmp(key, *its);

		if (order == 0) {
			*at = middle;
			return true;
		}
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	*at = low;
	return false;
}

static bool find_pair(const struct cop_runrec_pairs *p, const char *key, size_t *at)
{
	return find_key(p->at, p->n, sizeof(*p->at), key, at);
}

static void insert_pair(
	struct cop_runrec *r, struct cop_runrec_pairs *p, size_t at, char *key, char *value)
{
	if (!COP_GROW_PLAIN(p->at, p->n)) {
		r->failed = true;
		free(key);
		free(value);
		return;
	}
	memmove(p->at + at + 1, p->at + at, (p->n - at) * sizeof(*p->at));
	p->at[at] = (struct cop_runrec_pair){key, value};
	p->n++;
}

void cop_runrec_pair(
	struct cop_runrec *r, enum cop_runrec_list l, const char *key, const char *value)
{
	struct cop_runrec_pairs *p = &r->list[l];
	char *k = copy_text(r, key, COP_RUNREC_KEY_MAX),
	     *v = copy_text(r, value, COP_RUNREC_VALUE_MAX);
	size_t at = 0;

	if (k && v && *k && find_pair(p, k, &at)) {
		free(p->at[at].value);
		p->at[at].value = v;
		free(k);
	} else if (k && v && *k && p->n < COP_RUNREC_PAIRS_MAX) {
		insert_pair(r, p, at, k, v);
	} else {
		free(k);
		free(v);
	}
}

const char *cop_runrec_value(const struct cop_runrec *r, enum cop_runrec_list l, const char *key)
{
	size_t at;

	return find_pair(&r->list[l], key, &at) ? r->list[l].at[at].value : NULL;
}

/* ---- series ---- */

static bool find_series(const struct cop_runrec *r, const char *key, size_t *at)
{
	return find_key(r->series, r->series_n, sizeof(*r->series), key, at);
}

const struct cop_runrec_series *cop_runrec_find(const struct cop_runrec *r, const char *key)
{
	size_t at;

	return find_series(r, key, &at) ? &r->series[at] : NULL;
}

static struct cop_runrec_series *series_of(struct cop_runrec *r, const char *key)
{
	size_t at;
	char *k;

	if (find_series(r, key, &at))
		return &r->series[at];
	if (!*key || strlen(key) > COP_RUNREC_KEY_MAX || r->series_n == COP_RUNREC_SERIES_MAX)
		return NULL;
	k = copy_text(r, key, COP_RUNREC_KEY_MAX);
	if (!k || !COP_GROW_PLAIN(r->series, r->series_n)) {
		r->failed = true;
		free(k);
		return NULL;
	}
	memmove(r->series + at + 1, r->series + at, (r->series_n - at) * sizeof(*r->series));
	r->series_n++;
	r->series[at] = (struct cop_runrec_series){.key = k};
	return &r->series[at];
}

static uint64_t stride_of(const struct cop_runrec *r)
{
	return r->stride ? r->stride : 1;
}

static void thin_series(struct cop_runrec *r)
{
	r->stride = 2 * stride_of(r);
	for (size_t i = 0; i < r->series_n; i++) {
		struct cop_runrec_series *s = &r->series[i];
		size_t kept = 0;

		for (size_t k = 0; k < s->n; k++)
			if (s->point[k].step % r->stride == 0)
				s->point[kept++] = s->point[k];
		s->n = kept;
	}
}

static size_t longest_series(const struct cop_runrec *r)
{
	size_t most = 0;

	for (size_t i = 0; i < r->series_n; i++)
		most = COP_MAX(most, r->series[i].n);
	return most;
}

/* Thins series early enough to leave room for the last point. */
bool cop_runrec_next(struct cop_runrec *r)
{
	r->step++;
	while (longest_series(r) >= COP_RUNREC_POINTS_MAX - 1)
		thin_series(r);
	return r->step % stride_of(r) == 0;
}

void cop_runrec_last(struct cop_runrec *r)
{
	r->step++;
}

/* Keeps every second point, not counting an extra one at the end. */
static void halve_series(struct cop_runrec_series *s)
{
	for (size_t k = 0; 2 * k < s->n; k++)
		s->point[k] = s->point[2 * k];
	s->n -= s->n / 2;
	s->every *= 2;
}

/* Whether the last point is extra, kept only because it is the last. */
static bool is_last_extra(const struct cop_runrec_series *s)
{
	return s->points && (s->points - 1) % s->every != 0;
}

void cop_runrec_point(struct cop_runrec *r, const char *key, double time_s, double value)
{
	struct cop_runrec_series *s = !isnan(value) && isfinite(time_s) ? series_of(r, key) : NULL;

	if (!s || (s->n && s->point[s->n - 1].step >= r->step))
		return;
	s->every = s->every ? s->every : 1;
	s->n -= is_last_extra(s);
	if (s->n == r->points_max && r->points_max)
		halve_series(s);
	else if (s->n == COP_RUNREC_POINTS_MAX && !r->points_max)
		return;
	s->most = s->points ? fmax(s->most, value) : value;
	s->points++;
	if (COP_GROW_PLAIN(s->point, s->n))
		s->point[s->n++] = (struct cop_runrec_point){r->step, time_s, value};
	else
		r->failed = true;
}

bool cop_runrec_is_own_metric(const char *key)
{
	static const char *const more[] = {
		"budget", "nodes", "cpu", "memory", "operation", "profile"};
	size_t len = strcspn(key, ".");

	if (strncmp(key, "system/", 7) == 0)
		return true;
	if (!key[len])
		return false;
	for (size_t i = 0; i < COP_ARRAY_SIZE(more); i++)
		if (strlen(more[i]) == len && memcmp(key, more[i], len) == 0)
			return true;
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (strlen(cop_counter_group(c)) == len &&
			memcmp(key, cop_counter_group(c), len) == 0)
			return true;
	return false;
}
