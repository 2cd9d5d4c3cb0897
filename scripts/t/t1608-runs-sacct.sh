#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What Slurm's accounting says of a job stands beside its runs. slurmdbd wants a database server, so
# a program named sacct prints what the real one of Slurm 22.05 printed of such jobs
# (testdata/sacct). One that hangs, fails, prints something else or is not there harms nothing.
# covers: runs scheduler
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 26
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

# sacct: --jobs N is job N, and its steps. Each call leaves a line.
mkdir "$T/bin" "$T/none"
export RECORDED=$cop_root/testdata/sacct/slurm-22.05 CALLS=$T/calls MODE=$T/mode
cat >"$T/bin/sacct" <<'S'
#!/usr/bin/env bash
echo "$*" >>"$CALLS"
case $(cat "$MODE" 2>/dev/null) in
hang) sleep 98765 ;;
closed) exec >&- && sleep 98765 ;;
odd) printf 'JobID\tState\n\033[2J|%s\n' "$*" && exit ;;
fail) exit 1 ;;
esac
[ "$SLURM_TIME_FORMAT" = %s ] && [[ " $* " =~ ' --jobs '([0-9]+)' ' ]] || exit 2
grep -E "^${BASH_REMATCH[1]}[.|]" "$RECORDED" || true
S
chmod +x "$T/bin/sacct"
PATH=$T/bin:$PATH
calls() {
	wc -l <"$CALLS"
}
: >"$CALLS"

with_tree 1 --store "$STORE"
without_tree >/dev/null
record() { # ID JOB [ATTEMPT]: a run that began with this attempt of the job
	local start
	start=$(awk -F '|' -v job="$2" -v n="${3:-1}" '$1 "" == job "" && !--n { print $6 }' "$RECORDED")
	judge "INSERT INTO run VALUES ('$1', 'job$2', '', 'FINISHED', $start + 1.5, $start + 2, 1, '1', '', $start + 2, 5)"
	judge "INSERT INTO resource VALUES ('$1', 'slurm.job_id', '$2'), ('$1', 'slurm.cluster_name', 'test')"
}
field() { # JOB COLUMN [ATTEMPT] of the recording
	awk -F '|' -v job="$1" -v col="$2" -v n="${3:-1}" '$1 "" == job "" && !--n { print $col }' "$RECORDED"
}
tag() { # ID KEY: in the store
	judge "SELECT value FROM tag WHERE run = '$1' AND key = 'sacct.$2'"
}
# A machine that is busy may not answer in time; then the next question counts.
has_state() { # ID
	runs show "$1" >"$T/shown" && grep -q '^sacct' "$T/shown"
}
shown() { # ID KEY…: tags of sacct's, as copper runs show has them
	wait_for 30 has_state "$1"
	local key
	for key in "${@:2}"; do
		sed -n "s/^sacct\.$key  *//p" "$T/shown"
	done | paste -sd ' '
}
read -r ok_job fail_job cancel_job again_job open_job <"$RECORDED.jobs"
record 00000000000000a1 "$ok_job"
record 00000000000000a2 "$fail_job"
record 00000000000000a3 "$cancel_job"
record 00000000000000a4 "$again_job" 1
record 00000000000000a5 "$again_job" 2
record 00000000000000a6 "$open_job"

is 'copper runs show has the state' "$(shown 00000000000000a1 state)" COMPLETED
is 'the time, and the memory of the task that had most' "$(shown 00000000000000a1 elapsed max_rss)" \
	"$(field "$ok_job" 3) $(grep "^$ok_job\." "$RECORDED" | cut -d '|' -f 4 | sort -n | tail -n 1)"
matches 'which are 200 MiB and more' "$(tag 00000000000000a1 max_rss)" '^2[0-9]{8}$'
matches 'and what the step used' "$(shown 00000000000000a1 tres_usage)" '^cpu=.*,mem='
is 'they are in the store' "$(tag 00000000000000a1 state)" COMPLETED
ok 'sacct is asked about that job of that cluster' grep -q -- "--jobs $ok_job --clusters test$" "$CALLS"
before=$(calls)
is 'and not once more than needed' "$(runs show 00000000000000a1 >/dev/null; calls)" "$before"
is 'a job that failed' "$(shown 00000000000000a2 state)" FAILED
is 'one that was cancelled' "$(shown 00000000000000a3 state)" "$(field "$cancel_job" 2)"
is 'each attempt of one that was requeued is of its own run' \
	"$(shown 00000000000000a4 state elapsed) $(shown 00000000000000a5 state elapsed)" \
	"$(field "$again_job" 2 1) $(field "$again_job" 3 1) $(field "$again_job" 2 2) $(field "$again_job" 3 2)"
is 'of a job that runs' "$(shown 00000000000000a6 state)" RUNNING
is 'nothing is kept' "$(tag 00000000000000a6 state)" ''
is 'runs are found by it' "$(runs list --where 'tag.sacct.max_rss > 200000000' --json | json_of '[r["name"] for r in j]')" "['job$ok_job']"

judge "DELETE FROM tag WHERE key GLOB 'sacct.*'"
is 'copper runs import --sacct asks about all runs of a job' \
	"$("$COPPER" runs import --store "$STORE" --sacct "$again_job" | sort)" \
	"$(for n in 1 2; do echo "00000000 $(field "$again_job" 2 $n) (job $again_job)"; done | sort)"
is 'and keeps it' "$(tag 00000000000000a5 state)" "$(field "$again_job" 2 2)"
fails_with 1 "no run in .* is of Slurm's job 99999" "$COPPER" runs import --store "$STORE" --sacct 99999
fails_with 2 "'7_1' is not a job number" "$COPPER" runs import --store "$STORE" --sacct 7_1

# ---- one that harms nothing

judge "DELETE FROM tag WHERE key GLOB 'sacct.*'"
unharmed() { # MODE: what copper runs show says
	echo "$1" >"$MODE"
	runs show 00000000000000a1 2>&1 | sed -n '/^name/p; /sacct/p; /copper/p'
}
for mode in hang closed odd fail; do
	is "a sacct that does its worst: $mode" "$(unharmed "$mode")" "name      job$ok_job"
done
echo odd >"$MODE"
fails_with 1 "job $ok_job: sacct answers what it never prints" "$COPPER" runs import --store "$STORE" --sacct "$ok_job"
rm "$MODE"
is 'without one, a run is shown' "$(env PATH="$T/none" "$COPPER" runs show --store "$STORE" 00000000000000a1 2>&1 | grep -c '^name\|sacct')" 1
fails_with 1 "there is no sacct here" env PATH="$T/none" "$COPPER" runs import --store "$STORE" --sacct "$ok_job"
before=$(calls)
judge "DELETE FROM resource WHERE run = '00000000000000a1'"
is 'a run without Slurm is not asked about' "$(runs show 00000000000000a1 >/dev/null; calls)" "$before"
judge "UPDATE run SET start = start - 5000 WHERE id = '00000000000000a2'"
is 'nor does it get what is of another job of its number' \
	"$(runs show 00000000000000a2 --json | json_of '[k for k in j["tag"] if "sacct" in k]')" '[]'
