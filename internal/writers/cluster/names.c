/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognizes files in a job's directory by their names and first bytes. */
#include <ctype.h>
#include <limits.h>
#include <sys/stat.h>

#include "writers/cluster/cluster.h"

/* 65,536 paths in every category usually take less than 100 MiB. */
#define FILE_BYTES_MAX COP_GIB

/* The last snapshot may be all that a killed job left. */
void cop_observed_name_snapshots(
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

/* A host name may contain dashes and digits, so the pid begins after the last dash. */
bool cop_observed_is_host_and_pid(const char *text, size_t len)
{
	size_t digits = 0;

	while (digits < len && isdigit((unsigned char)text[len - 1 - digits]))
		digits++;
	return digits && len > digits + 1 && text[len - 1 - digits] == '-';
}

int cop_observed_open_file(int dir, const char *name, uint64_t *size, struct cop_buf *why)
{
	int fd = cop_open_regular(dir, name, size);

	if (fd == -ENOENT)
		return fd;
	if (fd == -EINVAL || fd == -EISDIR) {
		cop_buf_str(why, "it is not a regular file");
	} else if (fd < 0) {
		cop_buf_printf(why, "it cannot be opened: %s", strerror(-fd));
	} else if (*size > FILE_BYTES_MAX) {
		cop_buf_str(why, "it is larger than any that Copper writes");
		close(fd);
	} else {
		return fd;
	}
	return -EBADMSG;
}

bool cop_observed_is_ornament(const char *line, size_t len)
{
	static const char fixed[] = "all entries should be ";
	size_t bar = 0;

	while (bar < len && line[bar] == '=')
		bar++;
	return (bar > 3 && bar == len) ||
	       (len > sizeof(fixed) - 1 && memcmp(line, fixed, sizeof(fixed) - 1) == 0);
}
