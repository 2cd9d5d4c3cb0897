#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# NVIDIA's GPUs in the telemetry of a job, by an nvidia-smi that prints what the real one does: two
# GPUs, parts of one, no driver; one that hangs, and one that ends. None outlives its node.
# covers: runs machine
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 15
# shellcheck source=runs.sh
. "$cop_t/runs.sh"
mkdir "$T/bin"
PATH=$T/bin:$PATH

smi() { # becomes nvidia-smi; standard input is its script
	{
		echo '#!/bin/sh'
		echo "echo \"\$\$\" >>'$T/pids'; echo \"\$*\" >'$T/words'; readlink /proc/\$\$/fd/* >'$T/open'"
		cat
	} >"$T/bin/nvidia-smi"
	chmod 755 "$T/bin/nvidia-smi"
	rm -f "$T/pids"
}
job() { # [CONDITION…]: a job with telemetry, until the condition holds
	with_tree 1 --store "$STORE" --store-interval 100ms --telemetry "${every:-1s}"
	[ "$#" -eq 0 ] || wait_for 60 "$@" || note "$* does not hold"
	without_tree >/dev/null
}
gpu() { # METRIC: its last value in the newest run
	judge "SELECT value FROM metric WHERE key = 'system/gpu_$1' AND run = (SELECT id FROM run ORDER BY start DESC, rowid DESC LIMIT 1) ORDER BY step DESC LIMIT 1"
}
has() { # METRIC
	[ -n "$(gpu "$1")" ]
}
started() {
	[ -s "$T/pids" ]
}
alive() { # how many of those that were started live
	local pid n=0
	while read -r pid; do
		[ ! -e "/proc/$pid" ] || n=$((n + 1))
	done <"$T/pids"
	echo "$n"
}
none_alive() {
	[ "$(alive)" = 0 ]
}

smi <<'SH'
while :; do
	echo '0, 45, 1000, 4000, 65.25, 100.00'
	echo '1, 7, 500, 2000, 30.00, 120.00'
	sleep 0.2
done
SH
job has 1_power_usage_watts
is 'two GPUs have the names and units of MLflow' \
	"$(for m in utilization_percentage memory_usage_megabytes memory_usage_percentage power_usage_watts power_usage_percentage; do gpu "0_$m"; done | paste -sd ' ')" \
	'45.0 1048.576 25.0 65.25 65.25'
is 'each' "$(gpu 1_utilization_percentage) $(gpu 1_memory_usage_megabytes) $(gpu 1_power_usage_percentage)" '7.0 524.288 25.0'
is 'what is asked for' "$(cat "$T/words")" \
	'--query-gpu=index,utilization.gpu,memory.used,memory.total,power.draw,power.limit --format=csv,noheader,nounits -l 1'
is 'it has no descriptor of the node' "$(grep -e '^socket:' -e '^anon_inode:' -e '^/dev/fuse' "$T/open")" ''
ok 'it ends with its node' wait_for 30 none_alive
is 'there was one' "$(wc -l <"$T/pids")" 1
runs export --mlflow "$T/mlflow.db" >/dev/null
is 'MLflow gets them' "$("$PYTHON" -c 'import sqlite3, sys
print(*[r[0] for r in sqlite3.connect(sys.argv[1]).execute("SELECT DISTINCT key FROM metrics WHERE key GLOB ? ORDER BY key", ("system/gpu_0*",))])' "$T/mlflow.db")" \
	'system/gpu_0_memory_usage_megabytes system/gpu_0_memory_usage_percentage system/gpu_0_power_usage_percentage system/gpu_0_power_usage_watts system/gpu_0_utilization_percentage'

smi <<'SH'
while :; do
	echo '0, [N/A], 1000, 4000, [Not Supported], [Unknown Error]'
	echo 'Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error'
	sleep 0.2
done
SH
job has 0_memory_usage_percentage
is 'what is not known of a GPU in parts has no value' \
	"$(gpu 0_memory_usage_percentage)$(gpu 0_utilization_percentage)$(gpu 0_power_usage_watts)$(gpu 1_memory_usage_megabytes)" 25.0

smi <<'SH'
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."
exit 9
SH
job started
is 'without a driver there are no values' "$(gpu 0_utilization_percentage)" ''
is 'and it is not started again at once' "$(wc -l <"$T/pids")" 1

smi <<'SH'
trap '' TERM INT HUP
exec sleep 1000
SH
job started
is 'one that hangs holds nothing up' "$(row=$(runs list --json | json_of 'j[0]["status"]') && echo "$row")" FINISHED
ok 'and ends, too' wait_for 30 none_alive

smi <<'SH'
echo '0, 45, 1000, 4000, 65.25, 100.00'
SH
every=5s job has 0_utilization_percentage
is 'of one that ends, the last values remain' "$(gpu 0_utilization_percentage)" 45.0

rm "$T/bin/nvidia-smi" "$T/pids"
job
is 'without nvidia-smi there are none' "$(gpu 0_utilization_percentage)" ''
smi <<'SH'
exec sleep 1000
SH
with_tree 1
without_tree >/dev/null
ok 'without a store it is not started' test ! -e "$T/pids"
