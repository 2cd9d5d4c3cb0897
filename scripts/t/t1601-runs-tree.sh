#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs of trees of three nodes: sums of all of them in telemetry and at the end, how busy their
# machines are, nodes that do not answer, a root that is killed.
# covers: runs machine
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 21
# shellcheck source=runs.sh
. "$cop_t/runs.sh"

last() { # COLUMNS
	judge "SELECT $1 FROM run_now ORDER BY start DESC LIMIT 1"
}
value() { # KEY: the last one of the newest run
	judge "SELECT CAST(value AS INT) FROM metric_last WHERE key = '$1' AND run = (SELECT id FROM run ORDER BY start DESC LIMIT 1)"
}

# ---- a stop

with_tree 3 --store "$STORE" --store-interval 200ms --telemetry 200ms
read_everything 0 1 2
all_answered() { [ "$(value nodes.answered)" = 3 ] && [ "$(value fuse.read_bytes)" -gt 0 ]; }
ok 'all nodes are in the telemetry' wait_for 30 all_answered
bytes=$(tree_sum fuse.read_bytes)
served=$(tree_sum origin.operations)
held=$(tree_sum budget.used_bytes)
used=$(tree_sum cache.used_bytes)
has_held() { [ "$(value budget.used_bytes)" = "$held" ]; }
ok 'what their caches hold is in it' wait_for 30 has_held
resident=$(judge "SELECT a.value > b.value FROM metric_last a JOIN metric_last b ON a.key = 'memory.resident_bytes' AND b.key = 'memory.resident_bytes_max'")
is 'the sum of their memory is more than that of one' "$resident" 1
busy() { [ "$(value system/max/cpu_utilization_percentage)" -gt 0 ]; }
ok 'how busy the hosts are is in it' wait_for 30 busy
ok 'the tree stops' without_tree
is 'the job has one row' "$(judge 'SELECT status, nodes, exit_reason FROM run')" \
	'FINISHED|3|stopped'
is 'the totals of the run are those of all nodes' \
	"$(value fuse.read_bytes) $(value origin.operations)" "$bytes $served"
is 'what of the caches was used is another number, of the end' \
	"$(value cache.used_bytes) $(judge \
		"SELECT count(*) FROM metric WHERE key = 'cache.used_bytes'")" "$used 1"
is 'the machines have the metrics of MLflow, for their mean and for the highest' \
	"$(judge "SELECT DISTINCT replace(key, 'system/', '') FROM metric WHERE key GLOB 'system/[^m]*' OR key GLOB 'system/max/cpu*' ORDER BY key" |
		grep -v '^gpu_' | paste -sd ' ')" \
	"cpu_utilization_percentage$(findmnt -no FSTYPE / | grep -qvE 'nfs|lustre|gpfs|fuse' &&
		echo ' disk_available_megabytes disk_usage_megabytes disk_usage_percentage') max/cpu_utilization_percentage network_receive_megabytes network_transmit_megabytes system_memory_usage_megabytes system_memory_usage_percentage"
is 'a percentage is at most 100, and the memory in use at most what the machine has' \
	"$(judge "SELECT max(value) <= 100 FROM metric WHERE key GLOB 'system/*percentage'") $(judge \
		"SELECT min(value) > 0 AND max(value) < $(awk '/^MemTotal/ { print $2 / 976 }' /proc/meminfo) FROM metric WHERE key = 'system/system_memory_usage_megabytes'")" '1 1'
is 'only rank 0 wrote records' \
	"$(judge "SELECT value FROM resource WHERE key = 'service.instance.id'")" 0

# ---- nodes that are gone when it stops

with_tree 3 --store "$STORE" --store-interval 200ms --telemetry 0 --peer-timeout 1 --trees 1 --fanout 2
kill_node 2
missed() { [ "$(value nodes.missing)" = 1 ]; }
ok 'telemetry says that a node is missing' wait_for 40 missed
ok 'the nodes that are left stop' without_tree
is 'a run has not finished if nobody knows how the commands of a node ended' \
	"$(last 'status, exit_reason')" \
	'FAILED|stopped; 1 of 3 nodes did not answer: how commands ended there is not known'
is 'with --telemetry 0 no machine is sampled' \
	"$(judge "SELECT count(*) FROM metric WHERE key GLOB 'system/*' AND run = (SELECT id FROM run ORDER BY start DESC LIMIT 1)")" 0
unmount_killed

# ---- a root that ends by itself

with_tree 3 --store "$STORE" --peer-timeout 1
"$COPPER" run --mount "$W/mnt/2" -- false
root=$(node_stat 0 pid)
is_ours "$root" || bail "pid $root is not of this test"
kill -TERM "$root"
root_ended() { [ "$(last status)" != RUNNING ]; }
wait_for 20 root_ended
is 'nor if the root did not ask the others' "$(last 'status, exit_reason')" \
	'FAILED|signal; how commands ended on 2 of 3 nodes is not known'
"$COPPER" stop "$W/mnt/1" >/dev/null 2>&1
cop_tree=0

# ---- a root that is killed

with_tree 3 --store "$STORE" --store-interval 100ms --peer-timeout 1
kill_node 0
is 'the row of a killed run says that it runs' \
	"$(judge 'SELECT status FROM run ORDER BY start DESC LIMIT 1')" RUNNING
is_lost() { [ "$(last status)" = LOST ]; }
ok 'the view says that it is lost' wait_for 40 is_lost
is 'copper runs says that the run is lost' "$(runs list --status lost --json | json_of 'len(j)')" 1
ok 'the nodes that are left stop' without_tree
unmount_killed
is 'the stop of the others does not change the row' "$(last status)" LOST
