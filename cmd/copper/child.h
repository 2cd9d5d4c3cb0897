/* SPDX-License-Identifier: BSD-3-Clause */
/* child: runs a command in a child process. The parent forwards signals to it and exits with its
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

/* Call it before the first fork: if SIGCHLD is ignored, no child can be waited for. */
void cop_child_expect(struct cop_child_signals *before);
/* Call it before the command starts: signals are held until cop_child_wait. */
void cop_child_hold(struct cop_child_signals *before);
/* Call it in the child. */
void cop_child_restore(const struct cop_child_signals *before);
/* Call it in the child, after entering any user namespace, which would undo it: makes the kernel
 * kill the command when its parent dies. */
void cop_child_tie(pid_t parent);
/* Redirects the standard streams of this process, up to descriptor `last`, to /dev/null, so that
 * their readers wait only for the command. */
void cop_child_leave_streams(int last);
/* Waits for the child and forwards signals to it. If a terminal stops the child, this process
 * stops, too, so that the shell notices. Returns the child's status as in wait(2); usage may be
 * NULL. */
int cop_child_wait(pid_t pid, struct rusage *usage);
/* Returns the exit status, or ends this process with the signal that ended the child, but without
 * dumping core again. */
int cop_child_end_as(int status);

#endif
