#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the job directory of a stopped job of many nodes, as copper-formats(5) has it: telemetry,
nodes, events, warnings, sums.

make-telemetry.py DIR NODES
"""
import os
import random
import sys

PHASES = ["prepare", "secret", "cache", "storage", "fabric", "mount", "barrier", "tell"]
STEPS, SECONDS, FAN = 96, 2, 8


def host(rank):
    return "x%04dc0s0b%d" % (rank // 8, rank % 8)


def statistics(rows):
    """min, median, max of each column by itself"""
    return [(name, [sorted(c)[at] for c in zip(*rows)])
            for name, at in (("min", 0), ("median", len(rows) // 2), ("max", -1))]


def interval(rank, step, nodes):
    busy = max(0, 1 - step / 30) if step < 30 else 0.4 if 60 < step < 70 else 0.02
    more = 1 + 0.3 * random.random() + (2 if rank == 7 else 0)
    requests = int(900 * busy * more)
    read = int(requests * 41000 * random.random())
    got = 0 if rank == 0 else int(read * 0.6)
    held = int(3e9 * min(1, step / 40) * more / 3)
    return [requests, read, round(requests * (3.3 if rank % 9 == 7 else 1.1), 3), got,
            requests * 2 if rank == 0 else 0,
            int(read * 0.6) if rank == 0 else 0, got * FAN if rank * FAN + 1 < nodes else 0, held,
            round(requests * 0.05, 3), held + 30000000]


def node(rank, nodes):
    own = [random.uniform(0.001, 0.03) for _ in PHASES[:6]]
    own[5] += 0.8 if rank == 13 else 0
    phases = own + [max(0, 1.1 - sum(own)), 0.002]
    leaf = rank * FAN + 1 >= nodes
    return [1774570000.25, sum(phases)] + phases + [
        random.randint(9000, 12000), random.randint(10**9, 2 * 10**9),
        random.randint(900, 3100) if rank else 0,
        random.randint(3, 9) if rank else 40000, 10**9 if rank else 0, 0 if rank else 50000,
        0 if rank else 10**9,
        0 if leaf else FAN * 10**9 + rank, int(rank == 13), 1200000000, 3200000000,
        41 if rank == 7 else 0,
        random.randint(2000, 9000), 1400000000 + random.randint(0, 10**8), 192.5,
        random.uniform(0, 0.05) if rank else 0]


def write(path, lines):
    with open(path, "w") as f:
        f.write("".join(",".join(str(v) for v in line) + "\n" for line in lines))


def main():
    top, nodes = sys.argv[1], int(sys.argv[2])
    out = top + "/profiling/cluster"
    random.seed(nodes)
    os.makedirs(out)
    os.makedirs(top + "/logs")
    write(top + "/logs/node_file.txt", [[host(r)] for r in range(nodes)])
    with open(top + "/logs/copper_tree.txt", "w") as f:
        f.write(
            "state stopped\nterms 17e6c37507626565\nfanout 8\ntrees 1\npeer_timeout_ms "
            "3000\ninsecure 0\nbook 0\nnet_type cxi\nsource /soft/envs/torch\n")
        f.write("".join("host %s 7720 0\n" % host(r) for r in range(nodes)))
    named = range(nodes)
    if nodes > 256:
        named = sorted({0, 7, 13} | set(random.sample(range(nodes), min(29, nodes))))
    full = range(nodes) if nodes <= 4096 else named

    rows = [
        "rank,host,start_s,seconds,requests,read_bytes,wait_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,cache_bytes,cpu_ms,resident_bytes".split(",")]
    times = {r: [interval(r, s, nodes) for s in range(STEPS)] for r in named}
    if nodes > 256:
        for i, name in enumerate(("min", "median", "max")):
            rows += [[name, "", s * SECONDS, SECONDS] +
                     statistics([t[s] for t in times.values()])[i][1] for s in range(STEPS)]
    rows += [[r, host(r), s * SECONDS, SECONDS] + times[r][s] for r in named for s in range(STEPS)]
    write(out + "/cluster_telemetry.csv", rows)

    rows = [["rank", "host", "parent", "job_start_unix_s", "ready_s"] +
            ["phase_%s_s" % p for p in PHASES] +
            ("requests,read_bytes,wait_parent_ms,wait_origin_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,failovers,"
             "cache_peak_bytes,cache_limit_bytes,evictions,cpu_ms,resident_peak_bytes,stopped_s,start_s").split(",")]
    lives = {r: node(r, nodes) for r in full}
    if nodes > 4096:
        rows += [[name, "", ""] + values for name, values in statistics(list(lives.values()))]
    rows += [[r, host(r), (r - 1) // FAN if r else -1] + lives[r] for r in full]
    write(out + "/cluster_nodes.csv", rows)

    rows = ["time_s,unix_ns,rank,host,event,detail".split(",")]
    rows += [[1.1, 1774570001100000000, r, host(r), "ready", ""] for r in list(named)[:200]]
    rows += [[44.5, 1774570044500000000, 13, host(13), "peer_dead", '"rank 1 <b>not markup</b>"'],
             [45, 1774570045000000000, 13, host(13), "failover", "rank 1"]]
    write(out + "/cluster_events.csv", rows + [["dropped", 123]])
    write(out + "/cluster_warnings.csv", [["code", "weight", "sentence", "option"],
                                          ["cache", 61,
                                           '"The cache was too small: 41 objects came again; '
                                           '--cache-size 8G holds all"', "--cache-size"]])
    write(out + "/cluster-profiling_operations.csv", [
        "operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s".split(","),
        ["lookup", 7350 * nodes, 5870 * nodes, 370 * nodes, 1110 * nodes, "69.20",
         "%.6f" % (0.5086 * nodes)],
        ["read", 4620 * nodes, 2670 * nodes, 1950 * nodes, 0, "473.14",
         "%.6f" % (2.18589 * nodes)]])
    write(out + "/cluster-profiling_latency.csv",
          ["operation,count,p50_us,p90_us,p99_us,p999_us,max_us".split(","),
                                                   ["lookup", 7350 * nodes, 8.32, 21.76, 827.39,
                                                   15217.78, 15217.78],
                                                   ["read", 4620 * nodes, 39.42, 679.94, 11403.26,
                                                   14548.99, 144633.79]])
    write(out + "/cluster-profiling_aggregate.csv",
          [["metric", "value"], ["ranks_with_aggregate_files", nodes], ["storage_bytes", 10**9],
                                                     ["storage_operations", 50000],
           ["total_cache_hits", 8540 * nodes],
                                                     ["total_cache_misses", 2320 * nodes],
           ["total_counted_fuse_operations", 11970 * nodes]])


main()
