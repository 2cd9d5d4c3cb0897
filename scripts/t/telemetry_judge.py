#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What t1800 expects of the telemetry of a job: telemetry_judge.py DIR WHAT [ARGUMENT...]"""
import collections
import csv
import os
import sys
import time

where, what, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]


def rows(name):
    with open(os.path.join(where, name), newline="", errors="surrogateescape") as f:
        return list(csv.DictReader(f))


nodes = {int(r["rank"]): r for r in rows("cluster_nodes.csv")}
intervals = collections.defaultdict(list)
for r in rows("cluster_telemetry.csv"):
    intervals[int(r["rank"])].append(r)
happened = rows("cluster_events.csv")
SUMS = "requests read_bytes parent_bytes origin_operations origin_bytes sent_bytes cpu_ms".split()


def total(column, rank):
    return sum(int(r[column]) for r in intervals[rank])


def parents():
    return " ".join("%d:%s" % (r, nodes[r]["parent"]) for r in sorted(nodes))


def ranks():
    assert sorted(nodes) == sorted(intervals)
    return " ".join(map(str, sorted(nodes)))


def grid():
    for rank, its in intervals.items():
        lengths = {int(r["seconds"]) for r in its}
        length = lengths.pop()
        if lengths or length & (length - 1) or not 0 < len(its) <= 128:
            return "node %d: %d intervals" % (rank, len(its))
        if [int(r["start_s"]) for r in its] != list(range(0, len(its) * length, length)):
            return "node %d: begins" % rank
        if len(its) * length < float(nodes[rank]["stopped_s"]) - 1:
            return "node %d: ends" % rank
        if {r["host"] for r in its} != {nodes[rank]["host"]}:
            return "node %d: host" % rank
    return "good"


def adds_up():
    for rank, n in nodes.items():
        for c in SUMS:
            if total(c, rank) != int(n[c]):
                return "%d %s: %d %s" % (rank, c, total(c, rank), n[c])
        if not 0 <= total("wait_ms",
                          rank) - int(n["wait_parent_ms"]) - int(n["wait_origin_ms"]) <= 1:
            return "%d wait" % rank
        if max(int(r["cache_bytes"]) for r in intervals[rank]) != int(n["cache_peak_bytes"]):
            return "%d cache" % rank
    return "good"


def fabric():
    return {r["metric"]: int(r["value"]) for r in rows("cluster-profiling_fabric.csv")}


def totals():
    """Arguments: bytes read and requests of all nodes just before the stop."""
    f = fabric()
    want = {
        "read_bytes": int(arguments[0]),
        "origin_operations": f["origin_operations"],
        "origin_bytes": f["origin_bytes"],
        "failovers": f["fabric_failovers"],
    }
    for c in want:
        got = sum(int(n[c]) for n in nodes.values())
        if got != want[c]:
            return "%s: %d, not %d" % (c, got, want[c])
    # Unmounting may take a request, and stopping takes messages while it is counted.
    got = sum(int(n["requests"]) for n in nodes.values())
    if not 0 <= got - int(arguments[1]) <= 4 * len(nodes):
        return "requests: %d, not %s" % (got, arguments[1])
    got = sum(int(n["parent_bytes"]) for n in nodes.values())
    return "good" if 0 < got and abs(got - f["fabric_bytes_in"]) < 20000 else "bytes %d" % got


def phases():
    for rank, n in nodes.items():
        took = sum(float(v) for k, v in n.items() if k.startswith("phase_"))
        ready = float(n["ready_s"]) - float(n["start_s"])
        if abs(took - ready) > 0.0001 or took <= 0:
            return "%d: %f, not %f" % (rank, took, ready)
        if not float(n["phase_barrier_s"]) + float(n["phase_mount_s"]) > 0:
            return "%d: mount" % rank
    return "good"


def waits():
    for rank, n in nodes.items():
        root = n["parent"] == "-1"
        if int(n["wait_origin_ms" if root else "wait_parent_ms"]) <= 0 and rank < 2:
            return "%d did not wait" % rank
        if not root and (int(n["wait_origin_ms"]) or int(n["origin_operations"])):
            return "%d read the storage" % rank
        if root and int(n["wait_parent_ms"]):
            return "the root waited for a parent"
    return "good"


def middle(rank, column):
    """The second around which most of it was."""
    return max(intervals[rank], key=lambda r: int(r[column]))


def when():
    early, late = (float(middle(r, "read_bytes")["start_s"]) for r in (1, 3))
    return "good" if early < late else "%f %f" % (early, late)


def order():
    times = [float(e["time_s"]) for e in happened if e["time_s"] != "dropped"]
    return "good" if times == sorted(times) else "not in order"


def clock():
    began = {n["job_start_unix_s"] for n in nodes.values()}
    if len(began) != 1:
        return "several starts"
    began = float(began.pop())
    for e in happened:
        if abs(int(e["unix_ns"]) / 1e9 - began - float(e["time_s"])) > 0.001:
            return "unix_ns of %s" % e
    end = max(float(n["stopped_s"]) for n in nodes.values())
    if not 0 <= time.time() - began - end < 3600:
        return "began at %f, ended after %f" % (began, end)
    return "good"


def events():
    for e in happened:
        if not arguments or e["event"] in arguments:
            print(("%s %s %s" % (e["rank"], e["event"], e["detail"])).rstrip())


def sum_of():
    return sum(int(n[arguments[0]]) for n in nodes.values())


def value():
    return nodes[int(arguments[0])][arguments[1]]


functions = {f.__name__: f
             for f in (parents, ranks, grid, adds_up, totals, phases, waits, when, order, clock,
                       events, value)}
functions["sum"] = sum_of
answer = functions[what]()
if answer is not None:
    print(answer)
