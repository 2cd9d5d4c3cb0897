/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/walk/dir_testing.h"
#include "report/paths/paths_priv.h"

/* "d NAME", "f NAME", "l NAME TARGET" */
static void make_paths(const char *const *what)
{
	for (; *what; what++) {
		char kind, name[256], target[256] = "";
		int fd;

		assert_true(sscanf(*what, "%c %255s %255s", &kind, name, target) >= 2);
		if (kind == 'd') {
			assert_int_equal(mkdir(name, 0755), 0);
		} else if (kind == 'l') {
			assert_int_equal(symlink(target, name), 0);
		} else {
			fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
			assert_true(fd >= 0);
			assert_int_equal(ftruncate(fd, 10), 0);
			close(fd);
		}
	}
}

struct world {
	struct cop_observed seen;
	struct cop_roots roots;
	struct usage use;
};

/* Roots and observed paths are relative to dir; "" is dir itself. */
static void measure(struct world *w, const char *const *root, const char *const *observed)
{
	struct cop_walk_conf conf = {.sizes = true, .threads = 2};
	struct cop_err err = {0};
	char path[PATH_MAX];

	*w = (struct world){0};
	cop_observed_init(&w->seen);
	assert_int_equal(cop_walk_roots_init(&w->roots, NULL), 0);
	for (; *root; root++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *root);
		assert_int_equal(cop_walk_roots_give(&w->roots, path), 0);
	}
	assert_int_equal(cop_walk_roots_minimize(&w->roots), 0);
	for (; *observed; observed++) {
		size_t len = (size_t)snprintf(
			path, sizeof(path), "%s%s%s", dir, **observed ? "/" : "", *observed);

		assert_int_equal(cop_observed_pathset_add(&w->seen.set, path, len,
					 cop_observed_pathset_hash(&w->seen.set, path, len),
					 &(struct cop_path_counts){.events = 1, .absent = 1}),
			0);
	}
	conf.root = (const char *const *)w->roots.all.path;
	conf.roots = w->roots.all.n;
	assert_int_equal(cop_walk(&conf, &w->use.tree, &err), 0);
	w->use.seen = &w->seen;
	w->use.roots = &w->roots;
	assert_int_equal(cop_paths_usage_find(&w->use, NULL, NULL), 0);
}

static void forget(struct world *w)
{
	cop_paths_usage_free(&w->use);
	cop_walk_tree_free(w->use.tree);
	cop_walk_roots_free(&w->roots);
	cop_observed_free(&w->seen);
}

struct wanted {
	struct cop_buf text;
	uint8_t flag;
};

static int add_flagged(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	struct wanted *w = arg;

	(void)len;
	if (e->flags & w->flag)
		cop_buf_printf(&w->text, "%s ", path[strlen(dir)] ? path + strlen(dir) + 1 : ".");
	return 0;
}

static void assert_flagged(const struct world *w, uint8_t flag, const char *want)
{
	struct wanted got = {.flag = flag};

	cop_buf_add(&got.text, "", 0);
	assert_int_equal(cop_walk_tree_each(w->use.tree, add_flagged, &got), 0);
	assert_string_equal(got.text.data, want);
	cop_buf_free(&got.text);
}

static void assert_refs(const struct path_refs *r, const char *want)
{
	struct cop_buf got = {0};

	cop_buf_add(&got, "", 0);
	for (size_t i = 0; i < r->n; i++)
		cop_buf_printf(&got, "%s ", r->ref[i].text + strlen(dir) + 1);
	assert_string_equal(got.data, want);
	cop_buf_free(&got);
}
#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void a_used_path_keeps_the_directories_above_it(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "d r/a", "d r/a/b", "f r/a/b/c", "f r/a/d", "d r/e"));
	measure(&w, LIST("r"), LIST("r/a/b/c", "r/none", "elsewhere"));
	assert_flagged(&w, COP_WALK_USED, "r/a/b/c ");
	assert_flagged(&w, COP_WALK_KEEP, "r r/a r/a/b r/a/b/c ");
	assert_refs(&w.use.missing, "r/none ");
	assert_int_equal(w.use.elsewhere, 1);
	forget(&w);
}

static void a_link_keeps_what_it_points_to_link_by_link(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "d r/lib", "l r/lib/so libso.1", "l r/lib/libso.1 ../real/libso.1.2",
		"d r/real", "f r/real/libso.1.2", "f r/real/other", "l r/unused so"));
	measure(&w, LIST("r"), LIST("r/lib/so"));
	assert_flagged(&w, COP_WALK_USED, "r/lib/so ");
	assert_flagged(
		&w, COP_WALK_KEEP, "r r/lib r/lib/libso.1 r/lib/so r/real r/real/libso.1.2 ");
	forget(&w);
}

