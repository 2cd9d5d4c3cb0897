#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How the commands of a job ended is in the record of its run, and what the job is called is in
# their environment.
# covers: runs
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 35
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

run_at() { # RANK COMMAND…
	"$COPPER" run --mount "$W/mnt/$1" -- "${@:2}"
}
ended() { # how the newest run ended
	judge 'SELECT status, exit_reason FROM run ORDER BY start DESC LIMIT 1'
}
# ---- however the node learns how commands ended

one_job() { # STATUS COMMAND…: copper run's status is STATUS; the record in $(ended)
	local want=$1
	with_tree 1 --store "$STORE" --store-interval 200ms
	run_at 0 "${@:2}" >"$T/out" 2>&1
	is "copper run ends as its command: ${*:2}" $? "$want"
	without_tree >/dev/null
}
gone() { # PID
	! kill -0 "$1" 2>/dev/null
}
becomes() { # PID COMMAND
	[ "$(tr '\0' ' ' <"/proc/$1/cmdline")" = "$2 " ]
}
started() { # FILE: a command has written its process ID
	wait_for 10 test -s "$1" || bail "no command: $1"
}

one_job 0 true
is 'a command that ended with 0 makes a run that finished' "$(ended)" 'FINISHED|stopped'
one_job 1 false
is 'an exit status is the reason of a failed run' "$(ended)" 'FAILED|exit 1 on rank 0'
one_job 137 sh -c 'kill -9 $$'
is 'a signal is the reason of a failed run' "$(ended)" 'FAILED|signal 9 (killed) on rank 0'
one_job 1 "$PYTHON" -c 'raise ValueError("no data")'
is 'an exception of Python makes a run that failed' "$(ended)" 'FAILED|exit 1 on rank 0'
with_tree 3 --store "$STORE" --store-interval 200ms
run_at 0 sh -c 'exit 2'
run_at 1 true
run_at 2 sh -c 'exit 7'
run_at 2 true
without_tree >/dev/null
is 'the worst of all ranks counts, with its rank' "$(ended)" \
	'FAILED|exit 7 on rank 2; 2 of 4 commands failed'

with_tree 1 --store "$STORE" --store-interval 200ms
"$COPPER" run --mount "$W/mnt/0" -- sh -c 'echo $$ >"$1"; exec sleep 300' - "$T/sleeps" &
sleeper=$!
started "$T/sleeps"
node=$(node_stat 0 pid)
is_ours "$node" || bail "pid $node is not of this test"
kill -TERM "$node"
ok 'a node ends by a signal while a command runs' wait_for 20 gone "$node"
kill "$sleeper" 2>/dev/null
wait "$sleeper" 2>/dev/null
cop_tree=0
is 'which is no finished run' "$(ended)" \
	'FAILED|the node was ended by a signal while 1 command ran'

with_tree 1 --store "$STORE" --store-interval 200ms
"$COPPER" run --mount "$W/mnt/0" -- sh -c 'echo $$ >"$1"; exec sleep 300' - "$T/runs" &
sleeper=$!
started "$T/runs"
"$PYTHON" -c '
import subprocess, sys, time
p = subprocess.Popen(sys.argv[2:])
while open("/proc/%d/stat" % p.pid).read().rsplit(")", 1)[1].split()[0] != "Z":
    time.sleep(0.02)
sys.exit(subprocess.call([sys.argv[2], "stop", sys.argv[1]]))' "$W/mnt/0" \
	"$COPPER" run --mount "$W/mnt/0" -- true >/dev/null
kill "$sleeper"
wait "$sleeper" 2>/dev/null
cop_tree=0
is 'a command that still runs has not ended with 0; one that nobody has waited for has' \
	"$(ended)" 'FAILED|stopped while 1 command ran'

prepare_tree 1
SLURM_JOB_END_TIME=$(($(date +%s) - 1)) with_tree 1 --store "$STORE"
run_at 0 sh -c 'kill -TERM $$'
without_tree >/dev/null
is 'a command that a scheduler ended at its time limit' "$(ended)" 'FAILED|time limit'

# ---- before Linux 6.15, copper run stays as the parent and reports the end

new=$COPPER
printf '#!/bin/sh\nexec %s %s %s "$@"\n' "$PYTHON" "$cop_t/no_exit_info.py" "$new" >"$T/copper"
chmod 755 "$T/copper"
COPPER=$T/copper

