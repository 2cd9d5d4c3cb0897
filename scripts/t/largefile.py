#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads large files as programs do that load model weights.

    largefile.py read FILE          in order by read, a MiB at a time
    largefile.py mmap FILE          in order through a mapping
    largefile.py evenly FILE...     a process for each file, all at once; prints how many bytes the
                                    fastest and the slowest have when the first one is done
    largefile.py make FILE SEED SLICES BYTES
                                    a file as safetensors are: the length of a header, a header in
                                    JSON with the place and the sum of each slice, and the slices
    largefile.py slices FILE SEED   maps it and checks all slices, in an order that SEED determines
"""
import hashlib
import json
import mmap
import os
import random
import struct
import sys

MIB = 1 << 20


def in_order(name, count=None):
    buffer = bytearray(MIB)
    with open(name, "rb", buffering=0) as file:
        while got := file.readinto(buffer):
            if count is not None:
                struct.pack_into("q", count, 0, struct.unpack_from("q", count)[0] + got)


def mapped(name):
    buffer = bytearray(MIB)
    with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        view = memoryview(data)
        for at in range(0, len(view), MIB):
            part = view[at:at + MIB]
            buffer[:len(part)] = part
            part.release()
        view.release()


def evenly(names):
    counts = [mmap.mmap(-1, mmap.PAGESIZE) for _ in names]
    ready, go = os.pipe()
    children = []
    for name, count in zip(names, counts):
        child = os.fork()
        if not child:
            os.close(go)
            os.read(ready, 1)
            in_order(name, count)
            os._exit(0)
        children.append(child)
    os.close(go)
    failed = os.wait()[1]
    done = [struct.unpack_from("q", count)[0] for count in counts]
    for _ in children[1:]:
        failed |= os.wait()[1]
    print(max(done), min(done))
    return failed != 0


def make(name, seed, slices, size):
    rng = random.Random(seed)
    header, at = {}, 0
    with open(name, "wb") as file:
        parts = [rng.randbytes(rng.randrange(size // 2, size + size // 2)) for _ in range(slices)]
        for i, part in enumerate(parts):
            header["layer.%d" % i] = {"dtype": "U8", "shape": [len(part)],
                                      "data_offsets": [at, at + len(part)],
                                      "sum": hashlib.blake2b(part).hexdigest()}
            at += len(part)
        text = json.dumps(header).encode()
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts:
            file.write(part)


def slices(name, seed):
    wrong = 0
    with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        length = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + length])
        names = list(header)
        random.Random(seed).shuffle(names)
        for part in names:
            begin, end = (8 + length + at for at in header[part]["data_offsets"])
            wrong += hashlib.blake2b(data[begin:end]).hexdigest() != header[part]["sum"]
        print(len(names), "slices,", wrong, "wrong")
    return wrong != 0


def main(what, *args):
    if what == "read":
        return in_order(*args)
    if what == "mmap":
        return mapped(*args)
    if what == "evenly":
        return evenly(args)
    if what == "make":
        return make(args[0], *(int(arg) for arg in args[1:]))
    if what == "slices":
        return slices(args[0], int(args[1]))
    return __doc__


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
