#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Asking a store: runs by their parameters, tags and metrics, in an order, and the history of a
# metric. What is answered is compared with what was put in.
# covers: runs
# quick: yes
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 41
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

# A store of Copper's own, then rows as a program writes them.
with_tree 1 --store "$STORE"
without_tree >/dev/null
fill() { # FIRST RUNS METRICS POINTS
	"$PYTHON" - "$STORE" "$@" <<'PY'
import sqlite3, sys
first, runs, metrics, points = map(int, sys.argv[2:])
db = sqlite3.connect(sys.argv[1], timeout=30)
for i in range(first, first + runs):
    id = "%016x" % i
    db.execute("INSERT INTO run VALUES (?, ?, '', ?, ?, ?, 1, '1', 'stopped', ?, 5)",
               (id, "run%d" % i, "FAILED" if i % 4 == 3 else "FINISHED", 1000 + i, 1010 + 2 * i, 1010 + 2 * i))
    db.execute("INSERT INTO param VALUES (?, 'lr', ?)", (id, ["0.1", "0.010", "1e-3", "auto"][i % 4]))
    if i % 2:
        db.execute("INSERT INTO tag VALUES (?, 'try', ?)", (id, str(i)))
    db.executemany("INSERT INTO metric VALUES (?, ?, ?, ?, ?)",
                   ((id, "val_loss" if m == 0 else "m%d" % m, abs(k - 2) + i / 100, k, 1000 + k)
                    for m in range(metrics) for k in range(points)))
db.execute("DELETE FROM run WHERE name NOT GLOB 'run[0-9]*'")
db.commit()
PY
}
names() { # of list: the names of the runs
	runs list "$@" --json | json_of '*[r["name"] for r in j]'
}
fill 0 8 2 5
is 'a number compares as one, however it is written' "$(names --where 'param.lr < 0.05')" \
	'run6 run5 run2 run1'
is 'equal is by value' "$(names --where 'param.lr = 0.01')" 'run5 run1'
is 'a text is equal as text' "$(names --where 'param.lr = auto')" 'run7 run3'
is 'a text is no number' "$(names --where 'param.lr >= 0')" 'run6 run5 run4 run2 run1 run0'
is 'without spaces it is the same' "$(names --where 'param.lr<0.05')" 'run6 run5 run2 run1'
is 'a tag; runs without it are none that differ' "$(names --where 'tag.try != 3')" 'run7 run5 run1'
is 'several terms must all hold' "$(names --where 'tag.try > 1' --where 'status = FAILED')" 'run7 run3'
is 'the last value of a metric' "$(names --where 'metric.val_loss >= 2.06')" 'run7 run6'
is 'its least one' "$(names --where 'metric.val_loss.min < 0.02')" 'run1 run0'
is 'its mean' "$(names --where 'metric.val_loss.mean < 1.215')" 'run1 run0'
is 'columns of a run' "$(names --where 'seconds > 16')" 'run7'
is 'beside the other filters' "$(names --where 'tag.try > 0' --status failed)" 'run7 run3'
is 'an order by a metric' "$(names --sort metric.val_loss.min --where 'nodes = 1' | cut -d ' ' -f 1-3)" \
	'run0 run1 run2'
is 'the largest first, and runs without it last' "$(names --sort -tag.try)" \
	'run7 run5 run3 run1 run6 run4 run2 run0'
is 'quotes and percent signs are bytes of a value' "$(names --where "tag.try = 1' OR '1'='1")" ''
fails_with 2 "'lr < 1' is not KEY OP VALUE: the key is status" "$COPPER" runs list --store "$STORE" --where 'lr < 1'
fails_with 2 "'loss' is no key: status" "$COPPER" runs list --store "$STORE" --sort loss

runs show 0000000000000002 --metric val_loss --csv >"$T/csv"
is 'the history of a metric as CSV' "$(tr '\n' ' ' <"$T/csv")" \
	'step,time,value 0,1000.000000,2.02 1,1001.000000,1.02 2,1002.000000,0.02 3,1003.000000,1.02 4,1004.000000,2.02 '
is 'and as JSON' "$(runs show 0000000000000002 --metric val_loss --json |
	json_of 'len(j), j[2]["step"], j[2]["value"]')" '5 2 0.02'
fails_with 1 "has no metric 'loss'" "$COPPER" runs show --store "$STORE" last --metric loss

# ---- numbers, and all of them

"$PYTHON" - "$STORE" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
for i, run in enumerate(("0000000000000000", "0000000000000001")):
    db.executemany("INSERT INTO metric VALUES (?, 'long', ?, ?, 5)",
                   ((run, 7 if k == 3 else 1 / (k + 3), k) for k in range(250000 + i)))
    db.execute("INSERT INTO metric VALUES (?, 'tiny', 1.2345678901234567e-9, 0, 5)", (run,))
    db.execute("INSERT INTO metric VALUES (?, 'burst', ?, 0, 5)", (run, float("inf") if i else 1.0))
    db.execute("INSERT INTO metric VALUES (?, 'gone', -9e999, 0, 5)", (run,))
db.execute("INSERT INTO tag VALUES ('0000000000000000', 'nan.burst', 'step 4')")
db.commit()
PY
runs show 0000000000000001 --json >"$T/show"
runs compare 0000000000000000 0000000000000001 --json >"$T/compare"
is 'JSON has numbers that read back as the same ones' "$(json_of 'j["metric"]["tiny"]["last"] == 1.2345678901234567e-9' <"$T/show") $(
	json_of 'j["metrics"]["tiny"]["values"] == [1.2345678901234567e-9] * 2' <"$T/compare")" 'True True'
