/* SPDX-License-Identifier: BSD-3-Clause */
/* compat: every difference between build environments is decided here. The oldest supported
 * versions are libfuse 3.10, libfabric 1.15 and glibc 2.31 (vendor/needed.c refuses older ones);
 * the newest are libfuse 3.17, libfabric 2.1 and glibc 2.41.
 *
 * -DCOP_OLD_LIBRARIES pretends that every optional feature is missing: `make old` compiles all
 * files that include this header that way, and t0177 runs the result. This header holds no code;
 * fallbacks live where they are used, or in beneath.c and close.c if several modules share them. */
#ifndef COP_BASE_COMPAT_H
#define COP_BASE_COMPAT_H

#include <sys/mman.h>
#include <sys/syscall.h>

#ifdef COP_OLD_LIBRARIES
#define COP_NEW_LIBRARIES 0
#else
#define COP_NEW_LIBRARIES 1
#endif

/* ---- libfuse: a file that uses these includes its header ---- */

#define COP_FUSE_SINCE(minor) (COP_NEW_LIBRARIES && FUSE_VERSION >= FUSE_MAKE_VERSION(3, minor))

/* fuse_file_info.noflush. Without it the kernel sends one FLUSH, to which we reply ENOSYS. */
#define COP_HAVE_FUSE_NOFLUSH COP_FUSE_SINCE(11)
/* fuse_loop_cfg_create and related functions. */
#define COP_HAVE_FUSE_LOOP_CFG COP_FUSE_SINCE(12)
/* fuse_session_custom_io. Without it, lookups in one directory are serialized. */
#define COP_HAVE_FUSE_CUSTOM_IO COP_FUSE_SINCE(13)
/* fuse_lowlevel_notify_expire_entry, with and without flags. Without either, names are invalidated
 * instead of expired. */
#define COP_HAVE_FUSE_EXPIRE_FLAGS (COP_FUSE_SINCE(14) && !COP_FUSE_SINCE(16))
#define COP_HAVE_FUSE_EXPIRE COP_FUSE_SINCE(16)

/* ---- libfabric ---- */

/* Bits of mr_mode that libfabric 2 deprecates but older providers still require. Their values are
 * part of its ABI. */
#define COP_FI_MR_BASIC 1
#define COP_FI_MR_SCALABLE 2

/* ---- compilers ---- */

/* Is AddressSanitizer enabled? gcc defines a macro, clang has a feature test, newer versions have
 * both. */
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

/* Between these two calls, the leak checker ignores allocations by this thread. A line in
 * scripts/lsan.supp would do the same, but then the sanitizer spends a tenth of a second of CPU
 * time resolving function names in every affected process. */
#if COP_ASAN
#include <sanitizer/lsan_interface.h>
#define cop_leak_begin() __lsan_disable()
#define cop_leak_end() __lsan_enable()
#else
#define cop_leak_begin() ((void)0)
#define cop_leak_end() ((void)0)
#endif

/* ---- kernel interfaces newer than glibc's headers ---- */

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

/* struct open_how and the flags of its resolve field; in linux/openat2.h since Linux 5.6. */
struct cop_open_how {
	unsigned long long flags, mode, resolve;
};
#define COP_RESOLVE_NO_MAGICLINKS 2ULL
#define COP_RESOLVE_NO_SYMLINKS 4ULL
#define COP_RESOLVE_BENEATH 8ULL

#endif
