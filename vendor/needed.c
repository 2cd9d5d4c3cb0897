/* SPDX-License-Identifier: BSD-3-Clause */
/* What Copper is built with, checked before anything is compiled (Makefile), so that everything
 * missing or too old is named at once. It makes no object. */
#if !__has_include(<stdlib.h>)
#error "the C library's headers are not there: install its development package (libc6-dev, glibc-devel)"
#define LACKING
#endif
#if !__has_include(<fuse_lowlevel.h>)
#error "libfuse 3 is not there: install its development package (libfuse3-dev, fuse3-devel), or say where it is: make CPPFLAGS=-IDIR/include/fuse3 LDFLAGS=-LDIR/lib"
#define LACKING
#endif
#if !__has_include(<rdma/fabric.h>)
#error "libfabric is not there: install its development package (libfabric-dev, libfabric-devel), or say where it is: make CPPFLAGS=-IDIR/include LDFLAGS=-LDIR/lib"
#define LACKING
#endif
#if !__has_include(<lz4.h>)
#error "lz4 is not there: install its development package (liblz4-dev, lz4-devel, liblz4-devel)"
#define LACKING
#endif
#if !__has_include(<xxhash.h>)
#error "xxHash is not there: install its development package (libxxhash-dev, xxhash-devel)"
#define LACKING
#endif
#if !__has_include(<sodium.h>)
#error "libsodium is not there: install its development package (libsodium-dev, libsodium-devel)"
#define LACKING
#endif
#if !__has_include(<zlib.h>)
#error "zlib is not there: install its development package (zlib1g-dev, zlib-devel)"
#define LACKING
#endif
#if !__has_include(<sqlite3.h>)
#error "SQLite is not there: install its development package (libsqlite3-dev, sqlite-devel, sqlite3-devel)"
#define LACKING
#endif

#ifndef LACKING
#include <fuse_lowlevel.h>
#include <rdma/fabric.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <xxhash.h>

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 10)
#error "libfuse is older than 3.10: make CPPFLAGS=-IDIR/include/fuse3 LDFLAGS=-LDIR/lib takes a newer one from DIR"
#endif
#if 1000 * FI_MAJOR_VERSION + FI_MINOR_VERSION < 1015
#error "libfabric is older than 1.15: make FABRIC=shared CPPFLAGS=-IDIR/include LDFLAGS='-LDIR/lib -Wl,-rpath,DIR/lib' takes a newer one from DIR"
#endif
#if XXH_VERSION_NUMBER < 800
#error "xxHash is older than 0.8.0, which is the first with XXH3: make CPPFLAGS=-IDIR/include LDFLAGS=-LDIR/lib takes a newer one from DIR"
#endif
#if SQLITE_VERSION_NUMBER < 3025000
#error "SQLite is older than 3.25: make CPPFLAGS=-IDIR/include LDFLAGS=-LDIR/lib takes a newer one from DIR"
#endif
#if !__GLIBC_PREREQ(2, 31)
#error "glibc is older than 2.31: build on a newer system; the static binary runs on this one, too"
#endif

#endif
