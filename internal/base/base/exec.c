/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes a command given by the user. */
#include "base/base/base.h"

#include <limits.h>

/* execvp(3) also fails with EACCES if it found no file but could not search one of the
 * directories. */
static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");
	char one[PATH_MAX];

	if (strchr(name, '/') || !path)
		return true;
	for (size_t len;; path += len + 1) {
		len = strcspn(path, ":");
		if (snprintf(one, sizeof(one), "%.*s/%s", len ? (int)len : 1, len ? path : ".",
			    name) < (int)sizeof(one) &&
			access(one, F_OK) == 0)
			return true;
		if (!path[len])
			return false;
	}
}

int cop_exec(char **command, struct cop_err *err)
{
	int code;

	execvp(command[0], command);
	code = errno;
	if (code == EACCES && !is_in_path(command[0]))
		code = ENOENT;
	/* A missing interpreter also yields ENOENT. */
	if (code == ENOENT && strchr(command[0], '/') && access(command[0], F_OK) == 0)
		cop_err_set(err, code, "%s: its interpreter does not exist", command[0]);
	else
		cop_err_set(err, code, "%s: %s", command[0],
			code == ENOENT ? "no such command" : strerror(code));
	return code == ENOENT ? 127 : 126;
}
