/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"

int cop_cmd_print(const char *command, const struct cop_buf *text, const char *besides)
{
	if (text->failed)
		fprintf(stderr, "%s: out of memory%s%s\n", command, besides ? "; " : "",
			besides ? besides : "");
	else if ((text->len && fwrite(text->data, 1, text->len, stdout) != text->len) ||
		 fflush(stdout))
		fprintf(stderr, "%s: cannot write to standard output%s%s\n", command,
			besides ? "; " : "", besides ? besides : "");
	else
		return 0;
	return 1;
}
