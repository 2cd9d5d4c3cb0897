/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_out: a large output file that gets its final name once complete. Until then it has a
 * temporary name in the same directory, and is removed if the process fails or receives a
 * catchable signal. One at a time per process. */
#ifndef COP_CMD_TRACE_OUT_H
#define COP_CMD_TRACE_OUT_H

#include "base/base/base.h"

struct trace_out;

/* Compresses in gzip format if the path ends in ".gz". On an error, -errno with a sentence and
 * *out NULL. */
int cop_trace_out_open(const char *path, struct trace_out **out, struct cop_err *err);
/* 0, or -errno. */
int cop_trace_out_put(struct trace_out *o, const char *data, size_t len);
/* Renames the file to its final name if rc is 0, else removes it; frees o, which may be NULL.
 * Returns rc, or -errno on failure. */
int cop_trace_out_close(struct trace_out *o, int rc);

#endif
