/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that was killed has left its last snapshot, if it made any. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "report/report_priv.h"

void cop_report_name_snapshots(
	const char *job, const char *folder, const char *command, struct cop_buf *text)
{
	static const char *const tags[] = {
		"runtime-snapshot", "ioctl-snapshot", "pre-destroy", "pre-reset"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(tags); i++) {
		char path[PATH_MAX];
		struct stat st;

		if (snprintf(path, sizeof(path), "%s/%s/%s", job, folder, tags[i]) <
				(int)sizeof(path) &&
			!stat(path, &st) && S_ISDIR(st.st_mode))
			cop_buf_printf(text, "\n  there is a snapshot from while it ran: %s %s",
				command, path);
	}
}
