#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs go to MLflow and come back, and MLflow's come here and go back: nothing is lost either way.
# An export is read with plain SQL, as MLflow reads it. MLflow itself is not needed; its databases
# are made with Python's sqlite3.
# covers: runs
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 43
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

mlflow() { # COMMAND ARGUMENT…
	timeout "$(patient 120)" "$PYTHON" "$cop_t/mlflow_judge.py" "$@"
}
runs_in() { # STORE SUBCOMMAND ARGUMENT…
	STORE=$1 runs "${@:2}"
}
export_to() { # FILE ARGUMENT…
	runs export --mlflow "$@" >"$T/said"
}

# ---- a job, a program without one, and what their values may be

with_tree 1 --store "$STORE" --tag name=job --tag group=net --tag sha256=abc
env -u COPPER_STORE "$COPPER" run --mount "$W/mnt/0" -- "$PYTHON" -c '
import sys; sys.path.insert(0, sys.argv[1])
import copper_run
r = copper_run.current()
r.params({"lr": 0.01, "note": "two\nlines, 100 %"})
for step in range(4): r.metrics({"train_loss": 1 / (1 + step), "system/cpu": step}, step=step)
r.metrics({"odd": float("inf"), "worse": float("nan")}, step=7)
r.metric("odd", float("-inf"), 8)
r.metric("worse", 0.5, 6)' "$cop_root/internal/writers/runs/python"
without_tree >/dev/null
export COPPER_RUN_ID=00000000000000a1
runs log --tag name=program --tag mlflow.user=ada --param lr=auto --metric loss=2 >/dev/null
runs log --status failed --reason 'as asked' >/dev/null
unset COPPER_RUN_ID
# One that nobody has seen for an hour.
judge "INSERT INTO run SELECT '00000000000000a2', 'gone', '', 'RUNNING', start - 7200.0001234, NULL, 1, version, '', start - 7100, 5 FROM run WHERE name = 'job'"
began=$(judge "SELECT start FROM run WHERE name = 'gone'")
judge "INSERT INTO metric VALUES ('00000000000000a1', 'system/cpu_utilization_percentage', 50, 1, 1000)"

ok 'all runs are exported' export_to "$T/ours.db"
is 'and each is named' "$(cut -d ' ' -f 2- "$T/said" | cut -d '(' -f 1 | sort | paste -sd ,)" 'FAILED ,FINISHED ,LOST '
is 'MLflow finds those of an experiment, with tags and parameters' "$(mlflow ask "$T/ours.db" net | head -n 1)" \
	"FINISHED job 1 job $SRC abc 0.01 True"
is 'and the history and the last value of each metric' "$(mlflow ask "$T/ours.db" net | sed 1d)" \
	"  odd -1.7976931348623157e+308 at 8 [1.7976931348623157e+308, -1.7976931348623157e+308]
  train_loss 0.25 at 3 [1.0, 0.5, 0.3333333333333333, 0.25]
  worse nan at 7 [0.5, None]"
system_metrics="SELECT key, count(*), sum(value) FROM %s WHERE key GLOB 'system/*' GROUP BY key"
# shellcheck disable=SC2059
is "what was measured of the machine has MLflow's names" "$(mlflow sql "$T/ours.db" "$(printf "$system_metrics" metrics)")" \
	"$(judge "$(printf "$system_metrics" metric)")"
is 'a run without a group is in an experiment of ours, and a lost one was killed' \
	"$(mlflow ask "$T/ours.db" copper | grep -v '^  ')" \
	'FAILED program 1 program copper None auto True
KILLED gone 1 gone copper None None True'
is 'there is the experiment 0, without which MLflow does not begin' \
	"$(mlflow sql "$T/ours.db" 'SELECT name, lifecycle_stage FROM experiments WHERE experiment_id = 0')" 'Default|active'
is 'and the version of the schema' "$(mlflow sql "$T/ours.db" 'SELECT * FROM alembic_version')" 97727af70f4d
is 'keys are related as the schema says' "$(mlflow sql "$T/ours.db" 'PRAGMA foreign_key_check')" ''

ok 'a new store takes them' runs_in "$T/again.db" import --mlflow "$T/ours.db"
is 'and has the same rows' "$(mlflow stores "$STORE" "$T/again.db")" same
ok 'which are exported again' runs_in "$T/again.db" export --mlflow "$T/ours2.db"
is 'as the same rows of MLflow' "$(
	for f in ours ours2; do # the moment at which an experiment was made
		mlflow sql "$T/$f.db" 'UPDATE experiments SET creation_time = 1, last_update_time = 1'
	done
	mlflow same "$T/ours.db" "$T/ours2.db")" same
