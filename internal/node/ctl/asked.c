/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/ctl/command_priv.h"

struct asked *cop_command_asked_new(struct cop_command *c, struct cop_ctl_conn *conn)
{
	static const char sentence[] = "out of memory\n";
	struct asked *q = calloc(1, sizeof(*q));

	if (!q) {
		cop_ctl_reply(conn, -ENOMEM, sentence, sizeof(sentence) - 1);
		return NULL;
	}
	q->command = c;
	q->conn = conn;
	return q;
}

void cop_command_answer(struct asked *q, int status, struct cop_buf *out)
{
	cop_command_answer_with(q, status, out, -1);
}

void cop_command_answer_with(struct asked *q, int status, struct cop_buf *out, int fd)
{
	if (out->failed)
		cop_ctl_reply(q->conn, -ENOMEM, "", 0);
	else
		cop_ctl_reply_with(q->conn, status, out->data ? out->data : "", out->len, fd);
	cop_buf_free(out);
	cop_op_sum_free(&q->late);
	free(q);
}
