/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes all paths in order of first touch, with the byte ranges read. `copper paths --manifest`
 * converts the file to a manifest. */
#include "base/table/table.h"
#include "prof/profile/profile_priv.h"

struct filling {
	const struct report *r;
	struct cop_buf *out, path;
};

static int add_touch(void *arg, const struct cop_prof_touch *touch)
{
	struct filling *f = arg;

	f->path.len = 0;
	cop_prof_text_path(&f->path, f->r->root, touch->path, touch->len);
	cop_buf_printf(f->out, "%" PRIu64 ",%s,", touch->sequence,
		cop_prof_category_name((enum category)touch->table));
	cop_csv_quoted(f->out, f->path.data ? f->path.data : "", f->path.len);
	cop_buf_str(f->out, ",");
	for (unsigned i = 0; i < touch->ranges; i++)
		cop_buf_printf(f->out, "%s%" PRIu64 "-%" PRIu64, i ? ";" : "",
			touch->range[i].start, touch->range[i].end);
	cop_buf_str(f->out, "\n");
	return 0;
}

/* The first row names the source, which readers need to make the paths relative. */
int cop_prof_fill_first_touch(const struct report *r, unsigned type, struct cop_buf *out)
{
	struct filling f = {.r = r, .out = out};
	int rc;

	(void)type;
	cop_buf_str(out, "order,table,path,ranges\n0,source,");
	cop_prof_text_path(&f.path, r->root, "", 0);
	cop_csv_quoted(out, f.path.data ? f.path.data : "", f.path.len);
	cop_buf_str(out, ",\n");
	rc = cop_prof_each_touch((struct cop_prof *)r->p, add_touch, &f);
	out->failed |= f.path.failed;
	cop_buf_free(&f.path);
	return rc;
}
