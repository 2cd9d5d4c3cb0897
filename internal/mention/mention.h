/* SPDX-License-Identifier: BSD-3-Clause */
/* mention: names in the bytes of a file that tell which files its reader needs next. It has no
 * files, no state and no policy; what it finds is a guess. */
#ifndef COP_MENTION_H
#define COP_MENTION_H

#include "base/base.h"

typedef void (*cop_mention_fn)(void *arg, const char *name, size_t len);

/* Calls fn for each name that the module level of a compiled Python module uses (a .pyc file of
 * Python 3.8 to 3.14), in the order of its table of names. Those of the modules that it imports are
 * among them, up to the first dot; those that its functions import are not. Names may repeat.
 *
 * Returns false if the bytes are not such a file, cut off, or nested too deeply; fn may have been
 * called before. The format is that of Python's marshal module (Python/marshal.c) and is not
 * documented; the file's magic number tells the version. */
bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg);

#endif
