#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files whose bytes say which version they are, somebody who changes one, and readers who tell a
mixture.

  t05_fresh.py write PATH STATES ROUNDS       changes PATH again and again in every way; adds a line
                                              with the sum of each state to the file STATES before
                                              that state can be seen
  t05_fresh.py read HOW SEED DONE OUT PATH…   reads PATHs in turn until the file DONE exists; a line
                                              of OUT for each reading: `whole SUM`, `error NAME` or
                                              `MIXED why`; HOW is stream, random or mmap
  t05_fresh.py judge STATES OUT…              prints `wholes errors faults`; explains the faults on
                                              standard error

Every 64 bytes carry the version and their number. A version is written under a new time stamp after
its last byte, so that a reader at the source itself could tell it from what was there while it was
written: unless the writer rests in the middle for so long that what is there then is a version like
any other. On a busy machine it does; then a line `OLD NEW FROM TO` of STATES says that blocks of
NEW before FROM or up to TO with blocks of OLD from FROM on were such a version, and another line
has its sum."""

import errno
import hashlib
import mmap
import os
import random
import sys
import time

BLOCK = 64
SIZE = 20_000_000
PIECE = 1 << 12  # bytes of one write
# Seconds: stamps tick every 10 ms at most, and what did not change for two ticks is old (wire.h).
RESTED = 0.008
STALE = {errno.ESTALE, errno.EIO, errno.ENOENT}


def blocks(version, first, end):
    return b"".join(b"%10d %12d %s\n" % (version, i, b"." * 39) for i in range(first, end))


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


# ---- the one that changes


class Writer:
    def __init__(self, path, states):
        self.path = path
        self.states = open(states, "a", encoding="ascii", buffering=1)
        self.version = 0
        self.data = b""

    def announce(self, data):
        self.data = data
        self.states.write(sum_of(data) + "\n")

    def settle(self):
        time.sleep(0.03)
        os.utime(self.path)

    def replace(self):
        self.version += 1
        self.announce(blocks(self.version, 0, SIZE // BLOCK))
        with open(self.path + ".new", "wb") as f:
            f.write(self.data)
        os.rename(self.path + ".new", self.path)

    def put(self, new, begin):
        """Writes new from begin on, piece by piece, and says afterwards where it rested."""
        old, rests, then = self.data, [], time.monotonic()
        self.announce(new)
        with open(self.path, "r+b", buffering=0) as f:
            f.seek(begin)
            for at in range(begin, len(new), PIECE):
                f.write(new[at:at + PIECE])
                now = time.monotonic()
                if now - then > RESTED:
                    rests += [at, min(at + PIECE, len(new))]
                then = now
        for at in rests:
            self.states.write(sum_of(new[:at] + old[at:]) + "\n")
            if begin == 0:
                self.states.write(
                    f"{self.version - 1} {self.version} {max(at - PIECE, 0) // BLOCK} {(at + PIECE) // BLOCK}\n")
        self.settle()

    def rewrite(self):
        self.version += 1
        self.put(blocks(self.version, 0, len(self.data) // BLOCK), 0)

    def append(self):
        have = len(self.data) // BLOCK
        self.put(self.data + blocks(self.version, have, have + 20000), len(self.data))

    def truncate(self):
        self.announce(self.data[:len(self.data) // 3 // BLOCK * BLOCK])
        os.truncate(self.path, len(self.data))
        self.settle()

    def delete(self):
        os.unlink(self.path)


def write(path, states, rounds):
    w = Writer(path, states)
    w.replace()
    for i in range(int(rounds)):
        for change in w.replace, w.rewrite, w.append, w.truncate, w.replace, w.delete, w.replace:
            change()
            time.sleep(0.05 if change == w.delete else 0.25)


# ---- those who read


def block_at(data, number):
    """The version of a block, if it is well formed and has that number."""
    text = bytes(data).split()
    if len(text) != 3 or int(text[1]) != number:
        raise ValueError(f"block {number} holds {bytes(data)[:30]!r}")
    return int(text[0])


def stream(path, rng):
    got = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        size, total = os.fstat(f.fileno()).st_size, 0
        while data := f.read(rng.choice((4096, 65536, 1000000))):
            got.update(data)
            total += len(data)
            time.sleep(rng.choice((0, 0, 0.002)))
        if total != size:
            raise ValueError(f"{total} bytes of a file of {size}")
    return got.hexdigest()


def sampled(read, size, rng):
    seen = {}
    for _ in range(100):
        number = rng.randrange(size // BLOCK)
        seen.setdefault(block_at(read(number * BLOCK), number), []).append(number)
        time.sleep(rng.choice((0, 0.002)))
    if len(seen) > 1:
        old, new = min(seen), max(seen)
        raise ValueError(f"{sorted(seen)} {old} {new} {max(seen[new])} {min(seen[old])}")
    return "-"


def at_random(path, rng):
    with open(path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        if os.pread(f.fileno(), BLOCK, size):
            raise ValueError("bytes past the end")
        return sampled(lambda at: os.pread(f.fileno(), BLOCK, at), size, rng)


def mapped(path, rng):
    """In a process of its own: where a file of another version stands, touching the map ends it
    with SIGBUS."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                sampled(lambda at: m[at:at + BLOCK], len(m), rng)
            os._exit(0)
        except OSError as e:
            os._exit(1 if e.errno in STALE else 3)
        except ValueError as e:
            os.write(theirs, str(e).encode())
            os._exit(2)
    os.close(theirs)
    with open(ours, encoding="ascii") as f:
        why = f.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise OSError(errno.EIO, f"signal {os.WTERMSIG(status)}")
    if os.WEXITSTATUS(status) == 1:
        raise OSError(errno.ESTALE, "")
    if os.WEXITSTATUS(status):
        raise ValueError(why or f"a map: exit {os.WEXITSTATUS(status)}")
    return "-"