/* ".." after a link is the directory above the link's target, as for the kernel, not above the
 * link. */
static void two_dots_after_a_link_are_above_its_target(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "d r/x", "d r/x/y", "d r/x/y/z", "l r/short x/y/z", "f r/x/y/file",
		"f r/file", "l r/to short/../file"));
	measure(&w, LIST("r"), LIST("r/to"));
	assert_flagged(&w, COP_WALK_KEEP, "r r/short r/to r/x r/x/y r/x/y/file r/x/y/z ");
	forget(&w);
}

static void a_path_through_a_link_is_used_by_its_own_name_and_kept_by_the_real_one(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "d r/lib", "f r/lib/f", "l r/lib64 lib"));
	measure(&w, LIST("r"), LIST("r/lib64/f", "r/lib64/none"));
	assert_refs(&w.use.beyond, "r/lib64/f ");
	assert_refs(&w.use.missing, "r/lib64/none ");
	assert_flagged(&w, COP_WALK_USED, "");
	assert_flagged(&w, COP_WALK_KEEP, "r r/lib r/lib/f r/lib64 ");
	forget(&w);
}

static void links_lead_from_root_to_root_and_out(void **state)
{
	struct world w;
	char line[200];

	(void)state;
	make_paths(LIST("d r", "d s", "f s/f", "l r/over ../s/f", "l r/out /proc/self/exe",
		"l r/up ../../../../..", "l r/dangling none"));
	snprintf(line, sizeof(line), "l r/whole %s/s/f", dir);
	make_paths(LIST(line));
	measure(&w, LIST("r", "s"), LIST("r/over", "r/out", "r/up", "r/dangling"));
	assert_flagged(&w, COP_WALK_KEEP, "r r/dangling r/out r/over r/up s s/f ");
	assert_int_equal(w.use.links_out.n, 2);
	forget(&w);
	measure(&w, LIST("r", "s"), LIST("r/whole"));
	assert_flagged(&w, COP_WALK_KEEP, "r r/whole s s/f ");
	forget(&w);
}

static void loops_of_links_end(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "l r/self self", "l r/a b/x", "l r/b a/y", "l r/dot .",
		"l r/deep dot/dot/dot/dot/deep"));
	measure(&w, LIST("r"), LIST("r/self", "r/a", "r/deep", "r/self/x"));
	assert_flagged(&w, COP_WALK_KEEP, "r r/a r/b r/deep r/dot r/self ");
	assert_refs(&w.use.missing, "r/self/x ");
	forget(&w);
}

static void in_a_directory_that_cannot_be_read_names_are_asked_for(void **state)
{
	struct world w;

	(void)state;
	make_paths(LIST("d r", "d r/secret", "f r/secret/f", "d r/secret/d", "f r/secret/d/g"));
	assert_int_equal(chmod("r/secret", geteuid() ? 0311 : 0711) | chmod(dir, 0755), 0);
	if (!geteuid() && seteuid(65534))
		skip();
	measure(&w, LIST("r"), LIST("r/secret/f", "r/secret/d/g", "r/secret/none"));
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod("r/secret", 0755), 0);
	assert_refs(&w.use.beyond, "r/secret/d/g r/secret/f ");
	assert_refs(&w.use.missing, "r/secret/none ");
	assert_refs(&w.use.keep_beyond, "r/secret/d/g r/secret/f ");
	forget(&w);
}

static void unused_directories_are_listed_once_the_largest_first(void **state)
{
	struct world w;
	struct prune p;

	(void)state;
	make_paths(LIST("d r", "d r/used", "f r/used/f", "d r/used/not", "f r/used/not/1",
		"d r/big", "d r/big/in", "f r/big/in/1", "f r/big/in/2", "f r/big/3", "d r/empty"));
	measure(&w, LIST("r"), LIST("r/used/f"));
	assert_int_equal(cop_paths_prune(&w.use, &p), 0);
	assert_int_equal(p.dirs, 3);
	assert_int_equal(p.all_dirs, 3);
	assert_string_equal(p.dir[0].path + strlen(dir), "/r/big");
	assert_int_equal(p.dir[0].bytes, 30);
	assert_int_equal(p.dir[0].files, 3);
	assert_int_equal(p.dir[0].dirs, 2);
	assert_string_equal(p.dir[1].path + strlen(dir), "/r/used/not");
	assert_string_equal(p.dir[2].path + strlen(dir), "/r/empty");
	cop_paths_prune_free(&p);
	forget(&w);
}

