#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""old_job.py JOBDIR ROOT: a job directory as Copper 1.0 is documented to leave one, of two ranks
that used some of ROOT/conda_env, which is made: with full paths, the snapshot before the end, and
the sizes of the tables, for which somebody asked while it ran."""
import os
import sys

job, root = sys.argv[1:]
env = root + "/conda_env"
exist = ["", "/bin", "/bin/python3", "/lib", "/lib/libz.so"]
absent = ["/lib/libnone.so", "/bin/pyvenv.cfg"]
os.makedirs(env + "/bin")
os.makedirs(env + "/lib")
for name in ("/bin/python3", "/lib/libz.so", "/lib/unused.so"):
    with open(env + name, "w") as f:
        f.write("x" * 100)
bar = "=" * 45 + "\n"


def put(folder, tag, rank, name, text):
    where = os.path.join(job, folder, tag or "final")
    os.makedirs(where, exist_ok=True)
    parts = ["x400%d" % rank, str(80000 + rank)] + ([tag] if tag else []) + [name]
    with open(os.path.join(where, "-".join(parts)), "w") as f:
        f.write(text)


# The order is that of a hash table, and the last line has no newline.
def events(title, rows):
    return title + " {\n" + "".join("%s%s {\ncache hits: %d,\ncache misses: %d,\nneg: %d\n}\n" %
                                    (env, *row) for row in reversed(rows)) + "}"


def sizes(sentence, rows, word):
    return (sentence + "".join("%s%s: %d\n" % (env, name, size) for name, size in rows) + bar +
            "Total bytes: %d\ntotal number of %s: %d\n" %
            (sum(size for _, size in rows), word, len(rows)) + bar + "\n")


def rank(r, tag):
    put("profiling", tag, r, "profiling_aggregate.csv",
        "metric,value\nprofiling_mode,full-path\ntotal_counted_fuse_operations,%d\ntotal_cache_hits,40\ntotal_cache_misses,3\n"
        "total_negative_results,6\nmetadata_enoent_ttl_serves,4\ntotal_measured_latency_seconds,%d.500000\n" % (60 + r, r))
    put("profiling", tag, r, "profiling_operations.csv",
        "operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
        "getattr,%d,30,0,6,5.27,0.000207\nread,10,7,3,0,35.77,0.000358\ninit,1,0,0,0,88504.75,0.088505\n"
        "destroy,1,0,0,0,0.00,0.000000\next_getattr,12,0,0,0,0.00,0.000000\n" % (36 + r))
    put("profiling", tag, r, "profiling_top_paths.csv",
        "category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n"
        "metadata,\"%s\",20,20,0,0,0,0,0,0\nmetadata_ttl,\"%s/lib/libnone.so\",5,0,0,0,1,4,0,0\n" %
        (env, env))
    put("tables", tag, r, "md_table_cache_event.output", events("md_cache_event_table",
        [(name, 5, 0, 0) for name in exist] + [(name, 0, 0, 3) for name in absent]))
    put("tables", tag, r, "data_table_cache_event.output",
        events("data_cache_event_table", [("/bin/python3", 3, 1, 0), ("/lib/libz.so", 4, 2, 0)]))
    put("tables", tag, r, "tree_table_cache_event.output",
        events("dir_cache_event_table", [("/lib", 1, 1, 0)]))
    put("tables", tag, r, "md_ttl_cache_event.output",
        "Metadata ENOENT TTL Events {\n%s/lib/libnone.so {\n"
        "stores: 1,\nserves: 4,\nexpires: 0,\nclears: 0\n}\n}" % env)


for r in (1, 2):
    rank(r, None)
    rank(r, "pre-destroy")
    put("tables", None, r, "data_cache_size.output",
        sizes("", [("/bin/python3", 100), ("/lib/libz.so", 100 * r)], "files"))
    put("tables", None, r, "tree_cache_size.output", sizes("", [("/lib", 40)], "entries"))
    put("tables", None, r, "md_cache_size.output",
        sizes("all entries should be 144 bytes\n", [(name, 144) for name in exist], "entries"))
