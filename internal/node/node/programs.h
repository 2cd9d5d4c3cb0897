/* SPDX-License-Identifier: BSD-3-Clause */
/* programs: the commands that copper run started on this node, and their exit statuses. copper run
 * becomes its command by exec, so Copper has no parent process to wait for it: this node holds a
 * pidfd for each and reads the status from the kernel afterwards (PIDFD_GET_INFO, Linux 6.15). On
 * older kernels copper run stays as the parent and reports the exit. No thread is needed: a pidfd
 * keeps the status until it is read. */
#ifndef COP_NODE_PROGRAMS_H
#define COP_NODE_PROGRAMS_H

#include "base/base/base.h"
#include "tree/op/op.h"

struct cop_programs;

/* Probes the kernel, which takes a fork, so call it before the network's memory is registered.
 * NULL: out of memory. */
struct cop_programs *cop_programs_new(uint32_t rank);
/* NULL is fine. */
void cop_programs_free(struct cop_programs *p);
/* Any thread. Adds a process that is still copper run and is about to become its command. True:
 * only its parent can report its exit. */
bool cop_programs_add(struct cop_programs *p, pid_t pid);
/* Any thread. The command has exited; status is from wait(2). Does nothing if its exit is already
 * recorded. */
void cop_programs_ended(struct cop_programs *p, pid_t pid, int status);
/* Any thread. The exit statuses so far. */
void cop_programs_exits(struct cop_programs *p, struct cop_op_exits *out);

#endif
