/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes a command that the user named. */
#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int cop_exec(char **command, struct cop_err *err)
{
	int code;

	execvp(command[0], command);
	code = errno;
	/* A missing interpreter gives the same error. */
	if (code == ENOENT && strchr(command[0], '/') && access(command[0], F_OK) == 0)
		cop_err_set(err, code, "%s: its interpreter does not exist", command[0]);
	else
		cop_err_set(err, code, "%s: %s", command[0],
			code == ENOENT ? "no such command" : strerror(code));
	return code == ENOENT ? 127 : 126;
}
