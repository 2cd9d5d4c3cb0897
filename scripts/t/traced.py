# SPDX-License-Identifier: BSD-3-Clause
"""Holds what strace saw of programs against what a node with -A saw of them.

    traced.py SOURCE TOP TABLE TRACE...

SOURCE: the tree at the storage; TOP: where the programs found it; TABLE: the node's cache events;
TRACE: output of `strace -f -e trace=%file`. Prints what only one of the two saw (at most five names
of each kind, below SOURCE), and how many existing and absent names strace saw. A name stands for
all that the kernel looks up on the way: parents, links, and what they point to."""
import os
import re
import sys

source, top, table, *traces = sys.argv[1:]
CALL = re.compile(r'^\d+ +\w+\((?:AT_FDCWD(?:<[^>]*>)?, )?"((?:[^"\\]|\\.)*)"')


def of_node():
    seen, absent, path = set(), set(), None
    for line in open(table, errors="surrogateescape"):
        if line.startswith("/"):
            path = line[: line.rindex(" {")]
            seen.add(path)
        elif line.startswith("neg:") and int(line.split()[1]):
            absent.add(path)
    return seen, absent


def is_of_source(path):
    return path == source or path.startswith(source + "/")


def looked_up(name, wanted):
    parts, at = os.path.normpath(name).strip("/").split("/"), ""
    for i, part in enumerate(parts):
        at += "/" + part
        if is_of_source(at):
            wanted.add(at)
        if os.path.islink(at):
            target = os.path.normpath(os.path.join(os.path.dirname(at), os.readlink(at)))
            # A link that leads out of a mount elsewhere does not come back to it.
            if top == source or is_of_source(target) or not is_of_source(at):
                looked_up(os.path.join(target, *parts[i + 1 :]), wanted)
            return
        if not os.path.lexists(at):
            return


def of_programs():
    wanted = set()
    for trace in traces:
        for line in open(trace, errors="surrogateescape"):
            m = CALL.match(line)
            if m and (m.group(1) == top or m.group(1).startswith(top + "/")):
                looked_up(source + m.group(1)[len(top) :], wanted)
    return wanted


def show(what, paths):
    print(f"{what}:", " ".join(sorted(p[len(source) :] for p in paths)[:5]))


seen, absent = of_node()
wanted = of_programs()
gone = {p for p in wanted if not os.path.lexists(p)}
# A process that checks whether a node is alive looks at the top itself.
show("existing-not-seen", wanted - gone - seen - {source})
show("absent-not-seen", gone - absent)
show("seen-not-by-strace", seen - wanted - {source})
print("counted", len(wanted - gone), len(gone))
