#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# -b pins all threads of a node, including later ones; without it the node runs where its launcher
# allows.
# covers: node
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
all=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
first=${all%%[,-]*}
last=${all##*[,-]}
[ "$first" != "$last" ] || skip_all "one processor only"
plan 20

# The processor sets of all threads of a node, each once.
threads_of() { # RANK
	sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$(node_stat "$1" pid)"/task/*/status | sort -u |
		tr '\n' ' '
}
count_of() { # RANK
	find "/proc/$(node_stat "$1" pid)/task" -mindepth 1 -maxdepth 1 | wc -l
}
use() { # RANK: makes the threads of the origin
	checksums "$W/mnt/$1" >"$T/sums.$1"
}

with_tree 2 -b "$last"
use 0
use 1
is 'all threads of the root run where -b says' "$(threads_of 0)" "$last "
is 'all threads of the leaf run where -b says' "$(threads_of 1)" "$last "
is_at_most 'those that came with the first reads are among them' 6 "$(count_of 0)"
is 'cache-stats tells' "$(node_stat 1 cpus)" "$last"
matches 'the table too' "$("$COPPER" cache-stats "$W/mnt/0")" "^processors $last\$"
is 'the files are right' "$(cut -d ' ' -f 1 "$T/sums.1")" "$(checksums "$SRC" | cut -d ' ' -f 1)"
without_tree

with_tree 1
use 0
is 'without -b nothing is pinned' "$(threads_of 0)" "$all "
without_tree

mkdir "$W/one"
ok 'a launcher that binds its tasks' taskset -c "$first" "$COPPER" mount --source "$SRC" "$W/one"
is 'binds the node' "$("$COPPER" cache-stats --json "$W/one" | json_value cpus)" "$first"
"$COPPER" stop "$W/one" >"$T/.out"
ok '-b outranks the binding of the launcher' \
	taskset -c "$first" "$COPPER" mount -b "$first,$last" --source "$SRC" "$W/one"
matches 'the node runs where -b says' "$("$COPPER" cache-stats --json "$W/one" | json_value cpus)" \
	"^${first}[,-]$last\$"
"$COPPER" stop "$W/one" >"$T/.out"

# ---- near: the machine says where the card is; here the card is invented, in a view of the file
# system that only this part has

near() { # LIST
	"${cop_apart[@]}" bash -eu -s "$1" <<-'SH'
		mount -t tmpfs none /sys/class/net
		mkdir -p /sys/class/net/lo/device
		[ -z "$1" ] || echo "$1" >/sys/class/net/lo/device/local_cpulist
		for rank in 0 1; do
			"$COPPER" mount --hosts "$HOSTS" --rank "$rank" --secret-file "$SECRET" -d "$JOB" --source "$SRC" \
				-n tcp://lo -b near "$W/mnt/$rank" &
		done
		wait
		"$COPPER" cache-stats --all "$W/mnt/0"
		for pid in $("$COPPER" cache-stats --all "$W/mnt/0" | grep -o '"pid":[0-9]*' | cut -d : -f 2); do
			sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$pid"/task/*/status | sort -u >>"$T/near"
		done
		"$COPPER" stop "$W/mnt/1"
	SH
}
export COPPER W T SRC
prepare_tree 2
export JOB HOSTS SECRET
ok 'near pins the node near the card' near "$last"
is 'all threads run near the card' "$(sort -u "$T/near")" "$last"
matches 'the log tells near which card they run' \
	"$(cat "$JOB"/logs/*.log)" "pinned near network=lo cpus=$last"
prepare_tree 2
rm "$T/near"
ok '--cpus near starts where the machine does not tell' near ''
is 'near pins nothing there' "$(sort -u "$T/near")" "$all"
matches 'the log says that nothing is pinned' \
	"$(cat "$JOB"/logs/*.log)" 'not pinned, since this machine does not say.*network=lo'

# ---- what is refused

fails_with 1 'cpus 0,65000: processor 65000 does not exist: this machine has' \
	"$COPPER" mount -b 0,65000 --source "$SRC" "$W/one"
fails_with 2 'cpus.*is not a list of processors' "$COPPER" mount -b 0-,1 --source "$SRC" "$W/one"

set=/sys/fs/cgroup/cpuset/copper-test-$$
if mkdir "$set" 2>/dev/null && echo "$first" >"$set/cpuset.cpus" &&
	cat /sys/fs/cgroup/cpuset/cpuset.mems >"$set/cpuset.mems"; then
	fails_with 1 "processor $last may not be used here.* $first\$" \
		bash -c 'echo $$ >"$1/tasks" && shift && exec "$@"' - "$set" \
		"$COPPER" mount -b "$first,$last" --source "$SRC" "$W/one"
else
	pass 'a processor outside of the cpuset # SKIP no cpusets here'
fi
[ ! -d "$set" ] || rmdir "$set"
