#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Readers of a storage that lies or is moved under them. Every byte of a file follows from its name
and its place, so that a wrong one is known by itself.

storage.py make FILE BYTES [SALT]            a file
storage.py like DIRECT FILE                  FILE reads as DIRECT does, or fails with EIO or ESTALE
storage.py read SECONDS UNTIL FILE...        reads at all places until the file UNTIL is there:
                                             right bytes, of one file as long as it is open, or an
                                             error; prints both counts
storage.py swap TIMES ONE OTHER              two directories change their names
storage.py hold GO FILE...                   opens all, reads the first page of each, waits for the
                                             file GO, and reads the rest"""

import errno
import os
import random
import sys
import time

ERRORS = (errno.EIO, errno.ESTALE)


def content(name, size, salt=""):
    return random.Random(os.path.basename(name) + salt).randbytes(size)


def make(path, size, salt=""):
    with open(path, "wb") as f:
        f.write(content(path, int(size), salt))


def whole(path):
    try:
        with open(path, "rb", buffering=0) as f:
            return b"".join(iter(lambda: f.read(100000), b""))
    except OSError as e:
        assert e.errno in ERRORS, e
        return None


def like(direct, path):
    """Its parts as well: a read that begins before what cannot be had may give what comes before
    that."""
    want, got = whole(direct), whole(path)
    assert want is not None and (got is None or got == want), "%d bytes, directly %d" % (len(got),
        len(want))
    fd, there = os.open(path, os.O_RDONLY), os.open(direct, os.O_RDONLY)
    size = os.fstat(fd).st_size
    for off in (0, len(want) // 2, max(len(want) - 10, 0), len(want), max(size - 10, 0), size,
                size + 10):
        try:
            got = os.pread(fd, 5000, off)
        except OSError as e:
            assert e.errno in ERRORS, e
            continue
        assert got == os.pread(there, 5000, off), "5000 bytes at %d of %d: %d" % (off,
            size, len(got))
    print("as directly" if whole(path) is not None else "an error")


def read(seconds, until, *paths):
    """A name may be absent for a moment, and stand for another file then; an open file is one of
    the two."""
    right = failed = 0
    end, rng = time.monotonic() + float(seconds), random.Random(1)
    files = {os.path.basename(p) for p in paths}
    wants = {name: [content(name, 4 << 20, salt) for salt in ("", "other")] for name in files}
    while not os.path.exists(until) and time.monotonic() < end or right + failed < 100:
        p = rng.choice(paths)
        try:
            fd = os.open(p, os.O_RDONLY)
        except OSError as e:
            assert e.errno in ERRORS + (errno.ENOENT,), e
            failed += 1
            continue
        try:
            left = wants[os.path.basename(p)]
            for turn in range(3):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                off = rng.choice((0, rng.randrange(4 << 20), max(os.fstat(fd).st_size - 3000, 0)))
                got = os.pread(fd, 5000, off)
                left = [w for w in left if got == w[off:off + len(got)]]
                assert left, "wrong bytes of %s at %d, turn %d" % (p, off, turn)
                right += 1
        except OSError as e:
            assert e.errno in ERRORS, e
            failed += 1
        finally:
            os.close(fd)
    print(right, failed)


def swap(times, one, other):
    for _ in range(int(times)):
        for a, b in ((one, one + ".x"), (other, one), (one + ".x", other)):
            os.rename(a, b)
            time.sleep(0.03)


def hold(go, *paths):
    fds = [(p, os.open(p, os.O_RDONLY)) for p in paths]
    wants = {p: content(p, os.fstat(fd).st_size) for p, fd in fds}
    for p, fd in fds:
        assert os.pread(fd, 4096, 0) == wants[p][:4096]
    print("open", flush=True)
    while not os.path.exists(go):
        time.sleep(0.02)
    right = failed = 0
    for p, fd in fds:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        for off in range(0, len(wants[p]), 65536):
            try:
                got = os.pread(fd, 65536, off)
                assert got == wants[p][off:off + 65536], "wrong bytes of %s at %d: %d" % (p,
                    off, len(got))
                right += 1
            except OSError as e:
                assert e.errno in ERRORS, e
                failed += 1
    print(right, failed)


if __name__ == "__main__":
    {"make": make, "like": like, "read": read, "swap": swap,
     "hold": hold}[sys.argv[1]](*sys.argv[2:])
