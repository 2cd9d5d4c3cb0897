# SPDX-License-Identifier: BSD-3-Clause
"""Reads a file through a mount and compares it with the original: HOW FILE ORIGINAL SEED. HOW is
read, mmap (in order) or random (64 KiB at each multiple of it, in random order). Ends with 1 and a
line if a byte differs, with the error's name if a read fails.

letters FILE HALF CHANGED: FILE consists of one letter. Reads half of it, creates HALF, waits until
CHANGED exists, reads the rest, and prints the different letters and errors that it got."""
import errno
import mmap
import os
import random
import sys
import time

PIECE = 64 << 10


def pieces(how, size, seed):
    offsets = list(range(0, size, PIECE))
    if how == "random":
        random.Random(seed).shuffle(offsets)
    return offsets


def main():
    how, path, original, seed = sys.argv[1:5]
    with open(path, "rb", buffering=0) as f, open(original, "rb", buffering=0) as g:
        size = os.fstat(f.fileno()).st_size
        if how == "random":
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        mapped = mmap.mmap(f.fileno(), size, prot=mmap.PROT_READ) if how == "mmap" else None
        for at in pieces(how, size, int(seed)):
            got = mapped[at:at + PIECE] if mapped else os.pread(f.fileno(), PIECE, at)
            if got != os.pread(g.fileno(), PIECE, at):
                sys.exit(f"wrong bytes at {at}")


def letters(path, half, changed):
    seen = set()
    with open(path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        for at in range(0, size, PIECE):
            if at == size // 2:
                with open(half, "w"):
                    pass
                while not os.path.exists(changed):
                    time.sleep(0.01)
            try:
                seen.update(map(chr, set(os.pread(f.fileno(), PIECE, at))))
            except OSError as e:
                seen.add(errno.errorcode[e.errno])
    print(*sorted(seen))


try:
    if sys.argv[1] == "letters":
        letters(*sys.argv[2:])
    else:
        main()
except OSError as e:
    sys.exit(errno.errorcode.get(e.errno, str(e)))
