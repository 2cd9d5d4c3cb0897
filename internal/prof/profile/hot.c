/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table/table.h"
#include "prof/profile/profile.h"

void cop_prof_hot_section(struct cop_buf *out)
{
	cop_buf_str(out, "\n## Hottest Paths\n");
}

void cop_prof_hot_head(struct cop_buf *out, enum cop_prof_hot of)
{
	static const char *const headings[] = {
		[COP_PROF_HOT_METADATA] = "Metadata",
		[COP_PROF_HOT_DATA] = "Data",
		[COP_PROF_HOT_TTL] = "Metadata ENOENT TTL",
	};

	cop_buf_printf(out, "\n### %s\n\n%s", headings[of],
		of == COP_PROF_HOT_TTL
			? "| Path | Total Events | Stores | Serves | Expires | Clears |\n|---|---:|---:|---:|---:|---:|\n"
			: "| Path | Total Events | Cache Hits | Cache Misses | Negative Results |\n|---|---:|---:|---:|---:|\n");
}

void cop_prof_hot_row(struct cop_buf *out, enum cop_prof_hot of, const char *path, size_t len,
	uint64_t events, const uint64_t *counts)
{
	cop_buf_str(out, "| ");
	cop_csv_markdown(out, path, len);
	cop_buf_printf(out, " | %" PRIu64, events);
	for (unsigned i = 0; i < (of == COP_PROF_HOT_TTL ? 4 : 3); i++)
		cop_buf_printf(out, " | %" PRIu64, counts[i]);
	cop_buf_str(out, " |\n");
}
