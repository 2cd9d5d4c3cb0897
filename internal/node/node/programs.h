/* SPDX-License-Identifier: BSD-3-Clause */
/* programs: the commands that copper run started on this node, and how they ended. copper run
 * becomes its command, so no process of ours waits for it: this node holds a pidfd of each, and
 * asks the kernel afterwards (PIDFD_GET_INFO, Linux 6.15). On older kernels copper run stays as
 * the parent and reports the end. There is no thread: a pidfd keeps the status until it is asked
 * for. */
#ifndef COP_NODE_PROGRAMS_H
#define COP_NODE_PROGRAMS_H

#include "base/base/base.h"
#include "tree/op/op.h"

struct cop_programs;

/* Tries what the kernel can, for which it forks once: call it before the network's memory is
 * registered. NULL: out of memory. */
struct cop_programs *cop_programs_new(uint32_t rank);
/* NULL is fine. */
void cop_programs_free(struct cop_programs *p);
/* Any thread. A command begins in this process, which still is copper run. True: its end will be
 * known only if its parent reports it. */
bool cop_programs_add(struct cop_programs *p, pid_t pid);
/* Any thread. It has ended: status is that of wait(2). Nothing if its end is known already. */
void cop_programs_ended(struct cop_programs *p, pid_t pid, int status);
/* Any thread. How all of them ended up to now. */
void cop_programs_exits(struct cop_programs *p, struct cop_op_exits *out);

#endif
