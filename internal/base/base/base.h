/* SPDX-License-Identifier: BSD-3-Clause */
/* base: helpers that any module may use. They set no policy and know nothing of trees, caches or
 * FUSE. This header includes the base headers that nearly every file needs, and common headers of
 * the C library; include htab.h, ip.h, json.h, compat.h and the rest where needed.
 *
 * Return convention of the whole project: 0 or -errno, or a count where natural. */
#ifndef COP_BASE_H
#define COP_BASE_H

#include "base/base/buf.h"
#include "base/base/clock.h"
#include "base/base/cpu.h"
#include "base/base/err.h"
#include "base/base/file.h"
#include "base/base/hash.h"
#include "base/base/host.h"
#include "base/base/list.h"
#include "base/base/macros.h"
#include "base/base/mounts.h"
#include "base/base/num.h"
#include "base/base/safedir.h"
#include "base/base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- this program ---- */

extern const char cop_version[]; /* "0.2.0"; between releases "0.2.0+431.g9639c5d" */
extern const char cop_build[];   /* "release, static" */

#endif
