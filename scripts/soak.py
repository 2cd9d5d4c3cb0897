#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The readers and the writer of soak.sh.

make SRC                     a tree: stable/ never changes, moving/ is replaced while others read
replace SRC COUNT            puts a new version in the place of some of moving/
read MOUNT STATE RANK        reads at random until STATE/stop or STATE/down.RANK exists; exit 1 with
                             a sentence on a wrong byte, a wrong name or an error that has no excuse
fresh MOUNT SRC              every file of moving/ is the version that the source has now
excused STATE RANK           exit 0 if what the reader did last may have met an error of the storage
table STATE                  what each kind of fault came to, from what follows

STATE holds what happened, in seconds since the epoch: faults (`KIND BEGIN END`, END 0 while it
lasts; of a storage that fails `eio BEGIN END PATH`), and for each reader the operations that took
long or ended badly (`ops.RANK`: `BEGIN END HOW`, HOW slow, eio, error or wrong) and the one that it
is at (`beat.RANK`: `BEGIN WHAT PATH`).

What a file holds follows from its name and generation, so that a reader can tell a wrong byte and a
mixture of two versions. A file of moving/ begins with its generation."""
import errno
import mmap
import os
import random
import sys
import time

DIRS, PER_DIR, MOVING = 12, 40, 60
SIZES = [0, 1, 4095, 4096, 131072, 131073, 1048575, 1048576, 1048577, 300000, 2500000, 5000000]
# What a reader may see when its own node has been killed and then unmounted.
OF_A_DEAD_NODE = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ESHUTDOWN, errno.EINTR,
                  errno.ENOENT}


# How long an answer that was under way when a fault began or ended may take on a busy machine.
SLACK = 5.0
# What counts as a pause.
LONG = 0.05


class Wrong(Exception):
    pass


class Beat:
    """What a reader is at, where the others can see it."""

    def __init__(self, state, rank):
        self.path, self.state, self.rank = os.path.join(state, f"beat.{rank}"), state, rank
        self.begin, self.where = time.time(), "/"

    def at(self, what, where):
        self.begin, self.where = time.time(), where
        with open(self.path + ".new", "w") as f:
            f.write(f"{self.begin:.3f} {what} {where}\n")
        os.rename(self.path + ".new", self.path)

    def over(self, how):
        end = time.time()
        if how != "slow" or end - self.begin > LONG:
            with open(os.path.join(self.state, f"ops.{self.rank}"), "a") as f:
                f.write(f"{self.begin:.3f} {end:.3f} {how}\n")


def faults(state):
    """(kind, begin, end, path) of each; the last line for a begin has the end."""
    found = {}
    try:
        with open(os.path.join(state, "faults")) as f:
            for line in f:
                kind, begin, end, *path = line.split()
                found[kind, begin] = (kind, float(begin), float(end) or float("inf"),
                                      path[0] if path else "/")
    except FileNotFoundError:
        pass
    return list(found.values())


def storage_failed(state, where, begin, end):
    """Whether the storage gave EIO for this name while somebody asked."""
    where = where.strip("/") + "/"
    return any(kind == "eio" and first <= end and begin <= last + SLACK and
               (path == "/" or where.startswith(path.strip("/") + "/"))
               for kind, first, last, path in faults(state))


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
    while len(data) < length and (part := os.pread(f.fileno(), length - len(data),
            offset + len(data))):
        data += part
    return data


def slurp(path, ways):
    """The whole file, in one of the ways in which programs read: one after the other, at random,
    mapped."""
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


def read_stable(mount, beat):
    name = random.choice(stable_names())
    beat.at("read_stable", name)
    got, want = slurp(os.path.join(mount, name), 3), stable_content(name)
    if got != want:
        raise differs(name, got, want)


def read_moving(mount, beat):
    name = f"file{random.randrange(MOVING):03}"
    beat.at("read_moving", f"moving/{name}")
    try:
        # Not mapped: if a file is replaced, a read gets ESTALE, but a mapping gets SIGBUS.
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


def list_directory(mount, beat):
    d = random.randrange(DIRS)
    beat.at("list_directory", f"stable/d{d:02}")
    where = os.path.join(mount, f"stable/d{d:02}")
    want = {f"file{i:03}": len(stable_content(f"stable/d{d:02}/file{i:03}"))
            for i in range(PER_DIR)}
    got = {e.name: e.stat(follow_symlinks=False).st_size for e in os.scandir(where)}
    if got != want:
        raise Wrong(f"{where}: a listing of {len(got)} names that is not the source's")


def ask_absent(mount, beat):
    name = os.path.join(random.choice(["", "stable", "stable/d01", "moving"]),
                        f"none{random.randrange(1000)}")
    beat.at("ask_absent", name)
    # This does not use os.path.lexists, for which every error means absence.
    try:
        os.lstat(os.path.join(mount, name))
    except FileNotFoundError:
        return
    raise Wrong(f"{name} exists")


def try_once(mount, state, rank, beat):
    """Does one thing at random; False when the reader's node is gone."""
    what = random.choices([read_stable, read_moving, list_directory, ask_absent], [8, 4, 2, 2])[0]
    try:
        what(mount, beat)
        beat.over("slow")
    except OSError as e:
        if e.errno in OF_A_DEAD_NODE and os.path.exists(os.path.join(state, f"down.{rank}")):
            return False
        # A listing asks for its files' attributes, too.
        where = os.path.relpath(e.filename, mount) if e.filename else beat.where
        if e.errno == errno.EIO and storage_failed(state, where, beat.begin, time.time()):
            beat.over("eio")
            return True
        beat.over("error")
        raise Wrong(f"rank {rank}: {what.__name__}: {e}") from e
    except Wrong as e:
        beat.over("wrong")
        raise Wrong(f"rank {rank}: {what.__name__}: {e}") from e
    return True


