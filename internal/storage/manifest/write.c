/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table/table.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/manifest_priv.h"

static void add_path(struct cop_buf *out, const struct cop_manifest_item *item)
{
	cop_buf_str(out, " ");
	if (item->len)
		cop_csv_escaped(out, item->path, item->len);
	else
		cop_buf_str(out, ".");
	cop_buf_str(out, "\n");
}

/* Writes decimal seconds. Before the epoch, the fraction is negated, too, because it follows a
 * minus sign. */
static void add_time(struct cop_buf *out, int64_t s, uint32_t nsec)
{
	bool minus = s < 0;
	uint64_t whole = minus ? 0 - (uint64_t)s : (uint64_t)s;

	if (minus && nsec) {
		whole--;
		nsec = (uint32_t)COP_NS_PER_S - nsec;
	}
	cop_buf_printf(out, "%s%" PRIu64 ".%09" PRIu32 " ", minus ? "-" : "", whole, nsec);
}

void cop_manifest_begin(struct cop_buf *out, const char *source)
{
	cop_buf_printf(out, MANIFEST_MAGIC " %d\nsource ", COP_MANIFEST_VERSION);
	cop_csv_escaped(out, source, strlen(source));
	cop_buf_str(out, "\n");
}

void cop_manifest_part(
	struct cop_buf *out, unsigned *unused, unsigned idle, const char *path, size_t len)
{
	/* For readers that do not know parts. */
	if (*unused)
		cop_buf_str(out, "unused 0\n");
	*unused = 0;
	cop_buf_printf(out, "part %u ", idle);
	cop_csv_escaped(out, path, len);
	cop_buf_str(out, "\n");
}

void cop_manifest_add(struct cop_buf *out, const struct cop_manifest_item *item)
{
	if (item->kind != COP_MANIFEST_FILE) {
		cop_buf_str(out, item->kind == COP_MANIFEST_DIR ? "d" : "n");
		add_path(out, item);
		return;
	}
	cop_buf_printf(out, "f %" PRIu64 " ", item->size);
	add_time(out, item->mtime_s, item->mtime_nsec);
	for (unsigned i = 0; i < item->ranges; i++)
		cop_buf_printf(out, "%s%" PRIu64 "-%" PRIu64, i ? "," : "", item->range[i].start,
			item->range[i].end);
	if (!item->ranges)
		cop_buf_str(out, "-");
	add_path(out, item);
}

void cop_manifest_end(struct cop_buf *out, uint64_t items)
{
	cop_buf_printf(out, "end %" PRIu64 "\n", items);
}
