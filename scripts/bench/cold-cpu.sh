#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The CPU time that the nodes spend on a first import at a leaf below a root, compared with the CPU
# time of the program itself, and what it consists of: system calls and context switches of the
# leaf, and requests of the kernel.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
switches() { # PID: how often its threads slept
	cat /proc/"$1"/task/*/status | awk '/^voluntary/ { sum += $2 } END { print sum }'
}
requests() { # RANK
	node_json "$1" | "$PYTHON" -c 'import json, sys
print(sum(v for k, v in json.load(sys.stdin)["fuse"].items() if k not in ("read_bytes", "negative", "errors", "refused", "ioctl")))'
}
program() {
	import_wall /usr >/dev/null
	add native-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
node() {
	local before pids
	with_tree 2 --cache-size 1G
	pids=("$(pid_of 0)" "$(pid_of 1)")
	mapfile -t before < <("$BENCH/cputime" "${pids[@]}")
	before+=("$(switches "${pids[1]}")" "$(requests 1)")
	[ -z "${PROFILE:-}" ] || {
		perf record -q -F 5000 -g -p "${pids[$PROFILE]}" -o "$PROFILE_OUT" -- sleep \
			6 2>/dev/null & sleep 1
	}
	[ -z "${SYSCALLS:-}" ] || {
		perf stat -e 'syscalls:sys_enter_*' -p "${pids[1]}" -o "$SYSCALLS" -- sleep \
			6 2>/dev/null & sleep 1
	}
	import_wall "$W/mnt/1" >/dev/null
	sleep 0.2
	mapfile -t after < <("$BENCH/cputime" "${pids[@]}")
	after+=("$(switches "${pids[1]}")" "$(requests 1)")
	add program-cpu "$(cut -d ' ' -f 2 "$T/together")"
	add root-cpu "$(awk -v a="${after[0]}" -v b="${before[0]}" 'BEGIN { print a - b }')"
	add leaf-cpu "$(awk -v a="${after[1]}" -v b="${before[1]}" 'BEGIN { print a - b }')"
	add switches "$((after[2] - before[2]))"
	add requests "$((after[3] - before[3]))"
	wait
	without_tree
}
in_turn "${BENCH_PAIRS:-5}" program node
report "cold import $module below a root, CPU time of the leaf" s at_most 0.075 leaf-cpu -
report 'CPU time of the leaf / of the program without Copper' s none - leaf-cpu native-cpu
report 'CPU time of the root' s none - root-cpu native-cpu
report 'CPU time of the program' s none - program-cpu native-cpu
report 'times that a thread of the leaf slept' times none - switches -
report 'requests of the kernel at the leaf' requests none - requests -
