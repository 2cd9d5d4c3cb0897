#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two outputs of `copper cache-stats --json` of one node.

  t05_stats.py requests BEFORE AFTER   FUSE requests in between, other than IOCTL and FORGET: one
                                       number
  t05_stats.py firm BEFORE AFTER       the same without lists and links, which nothing makes the
                                       kernel keep
  t05_stats.py names BEFORE AFTER      the same by opcode, those that are not 0
  t05_stats.py group NAME BEFORE AFTER what grew in one group of counters, as in group enoent a b
  t05_stats.py delta KEY BEFORE AFTER  by how much one value grew, as in delta fabric.requests_sent
  a b
"""

import json
import sys

# Counters of the group that are not requests, or that no cache can reduce.
NOT_COUNTED = {"ioctl", "forget", "negative", "errors", "read_bytes"}


def load(name):
    with open(name, encoding="utf-8") as f:
        return json.load(f)


def value(node, key):
    for part in key.split("."):
        node = node[part]
    return node


def grew(group, before, after):
    return {name: after[group][name] - count for name, count in before[group].items()}


def requests(before, after):
    return {name: n for name, n in grew("fuse", before, after).items() if name not in NOT_COUNTED}


def words(counts):
    return " ".join(f"{name}={n}" for name, n in counts.items() if n) or "nothing"


def main():
    word, *rest = sys.argv[1:]
    before, after = (load(name) for name in rest[-2:])
    if word == "requests":
        print(sum(requests(before, after).values()))
    elif word == "firm":
        print(sum(n for name, n in requests(before, after).items()
                  if name not in ("readdir", "readlink")))
    elif word == "names":
        print(words(requests(before, after)))
    elif word == "group":
        print(words(grew(rest[0], before, after)))
    elif word == "delta":
        print(value(after, rest[0]) - value(before, rest[0]))
    else:
        sys.exit(__doc__)


main()
