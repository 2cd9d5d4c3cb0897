/* SPDX-License-Identifier: BSD-3-Clause */
/* mention: names in the bytes of a file that tell which files its reader needs next. It has no
 * files, no state and no policy; what it finds is a guess. */
#ifndef COP_TREE_MENTION_H
#define COP_TREE_MENTION_H

#include "base/base/base.h"

/* name is valid until fn returns. */
typedef void (*cop_mention_fn)(void *arg, const char *name, size_t len);

/* Calls fn for each module that the module level of a compiled Python module imports (a .pyc file
 * of Python 3.8 to 3.14), in the order of its instructions: the name in the import, with its dots,
 * and that name, a dot and each name that is imported from it, since that may be a module too.
 * Relative names have no leading dots. What its functions import is not among them. Names may
 * repeat. Of a version whose instructions are not known here (3.14), it is all names that the
 * module level uses.
 *
 * Returns false if the bytes are not such a file, cut off, or nested too deeply. The format is that
 * of Python's marshal module (Python/marshal.c), the instructions are those of
 * Include/opcode_ids.h, and neither is documented; the file's magic number tells the version. */
bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg);

/* Libraries stand within the first bytes of a file: behind its symbols. */
#define COP_MENTION_ELF_BYTES (128 * COP_KIB)
bool cop_mention_is_elf(const void *data, size_t len);
/* Calls fn for each name of a shared library in the first bytes of a program or library (ELF): each
 * string there that has no other bytes than those of such a name and contains ".so". These are the
 * libraries that it needs, and its own name. Its table of needed libraries stands at the file's
 * end, so it is not read (elf(5)). */
void cop_mention_elf(const void *data, size_t len, cop_mention_fn fn, void *arg);

#endif
