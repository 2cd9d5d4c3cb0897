# SPDX-License-Identifier: BSD-3-Clause
"""What stands in the traces below a directory, for t086*.sh.

marks.py count DIR     files, and NAME:PHASE N for each, in one line
marks.py nest DIR      nothing, or where begin and end do not match
marks.py list DIR      name, category, phase, scope and id of each event, in the order of the files
"""
import collections
import json
import os
import sys


def files(top):
    for at, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            path = os.path.join(at, name)
            with open(path, encoding="utf-8") as f:
                content = json.load(f)
            yield path, content["traceEvents"] if isinstance(content, dict) else content


def count(top):
    n, kinds = 0, collections.Counter()
    for _, events in files(top):
        n += 1
        kinds.update("%s:%s" % (e["name"], e["ph"]) for e in events)
    return " ".join(["%d files" % n] + ["%s %d" % k for k in sorted(kinds.items())])


def faults(top):
    for path, events in files(top):
        open_ = collections.defaultdict(list)
        last = collections.defaultdict(float)
        for e in events:
            who = e["pid"], e["tid"]
            if e["ph"] in "BE":
                if e["ts"] < last[who]:
                    yield "%s: not in order: %s" % (path, e)
                last[who] = e["ts"]
            if e["ph"] == "B":
                open_[who].append(e["name"])
            elif e["ph"] == "E" and (not open_[who] or open_[who].pop() != e["name"]):
                yield "%s: ends what did not begin: %s" % (path, e)
        for who, names in open_.items():
            if names:
                yield "%s: not ended: %s %s" % (path, who, names)


def listed(top):
    for _, events in files(top):
        for e in events:
            yield " ".join(str(e.get(k, "-")) for k in ("name", "cat", "ph", "scope", "id"))


def main():
    verb, top = sys.argv[1:]
    if verb == "count":
        print(count(top))
    else:
        for line in {"nest": faults, "list": listed}[verb](top):
            print(line)


main()
