/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/ctl/command_priv.h"

#include "base/log/log.h"

/* If this node is killed, this note tells a stop of the tree which mount belongs to it, and tells
 * the process that removes the mount what else to remove. */
static void leave_note(const struct cop_command *c, const struct cop_mountdir *mounted_at)
{
	struct cop_buf note = {0};

	cop_buf_str(&note, c->conf.tree);
	cop_mountdir_note(mounted_at, &note);
	if (note.failed || cop_ctl_leave_note(c->ctl, note.data))
		cop_log_debug("no note beside the control socket");
	cop_buf_free(&note);
}

int cop_command_listen(struct cop_command *c, const struct cop_ctl_place *at,
	const struct cop_mountdir *mounted_at, struct cop_err *err)
{
	char path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1];
	int rc = cop_ctl_place(at, path, key, err);

	if (!rc)
		rc = cop_ctl_start_when_free(path, key, cop_command_handle, c, &c->ctl, err);
	if (!rc)
		leave_note(c, mounted_at);
	return rc;
}

int cop_command_tend(struct cop_command *c)
{
	return c && c->ctl ? cop_ctl_tend(c->ctl) : -1;
}

void cop_command_stop_listening(struct cop_command *c)
{
	if (c)
		cop_ctl_stop(c->ctl);
}
