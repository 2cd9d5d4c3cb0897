#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run stores that cannot be written: read-only, full, locked, of a later version or something else.
# The job is not disturbed, what is missing can be imported, and of 64 writers at once none loses
# its row. What is no store is refused and stays as it is.
# covers: runs
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system of its own'
plan 49
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

SRC=$T/src
small_tree "$SRC"
kept() { # in the job directory
	find "$JOB/runs" -name '*.run' 2>/dev/null | wc -l
}
# A job that reads a file, is stopped, and ends well.
job() { # WHAT [OPTION…]
	local what=$1
	shift
	with_tree 1 --store "$STORE" "$@"
	is "$what: the job reads" "$(cat "$W/mnt/0/hello")" hello
	ok "$what: the job stops" without_tree
}

# ---- read-only, full

mount -t tmpfs -o size=1m tmpfs "$T/store" || skip_all 'no tmpfs here'
job 'good' --tag name=good
mount -o remount,ro "$T/store"
job 'read-only' --tag name=ro
matches 'a note says so at the start' \
	"$(cat "$W/out.0")" 'note: this run is not in its store: .*[Rr]ead-only'
matches 'the log says so at the start' "$(cat "$JOB"/logs/*-output.log)" \
	'is not recorded in its store: .*ead-only.*copper runs import JOBDIR'
is 'the record is in the job directory' "$(kept)" 1
is 'a read-only store can be read' \
	"$(runs list --json | json_of '[r["name"] for r in j]')" "['good']"
ro=$JOB
fails_with 1 'ead-only' "$COPPER" runs import --store "$STORE" "$ro"
mount -o remount,rw "$T/store"
head -c 2000000 /dev/zero >"$T/store/fill" 2>/dev/null
job 'full' --tag name=full
matches 'the log says that it is full' \
	"$(cat "$JOB"/logs/*-output.log)" 'is not recorded in its store: .*full'
is 'the record of a full store is in its job directory, too' "$(kept)" 1
rm "$T/store/fill"
is 'the store is as it was' \
	"$(judge 'SELECT name FROM run') $(judge 'PRAGMA integrity_check')" 'good ok'
ok 'both records are imported' runs import "$ro" "$JOB"
is 'whole, and once' "$(runs import "$ro" >"$T/out"; judge 'SELECT name, status, exit_reason FROM run ORDER BY start')" \
	$'good|FINISHED|stopped\nro|FINISHED|stopped\nfull|FINISHED|stopped'
is 'the imported runs have totals' \
	"$(judge "SELECT count(*) FROM metric_last WHERE key = 'fuse.requests'")" 3
umount "$T/store"

# ---- locked, and free again

STORE=$T/again/runs.db
mkdir "$T/again"
with_tree 1 --store "$STORE" --store-interval 100ms --tag name=locked
mkfifo "$T/hold"
judge --hold <"$T/hold" >"$T/held" &
holder=$!
exec 7>"$T/hold"
ok 'somebody locks the store' wait_for 20 grep -q held "$T/held"
complains() { grep -q 'locked by another process' "$JOB"/logs/*-output.log; }
ok 'the log says that it is locked' wait_for 60 complains
is 'the job reads' "$(cat "$W/mnt/0/hello")" hello
ok 'the record is beside the store' \
	wait_for 20 test -s "$STORE.d/$(basename "$(echo "$JOB"/runs/*.run)")"
exec 7>&-
wait "$holder"
taken() { [ ! -e "$STORE.d" ] || [ -z "$(ls "$STORE.d")" ]; }
ok 'the store has all of it once it is free' wait_for 60 taken
ok 'the node with a locked store stops' without_tree
is 'the record of the run has its end' "$(judge 'SELECT name, status FROM run')" 'locked|FINISHED'
is 'no record remains in the job directory' "$(kept)" 0

# ---- no locks at all

STORE=$T/locks/runs.db
mkdir "$T/locks"
prepare_tree 1
ok 'a node starts where locks are refused' "$PYTHON" "$cop_t/runs_judge.py" --no-locks "$COPPER" \
	mount --hosts localhost --job-dir "$JOB" \
	--source "$SRC" --store "$STORE" --tag name=free "$W/mnt/0"
ok 'a node where locks are refused stops' "$COPPER" stop "$W/mnt/0"
matches 'its log says that locks are refused' \
	"$(cat "$JOB"/logs/*-output.log)" 'this file system refuses locks'
ok 'the run without locks is beside the store' test -n "$(ls "$STORE.d")"
is 'the run is read from beside the store' \
	"$("$PYTHON" "$cop_t/runs_judge.py" --no-locks "$COPPER" runs --store "$STORE" --json |
		json_of 'j[0]["name"], j[0]["status"]')" 'free FINISHED'
is 'a reader that gets locks takes it in' \
	"$(runs list --json | json_of 'len(j)') $(judge 'SELECT name FROM run'; ls "$T/locks")" \
	$'1 free\nruns.db'

# ---- 64 at once

mkdir "$T/many"
for i in {1..64}; do
	sed "s/^id\t.*/id\t$(printf '%016x' "$i")/" "$ro"/runs/*.run >"$T/many.run"
	mkdir -p "$T/many/$i/runs"
	mv "$T/many.run" "$T/many/$i/runs/$(printf '%016x' "$i").run"
done
pids=()
for i in {1..64}; do
	runs import "$T/many/$i" >"$T/many/$i.out" 2>&1 &
	pids+=($!)
done
unwritten=0
for pid in "${pids[@]}"; do
	wait "$pid" || unwritten=$((unwritten + 1))
done
is '64 writers at once: all say that they have written' "$unwritten" 0
is '64 writers at once lose no row' \
	"$(judge "SELECT count(*) FROM run WHERE name = 'ro'") $(judge 'PRAGMA integrity_check')" \
	'64 ok'

# ---- what is no store

judge 'PRAGMA user_version = 2' >"$T/out"
fails_with 1 'format 2, and this version knows format 1' "$COPPER" runs --store "$STORE"
job 'too new' --tag name=new
matches 'a note says that the store is of a newer copper' \
	"$(cat "$W/out.0")" 'note: .*format 2.*newer copper'
STORE=$SRC/dir/numbers
before=$(sha256sum <"$STORE")
fails_with 1 'not an SQLite database, and so not a run store' "$COPPER" runs list --store "$STORE"
fails_with 1 'not an SQLite database, and so not a run store' \
	"$COPPER" runs import --store "$STORE" "$ro"
is 'a file of somebody else stays as it is' "$(sha256sum <"$STORE")" "$before"
fails_with 1 'is a directory' "$COPPER" runs --store "$SRC"
fails_with 1 'there is no run store' "$COPPER" runs --store "$T/absent.db"
ok 'reading makes no store' test ! -e "$T/absent.db"
fails_with 1 'has no record of a run, which would be runs/ID.run' \
	"$COPPER" runs import --store "$T/absent.db" "$SRC"
fails_with 1 'No such file or directory' "$COPPER" runs import --store "$T/absent.db" "$T/no job"
STORE=$T/other.db
judge 'CREATE TABLE run (id)'
fails_with 1 'another program' "$COPPER" runs import --store "$STORE" "$ro"

# ---- misuse

fails_with 2 'COPPER_STORE' "$COPPER" runs
fails_with 2 "did you mean 'compare'" "$COPPER" runs compar
fails_with 2 'KEY=VALUE' "$COPPER" mount --tag x --source "$SRC" "$W/mnt/0"