def read(mount, state, rank):
    ends = [os.path.join(state, f) for f in (f"down.{rank}", "stop")]
    beat = Beat(state, rank)
    count = 0
    while not any(map(os.path.exists, ends)) and try_once(mount, state, rank, beat):
        count += 1
    with open(os.path.join(state, f"count.{rank}"), "a") as f:
        f.write(f"{count}\n")


def excused(state, rank):
    with open(os.path.join(state, f"beat.{rank}")) as f:
        begin, what, where = f.read().split()
    excuse = storage_failed(state, where, float(begin), time.time())
    with open(os.path.join(state, f"ops.{rank}"), "a") as f:
        f.write(f"{begin} {time.time():.3f} {'eio' if excuse else 'error'}\n")
    if not excuse:
        raise Wrong(f"{what} {where} met no error of the storage")


def operations(state):
    for name in os.listdir(state):
        if name.startswith("ops."):
            with open(os.path.join(state, name)) as f:
                for line in f:
                    begin, end, how = line.split()
                    yield float(begin), float(end), how


def table(state):
    """An operation counts for each fault that it ran across, or that was over less than two seconds
    before it."""
    kinds, none = {}, "(none of them)"
    for kind, begin, end, _ in faults(state):
        kinds.setdefault(kind, []).append((begin, end))
    rows = {kind: {"eio": 0, "error": 0, "wrong": 0, "pause": 0.0}
            for kind in [*sorted(kinds), none]}
    for begin, end, how in operations(state):
        met = [k for k, spans in kinds.items()
               if any(b <= end and begin <= e + 2 for b, e in spans)] or [none]
        for kind in met:
            row = rows[kind]
            row["pause"] = max(row["pause"], end - begin)
            if how != "slow":
                row[how] += 1
    print(
        f"{'fault':<16} {'times':>6} {'errors':>7} {'EIO as given':>13} {'wrong bytes':>12} "
        f"{'longest pause':>14}")
    for kind, row in rows.items():
        print(
            f"{kind:<16} {len(kinds.get(kind, [])) or '':>6} {row['error']:>7} {row['eio']:>13} "
            f"{row['wrong']:>12} {row['pause']:>12.1f} s")


def fresh(mount, src):
    deadline = time.monotonic() + 5
    for i in range(MOVING):
        name = f"moving/file{i:03}"
        want = generation_of(os.path.join(src, name))
        # The kernel is told to forget a moment later, by a thread of its own.
        while (got := generation_of(os.path.join(mount, name))) != want:
            if time.monotonic() > deadline:
                raise Wrong(
                    f"{mount}/{name} is generation {got} after the invalidation, the source has "
                    f"{want}")
            time.sleep(0.1)


def main():
    random.seed()
    command, args = sys.argv[1], sys.argv[2:]
    try:
        {"make": make, "replace": lambda s, n: replace(s, int(n)), "read": read, "fresh": fresh,
         "excused": excused, "table": table}[command](*args)
    except (Wrong, OSError) as e:
        print(f"{command}: {e}", flush=True)
        sys.exit(1)


main()
