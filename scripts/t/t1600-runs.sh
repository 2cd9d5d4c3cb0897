#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A run of one node in a run store: its row from start to stop, parameters, tags, resource,
# telemetry, totals, and a start that failed.
# covers: runs
# quick: yes
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 46
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

# ---- from start to stop

with_tree 1 --store "$STORE" --store-interval 200ms --tag name=first --tag group=g \
	--tag 'note=a = b' --chunk 128K -P
is 'a ready tree is a row' "$(judge 'SELECT name, "group", status, nodes, "end" FROM run')" \
	'first|g|RUNNING|1|'
is 'copper runs shows it' "$(runs list | awk 'NR == 2 { print $2, $3, $4 }')" 'first g RUNNING'
read_everything 0
has_points() { [ "$(judge "SELECT count(*) FROM metric WHERE key = 'fuse.read_bytes'")" -ge 3 ]; }
ok 'telemetry comes in while it runs' wait_for 30 has_points
bytes=$(node_stat 0 fuse.read_bytes)
# What a program writes into its row with SQL of its own, at steps before and after Copper's.
"$PYTHON" - "$STORE" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
run = db.execute("SELECT id FROM run").fetchone()[0]
db.executemany("INSERT INTO metric VALUES (?, 'train_loss', ?, ?, 0)", [(run, 1 / s, s) for s in (1, 2, 3, 100000)])
db.execute("INSERT INTO tag VALUES (?, 'sha256', 'abc')", (run,))
db.commit()
PY
ok 'the node with telemetry stops' without_tree
is 'metrics and tags that a program wrote into its row stay' \
	"$(judge "SELECT count(*), min(step), max(step) FROM metric WHERE key = 'train_loss'") $(judge "SELECT value FROM tag WHERE key = 'sha256'")" \
	'4|1|100000 abc'
"$PYTHON" - "$STORE" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
db.execute("DELETE FROM metric WHERE key = 'train_loss'")
db.execute("DELETE FROM tag WHERE key = 'sha256'")
db.commit()
PY
is 'the row is closed' "$(judge 'SELECT status, exit_reason, "end" > start, seen >= "end" FROM run')" 'FINISHED|stopped|1|1'
is 'the row stays the only one' "$(judge 'SELECT count(*) FROM run')" 1

# ---- what is in it

is 'parameters are what differs from the defaults' \
	"$(judge "SELECT key, value FROM param WHERE key IN ('chunk', 'profile', 'fanout', 'store-interval')")" \
	$'chunk|131072\nprofile|true\nstore-interval|200ms'
is 'parameters tell where it was' \
	"$(judge "SELECT value FROM param WHERE key IN ('source', 'mountpoint') ORDER BY key")" \
	"$W/mnt/0"$'\n'"$SRC"
is 'tags are as they were given' "$(judge 'SELECT key, value FROM tag ORDER BY key')" \
	$'group|g\nname|first\nnote|a = b'
is 'the resource is this host' \
	"$(judge "SELECT value FROM resource WHERE key = 'host.name'")" "$(hostname)"
is 'without a scheduler there is nothing of one' \
	"$(judge "SELECT count(*) FROM resource WHERE key GLOB 'slurm*' OR key GLOB 'pbs*' OR key GLOB 'flux*'")" 0
is 'the totals are what the node counted' \
	"$(judge "SELECT CAST(value AS INT) FROM metric_last WHERE key = 'fuse.read_bytes'")" \
	"$bytes"
operations() {
	"$PYTHON" - "$JOB/profiling/cluster/cluster-profiling_operations.csv" <<'PY'
import csv, sys
print("\n".join(sorted("operation.%s.calls|%s" % (r["operation"], r["total_calls"]) for r in csv.DictReader(open(sys.argv[1])))))
PY
}
is 'the totals of a profile are those of the cluster files' \
	"$(judge "SELECT key, CAST(value AS INT) FROM metric WHERE key GLOB 'operation.*.calls' ORDER BY key")" \
	"$(operations)"
matches 'the steps of a metric ascend, and its times' \
	"$(judge --series cpu.seconds)" '^([4-9]|[0-9][0-9]+) True'
is 'counters never fall' \
	"$(judge "SELECT count(*) FROM metric a JOIN metric b ON a.run = b.run AND a.key = b.key AND a.step < b.step AND a.value > b.value
	WHERE a.key IN ('fuse.requests', 'origin.operations', 'cpu.seconds')")" 0
is 'the file says what it is' \
	"$(judge 'SELECT * FROM pragma_application_id, pragma_user_version, pragma_journal_mode')" \
	'1131369075|1|delete'

# ---- what people see

id=$(judge 'SELECT id FROM run')
store_before=$(cksum <"$STORE")
runs show "${id:0:6}" >"$T/shown"
is 'an ID alone is shown' "$(COPPER_STORE=$STORE "$COPPER" runs "${id:0:6}")" "$(cat "$T/shown")"
matches 'copper runs show has its parameters' "$(cat "$T/shown")" '^chunk +131072$'
matches 'copper runs show has its metrics' "$(cat "$T/shown")" '^fuse\.requests +[0-9]'
is 'JSON is the same' "$(runs show --json last | json_of 'j["id"], j["status"], j["param"]["chunk"], j["metric"]["fuse.read_bytes"]["last"]')" \
	"$id FINISHED 131072 $bytes"
