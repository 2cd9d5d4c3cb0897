/* SPDX-License-Identifier: BSD-3-Clause */
/* child: a command in a child process: the parent forwards signals to it, and exits with the
 * command's status. */
#ifndef COP_CMD_CHILD_H
#define COP_CMD_CHILD_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The signal state of the parent, which the command must get. */
struct cop_child_signals {
	sigset_t blocked;
	struct sigaction child;
};

/* Call it before the first child: if SIGCHLD is ignored, no child can be waited for. */
void cop_child_expect(struct cop_child_signals *before);
/* Call it before the command starts: from now on signals wait for cop_child_wait. */
void cop_child_hold(struct cop_child_signals *before);
/* Call it in the child. */
void cop_child_restore(const struct cop_child_signals *before);
/* Call it in the child, after all that enters a user namespace, which would undo it: the command is
 * killed when its parent is. */
void cop_child_tie(pid_t parent);
/* Gives this process /dev/null in place of its standard streams up to the last of these: a reader
 * of them then waits only for the command. */
void cop_child_leave_streams(int last);
/* Waits for the child and passes signals on to it. When a terminal has stopped the child, this
 * process stops, too, so that the shell sees it. Returns its status as in wait(2); usage may be
 * NULL. */
int cop_child_wait(pid_t pid, struct rusage *usage);
/* Returns the exit status, or ends this process by the signal that ended the child. Only the child
 * leaves a core file. */
int cop_child_end_as(int status);

#endif
