# SPDX-License-Identifier: BSD-3-Clause
"""Reads a file through a mount and compares it with the original: HOW FILE ORIGINAL SEED. HOW is
read, mmap (in order) or random (64 KiB at each multiple of it, in random order). Ends with 1 and a
line if a byte differs, with the error's name if a read fails."""
import errno
import mmap
import os
import random
import sys

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


try:
    main()
except OSError as e:
    sys.exit(errno.errorcode.get(e.errno, str(e)))
