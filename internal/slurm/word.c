/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of a step says of its start, and how it is understood: one line on its standard
 * output, "copper-step ready" or "copper-step failed HOST: sentence", which srun brings to the
 * command that started the step. */
#include "slurm/slurm_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD "copper-step "
#define READY "ready"
#define FAILED "failed "

void cop_slurm_tell(int fd, const struct cop_err *failure)
{
	const char *host = getenv("SLURMD_NODENAME");
	struct cop_buf line = {0};

	if (failure)
		cop_buf_printf(&line, WORD FAILED "%s%s%.1500s\n", host ? host : "",
			host ? ": " : "", failure->text);
	else
		cop_buf_str(&line, WORD READY "\n");
	if (line.data)
		cop_write_full(fd, line.data, line.len);
	cop_buf_free(&line);
	close(fd);
}

bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line)
{
	const char *p = line + strlen(WORD);

	if (strncmp(line, WORD, strlen(WORD)))
		return false;
	if (strcmp(p, READY) == 0)
		h->ready++;
	else if (strncmp(p, FAILED, strlen(FAILED)) == 0 && !h->failure[0])
		snprintf(h->failure, sizeof(h->failure), "%s", p + strlen(FAILED));
	return true;
}
