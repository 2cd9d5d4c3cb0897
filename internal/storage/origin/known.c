/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the names of a directory from an earlier listing, which leaves one operation for the
 * directory and one per name for its attributes. */
#include "storage/origin/list_priv.h"

/* A young version is not good enough: the directory may have changed since then without a change of
 * its timestamp. */
bool cop_origin_known_holds(const struct listing *l)
{
	struct cop_attr dir;

	cop_listing_dir(l->known, &dir);
	return dir.version == l->before.version && !cop_version_is_young(dir.version);
}

int cop_origin_known_names(struct pass *p)
{
	const void *known = p->l->known;
	struct cop_listing_entry e;
	int rc = 0;

	p->left_out = !(cop_listing_flags(known) & COP_LISTING_COMPLETE);
	for (uint32_t i = 0; i < cop_listing_count(known) && !rc; i++) {
		cop_listing_at(known, i, &e);
		rc = cop_origin_add_child(p,
			&(struct child){.ino = e.ino,
				.name_len = (uint8_t)e.name_len,
				.type = e.type,
				.bare = !e.has_attr},
			e.name);
	}
	return rc;
}

void cop_origin_real_list_known(
	struct cop_origin *o, const char *path, const void *known, cop_origin_done *done, void *arg)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (l)
		l->known = known;
	cop_origin_list_submit(l, o, path, done, arg);
}
