/* SPDX-License-Identifier: BSD-3-Clause */
/* child: a command in a child process: the parent forwards signals to it, and exits with its
 * status. */
#ifndef COP_CMD_CHILD_H
#define COP_CMD_CHILD_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The parent's signal state, to be restored in the command. */
struct cop_child_signals {
	sigset_t blocked;
	struct sigaction child;
};

/* Call it before the first fork: with SIGCHLD ignored, no child can be waited for. */
void cop_child_expect(struct cop_child_signals *before);
/* Call it before the command starts: signals are held until cop_child_wait. */
void cop_child_hold(struct cop_child_signals *before);
/* Call it in the child. */
void cop_child_restore(const struct cop_child_signals *before);
/* Call it in the child, after entering any user namespace, which would reset it: the command is
 * killed when its parent dies. */
void cop_child_tie(pid_t parent);
/* Redirects this process's standard streams, up to the last of these, to /dev/null: their
 * readers then wait only for the command. */
void cop_child_leave_streams(int last);
/* Waits for the child and forwards signals to it. When a terminal has stopped the child, this
 * process stops, too, for the shell to notice. Returns the child's status as in wait(2); usage
 * may be NULL. */
int cop_child_wait(pid_t pid, struct rusage *usage);
/* Returns the exit status, or ends this process with the signal that ended the child. Only the
 * child leaves a core file. */
int cop_child_end_as(int status);

#endif
