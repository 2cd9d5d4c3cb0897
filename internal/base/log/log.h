/* SPDX-License-Identifier: BSD-3-Clause */
/* log: the one log of the process. Lines look like
 *
 *     2026-03-27 23-33-58.082 [Info] (where) text
 *
 * because sites grep for them (copper-formats(5)). Until cop_log_open is called, warnings and
 * errors are written to standard error. Repeats are limited and counted. Thread safe; blocks
 * only on the write itself; ignores write errors (a full disk must not stop a mount). */
#ifndef COP_BASE_LOG_H
#define COP_BASE_LOG_H

#include "base/base/base.h"

enum cop_log_level {
	COP_LOG_NONE,
	COP_LOG_FATAL,
	COP_LOG_ERROR,
	COP_LOG_WARNING,
	COP_LOG_INFO,
	COP_LOG_DEBUG,
};

enum cop_log_type { COP_LOG_FILE, COP_LOG_STDOUT, COP_LOG_BOTH };

/* path is the log file; a new file gets the permissions of its directory. path is NULL if type is
 * COP_LOG_STDOUT or there is no job directory (the log then goes to stderr only). */
int cop_log_open(
	enum cop_log_level level, enum cop_log_type type, const char *path, struct cop_err *err);
void cop_log_close(void);
/* Redirects this process's standard error to the log file, so that last words from the C library
 * and output from libraries that do not use this log are kept. Does nothing if there is no file. */
void cop_log_take_stderr(void);
bool cop_log_on(enum cop_log_level level);
/* Write one event per line, in lower case, as key=value. A newline in the text becomes a space. */
void cop_log_write(enum cop_log_level level, const char *where, const char *fmt, ...)
	COP_PRINTF(3, 4);

/* Logs an attempt from outside that was refused: what, why, and from where. The first of each kind
 * is logged immediately. Repeats are summarized in one line every ten seconds, as are attempts from
 * more addresses than we can track. */
void cop_log_refused(const char *what, const char *why, const char *from);
/* Writes any summaries that are due; cheap. Modules that refuse attempts call it periodically. */
void cop_log_refused_due(void);

#define cop_log(level, ...)                                                                        \
	do {                                                                                       \
		if (cop_log_on(level))                                                             \
			cop_log_write(level, __func__, __VA_ARGS__);                               \
	} while (0)
#define cop_log_error(...) cop_log(COP_LOG_ERROR, __VA_ARGS__)
#define cop_log_warn(...) cop_log(COP_LOG_WARNING, __VA_ARGS__)
#define cop_log_info(...) cop_log(COP_LOG_INFO, __VA_ARGS__)
#define cop_log_debug(...) cop_log(COP_LOG_DEBUG, __VA_ARGS__)

#endif
