/* SPDX-License-Identifier: BSD-3-Clause */
/* macros: sizes, units and attributes used by every file. */
#ifndef COP_BASE_MACROS_H
#define COP_BASE_MACROS_H

#include <stddef.h>

#define COP_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define COP_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define COP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define COP_MAX(a, b) ((a) > (b) ? (a) : (b))
#define COP_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define COP_KIB ((size_t)1 << 10)
#define COP_MIB ((size_t)1 << 20)
#define COP_GIB ((uint64_t)1 << 30)
#define COP_NS_PER_MS 1000000ULL
#define COP_NS_PER_S 1000000000ULL

#endif
