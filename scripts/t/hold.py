#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the kernel from taking back what it has of files: hold.py PATH...

Each file named or below a directory named is mapped, and those of its pages that the kernel has
right now are locked into memory; each directory is held open. So neither memory pressure nor
drop_caches takes those pages, or the names and attributes on the way to them. What cannot be held
are lists of directories and names that are absent. Nothing is read that was not read before.

Prints how many files and pages it holds, and holds them until it is killed."""

import ctypes
import mmap
import os
import resource
import signal
import sys

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def runs(present):
    """(first, count) of each run of pages that are there."""
    first = None
    for i, there in enumerate(present + b"\0"):
        if there & 1 and first is None:
            first = i
        elif not there & 1 and first is not None:
            yield first, i - first
            first = None


def lock(address, size):
    """An ordinary user may lock little. A page that is mapped is the next best thing."""
    if libc.mlock(address, size) != 0:
        for at in range(0, size, PAGE):
            ctypes.c_char.from_address(address + at).value


def hold_file(path):
    """How many pages; the mapping holds the file, so no descriptor stays open."""
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0) if size else None
    if not address or address == ctypes.c_void_p(-1).value:
        return 0  # the descriptor holds it
    os.close(fd)
    present = ctypes.create_string_buffer((size + PAGE - 1) // PAGE)
    if libc.mincore(address, size, present) != 0:
        sys.exit(f"mincore {path}: {os.strerror(ctypes.get_errno())}")
    pages = 0
    for first, count in runs(present.raw[:(size + PAGE - 1) // PAGE]):
        lock(address + first * PAGE, min(count * PAGE, size - first * PAGE))
        pages += count
    return pages


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files = pages = 0
    for top in sys.argv[1:]:
        if not os.path.isdir(top):
            files, pages = files + 1, pages + hold_file(top)
            continue
        for where, _, names in os.walk(top):
            os.open(where, os.O_PATH)
            for name in names:
                path = os.path.join(where, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    files, pages = files + 1, pages + hold_file(path)
    print(f"{files} files, {pages} pages", flush=True)
    signal.pause()


main()
