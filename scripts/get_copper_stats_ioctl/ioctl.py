#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Copper 1.0's ioctl.py CODE, without an ioctl: the numbers and names by which job scripts ask a
mount for its counters, answered by copper cache-stats. Its files are written into OUTPUT_DIR, or
the folder that SPEC_DEV_DIR names; the mount is VIEW_DIR, or the only one here.

    ioctl.py CODE [OUTPUT_DIR]
"""
import csv
import json
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import copper1  # noqa: E402

# CODE: (name, the file that it writes)
LOGS = {
    300: ("IOCTL_LOG_OPERATION", "operation_count.output"),
    400: ("IOCTL_LOG_OPERATION_TIME", "operation_time.output"),
    500: ("IOCTL_LOG_OPERATION_CACHE_HIT", "operation_cache_hit.output"),
    600: ("IOCTL_LOG_OPERATION_CACHE_MISS", "operation_cache_miss.output"),
    1700: ("IOCTL_LOG_OPERATION_CACHE_NEG", "operation_cache_neg.output"),
    1100: ("IOCTL_LOG_DATA_CACHE_EVENT", "data_table_cache_event.output"),
    1200: ("IOCTL_LOG_TREE_CACHE_EVENT", "tree_table_cache_event.output"),
    1300: ("IOCTL_LOG_MD_CACHE_EVENT", "md_table_cache_event.output"),
    2300: ("IOCTL_GET_DATA_CACHE_SIZE", "data_cache_size.output"),
    2400: ("IOCTL_GET_TREE_CACHE_SIZE", "tree_cache_size.output"),
    2500: ("IOCTL_GET_MD_CACHE_SIZE", "md_cache_size.output"),
}
ALL, RESET, CLEAR_CACHE = 2000, 1900, 100
CODES = {name: code for code, (name, _) in LOGS.items()}
CODES.update({"IOCTL_LOG_ALL_METRICS": ALL, "IOCTL_RESET_FS": RESET,
              "IOCTL_CLEAR_CACHE_TABLES": CLEAR_CACHE})
# Operations in the order of 1.0's files: title, column of profiling_operations.csv, what follows a
# number and what separates two.
OPERATION_FILES = {
    "operation_count.output": ("operation", "total_calls", "", ","),
    "operation_time.output": ("operation_timer", "total_latency_s", " ms", ","),
    "operation_cache_hit.output": ("operation_cache_hit", "cache_hits", "", ""),
    "operation_cache_miss.output": ("operation_cache_miss", "cache_misses", "", ""),
    "operation_cache_neg.output": ("operation_cache_neg", "negative_results", "", ""),
}
OPERATIONS = """getattr readlink mknod mkdir unlink rmdir symlink rename link chmod chown truncate
open read write statfs flush release fsync setxattr getxattr listxattr removexattr opendir readdir
releasedir fsyncdir init destroy access create lock utimens bmap ioctl poll write_buf read_buf
flock fallocate copy_file_range lseek""".split()
COUNTERS = """lookup forget getattr readlink open read release opendir readdir releasedir statfs
access ioctl lseek getxattr listxattr""".split()


def die(text):
    sys.exit("ioctl.py: " + text)


def mount_point():
    """As a list of arguments."""
    view = os.environ.get("VIEW_DIR")
    if view:
        return [view]
    at = os.environ.get("SPEC_DEV_VIEW", "/")
    while at != "/" and not os.path.ismount(at):
        at = os.path.dirname(at)
    return [at] if at != "/" else []


class Node:
    """The node here, asked at most once for each thing. None: it does not have it."""

    def __init__(self):
        self.mount = mount_point()
        self.made = tempfile.mkdtemp()
        self.known = {}

    def once(self, what):
        if what not in self.known:
            self.known[what] = getattr(self, "ask_" + what)()
        return self.known[what]

    def ask_sizes(self):
        status, _ = copper1.ask(["cache-stats", "--output-dir", self.made] + self.mount)
        return None if status else self.made

    def ask_status(self):
        status, text = copper1.ask(["cache-stats", "--json"] + self.mount)
        return None if status else json.loads(text)

    def ask_snapshot(self):
        """The reports of this moment: a format of their paths."""
        node = self.once("status")
        with open(os.devnull, "w") as nowhere:
            status, text = copper1.ask(["cache-stats", "--snapshot", "--local"] +
                                       self.mount, nowhere)
        where = re.search(r" written to (.*)/profiling/ioctl-snapshot$", text, re.M)
        if status or not node or not where:
            return None
        return where.group(1) + "/%s/ioctl-snapshot/" + "%s-%d-ioctl-snapshot-" % (node["host"],
            node["pid"]) + "%s"

    def ask_operations(self):
        """Rows of profiling_operations.csv; without a profile the counts alone."""
        paths = self.once("snapshot")
        if paths:
            with open(paths % ("profiling", "profiling_operations.csv"), newline="") as file:
                return {row["operation"]: row for row in csv.DictReader(file)}
        node = self.once("status")
        return node and {name: {"total_calls": node["fuse"][name]} for name in COUNTERS}


def operations_text(rows, name):
    title, column, unit, comma = OPERATION_FILES[name]
    if rows is None or any(column not in row for row in rows.values()):
        return None
    lines = []
    for op in OPERATIONS + [op for op in rows if op not in OPERATIONS]:
        value = rows.get(op, {}).get(column, 0)
        lines.append("%s: %d%s" % (op, float(value) * 1000 if unit else int(value), unit))
    return "%s {\n%s\n}\n" % (title, (comma + "\n").join(lines))


def write(node, name, out):
    """One file; false where the node cannot tell."""
    source = None
    if name in OPERATION_FILES:
        text = operations_text(node.once("operations"), name)
        if text is None:
            return False
        source = os.path.join(node.made, name)
        with open(source, "w") as file:
            file.write(text)
    elif name.endswith("_cache_size.output"):
        source = node.once("sizes") and os.path.join(node.made, name)
    elif node.once("snapshot"):
        source = node.once("snapshot") % ("tables", name)
    if not source or not os.path.exists(source):
        return False
    shutil.copyfile(source, os.path.join(out, name))
    print("wrote " + os.path.join(out, name))
    return True


def log(names, out):
    """Exit status: 0 when something was read."""
    node = Node()
    try:
        missing = [name for name in names if not write(node, name, out)]
    finally:
        shutil.rmtree(node.made)
    if missing:
        print(
            "ioctl.py: not read: %s: without a node here nothing is, operations need one that was "
            "started with -P (copper mount, "
              "launch_copper_*.sh), events of paths one with -A" % ", ".join(missing),
              file=sys.stderr)
    return 1 if len(missing) == len(names) else 0


def reset():
    status = copper1.run(["cache-stats", "--reset"] + mount_point())
    if status == 0:
        print(
            "the caches keep what they hold; copper cache-stats --invalidate %s makes every node "
            "forget it" % " ".join(mount_point()))
    return status


def main():
    if len(sys.argv) not in (2, 3):
        die("usage: ioctl.py CODE [OUTPUT_DIR]")
    word = sys.argv[1]
    code = int(word) if word.isdigit() else CODES.get(word)
    if code == RESET:
        return reset()
    if code == CLEAR_CACHE:
        die("caches are not cleared by an ioctl any more: copper cache-stats --invalidate "
            "MOUNTPOINT makes every node forget what it holds")
    if code != ALL and code not in LOGS:
        die("%s: this is not read, and single counters are not cleared; copper cache-stats "
            "--reset MOUNTPOINT (code %d) sets all of them to zero, "
            "copper cache-stats --json MOUNTPOINT shows them" % (word, RESET))
    out = sys.argv[2] if len(sys.argv) == 3 else os.environ.get("SPEC_DEV_DIR")
    if not out:
        die("where to? give OUTPUT_DIR, or set SPEC_DEV_DIR")
    os.makedirs(out, exist_ok=True)
    names = [name for _, name in LOGS.values()] + ["md_ttl_cache_event.output"]
    return log(names if code == ALL else [LOGS[code][1]], out)


if __name__ == "__main__":
    sys.exit(main())