def outcome(how, path, rng):
    try:
        return "whole " + how(path, rng)
    except OSError as e:
        return ("error " if e.errno in STALE else "MIXED ") + errno.errorcode[e.errno]
    except ValueError as e:
        return f"MIXED {e}"


def read(how, seed, done, out, *paths):
    how = {"stream": stream, "random": at_random, "mmap": mapped}[how]
    rng = random.Random(int(seed))
    with open(out, "w", encoding="utf-8", buffering=1) as f:
        while not os.path.exists(done):
            line = outcome(how, rng.choice(paths), rng)
            f.write(line + "\n")
            if line.startswith("error"):
                time.sleep(0.01)


def was_a_version(why, rests):
    """Whether what a reader saw of two versions is what stood there while the writer rested."""
    words = why.split("] ")[-1].split()
    if len(words) != 4 or not why.startswith(f"[{words[0]}, {words[1]}]"):
        return False
    old, new, last_new, first_old = map(int, words)
    return any((old, new) == r[:2] and last_new < r[3] and first_old >= r[2] for r in rests)


def judge(states, *outs):
    known, rests = {"-"}, []
    with open(states, encoding="ascii") as f:
        for words in map(str.split, f):
            if len(words) == 1:
                known.add(words[0])
            else:
                rests.append(tuple(map(int, words)))
    wholes = errors = faults = 0
    for out in outs:
        with open(out, encoding="utf-8") as f:
            for line in f.read().splitlines():
                word, rest = line.split(" ", 1)
                mixed = word == "MIXED" and not was_a_version(rest, rests)
                wholes += word in ("whole", "MIXED") and not mixed
                errors += word == "error"
                if mixed or word == "whole" and rest not in known:
                    faults += 1
                    print(f"{os.path.basename(out)}: {line}", file=sys.stderr)
    print(wholes, errors, faults)


if __name__ == "__main__":
    {"write": write, "read": read, "judge": judge}[sys.argv[1]](*sys.argv[2:])
