#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What record.sh and measure.sh saw, in the form that copper-sim reads.

reduce.py trace SOURCE BEGAN ENDED FILE...   traces of a leaf node -> the requests of a program
                                             (times in us of the real-time clock)
reduce.py direct SOURCE STRACE               what a client without Copper asks of the storage
reduce.py rows ROUNDS                        rounds of measure.sh -> medians

A line of a trace, fields separated by one blank, the path last, relative to the source:

    KIND AFTER THINK_US WAITED BYTES SIZE INDEX CALLS RET PATH

KIND is the request (listing, entry, chunk, names, holes, check, statfs). The request leaves
THINK_US after the answer to line AFTER (lines count from 0; -1: the start). WAITED is 1 if the
program waits for it, 0 if it is read ahead. BYTES is the length of the answer, SIZE the file's
size, INDEX the chunk's, CALLS the system calls of the root for an answer that is no chunk, RET its
status. The last line has the KIND end: AFTER it the program thinks THINK_US and is done. Lines that
begin with # are comments, but for `# direct OPERATIONS BYTES`: system calls that reach the storage
of a client that keeps what it has seen, and bytes of the files it opens; `# small MODE UID GID SIZE
PATH`: a small file in a listed directory, of a kind that the program reads there, which may come
beside another."""
import gzip
import json
import os
import re
import stat
import statistics
import sys


def events_of(files):
    names, events = {}, []
    for file in files:
        with (gzip.open if file.endswith(".gz") else open)(file, "rt",
                errors="surrogateescape") as f:
            for line in f:
                line = line.strip().rstrip(",")
                if not line.startswith("{"):
                    continue
                e = json.loads(line)
                if e["name"] == "FH":
                    names[e["args"]["value"]] = e["args"]["name"]
                elif e["ph"] == "X":
                    events.append(e)
    for e in events:
        e["path"] = names.get(e["args"].get("fhash"), "")
        e["end"] = e["ts"] + e["dur"]
    return events


LISTING_ATTRS = 64


def calls_of(kind, path):
    """The root's system calls, as internal/origin makes them (of holes: those of a file with one
    extent)."""
    try:
        if kind == "entry":
            return 2 + stat.S_ISLNK(os.lstat(path).st_mode)
        if kind == "statfs":
            return 1
        if kind in ("listing", "names"):
            children = list(os.scandir(path))
            bytes_ = sum((19 + len(os.fsencode(c.name)) + 1 + 7) // 8 * 8 for c in children) + 48
            calls = 4 + (bytes_ + 65535) // 65536
            if kind == "listing" and len(children) <= LISTING_ATTRS:
                calls += len(children) + sum(c.is_symlink() for c in children)
            return calls
    except OSError:
        return 1
    return 4 if kind == "holes" else 2


def waited(flight, ops):
    """Whether a call of the program ended when this answer came."""
    for op in ops:
        if not op["ts"] <= flight["end"] <= op["end"]:
            continue
        if op["path"] == flight["path"] or os.path.dirname(op["path"]) == flight["path"]:
            return True
    return False


# As in internal/bundle: files that may come beside others, and directories that are small enough
# for it.
SMALL_BYTES, SMALL_NAMES = 256 << 10, 1024


def kind_of(path):
    name = os.path.basename(path)
    dot = name.rfind(".")
    s = os.lstat(path)
    small = (stat.S_ISREG(s.st_mode) and 0 < s.st_size <= SMALL_BYTES and s.st_blocks > 0
             and 0 < dot < len(name) - 1)
    return (os.path.dirname(path), name[dot + 1:], s.st_mode, s.st_uid, s.st_gid) if small else None


def small_files(source, flights):
    """Those beside the small files that the program read, and these themselves."""
    read = {kind_of(f["path"]) for f in flights if f["args"]["kind"] == "chunk"
            and f["args"]["ret"] == 0} - {None}
    for directory in sorted({k[0] for k in read}):
        names = sorted(os.listdir(directory))
        if len(names) > SMALL_NAMES:
            continue
        for path in (os.path.join(directory, name) for name in names):
            if kind_of(path) in read:
                s = os.lstat(path)
                print(
                    f"# small {s.st_mode & 0o7777:o} {s.st_uid} {s.st_gid} {s.st_size} "
                    f"{os.path.relpath(path, source)}")


def trace(source, began, ended, files):
    events = events_of(files)
    ops = [e for e in events if e["cat"] == "POSIX" and e["dur"] > 0]
    flights = [e for e in events if e["name"] == "flight" and "thread" in e["args"]
               and e["ts"] <= ended]
    flights.sort(key=lambda e: (e["ts"], e["id"]))
    for f in flights:
        f["waited"] = f["ts"] >= began and waited(f, ops)

    def line(number, f, begin):
        before = [(g["end"], i) for i, g in enumerate(flights[:number]) if g["waited"]
                  and g["end"] <= begin]
        end, after = max(before, default=(began, -1))
        think = begin - end
        if f is None:
            return f"end {after} {think} 1 0 0 0 0 0 -"
        a = f["args"]
        kind, path = a["kind"], f["path"]
        size = os.stat(path).st_size if kind == "chunk" else 0
        calls = 0 if kind == "chunk" else calls_of(kind, path)
        relative = "." if path == source else os.path.relpath(path, source)
        return f"{kind} {after} {think} {int(f['waited'])} {a['image_size']} {size} {a['index']} {calls} {a['ret']} {relative}"

    small_files(source, flights)
    for number, f in enumerate(flights):
        print(line(number, f, max(f["ts"], began)))
    print(line(len(flights), None, ended))


CALL = re.compile(r'^\d+ +(\w+)\((?:AT_FDCWD<[^>]*>, |\d+<([^>]*)>, )?"([^"]*)"')
LIST = re.compile(r"^\d+ +getdents64\(\d+<([^>]*)>")


def direct(source, file):
    """A name costs one operation, however it is asked for; opening a file or a directory another
    one, as do its reads: a file's bytes come in one operation for each 4 MiB, a directory in one.
    """
    names, opened, listed = set(), set(), set()
    with open(file, errors="surrogateescape") as f:
        for line in f:
            if m := LIST.match(line):
                listed.add(m[1])
            m = CALL.match(line)
            if not m:
                continue
            path = os.path.normpath(os.path.join(m[2] or "/", m[3]))
            if not path.startswith(source + "/"):
                continue
            names.add(path)
            if m[1] in ("open", "openat", "execve") and "ENOENT" not in line:
                opened.add(os.path.realpath(path))
    sizes = [os.path.getsize(p) for p in opened if os.path.isfile(p)]
    operations = len(names) + len(opened) + len(listed) + sum(1 + s // (4 << 20) for s in sizes)
    print(f"# direct {operations} {sum(sizes)}")


def rows(file):
    rounds = {}
    with open(file) as f:
        print(next(f).strip())
        keys = next(f).strip().split(",")
        for line in f:
            values = line.strip().split(",")[:len(keys)]
            rounds.setdefault(tuple(values[:4]), []).append([float(v) for v in values[4:]])
    print(",".join(keys))
    for key, values in rounds.items():
        print(",".join([*key,
                        *(f"{statistics.median(column):g}" if "." in str(statistics.median(column))
                          and i < 2
                                else f"{statistics.median(column):.0f}"
                          for i, column in enumerate(zip(*values)))]))


def main():
    what, *args = sys.argv[1:]
    if what == "trace":
        trace(args[0], int(args[1]), int(args[2]), args[3:])
    elif what == "direct":
        direct(args[0], args[1])
    else:
        rows(args[0])


main()
