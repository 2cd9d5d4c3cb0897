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

/* path is the log file; a new one gets the permissions of its directory. It is NULL if type is
 * COP_LOG_STDOUT or there is no job directory (then only stderr is used). */
int cop_log_open(
	enum cop_log_level level, enum cop_log_type type, const char *path, struct cop_err *err);
void cop_log_close(void);
/* Redirects this process's standard error to the log file, to keep the C library's last words and
 * the output of libraries that do not use this log. No effect without a file. */
void cop_log_take_stderr(void);
bool cop_log_on(enum cop_log_level level);
/* One event, one line, lower case, key=value. A newline in the text becomes a space. */
void cop_log_write(enum cop_log_level level, const char *where, const char *fmt, ...)
	COP_PRINTF(3, 4);

/* Logs a refused attempt from outside: what, why, and from where. The first of its kind is
 * logged immediately; repetitions are summarized in one line every ten seconds, and so are
 * attempts from more addresses than can be tracked. */
void cop_log_refused(const char *what, const char *why, const char *from);
/* Writes the summaries that are due; cheap. Modules that refuse attempts call it at intervals. */
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
