#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The readers and the writer of soak.sh.

make SRC                     a tree: stable/ never changes, moving/ is replaced while others read
replace SRC COUNT            puts a new version in the place of some of moving/
read MOUNT STATE RANK        reads at random until STATE/stop or STATE/down.RANK exists; exit 1 with a sentence
                             on a wrong byte, a wrong name or an error that has no excuse
fresh MOUNT SRC              every file of moving/ is the version that the source has now

What a file holds follows from its name and generation, so that a reader can tell a wrong byte and a mixture of
two versions. A file of moving/ begins with its generation."""
import errno
import mmap
import os
import random
import sys
import time

DIRS, PER_DIR, MOVING = 12, 40, 60
SIZES = [0, 1, 4095, 4096, 131072, 131073, 1048575, 1048576, 1048577, 300000, 2500000, 5000000]
# What a reader may see when its own node was killed and then unmounted.
OF_A_DEAD_NODE = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ESHUTDOWN, errno.EINTR, errno.ENOENT}


class Wrong(Exception):
    pass


def body(name, generation, size):
    return random.Random(f"{name} {generation}").randbytes(size)


def stable_names():
    return [f"stable/d{d:02}/file{i:03}" for d in range(DIRS) for i in range(PER_DIR)]


def stable_content(name):
    size = SIZES[hash_of(name) % len(SIZES)]
    return body(name, 0, size)


def hash_of(name):
    return random.Random(name).randrange(1 << 30)


def moving_content(name, generation):
    r = random.Random(f"size {name} {generation}")
    head = b"%d\n" % generation
    return head + body(name, generation, r.choice(SIZES) + r.randrange(100))


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.rename(path + ".new", path)


def generation_of(path):
    with open(path, "rb") as f:
        return int(f.readline() or 0)


def make(src):
    for name in stable_names():
        put(os.path.join(src, name), stable_content(name))
    for i in range(MOVING):
        put(os.path.join(src, f"moving/file{i:03}"), moving_content(f"file{i:03}", 1))


def replace(src, count):
    for i in random.sample(range(MOVING), count):
        path = os.path.join(src, f"moving/file{i:03}")
        put(path, moving_content(f"file{i:03}", generation_of(path) + 1))


def pread_whole(f, offset, length):
    """A read may be short when its later pages fail; asking again gives the error."""
    data = b""
    while len(data) < length and (part := os.pread(f.fileno(), length - len(data), offset + len(data))):
        data += part
    return data


def slurp(path, ways):
    """The whole file, in one of the ways in which programs read: one after the other, at random, mapped."""
    way = random.randrange(ways)
    with open(path, "rb", buffering=0) as f:
        if way == 0:
            step, parts = random.choice([4096, 65536, 1 << 20]), []
            while part := f.read(step):
                parts.append(part)
            return b"".join(parts)
        size = os.fstat(f.fileno()).st_size
        if way == 2 and size:
            with mmap.mmap(f.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ) as m:
                return m[:]
        data = bytearray(size)
        starts = list(range(0, size, 200000))
        random.shuffle(starts)
        for at in starts:
            part = pread_whole(f, at, min(200000, size - at))
            data[at:at + len(part)] = part
        return bytes(data)


def differs(path, got, want):
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    zeros = not any(got[at:at + 64])
    return Wrong(f"{path}: {len(got)} bytes where {len(want)} are right, first difference at {at}"
                 f"{', zeros there' if zeros else ''}")


def read_stable(mount):
    name = random.choice(stable_names())
    got, want = slurp(os.path.join(mount, name), 3), stable_content(name)
    if got != want:
        raise differs(name, got, want)


def read_moving(mount):
    name = f"file{random.randrange(MOVING):03}"
    try:
        # Not mapped: where a read of a file that was replaced is told ESTALE, a mapping gets SIGBUS.
        got = slurp(os.path.join(mount, "moving", name), 2)
    except OSError as e:
        if e.errno == errno.ESTALE:
            return
        raise
    head, newline, _ = got.partition(b"\n")
    if not newline or not head.isdigit():
        raise Wrong(f"moving/{name}: {len(got)} bytes that begin with {got[:20]!r}")
    want = moving_content(name, int(head))
    if got != want:
        raise differs(f"moving/{name} generation {int(head)}", got, want)


def list_directory(mount):
    d = random.randrange(DIRS)
    where = os.path.join(mount, f"stable/d{d:02}")
    want = {f"file{i:03}": len(stable_content(f"stable/d{d:02}/file{i:03}")) for i in range(PER_DIR)}
    got = {e.name: e.stat().st_size for e in os.scandir(where)}
    if got != want:
        raise Wrong(f"{where}: a listing of {len(got)} names that is not the source's")


def ask_absent(mount):
    name = os.path.join(mount, random.choice(["", "stable", "stable/d01", "moving"]), f"none{random.randrange(1000)}")
    if os.path.lexists(name):
        raise Wrong(f"{name} exists")


def read(mount, state, rank):
    down, stop = (os.path.join(state, f) for f in (f"down.{rank}", "stop"))
    beat = os.path.join(state, f"beat.{rank}")
    count = 0
    while not os.path.exists(stop) and not os.path.exists(down):
        what = random.choices([read_stable, read_moving, list_directory, ask_absent], [8, 4, 2, 2])[0]
        with open(beat, "w") as f:
            f.write(what.__name__)
        try:
            what(mount)
        except OSError as e:
            if e.errno in OF_A_DEAD_NODE and os.path.exists(down):
                return
            raise Wrong(f"rank {rank}: {what.__name__}: {e}") from e
        except Wrong as e:
            raise Wrong(f"rank {rank}: {what.__name__}: {e}") from e
        count += 1
    with open(os.path.join(state, f"count.{rank}"), "a") as f:
        f.write(f"{count}\n")


def fresh(mount, src):
    deadline = time.monotonic() + 5
    for i in range(MOVING):
        name = f"moving/file{i:03}"
        want = generation_of(os.path.join(src, name))
        # The kernel is told to forget by a thread of its own, soon.
        while (got := generation_of(os.path.join(mount, name))) != want:
            if time.monotonic() > deadline:
                raise Wrong(f"{mount}/{name} is generation {got} after the invalidation, the source has {want}")
            time.sleep(0.1)


def main():
    random.seed()
    command, args = sys.argv[1], sys.argv[2:]
    try:
        {"make": make, "replace": lambda s, n: replace(s, int(n)), "read": read, "fresh": fresh}[command](*args)
    except (Wrong, OSError) as e:
        print(f"{command}: {e}", flush=True)
        sys.exit(1)


main()
