#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Copper 1.0's summarize_cache_usage.py METRICS_ROOT [--csv FILE]: copper cache-stats --from, as
the table that 1.0 printed."""
import argparse
import csv
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import copper1  # noqa: E402

NAMES = ("data", "tree", "metadata", "combined")
HEADS = ("Table", "Files Found", "Used Bytes", "Used Human", "Entries")


def table(rows):
    """The rows of the CSV file as Markdown."""
    cells = [HEADS] + [(r["table"], "-" if r["table"] == "combined" else r["files_found"],
                        r["used_bytes"], r["used_human"], r["entries"])
                       for r in rows if r["table"] in NAMES]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEADS))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
             for row in cells]
    lines.insert(1, "| " + " | ".join("-" * (w - 1) + (":" if i else "-")
                                      for i, w in enumerate(widths)) + " |")
    return "\n".join(lines)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("metrics_root")
parser.add_argument("--csv", metavar="FILE", help="the table for spreadsheets")
a = parser.parse_args()
made = tempfile.mkdtemp()
try:
    status, _ = copper1.ask(["cache-stats", "--from", a.metrics_root, "--output-dir", made])
    if status:
        sys.exit(status)
    source = os.path.join(made, "cache_usage_summary.csv")
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    print("cache usage summary root: %s\n\n%s" % (os.path.realpath(a.metrics_root), table(rows)))
    if a.csv:
        shutil.copyfile(source, a.csv)
        print("wrote csv summary: " + a.csv, file=sys.stderr)
finally:
    shutil.rmtree(made)