one_job 1 false
is 'the exit status reaches the record there, too' "$(ended)" 'FAILED|exit 1 on rank 0'
one_job 137 sh -c 'kill -9 $$'
is 'and the signal' "$(ended)" 'FAILED|signal 9 (killed) on rank 0'
with_tree 2 --store "$STORE" --store-interval 200ms
"$COPPER" run --mount "$W/mnt/1" -- sh -c '
trap "kill \$!; exit 7" USR1
echo $$ >"$1.new"
mv "$1.new" "$1"
sleep 300 & wait' - "$T/trapped" &
parent=$!
started "$T/trapped"
is 'nothing of the parent is open, so that readers wait for the command alone' \
	"$(find "/proc/$parent/fd" -type l -printf '%l\n' | sort -u)" /dev/null
kill -USR1 "$parent"
wait "$parent"
is 'a signal reaches the command, whose status is that of copper run' $? 7
without_tree >/dev/null
is 'a rank without the record reports its ends, too' "$(ended)" 'FAILED|exit 7 on rank 1'

with_tree 1 --store "$STORE" --store-interval 200ms
"$COPPER" run --mount "$W/mnt/0" -- sh -c 'echo $$ >"$1"; exec sleep 300' - "$T/killed" &
parent=$!
started "$T/killed"
kill -KILL "$parent"
wait "$parent" 2>/dev/null
ok 'a copper run that is killed takes its command with it' wait_for 10 gone "$(cat "$T/killed")"
without_tree >/dev/null
is 'a run of which an end is unknown has not finished' "$(ended)" \
	'FAILED|how 1 of 1 commands ended is not known'

with_tree 1 --store "$STORE" --store-interval 200ms
ok 'a shell stops and continues the command as any other' "$PYTHON" "$cop_t/job_control.py" \
	"$COPPER" run --mount "$W/mnt/0" --
without_tree >/dev/null
is 'and the terminal ends it' "$(ended)" 'FAILED|signal 2 (interrupted) on rank 0'

with_tree 1
"$COPPER" run --mount "$W/mnt/0" -- sleep 300 &
sleeper=$!
ok 'without a record, copper run becomes the command' wait_for 10 becomes "$sleeper" 'sleep 300'
kill "$sleeper"
wait "$sleeper" 2>/dev/null
without_tree >/dev/null
COPPER=$new

# ---- copper run brings the tree up: the task that waits for the command tells how it ended

"$COPPER" run --store "$STORE" --tag name=tree --source "$SRC" sh -c 'exit 5'
is 'copper run --source ends as its command' $? 5
is 'and its run has failed' "$(ended)" 'FAILED|exit 5 on rank 0'
"$COPPER" run --store "$STORE" --tag name=tree --source "$SRC" true
is 'a run of copper run --source that went well' "$(ended)" 'FINISHED|stopped'

# ---- what commands find in their environment

variables='${COPPER_JOB_DIR:-none} ${COPPER_RUN_ID:-none} ${COPPER_STORE:-none} ${TRACEPARENT:-none}'
with_tree 2 --store "$STORE" --otel
id=$(judge 'SELECT id FROM run ORDER BY start DESC LIMIT 1')
got=$(run_at 0 sh -c "echo $variables")
is 'a command finds its job, run and store' "${got% *}" "$JOB $id $STORE"
matches 'and the span of the job' "$got" ' 00-[0-9a-f]{32}-[0-9a-f]{16}-01$'
is 'a command on another rank finds the same' "$(run_at 1 sh -c "echo $variables")" "$got"
without_tree >/dev/null
is "the span is the job's" "$(
	"$PYTHON" - "$JOB/otel/traces.jsonl" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    for r in json.loads(line)["resourceSpans"]:
        for s in r["scopeSpans"]:
            for span in s["spans"]:
                if span["name"] == "copper.job":
                    print(span["traceId"], span["spanId"])
PY
)" "$(awk '{ split($NF, span, "-"); print span[2], span[3] }' <<<"$got")"
is 'copper run -d JOB gives its program the job directory' \
	"$("$COPPER" run -d "$T/job.run" --source "$SRC" sh -c "echo $variables")" \
	"$T/job.run none none none"
is 'a mark goes into the job directory' "$("$COPPER" run -d "$T/job.run" --source "$SRC" \
	"$COPPER" mark step -- true && find "$T/job.run/trace" -type f | wc -l)" 1
with_tree 1
got=$(env -u COPPER_JOB_DIR "$COPPER" run --mount "$W/mnt/0" sh -c "echo $variables")
is 'a job without a store and spans has only its directory' "$got" "$JOB none none none"
without_tree >/dev/null
