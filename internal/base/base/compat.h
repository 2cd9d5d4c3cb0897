/* SPDX-License-Identifier: BSD-3-Clause */
/* compat: differences between the systems that Copper is built on. All such decisions are made
 * here. The oldest is libfuse 3.10, libfabric 1.15, glibc 2.31 (vendor/needed.c refuses older
 * ones), the newest libfuse 3.17, libfabric 2.1, glibc 2.41.
 *
 * -DCOP_OLD_LIBRARIES assumes that everything optional is missing: `make old` compiles every file
 * that includes this header that way, and t0177 runs the result. This header holds no code: code is
 * where it is used, or in beneath.c and close.c if several modules need it. */
#ifndef COP_BASE_COMPAT_H
#define COP_BASE_COMPAT_H

#include <sys/mman.h>
#include <sys/syscall.h>

#ifdef COP_OLD_LIBRARIES
#define COP_NEW_LIBRARIES 0
#else
#define COP_NEW_LIBRARIES 1
#endif

/* ---- libfuse: where these are used, its header is included ---- */

#define COP_FUSE_SINCE(minor) (COP_NEW_LIBRARIES && FUSE_VERSION >= FUSE_MAKE_VERSION(3, minor))

/* fuse_file_info.noflush. Without it the kernel sends one FLUSH, which is answered ENOSYS. */
#define COP_HAVE_FUSE_NOFLUSH COP_FUSE_SINCE(11)
/* fuse_loop_cfg_create and related functions. */
#define COP_HAVE_FUSE_LOOP_CFG COP_FUSE_SINCE(12)
/* fuse_session_custom_io. Without it a directory has one lookup at a time. */
#define COP_HAVE_FUSE_CUSTOM_IO COP_FUSE_SINCE(13)
/* fuse_lowlevel_notify_expire_entry, with flags and without. Without it names are dropped. */
#define COP_HAVE_FUSE_EXPIRE_FLAGS (COP_FUSE_SINCE(14) && !COP_FUSE_SINCE(16))
#define COP_HAVE_FUSE_EXPIRE COP_FUSE_SINCE(16)

/* ---- libfabric ---- */

/* Bits of mr_mode that its version 2 deprecates, and that older providers still ask for. Their
 * numbers are part of its binary interface. */
#define COP_FI_MR_BASIC 1
#define COP_FI_MR_SCALABLE 2

/* ---- compilers ---- */

/* Whether the address sanitizer is active: gcc defines a macro, clang has a feature, newer versions
 * have both. */
#if defined(__SANITIZE_ADDRESS__)
#define COP_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COP_ASAN 1
#endif
#endif
#ifndef COP_ASAN
#define COP_ASAN 0
#endif

/* The leak check ignores what this thread allocates between these two. A line in scripts/lsan.supp
 * does the same, but the sanitizer needs a tenth of a second of processor time to resolve the names
 * of functions, in each process that needs it. */
#if COP_ASAN
#include <sanitizer/lsan_interface.h>
#define cop_leak_begin() __lsan_disable()
#define cop_leak_end() __lsan_enable()
#else
#define cop_leak_begin() ((void)0)
#define cop_leak_end() ((void)0)
#endif

/* ---- kernel interfaces that are newer than glibc's headers ---- */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC /* since Linux 5.11 */
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* struct open_how and what its resolve may hold: in linux/openat2.h since Linux 5.6. */
struct cop_open_how {
	unsigned long long flags, mode, resolve;
};
#define COP_RESOLVE_NO_MAGICLINKS 2ULL
#define COP_RESOLVE_NO_SYMLINKS 4ULL
#define COP_RESOLVE_BENEATH 8ULL

#endif