is 'commands that only show leave the store as it was' "$(cksum <"$STORE")" "$store_before"

# ---- the next run, from the environment, with a scheduler's variables

COPPER_STORE=$STORE SLURM_JOB_ID=4711 SLURM_JOB_PARTITION=debug SLURM_JOB_NAME=train \
	PBS_QUEUE=q with_tree 1
ok 'the second stops' without_tree
is '$COPPER_STORE is enough, and the job gives the name' \
	"$(judge 'SELECT name, status FROM run ORDER BY start DESC LIMIT 1')" 'train|FINISHED'
is "the scheduler's job is in tags and resource" \
	"$(judge "SELECT t.key, t.value FROM tag t JOIN resource r USING (run, key) WHERE t.value = r.value ORDER BY t.key")" \
	$'pbs.queue|q\nslurm.job_id|4711\nslurm.partition|debug'
COPPER_STORE=$STORE "$COPPER" runs compare last~1 last >"$T/compared" 2>&1
matches 'copper runs compare shows parameters that differ' \
	"$(cat "$T/compared")" '^chunk +131072 +-'
is 'copper runs compare shows no parameter that is the same' "$(grep -c '^source ' "$T/compared")" 0
is 'ratios are those of the values' \
	"$(runs compare "$id" "$id" --json |
		json_of 'j["metrics"]["fuse.requests"]["ratio"], j["parameters"]')" '1 {}'

matches 'copper runs compare shows tags that differ' "$(cat "$T/compared")" '^note +a = b +-'
runs compare "$id" "$id" >"$T/compared"
is 'of equal runs, copper runs compare shows no metric' \
	"$(grep -c '^fuse' "$T/compared") $(grep -c 'metrics differ by no more than their spread; --all shows them' "$T/compared")" \
	'0 1'
matches '--all shows the metrics that are equal' "$(runs compare --all "$id" "$id")" \
	'^fuse.requests +[0-9]+ +[0-9]+ +1.00'
is 'the JSON says of each metric whether it differs' \
	"$(runs compare "$id" last --json | json_of 'sorted(j), j["metrics"]["fuse.read_bytes"]["differs"], j["tags"]["note"]')" \
	"['metrics', 'parameters', 'resource', 'runs', 'tags'] True ['a = b', None]"

# ---- a start that fails, a node that is unmounted, copper run

! "$COPPER" mount --store "$STORE" --hosts localhost --source "$T/absent" "$W/mnt/0" >"$T/out" \
	2>"$T/err" || bail 'that starts'
failed() { [ "$(judge "SELECT count(*) FROM run WHERE status = 'FAILED'")" = 1 ]; }
ok 'a start that failed is recorded' wait_for 20 failed
is 'a failed start is recorded with its sentence' \
	"$(judge "SELECT exit_reason FROM run WHERE status = 'FAILED'")" \
	"$(sed 's/^copper mount: //' "$T/err")"
is 'the failed run can be asked for' \
	"$(runs list --status failed --json | json_of 'len(j), j[0]["status"]')" '1 FAILED'
with_tree 1 --store "$STORE"
umount "$W/mnt/0"
unmounted() {
	[ "$(judge 'SELECT status, exit_reason FROM run ORDER BY start DESC LIMIT 1')" = \
		'FINISHED|unmounted' ]
}
ok 'a node that is unmounted has finished' wait_for 20 unmounted
wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
cop_tree=0
is 'copper run takes the options' \
	"$("$COPPER" run --store "$STORE" --tag name=run --source "$SRC" cat "$SRC/hello")" hello
is 'the run of copper run is there when it ends' \
	"$(judge "SELECT status FROM run WHERE name = 'run'")" FINISHED

# ---- how it is asked

is 'since' "$(runs list --since 1h --json |
		json_of 'len(j)') $(runs list --since 2031-01-01 --json | json_of 'len(j)')" '5 0'
is 'a tag, a name, a group' \
	"$(for tag in 'note=a = b' name=run group=g name=ru note=a; do runs list --tag "$tag" \
		--json | json_of 'len(j)'; done | tr '\n' ' ')" '1 1 1 0 0 '
fails_with 2 "'note' is not KEY=VALUE" "$COPPER" runs list --store "$STORE" --tag note
matches 'copper runs alone lists' "$(COPPER_STORE=$STORE "$COPPER" runs | head -n 1)" '^ID +NAME'
is 'newest first' "$(runs list --json |
		json_of '[r["start"] for r in j] == sorted((r["start"] for r in j), reverse=True)')" True

# ---- the manifest

manifest() { # of a job that prefetches what the one before it used
	with_tree 1 --store "$STORE" --prefetch auto
	read_everything 0
	without_tree >/dev/null || bail 'the job does not end'
	judge "SELECT value FROM tag WHERE key = 'manifest.xxh3' AND run = (SELECT id FROM run ORDER BY start DESC LIMIT 1)"
}
is 'the first job has no manifest' "$(manifest)" ''
hash=$(manifest)
matches 'the tag of the second one is its hash' "$hash" '^[0-9a-f]{16}$'
is 'the third job that prefetches the same has that tag' "$(manifest)" "$hash"
