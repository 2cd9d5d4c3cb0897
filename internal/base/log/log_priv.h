/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits on repeated lines, shared with the test, and declarations shared by the files of log. */
#ifndef COP_BASE_LOG_PRIV_H
#define COP_BASE_LOG_PRIV_H

#define COP_LOG_BURST 50
#define COP_LOG_WINDOW_MS 10000
/* How many kinds of attempts are counted separately per window. */
#define COP_LOG_REFUSED_MAX 16

/* Writes the remaining counts, at the end of the window or when the log closes. */
void cop_log_refused_end(void);

#endif
