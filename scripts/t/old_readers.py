#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts of Copper 1.0 take from a job directory, by its documentation: they know nothing of
what we add.

  old_readers.py observed FOLDER   paths: of each *.output in FOLDER itself, the lines that begin
                                   with a slash, cut at " {"
  old_readers.py missing FOLDER    those of them that are not on the disk
  old_readers.py usage FOLDER      "data FILES BYTES ENTRIES", tree and metadata: of every file
                                   below FOLDER that is one of the three, or ends in it behind a
                                   dash, the totals
  old_readers.py sums JOBDIR       "metric NAME SUM" and "operation NAME CALLS HITS MISSES NEGATIVE
                                   SECONDS" over the final files of ranks,
                                   HOST-PID-profiling_KIND.csv with no dash in HOST
  old_readers.py summary FILE      headings of a summary for people, and "OPERATION CALLS HITS
                                   MISSES NEGATIVE" by position
"""
import csv
import os
import re
import sys


def tables(folder):
    return sorted(e.path for e in os.scandir(folder) if e.name.endswith(".output"))


def observed(folder):
    paths = set()
    for name in tables(folder):
        with open(name, errors="ignore") as f:
            paths |= {line.rstrip("\n").partition(" {")[0] for line in f if line[0] == "/"}
    return paths


def usage(folder):
    kinds = {"data": "data_cache_size.output", "tree": "tree_cache_size.output",
             "metadata": "md_cache_size.output"}
    for kind, wanted in kinds.items():
        files = size = entries = 0
        for where, _, names in os.walk(folder):
            for name in names:
                if name != wanted and not name.endswith("-" + wanted):
                    continue
                with open(os.path.join(where, name), errors="ignore") as f:
                    text = f.read()
                size += int(re.search(r"^Total bytes:\s*(\d+)\s*$", text, re.M).group(1))
                entries += int(re.search(r"^total number of (?:files|entries):\s*(\d+)\s*$", text,
                                         re.M).group(1))
                files += 1
        print(kind, files, size, entries)


def rank_files(job, kind):
    pattern = re.compile(r"[^-]+-\d+-profiling_%s\.csv" % kind)
    folder = os.path.join(job, "profiling", "final")
    return [os.path.join(folder, name) for name in os.listdir(folder) if pattern.fullmatch(name)]


def sums(job):
    metrics, operations = {}, {}
    for name in rank_files(job, "aggregate"):
        for row in csv.DictReader(open(name, newline="")):
            try:
                metrics[row["metric"]] = metrics.get(row["metric"], 0) + float(row["value"])
            except ValueError:
                pass  # a description
    columns = ("total_calls", "cache_hits", "cache_misses", "negative_results", "total_latency_s")
    for name in rank_files(job, "operations"):
        for row in csv.DictReader(open(name, newline="")):
            total = operations.setdefault(row["operation"], [0.0] * len(columns))
            for i, column in enumerate(columns):
                total[i] += float(row[column])
    print("ranks", len(rank_files(job, "aggregate")))
    for name in sorted(metrics):
        print("metric", name, "%.6f" % metrics[name])
    for name in sorted(operations):
        print("operation", name, *("%d" % n for n in operations[name][:4]),
              "%.6f" % operations[name][4])


def summary(name):
    rows = False
    for line in open(name):
        cells = [cell.strip(" `\n") for cell in line.split("|")[1:-1]]
        if line.startswith("#"):
            print(line.strip())
            rows = "Operation" in line
        elif rows and len(cells) >= 7 and cells[1].isdigit():
            print(*cells[:5])
        elif rows and cells and cells[0] == "Operation":
            print(",".join(cells[:7]))


if __name__ == "__main__":
    what, where = sys.argv[1:]
    if what in ("observed", "missing"):
        found = observed(where)
        if what == "missing":
            found = {path for path in found if not os.path.exists(path)}
        print(*sorted(found), sep="\n")
    else:
        {"usage": usage, "sums": sums, "summary": summary}[what](where)
