/* SPDX-License-Identifier: BSD-3-Clause */
/* programs: the commands that copper run started on this node, and how they ended. copper run
 * becomes its command, so that nobody is left to wait for it: this process holds a pidfd of each,
 * and asks the kernel afterwards (PIDFD_GET_INFO, Linux 6.15). On older kernels it knows only the
 * ends that it is told. There is no thread: a pidfd keeps the status until it is asked for. */
#ifndef COP_NODE_PROGRAMS_H
#define COP_NODE_PROGRAMS_H

#include "base/base/base.h"
#include "tree/op/op.h"

#include <sys/types.h>

#define COP_PROGRAMS_MAX 1024 /* that run at a time; the ends of further ones are unknown */

struct cop_programs;

/* NULL: out of memory. */
struct cop_programs *cop_programs_new(uint32_t rank);
/* NULL is fine. */
void cop_programs_free(struct cop_programs *p);
/* Any thread. A command begins in this process, which still is copper run. */
void cop_programs_add(struct cop_programs *p, pid_t pid);
/* Any thread. It has ended: status is that of wait(2). Nothing if its end is known already. */
void cop_programs_ended(struct cop_programs *p, pid_t pid, int status);
/* Any thread. How all of them ended up to now. */
void cop_programs_exits(struct cop_programs *p, struct cop_op_exits *out);

#endif
