#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What record.sh and measure.sh saw, in the form that copper-sim reads.

reduce.py trace SOURCE BEGAN ENDED FILE...   traces of a leaf node -> the requests of a program
                                             (times in us of the real-time clock)
reduce.py direct SOURCE STRACE               what a client without Copper asks of the storage
reduce.py rows ROUNDS                        rounds of measure.sh -> medians

A line of a trace, fields separated by one blank, the path last, relative to the source:

    KIND AFTER THINK_US WAITED BYTES SIZE INDEX CALLS RET PATH

KIND is the request (listing, entry, chunk, names, holes, check, statfs), and behind a plus, where
it applies: b, nobody waits for it yet, so it comes last at the storage; f, the first bytes of a
file come with its entry; j, it leaves in the message of the line before, with that one's AFTER and
THINK_US; u, the program uses what an earlier line has asked for, and waits if it is not here yet.
The request leaves THINK_US after the answer to line AFTER (lines count from 0; -1: the start).
WAITED is 1 if the program waits for it, else 0. BYTES is the length of the answer, SIZE the file's
size, INDEX the chunk's, CALLS the system calls of the root for an answer that is no chunk, RET its
status. The last line has the KIND end: AFTER it the program thinks THINK_US and is done. A second
recording of the same program may follow, with bundles; its lines count from 0 again. Lines that
begin with # are comments, but for `# direct OPERATIONS BYTES`: system calls that reach the storage
of a client that keeps what it has seen, and bytes of the files it opens."""
import errno
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
CHUNK = 1 << 20
TOO_LONG = -errno.EMSGSIZE


def calls_of(kind, path):
    """The root's system calls, as internal/storage/origin makes them (of holes: those of a file with one
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


def is_about(flight, op):
    """Whether the program's call needs what this flight brings."""
    kind = flight["args"]["kind"]
    if kind == "listing":
        return flight["path"] in (op["path"], os.path.dirname(op["path"]))
    if op["path"] != flight["path"]:
        return False
    if kind == "chunk":
        return op["name"] == "read" and op["args"]["offset"] // CHUNK == flight["args"]["index"]
    return op["name"] != "read"


def waited(flight, ops):
    """Whether a call of the program ended when this answer came."""
    return any(op["ts"] <= flight["end"] <= op["end"]
               and flight["path"] in (op["path"], os.path.dirname(op["path"])) for op in ops)


def flights_of(events, ended):
    """The program's flights with the time at which their request left (None: it never did). A flight
    is reported when it ends, just after the answer to its request."""
    answers, flights = {}, []
    for e in sorted(events, key=lambda e: e["id"]):
        key = e["tid"], e["path"]
        if e["name"] == "wire":
            answers.setdefault(key, []).append(e)
        elif e["name"] == "flight" and "thread" in e["args"]:
            a = e["args"]
            mine = [w for w in answers.get(key, ()) if w["ts"] >= e["ts"] - 2
                    and (w["args"]["ret"] != TOO_LONG or a["kind"] in ("listing", "names"))]
            answers[key] = [w for w in answers.get(key, ()) if w not in mine]
            e["left"] = mine[0]["ts"] if mine else None
            e["first"] = a["kind"] == "entry" and any(
                w["args"]["image_size"] != a["image_size"] for w in mine)
            if e["ts"] <= ended:
                flights.append(e)
    return flights


def messages_of(flights):
    """The flights in their messages, in the order in which these left: requests that leave in one
    message leave at the same time."""
    messages = {}
    for f in flights:
        if f["left"] is not None:
            messages.setdefault(f["left"], []).append(f)
    for message in messages.values():
        message.sort(key=lambda f: (f["args"]["background"], f["ts"], f["id"]))
    return [messages[left] for left in sorted(messages)]


class Step:
    """One line of the recording: from begin to end, which is when its answer came."""

    def __init__(self, flight, flags, begin, order, waited=False, after=None):
        self.flight, self.flags, self.waited, self.after = flight, flags, waited, after
        self.begin = begin
        self.end = max(begin, flight["end"]) if flight else begin
        self.order = begin, order
        self.number = None


def requests_of(flights, ops, began):
    for message, members in enumerate(messages_of(flights)):
        begin = max(min(f["ts"] for f in members), began)
        for n, f in enumerate(members):
            flags = "b" * f["args"]["background"] + "f" * f["first"] + "j" * (n > 0)
            yield Step(f, flags, begin, (message, n),
                       not f["args"]["background"] and f["end"] > began and waited(f, ops))


def came_with_entries(flights, requests):
    """The bytes of files whose entries brought them: no request of theirs ever left."""
    entries = {r.flight["path"]: r for r in requests if "f" in r.flags}
    for f in flights:
        if f["left"] is None and f["path"] in entries:
            entry = entries[f["path"]]
            yield Step(f, "b", entry.end, (len(flights), 0), after=entry)


def uses_of(steps, ops):
    """When the program came to what it had not waited for."""
    for s in steps:
        uses = [op["ts"] for op in ops if op["end"] > s.begin and is_about(s.flight, op)]
        if uses and not s.waited:
            yield Step(s.flight, "u", max(min(uses), s.begin), (len(steps), 0), waited=True)


def steps_of(flights, ops, began, ended):
    steps = list(requests_of(flights, ops, began))
    steps += came_with_entries(flights, steps)
    steps += uses_of(steps, ops)
    steps.sort(key=lambda s: s.order)
    steps.append(Step(None, "", ended, (0, 0), waited=True))
    for number, s in enumerate(steps):
        s.number = number
    return steps


def what_precedes(step, steps, began):
    """The last answer that the program had by then, and how long after it this begins."""
    if step.after:
        return step.after.number, 0
    earlier = [(s.end, s.number) for s in steps[:step.number] if s.waited and s.end <= step.begin]
    end, number = max(earlier, default=(began, -1))
    return number, step.begin - end


def trace(source, began, ended, files):
    events = events_of(files)
    ops = [e for e in events if e["cat"] == "POSIX" and e["path"]]
    steps = steps_of(flights_of(events, ended), ops, began, ended)
    for s in steps:
        if "j" not in s.flags: # a message leaves at once
            after, think = what_precedes(s, steps, began)
        if not s.flight:
            print(f"end {after} {think} 1 0 0 0 0 0 -")
            continue
        a, path = s.flight["args"], s.flight["path"]
        kind = a["kind"] + ("+" + s.flags if s.flags else "")
        size = os.stat(path).st_size if a["kind"] == "chunk" else 0
        calls = 0 if a["kind"] == "chunk" else calls_of(a["kind"], path)
        relative = "." if path == source else os.path.relpath(path, source)
        print(f"{kind} {after} {think} {int(s.waited)} {a['image_size']} {size} {a['index']} {calls} "
              f"{a['ret']} {relative}")


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
        for line in f:
            if not line.startswith("#"):
                keys = line.strip().split(",")
                break
            print(line.strip())
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
