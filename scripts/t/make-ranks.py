#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make-ranks.py DIR RANKS [PATHS]: the files that RANKS nodes of a job leave in DIR, each with
PATHS top paths."""
import os
import sys

where, ranks = sys.argv[1], int(sys.argv[2])
paths = int(sys.argv[3]) if len(sys.argv) > 3 else 80
operations = ["getattr", "ioctl", "lookup", "open", "read", "readdir", "readlink", "release"]
places = ["/soft/envs/conda_env/lib/python3.11/site-packages/torch/lib/libtorch_%d.so",
          "/soft/envs/conda_env/lib/python3.11/site-packages/numpy/m%d.py",
          "/soft/envs/conda_env/lib/python3.11/module%d.py", "/soft/envs/conda_env/bin/tool%d"]
metrics = """total_counted_fuse_operations total_cache_hits total_cache_misses total_negative_results
estimated_cache_served_operations_saved_by_copper
metadata_enoent_ttl_stores metadata_enoent_ttl_serves
metadata_enoent_ttl_expires metadata_enoent_ttl_clears_on_success_or_non_enoent
estimated_repeated_metadata_lookups_avoided_by_ttl""".split()
os.makedirs(where, exist_ok=True)
for rank in range(ranks):
    stem = os.path.join(where, "x4%03dc%ds%db0n%d-%d-profiling_" %
                        (rank // 512, rank // 64 % 8, rank // 8 % 8, rank % 8, 1000 + rank))
    with open(stem + "aggregate.csv", "w") as f:
        f.write("metric,value\n")
        for i, name in enumerate(metrics):
            f.write("%s,%d\n" % (name, (rank * 7919 + i * 104729) % 1000003))
        f.write("total_measured_latency_seconds,%d.%06d\n" % (rank % 13, rank * 99991 % 1000000))
    with open(stem + "operations.csv", "w") as f:
        f.write(
            "operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n")
        for i, name in enumerate(operations):
            n = (rank * 31 + i * 17) % 10007 + 1
            us = rank * 1237 % 1000000 + i
            f.write("%s,%d,%d,%d,%d,%.2f,0.%06d\n" % (name, n, n // 2, n // 3, n // 7, us / n, us))
    with open(stem + "top_paths.csv", "w") as f:
        f.write(
            "category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n")
        for i in range(paths):
            n = 5000 - i + rank % 3
            if i % 4 == 3:
                f.write('metadata_ttl,"/soft/lib%d/libm.so.6",%d,0,0,0,1,%d,0,0\n' % (i, n, n - 1))
            else:
                f.write('%s,"%s",%d,%d,1,0,0,0,0,0\n' %
                        (["metadata", "data", "tree"][i % 4], places[i % 4] % i, n, n - 1))
