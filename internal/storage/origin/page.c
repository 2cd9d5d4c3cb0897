/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads pages, that is, part of a directory's names with their attributes. */
#include "storage/origin/list_priv.h"

bool cop_origin_page_wants(const struct listing *l, const char *name, size_t len)
{
	return !l->page.pages || cop_listing_page_of(name, len, l->page.pages) == l->page.index;
}

int cop_origin_page_names(struct pass *p)
{
	const struct listing *l = p->l;
	struct cop_listing_entry e;
	uint32_t first, end;
	int rc = 0;

	cop_listing_page_range(l->names, l->page.pages, l->page.index, &first, &end);
	if (end - first > COP_PAGE_MOST)
		return -E2BIG;
	for (uint32_t i = first; i < end && !rc; i++) {
		cop_listing_at(l->names, i, &e);
		rc = cop_origin_add_child(p,
			&(struct child){
				.ino = e.ino, .name_len = (uint8_t)e.name_len, .type = e.type},
			e.name);
	}
	return rc;
}

int cop_origin_page_build(struct listing *l, void **blob, size_t *len)
{
	struct cop_listing_builder b = {0};
	int rc = 0;

	for (uint32_t i = 0; i < l->pass->count && (!rc || rc == -EINVAL); i++) {
		const struct child *c = &cop_origin_children(l->pass)[i];

		if (c->has_attr)
			rc = cop_listing_add(&b, l->pass->names.data + c->name, c->name_len,
				c->type, c->attr, c->target, c->target_len);
	}
	if (rc && rc != -EINVAL) {
		cop_listing_builder_free(&b);
		return rc;
	}
	return cop_listing_build(&b, &l->before, 0, blob, len);
}

void cop_origin_real_page(struct cop_origin *o, const char *path,
	const struct cop_listing_page *page, const void *names, cop_origin_done *done, void *arg)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (l) {
		l->page = *page;
		l->names = names;
	}
	cop_origin_list_submit(l, o, path, done, arg);
}
