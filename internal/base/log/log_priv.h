/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits on repeats, shared with the test, and what the files of log share. */
#ifndef COP_BASE_LOG_PRIV_H
#define COP_BASE_LOG_PRIV_H

#define COP_LOG_BURST 50
#define COP_LOG_WINDOW_MS 10000
/* How many kinds of attempts are counted separately in one window. */
#define COP_LOG_REFUSED_MAX 16

/* The window is over, or the log is about to close: writes the counts. */
void cop_log_refused_end(void);

#endif
