/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/walk/walk_priv.h"

static const char conda[] = "/conda_env";

/* ---- paths ---- */

bool cop_walk_path_below(const char *path, size_t len, const char *root)
{
	size_t n = strlen(root);

	if (n == 1)
		return len && path[0] == '/';
	return len >= n && memcmp(path, root, n) == 0 && (len == n || path[n] == '/');
}

bool cop_walk_path_is_normal(const char *path, size_t len)
{
	size_t start = 1;

	if (!len || path[0] != '/' || memchr(path, '\0', len))
		return false;
	if (len == 1)
		return true;
	for (size_t i = 1; i <= len; i++) {
		size_t n = i - start;

		if (i < len && path[i] != '/')
			continue;
		if (!n || (n == 1 && path[start] == '.') ||
			(n == 2 && memcmp(path + start, "..", 2) == 0))
			return false;
		start = i + 1;
	}
	return true;
}

/* Appends the components of path to out, which has enough room. */
static size_t append_normal(char *out, size_t len, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n + (path[n] == '/');
	}
	return len;
}

char *cop_walk_path_normal(const char *cwd, const char *path)
{
	char *out = malloc(strlen(cwd) + strlen(path) + 4);
	size_t len = 0;

	if (!out)
		return NULL;
	if (path[0] != '/')
		len = append_normal(out, len, cwd);
	len = append_normal(out, len, path);
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

/* Compares bytes with the slash as the lowest, so that the contents of a directory sort right after
 * it. */
static int tree_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = COP_MIN(a_len, b_len), i = 0;

	while (i < n && a[i] == b[i])
		i++;
	if (i == n)
		return a_len < b_len ? -1 : a_len > b_len;
	if (a[i] == '/' || b[i] == '/')
		return a[i] == '/' ? -1 : 1;
	return (unsigned char)a[i] < (unsigned char)b[i] ? -1 : 1;
}

/* ---- lists ---- */

static void list_free(struct cop_root_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->path[i]);
	free(l->path);
	*l = (struct cop_root_list){0};
}

/* The position of path in a list sorted bytewise, or the position where it belongs. */
static size_t place_of(const struct cop_root_list *l, const char *path, size_t len, bool *there)
{
	size_t low = 0, high = l->n;

	*there = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2, n = strlen(l->path[middle]);
		int order = memcmp(l->path[middle], path, COP_MIN(n, len));

		if (!order)
			order = n < len ? -1 : n > len;
		if (!order) {
			*there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert_root(struct cop_root_list *l, size_t at, const char *path, size_t len)
{
	char **grown, *copy;

	if (l->n == COP_ROOTS_MAX) {
		l->full = true;
		return 0;
	}
	copy = strndup(path, len);
	grown = copy ? reallocarray(l->path, l->n + 1, sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return -ENOMEM;
	}
	l->path = grown;
	memmove(grown + at + 1, grown + at, (l->n - at) * sizeof(*grown));
	grown[at] = copy;
	l->n++;
	return 0;
}

static int insert_sorted(struct cop_root_list *l, const char *path, size_t len)
{
	bool there;
	size_t at = place_of(l, path, len, &there);

	return there ? 0 : insert_root(l, at, path, len);
}

/* ---- roots ---- */

int cop_walk_roots_init(struct cop_roots *r, const char *home)
{
	*r = (struct cop_roots){0};
	if (!home || home[0] != '/')
		return 0;
	r->home = cop_walk_path_normal("/", home);
	if (!r->home)
		return -ENOMEM;
	if (!r->home[1]) {
		free(r->home);
		r->home = NULL;
	}
	return 0;
}

void cop_walk_roots_free(struct cop_roots *r)
{
	list_free(&r->given);
	list_free(&r->conda);
	list_free(&r->children);
	list_free(&r->all);
	free(r->home);
	*r = (struct cop_roots){0};
}

int cop_walk_roots_give(struct cop_roots *r, const char *dir)
{
	char *cwd = dir[0] == '/' ? strdup("/") : getcwd(NULL, 0);
	char *path = cwd ? cop_walk_path_normal(cwd, dir) : NULL;
	int rc = !dir[0] ? -EINVAL : path ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < r->given.n; i++)
		if (strcmp(r->given.path[i], path) == 0)
			goto out;
	if (!rc)
		rc = insert_root(&r->given, r->given.n, path, strlen(path));
out:
	free(path);
	free(cwd);
	return rc;
}

static int observe_home(struct cop_roots *r, const char *path, size_t len)
{
	size_t n = strlen(r->home);
	const char *end;

	if (!cop_walk_path_below(path, len, r->home))
		return 0;
	if (len == n) {
		r->home_observed = true;
		return 0;
	}
	end = memchr(path + n + 1, '/', len - n - 1);
	return insert_sorted(&r->children, path, end ? (size_t)(end - path) : len);
}

int cop_walk_roots_observe(struct cop_roots *r, const char *path, size_t len)
{
	const size_t word = sizeof(conda) - 1;
	const char *at = path, *end = path + len;
	int rc = 0;

	while (!rc && (at = memmem(at, (size_t)(end - at), conda, word))) {
		at += word;
		rc = insert_sorted(&r->conda, path, (size_t)(at - path));
	}
	return !rc && r->home ? observe_home(r, path, len) : rc;
}

static int add_all(struct cop_root_list *into, const struct cop_root_list *from)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < from->n; i++)
		rc = insert_sorted(into, from->path[i], strlen(from->path[i]));
	into->full |= from->full;
	return rc;
}

static int by_tree(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return tree_order(x, strlen(x), y, strlen(y));
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int cop_walk_roots_minimize(struct cop_roots *r)
{
	struct cop_root_list *l = &r->all;
	size_t kept = 0;
	int rc;

	list_free(l);
	rc = add_all(l, &r->given);
	if (!rc)
		rc = add_all(l, &r->conda);
	if (!rc && r->home_observed)
		rc = insert_sorted(l, r->home, strlen(r->home));
	if (!rc)
		rc = add_all(l, &r->children);
	if (rc || !l->n)
		return rc;
	qsort(l->path, l->n, sizeof(*l->path), by_tree);
	for (size_t i = 1; i < l->n; i++) {
		if (cop_walk_path_below(l->path[i], strlen(l->path[i]), l->path[kept]))
			free(l->path[i]);
		else
			l->path[++kept] = l->path[i];
	}
	l->n = kept + 1;
	qsort(l->path, l->n, sizeof(*l->path), by_bytes);
	return 0;
}

/* The list is sorted bytewise, not in tree order, so we look up each prefix that ends before a
 * slash; there are few. */
ssize_t cop_walk_roots_above(const struct cop_roots *r, const char *path, size_t len)
{
	bool there;
	size_t at;

	if (r->all.n && !r->all.path[0][1])
		return len ? 0 : -1; /* "/" is the only prefix left */
	for (size_t n = len; n > 1; n--) {
		if (n != len && path[n] != '/')
			continue;
		at = place_of(&r->all, path, n, &there);
		if (there)
			return (ssize_t)at;
	}
	return -1;
}
