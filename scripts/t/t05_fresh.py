#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files whose bytes say which version they are, somebody who changes one, and readers who tell a mixture.

  t05_fresh.py write PATH STATES ROUNDS       changes PATH again and again in every way; adds a line with the sum of each
                                              state to the file STATES before that state can be seen
  t05_fresh.py read HOW SEED DONE OUT PATH…   reads PATHs in turn until the file DONE exists; a line of OUT for each reading:
                                              `whole SUM`, `error NAME` or `MIXED why`; HOW is stream, random or mmap
  t05_fresh.py judge STATES OUT…              prints `wholes errors faults`; explains the faults on standard error

Every 64 bytes carry the version and their number. A version is written under a new time stamp after its last byte, so that a
reader at the source itself could tell it from what was there while it was written.
"""

import errno
import hashlib
import mmap
import os
import random
import sys
import time

BLOCK = 64
SIZE = 20_000_000
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

    def rewrite(self):
        self.version += 1
        self.announce(blocks(self.version, 0, len(self.data) // BLOCK))
        with open(self.path, "r+b", buffering=0) as f:
            for at in range(0, len(self.data), 1 << 16):
                f.write(self.data[at:at + (1 << 16)])
        self.settle()

    def append(self):
        have = len(self.data) // BLOCK
        more = blocks(self.version, have, have + 20000)
        self.announce(self.data + more)
        with open(self.path, "ab", buffering=0) as f:
            f.write(more)
        self.settle()

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


def block_at(data, number, version):
    """The version of a block, if it is well formed, has that number, and is not of another version than before."""
    text = bytes(data).split()
    if len(text) != 3 or int(text[1]) != number:
        raise ValueError(f"block {number} holds {bytes(data)[:30]!r}")
    if version is not None and int(text[0]) != version:
        raise ValueError(f"block {number} is of version {int(text[0])}, others of {version}")
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
    version = None
    for _ in range(100):
        number = rng.randrange(size // BLOCK)
        version = block_at(read(number * BLOCK), number, version)
        time.sleep(rng.choice((0, 0.002)))
    return "-"


def at_random(path, rng):
    with open(path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        if os.pread(f.fileno(), BLOCK, size):
            raise ValueError("bytes past the end")
        return sampled(lambda at: os.pread(f.fileno(), BLOCK, at), size, rng)


def mapped(path, rng):
    """In a process of its own: where a file of another version stands, touching the map ends it with SIGBUS."""
    child = os.fork()
    if child == 0:
        try:
            with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                sampled(lambda at: m[at:at + BLOCK], len(m), rng)
            os._exit(0)
        except OSError as e:
            os._exit(1 if e.errno in STALE else 3)
        except ValueError as e:
            print(e, file=sys.stderr, flush=True)
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise OSError(errno.EIO, f"signal {os.WTERMSIG(status)}")
    if os.WEXITSTATUS(status) == 1:
        raise OSError(errno.ESTALE, "")
    if os.WEXITSTATUS(status):
        raise ValueError(f"a map: exit {os.WEXITSTATUS(status)}")
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


def judge(states, *outs):
    with open(states, encoding="ascii") as f:
        known = set(f.read().split()) | {"-"}
    wholes = errors = faults = 0
    for out in outs:
        with open(out, encoding="utf-8") as f:
            for line in f.read().splitlines():
                word, rest = line.split(" ", 1)
                wholes += word == "whole"
                errors += word == "error"
                if word == "MIXED" or word == "whole" and rest not in known:
                    faults += 1
                    print(f"{os.path.basename(out)}: {line}", file=sys.stderr)
    print(wholes, errors, faults)


if __name__ == "__main__":
    {"write": write, "read": read, "judge": judge}[sys.argv[1]](*sys.argv[2:])
