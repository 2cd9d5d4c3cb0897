/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests which file systems list all of their names. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "storage/origin/origin_testing.h"

#include <sys/statfs.h>

static void only_file_systems_that_list_all_names_are_believed(void **state)
{
	static const struct {
		uint32_t type;
		enum cop_origin_lists lists;
	} cases[] = {/* ext4, tmpfs, xfs, btrfs, squashfs, erofs */
		{0xEF53, COP_ORIGIN_LISTS_BY_FLAG}, {0x01021994, COP_ORIGIN_LISTS_BY_FLAG},
		{0x58465342, COP_ORIGIN_LISTS_ALL}, {0x9123683E, COP_ORIGIN_LISTS_ALL},
		{0x73717368, COP_ORIGIN_LISTS_ALL}, {0xE0F5E1E2, COP_ORIGIN_LISTS_ALL},
		/* nfs, lustre, gpfs, zfs, fuse, ceph, one that does not exist */
		{0x6969, COP_ORIGIN_LISTS_HIDES}, {0x0BD00BD0, COP_ORIGIN_LISTS_HIDES},
		{0x47504653, COP_ORIGIN_LISTS_HIDES}, {0x2FC12FC1, COP_ORIGIN_LISTS_HIDES},
		{0x65735546, COP_ORIGIN_LISTS_HIDES}, {0x00C36400, COP_ORIGIN_LISTS_HIDES},
		{0x12345678, COP_ORIGIN_LISTS_HIDES},
		/* smb2, cifs, vfat, ntfs3, iso9660, autofs */
		{0xFE534D42, COP_ORIGIN_LISTS_SPELLINGS}, {0xFF534D42, COP_ORIGIN_LISTS_SPELLINGS},
		{0x4D44, COP_ORIGIN_LISTS_SPELLINGS}, {0x7366746E, COP_ORIGIN_LISTS_SPELLINGS},
		{0x9660, COP_ORIGIN_LISTS_SPELLINGS}, {0x0187, COP_ORIGIN_LISTS_NOTHING}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++)
		assert_int_equal(cop_origin_type_lists(cases[i].type), cases[i].lists);
}

/* ---- the layers of an overlay ---- */

struct seen {
	struct cop_buf dirs;
	const char *refuse;
};

static bool see(void *arg, const char *dir)
{
	struct seen *s = arg;

	cop_buf_printf(&s->dirs, "%s;", dir);
	return !s->refuse || strcmp(dir, s->refuse) != 0;
}

static void every_layer_of_an_overlay_is_looked_at(void **state)
{
	static const struct {
		const char *options, *refuse, *seen;
		bool all;
	} cases[] = {{"rw,lowerdir=/a:/b,upperdir=/c,workdir=/w", NULL, "/a;/b;/c;", true},
		{"ro,lowerdir=/a", NULL, "/a;", true},
		{"ro,lowerdir+=/a,lowerdir+=/b,datadir+=/d", NULL, "/a;/b;/d;", true},
		{"ro,lowerdir=/a::/data", NULL, "/a;/data;", true},
		{"ro,lowerdir=/with\\040space:/b", NULL, "/with space;/b;", true},
		{"ro,lowerdir=/a:/b:/c", "/b", "/a;/b;", false},
		/* A name with a colon; a relative path; none at all. */
		{"ro,lowerdir=/a\\134:b:/c", NULL, "", false},
		{"ro,lowerdir=l/XYZ:/b", NULL, "", false}, {"rw,index=off", NULL, "", false},
		{"", NULL, "", false}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct seen s = {.refuse = cases[i].refuse};
		char text[256];

		snprintf(text, sizeof(text), "%s", cases[i].options);
		assert_int_equal(cop_origin_layers(text, see, &s), cases[i].all);
		assert_string_equal(s.dirs.data ? s.dirs.data : "", cases[i].seen);
		cop_buf_free(&s.dirs);
	}
}

/* ---- directories of this machine ---- */

static uint32_t flags_in(struct fixture *f, const char *path)
{
	uint32_t flags;
	void *l;
	int rc;

	l = ask_list(f->o, path, &rc);
	assert_int_equal(rc, 0);
	flags = cop_listing_flags(l);
	free(l);
	return flags;
}

static void a_listing_says_whether_names_may_be_missing(void **state)
{
	struct fixture *f = *state;
	struct statfs fs;
	bool hides;

	put_dir(f, "d");
	assert_int_equal(statfs(f->source, &fs), 0);
	open_origin(f, 2, 100, 100);
	hides = !cop_origin_lists_all(f->o);
	assert_int_equal(flags_in(f, "d") & COP_LISTING_HIDES, hides ? COP_LISTING_HIDES : 0);
	assert_true(flags_in(f, "d") & COP_LISTING_COMPLETE);
	if (cop_origin_type_lists((uint32_t)fs.f_type) == COP_ORIGIN_LISTS_BY_FLAG)
		assert_false(hides);
}

static void listings_are_believed_if_the_user_says_so(void **state)
{
	struct fixture *f = *state;
	struct cop_origin_real *o;

	put_dir(f, "d");
	open_origin(f, 2, 100, 100);
	o = real(f->o);
	/* As if this were an unknown file system. */
	o->types.dev[0].dev = o->dev;
	o->types.dev[0].lists = COP_ORIGIN_LISTS_HIDES;
	o->types.count = 1;
	assert_int_equal(flags_in(f, "d"), COP_LISTING_COMPLETE | COP_LISTING_HIDES);
	o->trusts_listings = true;
	assert_int_equal(flags_in(f, "d"), COP_LISTING_COMPLETE);
	/* Other spellings are not names that a user has given. */
	o->types.dev[0].lists = COP_ORIGIN_LISTS_SPELLINGS;
	assert_int_equal(flags_in(f, "d"), COP_LISTING_COMPLETE | COP_LISTING_HIDES);
	o->types.dev[0].lists = COP_ORIGIN_LISTS_NOTHING;
	assert_int_equal(flags_in(f, "d"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_file_systems_that_list_all_names_are_believed),
		cmocka_unit_test(every_layer_of_an_overlay_is_looked_at),
		cmocka_unit_test_setup_teardown(
			a_listing_says_whether_names_may_be_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			listings_are_believed_if_the_user_says_so, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
