#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job that may use less memory than the machine has: the cache is a share of the job's limit,
# whichever control group on the way up sets it.
# covers: conf scheduler
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

# A control group of the job, and in it one of the step, as Slurm makes them.
job=
for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	for file in memory.limit_in_bytes memory.max; do
		[ -z "$job" ] || break 2
		mkdir "$top/copper-test-$$" 2>/dev/null || [ -d "$top/copper-test-$$" ] || continue
		[ ! -w "$top/copper-test-$$/$file" ] || job=$top/copper-test-$$ limit=$file
		[ -n "$job" ] || rmdir "$top/copper-test-$$"
	done
done
[ -n "$job" ] || skip_all 'no control groups for memory here'
step=$job/step
remove_groups() {
	rmdir "$step" "$job" 2>/dev/null
}
trap 'status=$?; remove_groups; (exit "$status"); finish' EXIT
mkdir "$step" || bail "cannot make $step"
none=$(cat "$job/$limit")
plan 10

in_step() { # COMMAND…
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$step" "$@"
}
mount_in_step() { # [OPTION…]
	prepare_tree 1
	cop_tree=1
	in_step "$COPPER" mount --source "$SRC" "$@" "$W/mnt/0" >"$T/.out" 2>"$T/.err" </dev/null
}
limit_of_cache() {
	node_stat 0 budget.limit_bytes
}
MIB=1048576

ok 'without a limit of the job a node starts' mount_in_step
without_tree
echo 1000M >"$job/$limit"
ok 'with one above the group of the node, too' mount_in_step
is 'the cache is a tenth of the job limit' "$(limit_of_cache)" $((100 * MIB))
without_tree
echo 800M >"$step/$limit"
ok 'a node mounts in a step with a smaller limit' mount_in_step
is 'the smaller one counts' "$(limit_of_cache)" $((80 * MIB))
without_tree
echo "$none" >"$step/$limit"
mount_in_step --cache-size 4G
is 'a larger cache than the job may use is lowered' "$? $(limit_of_cache)" "0 $((500 * MIB))"
matches 'a lowered cache comes with a sentence' "$(cat "$T/.err")" \
	'^copper: note: --cache-size 4\.0 GiB is more than the 1000\.0 MiB that this job may use in all .* the cache may grow to 500\.0 MiB; .*more memory'
without_tree
mount_in_step --cache-size 900M
is 'a cache that fits the job is granted' "$? $(limit_of_cache)" "0 $((900 * MIB))"
is 'a cache that fits comes without a word' "$(grep 'more than' "$T/.err")" ''
without_tree
ok 'no process stays in the control group' wait_for 5 remove_groups