ok 'an export of what is there' export_to "$T/ours2.db"
is 'changes nothing' "$(mlflow same "$T/ours.db" "$T/ours2.db")" same
mlflow sql "$T/ours2.db" "INSERT INTO tags SELECT 'mlflow.note.content', 'good', run_uuid FROM runs WHERE name = 'job';"
judge "UPDATE run SET status = 'FINISHED', \"end\" = seen WHERE name = 'gone'"
ok 'one run of it, of which more is known' export_to "$T/ours2.db" 00000000000000a2
is 'is brought up to date' "$(mlflow sql "$T/ours2.db" "SELECT status FROM runs WHERE name = 'gone'")" FINISHED
runs import --mlflow "$T/ours2.db" >/dev/null
is "what was noted in MLflow comes back" "$(runs list --tag mlflow.note.content=good --json | json_of '[r["name"] for r in j]')" "['job']"
is 'and times of the store are not made coarser' "$(judge "SELECT start FROM run WHERE name = 'gone'")" "$began"
ok 'an experiment can be named' export_to "$T/ours3.db" --experiment 'all of it' 00000000000000a1
is 'for the runs that are named' "$(mlflow sql "$T/ours3.db" 'SELECT r.name, e.name FROM runs r JOIN experiments e USING (experiment_id)')" \
	'program|all of it'

# ---- MLflow's own

mlflow make "$T/theirs.db"
sum=$(cksum <"$T/theirs.db")
STORE=$T/their-store.db
ok "MLflow's runs are imported" runs import --mlflow "$T/theirs.db"
is 'of which nothing is changed' "$(cksum <"$T/theirs.db")" "$sum"
is 'they are found by what they measured' \
	"$(runs list --where 'metric.loss.min < 0.5' --where 'metric.system/cpu_utilization_percentage.max > 93' --json |
		json_of '[(r["name"], r["group"]) for r in j]')" "[('first', \"image 'net'\")]"
is 'and by how they ended' "$(runs list --json | json_of 'sorted((r["name"], r["status"], r["exit_reason"]) for r in j)')" \
	"[('first', 'FINISHED', ''), ('in the bin', 'FAILED', 'deleted in MLflow'), ('killed', 'FAILED', 'killed'), ('named by its tag', 'FINISHED', ''), ('named by its tag', 'LOST', ''), ('waits', 'LOST', '')]"
is 'a value that is no number is a tag, an infinite one a point, which JSON has as a word' \
	"$(runs show a1b2c3d4e5f60718 --json | json_of 'j["tag"]["nan.odd"]') $(runs show a1b2c3d4e5f60718 --metric odd --json |
		json_of '[p["value"] for p in j]')" "step 2 ['Infinity', '-Infinity', 1e-310]"
ok 'they are exported' export_to "$T/back.db"
is 'as the same rows' "$(mlflow same "$T/theirs.db" "$T/back.db")" same
runs import --mlflow "$T/back.db" >/dev/null
ok 'into their own database, too' export_to "$T/theirs.db"
is 'with no other row' "$(mlflow same "$T/theirs.db" "$T/back.db")" same

# ---- what is refused

refused() { # NAME FILE SENTENCE
	local sum
	sum=$(cksum <"$2")
	fails_with 1 "$3" "$COPPER" runs export --store "$STORE" --mlflow "$2"
	is "$1 stays as it is" "$(cksum <"$2")" "$sum"
}
mlflow make "$T/new.db" 0123456789ab
refused 'a later schema' "$T/new.db" 'of schema 0123456789ab, and this version of Copper knows those from 97727af70f4d .* to b7e2c1a4d9f3'
fails_with 1 'of schema 0123456789ab' "$COPPER" runs import --store "$T/none.db" --mlflow "$T/new.db"
"$PYTHON" -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("CREATE TABLE runs (x)")' "$T/other.db"
refused "another program's database" "$T/other.db" "is a database of another program, not MLflow's"
fails_with 1 "is a run store of Copper, not MLflow's" "$COPPER" runs export --store "$STORE" --mlflow "$STORE"
echo text >"$T/text"
fails_with 1 "is no SQLite database, not MLflow's" "$COPPER" runs import --store "$STORE" --mlflow "$T/text"
fails_with 1 'there is no such database' "$COPPER" runs import --store "$STORE" --mlflow "$T/absent.db"
fails_with 1 "no run in .* is 'ffff'" "$COPPER" runs export --store "$STORE" --mlflow "$T/absent.db" ffff
ok 'a failed export leaves no file' test ! -e "$T/absent.db"
fails_with 2 'give --mlflow FILE.db' "$COPPER" runs export --store "$STORE"

# ---- ten thousand runs

[ "$cop_mode" = release ] && many=10000 || many=300
STORE=$T/many-store.db
mlflow many "$T/many.db" "$many" 5
"$PYTHON" - "$COPPER" "$STORE" "$T/many.db" "$T/many2.db" >"$T/took" <<'PY'
import resource, subprocess, sys
for command, file in ("import", sys.argv[3]), ("export", sys.argv[4]):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.argv[1], "runs", command, "--store", sys.argv[2], "--mlflow", file],
                   check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%.2f" % (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
PY
read -r import_s export_s < <(paste -sd ' ' "$T/took")
note "$many runs: $import_s and $export_s s of processor to import and to export"
# A few seconds; many times that is no matter of the machine.
ok 'take no more processor time than their number explains' "$PYTHON" -c \
	'import sys; sys.exit(max(map(float, sys.argv[2:])) > 60 * float(sys.argv[1]))' "$cop_slower" \
	"$import_s" "$export_s"
is 'and are the same' "$(for f in many many2; do
	mlflow sql "$T/$f.db" 'SELECT count(*), sum(value), sum(timestamp), min(run_uuid), max(run_uuid) FROM latest_metrics'
done | sort -u | wc -l)" 1
