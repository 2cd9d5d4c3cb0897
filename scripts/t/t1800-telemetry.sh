#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What each node did and when comes up the tree at a stop: rows that add up, events of nodes that
# die, nothing without a job directory.
# covers: telemetry sampler loop
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 34

judge() { # WHAT: of the files of the last job
	"$PYTHON" "$cop_t/telemetry_judge.py" "$JOB/profiling/${FOLDER:-cluster}" "$@"
}
events() { # [EVENT…]: rank, event, detail
	judge events "$@"
}
use() { # RANK…
	local rank
	for rank in "$@"; do
		ls -R "$W/mnt/$rank" >/dev/null
		cat "$W/mnt/$rank/hello" "$W/mnt/$rank/dir/numbers" \
			"$W/mnt/$rank/dir/deeper/random" >/dev/null
		[ ! -e "$W/mnt/$rank/absent" ] || return 1
	done
}

# ---- four nodes at work, on storage that is slow enough for waits to count in milliseconds

with_slowfs --meta-us 1000
with_tree 4 --trees 1 --fanout 2 -A
use 0 1
sleep 1.2
use 2 3
sleep 1.2
counted="$(tree_sum fuse.read_bytes) $(for name in lookup getattr readlink open read release \
		opendir readdir releasedir statfs access ioctl lseek getxattr \
		listxattr; do tree_sum "fuse.$name"; done | awk '{ n += $1 } END { print n }')"
ok 'four nodes stop' without_tree
without_slowfs
is 'each node has a row, with its parent' "$(judge parents)" '0:-1 1:0 2:0 3:1'
is 'each node has a row for each interval, on one grid' "$(judge grid)" good
is 'the intervals add up to the sums of the nodes' "$(judge adds_up)" good
is 'the sums of the nodes add up to the counters of the job' \
	"$(judge totals "${counted% *}" "${counted#* }")" good
is 'the phases of the start add up to the moment when it was ready' "$(judge phases)" good
is 'the telemetry says where most of the time was waited' "$(judge waits)" good
is 'the telemetry says who worked when' "$(judge when)" good
is 'each node was ready and stopped, in order of time' \
	"$(judge order) $(events ready stop | sort)" \
	"good 0 ready
0 stop stopped
1 ready
1 stop stopped
2 ready
2 stop stopped
3 ready
3 stop stopped"
is 'the times are those of the clock' "$(judge clock)" good

# ---- a parent is killed

with_tree 4 --trees 1 --fanout 2 --peer-timeout 2
use 1
kill_node 1
use 3
"$COPPER" stop "$W/mnt/3" >"$T/.out" 2>&1
is 'a stop with a dead node ends with 1' $? 1
matches 'its child went to another parent' \
	"$(events failover)" '^3 failover tree 0: rank 1: .*; next 0$'
matches 'the child names its new parent' \
	"$(events peer_dead)" '^3 peer_dead rank 1 \(127\.0\.0\.12\)$'
is 'a dead node has no row' "$(judge ranks)" '0 2 3'
is 'the dead node has said nothing' "$(events | grep -c '^1 ')" 0
is 'each failover is counted' "$(judge value 3 failovers)" "$(events failover | grep -c '^3 ')"
unmount_killed
cop_tree=0

# ---- the root is killed: the node that was asked writes

with_tree 3 --trees 1 --fanout 2 --peer-timeout 2
began=$(node_stat 0 rank)
kill_node 0
use 1
"$COPPER" stop "$W/mnt/1" >"$T/.out" 2>&1
is 'with a dead root the node that was asked writes' "$began $(judge ranks)" '0 1 2'
is 'in the time of the job, which began with the root' "$(judge clock)" good
unmount_killed
cop_tree=0

# ---- what the storage does, and prefetching

export HOME=$T/home
mkdir -p "$HOME"
SRC=$T/slowly
small_tree "$SRC"
with_slowfs --meta-us 100
mkdir "$ORIGIN/bad"
seq 1 100 >"$ORIGIN/bad/file"
seq 1 30000 >"$ORIGIN/changing"
with_tree 2 --prefetch auto --rank-files none -P
ended() { [ "$(node_stat 1 prefetching.state)" = 'done' ]; }
wait_for 20 ended
slow_fault "eio=bad"
fails_with 2 'Input/output error' ls "$W/mnt/1/bad"
slow_fault clear
stat "$W/mnt/1/changing" >/dev/null
seq 30000 -1 1 >"$ORIGIN/changing"
touch -d '2021-01-01' "$ORIGIN/changing"
cat "$W/mnt/1/changing" >/dev/null 2>&1
ok 'two nodes stop' without_tree
is 'with no files of ranks the job has its own' "$(judge ranks)" '0 1'
matches 'an error of the storage is an event of the node that reads it' \
	"$(events storage_error)" '^0 storage_error /bad: EIO, Input/output error'
matches 'a file that changes is one of the node that met it' \
	"$(events file_changed)" '^1 file_changed /changing$'
is 'prefetching begins and ends on each node' \
	"$(events prefetch_begin prefetch_end | cut -d ' ' -f 1,2 | sort -u | tr '\n' ' ')" \
	'0 prefetch_begin 0 prefetch_end 1 prefetch_begin 1 prefetch_end '
without_slowfs

# ---- other ways

with_tree 2 -P --rank-files root
use 1
"$COPPER" cache-stats --snapshot "$W/mnt/0" >"$T/.out" 2>&1
SNAPSHOT="$(FOLDER=ioctl-snapshot judge adds_up) $(FOLDER=ioctl-snapshot judge ranks)"
before=$(tree_sum fuse.read_bytes)
"$COPPER" cache-stats --reset --all "$W/mnt/0" >"$T/.out" 2>&1
cat "$W/mnt/0/dir/numbers" >/dev/null
after=$(tree_sum fuse.read_bytes)
ok 'with the files of one rank: they stop' without_tree
is 'both nodes have rows' "$(judge ranks)" '0 1'
is 'a snapshot has what rank 0 knows' "$SNAPSHOT" 'good 0'
note "before and after: $before, $after"
is 'counters that were set to zero meanwhile go on' \
	"$(judge adds_up) $(judge sum read_bytes)" "good $((before + after))"
ok 'after they were' test "$after" -gt 0 -a "$after" -lt "$before"

cache=$((16 * 1024 * 1024))
with_tree 1 --cache-size $cache --chunk 64K
use 0
ok 'a node alone stops' without_tree
is 'the budget of a node alone is known' "$(judge value 0 cache_limit_bytes)" $cache

# The harness gives each tree a job directory.
mkdir "$T/alone" "$T/.before"
cd "$T/alone" || exit 1
as_user "$COPPER" mount --hosts localhost --port "$(free_port)" --source "$SRC" "$T/alone" \
	>"$T/.out" 2>&1
is 'a node without a job directory starts' $? 0
cat "$T/alone/hello" >/dev/null
cd "$T" || exit 1
as_user "$COPPER" stop "$T/alone" >"$T/.out" 2>&1
is 'a node without a job directory stops' $? 0
is 'a node without a job directory has written nothing' \
	"$(find "$T" -newer "$T/.before" -name 'cluster*')" ''
