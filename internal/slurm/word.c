/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of a step says of its start, and how it is understood: one line on its standard
 * output, "copper-step ready" or "copper-step failed HOST: sentence", which srun brings to the
 * command that started the step; and one datagram to the task that waits on this host, "ready" or
 * "START sentence". */
#include "log/log.h"
#include "slurm/slurm_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORD "copper-step "
#define READY "ready"
#define FAILED "failed "

static void tell_command(int fd, const struct cop_err *failure)
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

static void tell_task(const char *control, const struct cop_err *failure)
{
	char text[sizeof(((struct cop_err *)NULL)->text) + 24] = READY;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to;

	cop_slurm_wait_address(control, &to);
	if (failure)
		snprintf(text, sizeof(text), "%" PRIu64 " %s", cop_slurm_start(), failure->text);
	/* Nobody may wait. */
	if (fd >= 0 && sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		cop_log_debug("nobody waits for the node socket=%s", to.sun_path);
	if (fd >= 0)
		close(fd);
}

void cop_slurm_tell(int fd, const char *control, const struct cop_err *failure)
{
	if (fd >= 0)
		tell_command(fd, failure);
	if (control)
		tell_task(control, failure);
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

/* .wait is as long as .sock */
void cop_slurm_wait_address(const char *control, struct sockaddr_un *out)
{
	int stem = (int)(strlen(control) - strlen(".sock"));

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof(out->sun_path), "%.*s.wait", stem, control);
}

const char *cop_slurm_understand(char *text, uint64_t *start)
{
	char *sentence;

	*start = 0;
	if (strcmp(text, READY) == 0)
		return NULL;
	*start = strtoull(text, &sentence, 10);
	return sentence + (*sentence == ' ');
}
