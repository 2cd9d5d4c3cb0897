#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How the commands of a job ended is in the record of its run, and what the job is called is in
# their environment.
# covers: runs
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 22
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

run_at() { # RANK COMMAND…
	"$COPPER" run --mount "$W/mnt/$1" -- "${@:2}"
}
ended() { # how the newest run ended
	judge 'SELECT status, exit_reason FROM run ORDER BY start DESC LIMIT 1'
}
# The kernel tells how a process ended that is no child since Linux 6.15.
knows_exits() {
	"$PYTHON" - <<'PY'
import fcntl, os, struct, sys, time
r, w = os.pipe()
if os.fork() == 0:
    child = os.fork()
    if child == 0:
        time.sleep(0.2)
        os._exit(3)
    os.write(w, struct.pack("i", child))
    os.waitpid(child, 0)
    os._exit(0)
fd = os.pidfd_open(struct.unpack("i", os.read(r, 4))[0])
os.wait()
info = bytearray(struct.pack("Q", 8) + bytes(64))
try:
    fcntl.ioctl(fd, 0xC048FF0B, info)
except OSError:
    sys.exit(1)
sys.exit(0 if struct.unpack_from("i", info, 60)[0] == 3 << 8 else 1)
PY
}
unknown='how 1 of 1 commands ended is not known'

# ---- copper run becomes the command: the node learns how that ended

one_job() { # STATUS COMMAND…: copper run's status is STATUS; the record in $(ended)
	local want=$1
	with_tree 1 --store "$STORE" --store-interval 200ms
	run_at 0 "${@:2}" >"$T/out" 2>&1
	is "copper run ends as its command: ${*:2}" $? "$want"
	without_tree >/dev/null
}
one_job 0 true
is 'a command that ended with 0 makes a run that finished' "$(ended | sed "s/; $unknown.*//")" \
	'FINISHED|stopped'
if knows_exits; then
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
	"$COPPER" run --mount "$W/mnt/0" -- sleep 300 &
	sleeper=$!
	sleeps() { [ "$(tr '\0' ' ' <"/proc/$sleeper/cmdline")" = 'sleep 300 ' ]; }
	wait_for 10 sleeps || bail 'no command'
	node=$(node_stat 0 pid)
	is_ours "$node" || bail "pid $node is not of this test"
	kill -TERM "$node"
	gone() { ! kill -0 "$node" 2>/dev/null; }
	ok 'a node ends by a signal while a command runs' wait_for 20 gone
	kill "$sleeper" 2>/dev/null
	wait "$sleeper" 2>/dev/null
	cop_tree=0
	is 'which is no finished run' "$(ended)" \
		'FAILED|the node was ended by a signal while 1 command ran'
	prepare_tree 1
	SLURM_JOB_END_TIME=$(($(date +%s) - 1)) with_tree 1 --store "$STORE"
	run_at 0 sh -c 'kill -TERM $$'
	without_tree >/dev/null
	is 'a command that a scheduler ended at its time limit' "$(ended)" 'FAILED|time limit'
else
	for point in 1 2 3 4 5 6 7 8 9 10; do
		ok "the end of a command is seen $point # SKIP Linux before 6.15" true
	done
fi

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