static void only_the_first_rows_are_kept_and_all_are_counted(void **state)
{
	struct world w;
	struct prune p;
	const char *observed[2 * 50 + 1] = {NULL};
	char names[100][32];

	(void)state;
	assert_int_equal(mkdir("r", 0755), 0);
	for (unsigned i = 0; i < 50; i++) {
		snprintf(names[i], sizeof(names[i]), "r/d%02u", i);
		assert_int_equal(mkdir(names[i], 0755), 0);
		for (unsigned k = 0; k < i; k++) {
			char file[64];

			snprintf(file, sizeof(file), "r/d%02u/%u", i, k);
			close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		}
	}
	for (unsigned i = 0; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), i % 2 ? "r/d00/n%u" : "r/d01/n%u", i / 2);
		observed[i] = names[i];
	}
	measure(&w, LIST("r"), observed);
	assert_int_equal(cop_paths_prune(&w.use, &p), 0);
	assert_int_equal(p.dirs, PRUNE_ROWS);
	assert_int_equal(p.all_dirs, 50);
	for (unsigned i = 0; i < PRUNE_ROWS; i++)
		assert_int_equal(p.dir[i].files, 49 - i);
	assert_int_equal(p.names, PRUNE_ROWS);
	assert_int_equal(p.all_names, 50);
	assert_int_equal(p.name[0].directories, 2);
	assert_int_equal(p.name[0].probes, 2);
	assert_int_equal(p.all_vains, 2);
	assert_int_equal(p.vain[0].names, 50);
	cop_paths_prune_free(&p);
	forget(&w);
}

/* All cases together over random trees: each list matches what a plain look at the disk gives. */
static void used_and_unused_are_all_there_is(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		char names[60][64], root[16];
		const char *observed[61] = {NULL};
		uint64_t used = 0, kept = 0, all;
		struct world w;
		struct lists l;
		struct cop_err err = {0};

		snprintf(root, sizeof(root), "r%u", round);
		assert_int_equal(mkdir(root, 0755), 0);
		snprintf(names[0], sizeof(names[0]), "%s", root);
		for (unsigned i = 1; i < 60; i++) {
			char above[41];

			snprintf(above, sizeof(above), "%.40s", names[rand_r(&seed) % i]);
			snprintf(names[i], sizeof(names[i]), "%s/%u", above, i);
			switch (rand_r(&seed) % 4) {
			case 0:
				close(open(names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
				break;
			case 1:
				if (symlink(rand_r(&seed) % 2 ? ".." : strrchr(names[rand_r(&seed) % i], '/') ?: "x", names[i]))
					break;
				break;
			default:
				mkdir(names[i], 0755);
			}
			observed[i - 1] = rand_r(&seed) % 3 ? names[0] : names[i];
		}
		measure(&w, LIST(root), observed);
		assert_int_equal(mkdir("out", 0755), 0);
		assert_int_equal(cop_paths_lists_write(&w.use, "out", &l, &err), 0);
		all = l.total[LIST_ALL].paths;
		used = l.total[LIST_USED].paths - w.use.beyond.n;
		kept = l.total[LIST_KEEP].paths;
		assert_int_equal(used + l.total[LIST_UNUSED].paths, all);
		assert_int_equal(kept + l.total[LIST_PRUNE].paths, all);
		assert_true(kept >= used);
		assert_int_equal(w.use.missing.n, l.total[LIST_MISSING].paths);
		assert_int_equal(w.use.unknown, 0);
		assert_int_equal(l.total[LIST_USED].paths + w.use.missing.n + w.use.elsewhere,
			w.seen.set.table.count);
		assert_int_equal(all, w.use.tree->files + w.use.tree->dirs);
		cop_paths_lists_free(&l);
		forget(&w);
		assert_int_equal(nftw("out", remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	}
}

int main(void)
{
#define each(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		each(a_used_path_keeps_the_directories_above_it),
		each(a_link_keeps_what_it_points_to_link_by_link),
		each(two_dots_after_a_link_are_above_its_target),
		each(a_path_through_a_link_is_used_by_its_own_name_and_kept_by_the_real_one),
		each(links_lead_from_root_to_root_and_out),
		each(loops_of_links_end),
		each(in_a_directory_that_cannot_be_read_names_are_asked_for),
		each(unused_directories_are_listed_once_the_largest_first),
		each(only_the_first_rows_are_kept_and_all_are_counted),
		each(used_and_unused_are_all_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