is 'an infinite one is none that JSON has' "$(json_of 'j["metric"]["burst"]["last"], j["metric"]["gone"]["most"]' <"$T/show") $(
	json_of 'j["metrics"]["burst"]["values"], j["metrics"]["burst"]["differs"]' <"$T/compare")" \
	"Infinity -Infinity [1, 'Infinity'] True"
is 'it is larger than all others' "$(names --where 'metric.burst > 1e308') $(names --where 'metric.burst = inf') $(
	names --where 'metric.burst < inf')" 'run1 run1 run0'
is 'also in an order' "$(names --sort -metric.burst | cut -d ' ' -f 1-2)" 'run1 run0'
is 'people see it, too' "$(runs show 0000000000000001 | awk '$1 == "burst" || $1 == "gone"' | tr -s ' ' | paste -sd ' ')" \
	'burst inf inf 1 gone -inf -inf 1'
is 'and where a value was no number' "$(runs show 0000000000000000 | tail -n 1)" 'burst was NaN first at step 4'
is 'every point of a metric counts' "$(json_of '*j["metric"]["long"].values()' <"$T/show") $(
	runs show 0000000000000001 | awk '$1 == "long" { print $3, $4 }')" \
	"$("$PYTHON" -c 'print(1 / 250003)') 7 250001 7 250001"
is 'and is compared' "$(runs compare --metric long --csv 0000000000000000 0000000000000001 | sed -n '2p;5p;250001,$p' | paste -sd ' ')" \
	"$("$PYTHON" -c 'print("0,%r,%r 3,7,7 249999,%r,%r 250000,,%r" % (1 / 3, 1 / 3, 1 / 250002, 1 / 250002, 1 / 250003))')"
runs list --csv >"$T/list"
runs list --json >"$T/json"
is 'runs as CSV are those of JSON' "$("$PYTHON" - "$T/list" "$T/json" <<'PY'
import csv, json, sys
rows, runs = list(csv.DictReader(open(sys.argv[1]))), json.load(open(sys.argv[2]))
def same(text, value):
    return float(text) == value if isinstance(value, (int, float)) else text == (value or "")
print(len(rows), all(list(a) == list(b) and all(same(a[k], b[k]) for k in a)
                     for a, b in zip(rows, runs)))
PY
)" '8 True'
is 'none is a heading' "$(runs list --csv --where 'param.lr = nowhere' | wc -l)" 1
fails_with 2 '--csv and --json contradict each other' "$COPPER" runs list --store "$STORE" --csv --json
is 'no object has a key twice' "$(cat "$T/show" "$T/compare" "$T/json" | "$PYTHON" -c '
import json, sys
def once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
for line in sys.stdin:
    json.loads(line, object_pairs_hook=once)
print("once")')" once
"$PYTHON" - "$STORE" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
db.execute("DELETE FROM metric WHERE key IN ('long', 'tiny', 'burst', 'gone')")
db.commit()
PY

# ---- ten thousand runs

[ "$cop_mode" = release ] && many=10000 || many=500
fill 8 "$((many - 8))" 100 1
"$PYTHON" - "$STORE" "$COPPER" >"$T/took" <<'PY'
import resource, subprocess, sys
best, before = 9, 0
for i in range(3):
    subprocess.run([sys.argv[2], "runs", "list", "--store", sys.argv[1], "--where", "metric.val_loss.min < 0.3", "--where", "param.lr < 0.05", "--json"], stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    best = min(best, used.ru_utime + used.ru_stime - before)
    before = used.ru_utime + used.ru_stime
print("%.3f" % best)
PY
note "$many runs with a hundred metrics: $(cat "$T/took") s of processor"
is 'of ten thousand runs the same ones are found' \
	"$(names --where 'metric.val_loss.min < 0.3' --where 'param.lr < 0.05')" \
	'run6 run5 run2 run1'
# It takes a tenth of a second or two. Ten times as much is no matter of the machine.
ok 'in not much more processor time than it takes to read them' \
	"$PYTHON" -c 'import sys; sys.exit(float(sys.argv[1]) > 5 * float(sys.argv[2]))' "$(cat "$T/took")" "$cop_slower"

# ---- a job directory without a record

STORE=$T/found.db
with_tree 2 -P
"$COPPER" run --mount "$W/mnt/1" -- cat "$SRC/hello" >/dev/null
without_tree >/dev/null
ok 'a job that recorded nothing is imported from its directory' runs import "$JOB"
is 'what it did is what its directory says' \
	"$(judge "SELECT CAST(value AS INT) FROM metric WHERE key = 'profile.total_counted_fuse_operations'")" \
	"$(sed -n 's/^total_counted_fuse_operations,//p' "$JOB/profiling/cluster/cluster-profiling_aggregate.csv")"
is 'and how it ended' "$(judge 'SELECT status, exit_reason, nodes, "end" >= start FROM run')" \
	'FINISHED|stopped|2|1'
imported() { # once more, as if it had never been
	rm -f "$STORE"
	runs import "$JOB" >/dev/null
	judge 'SELECT status, exit_reason FROM run'
}
cp "$JOB/logs/copper_tree.txt" "$T/tree"
is 'which has the ends of all commands' "$(grep '^commands ' "$T/tree")" 'commands 1 1'
sed -i 's/^commands .*/commands 2 1/' "$JOB/logs/copper_tree.txt"
is 'a run of which a command did not end well has not finished' "$(imported)" \
	'FAILED|stopped; known to have ended with 0: 1 of 2 commands'
sed -i '/^commands /d' "$JOB/logs/copper_tree.txt"
is 'if that does not say how its commands ended, neither does the run' "$(imported)" \
	'FAILED|stopped; how its commands ended is not known'
cp "$T/tree" "$JOB/logs/copper_tree.txt"
runs import "$JOB" >/dev/null
is 'twice makes one run' "$(judge 'SELECT count(*) FROM run')" 1
