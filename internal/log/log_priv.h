/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits on repeats, shared with the test. */
#ifndef COP_LOG_PRIV_H
#define COP_LOG_PRIV_H

#define COP_LOG_BURST 50
#define COP_LOG_WINDOW_MS 10000

#endif
