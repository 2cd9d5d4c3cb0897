/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds arbitrary lines as paths named in a job's files. The suggested roots must be normalized,
 * sorted, none below another, and above the paths that suggested them. */
#include <stdlib.h>
#include <string.h>

#include "base/walk/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Checks with the other function that knows what a normal path is. */
static bool is_normal(const char *path, size_t len)
{
	char *text = strndup(path, len), *normal = text ? cop_walk_path_normal("/", text) : NULL;
	bool same;

	require(normal != NULL);
	same = len && text[0] == '/' && strlen(text) == len && strcmp(normal, text) == 0;
	require(same == (!memchr(path, '\0', len) && cop_walk_path_is_normal(path, len)));
	free(normal);
	free(text);
	return same;
}

static void check(const struct cop_roots *r)
{
	const struct cop_root_list *all = &r->all;

	for (size_t i = 0; i < all->n; i++) {
		const char *path = all->path[i];

		require(is_normal(path, strlen(path)));
		require(!i || strcmp(all->path[i - 1], path) < 0);
		require(cop_walk_roots_above(r, path, strlen(path)) == (ssize_t)i);
		require(!i || !cop_walk_path_below(path, strlen(path), all->path[i - 1]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size, *line;
	struct cop_roots r;

	require(cop_walk_roots_init(&r, "/home/u") == 0);
	for (line = text; line < end; line++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((stop ? stop : end) - line);

		if (is_normal(line, len))
			require(cop_walk_roots_observe(&r, line, len) == 0);
		line += len;
	}
	require(cop_walk_roots_minimize(&r) == 0);
	check(&r);
	cop_walk_roots_free(&r);
	return 0;
}
