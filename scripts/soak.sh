#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Random work on a tree of 12 nodes over a slow storage that stands still now and then: readers that know every byte, nodes killed, stopped
# and started again, files replaced at the source, small caches, invalidation, kernel caches dropped.
#
#   scripts/soak.sh [MINUTES [SEED]]     30 minutes; BUILD=build/asan for another build
#
# To narrow a fault down: SOAK_NODES=N nodes (12), SOAK_TREES=T stripes, SOAK_DEAD=N nodes dead at a time at most (3), SOAK_SPARE=RANK never killed.
#
# It fails on a wrong byte, an error that has no excuse, a reader that does not move for 60 s, memory or descriptors that
# keep growing, and on anything left mounted or running.
# limit: soak_limit
case ${1:-30} in
*[!0-9]*)
	echo "usage: soak.sh [MINUTES [SEED]]" >&2
	exit 2
	;;
esac
# The supervisor's limit is arithmetic, and this is the value of its name.
# shellcheck disable=SC2034
soak_limit=$((${1:-30} * 60 + 600))
# shellcheck source=t/harness.sh
. "$(dirname "$0")/t/harness.sh"

minutes=${1:-30}
RANDOM=${2:-$$}
nodes=${SOAK_NODES:-12}
cache_mib=48
options=(--cache-size "${cache_mib}M" --peer-timeout 1 --trees "${SOAK_TREES:-2}" --fanout 2)
worker=("$PYTHON" "$cop_root/scripts/soak.py")
STATE=$T/state
mkdir -p "$STATE"
declare -A reader=() events=()
troubles=0
turns=0
plan 9

trouble() {
	troubles=$((troubles + 1))
	note "$(date +%T) trouble: $*"
}

did() { # EVENT
	events[$1]=$((${events[$1]:-0} + 1))
}

start_reader() { # RANK
	rm -f "$STATE/down.$1" "$STATE/beat.$1"
	"${worker[@]}" read "$W/mnt/$1" "$STATE" "$1" >"$T/out.reader.$1" 2>&1 &
	reader[$1]=$!
}

is_living() { # RANK
	[ -z "${cop_killed[$1]:-}" ]
}

some_living_rank() {
	local rank=$((RANDOM % nodes))
	while ! is_living "$rank"; do
		rank=$(((rank + 1) % nodes))
	done
	echo "$rank"
}

# ---- what may happen

# A node goes, and its reader with it. One that had a file mapped then ends by SIGBUS, 135 to the shell.
take_one() { # HOW
	local rank status
	[ "${#cop_killed[@]}" -lt "${SOAK_DEAD:-3}" ] || return 0
	rank=$(some_living_rank)
	[ "$rank" != "${SOAK_SPARE:-}" ] || return 0
	: >"$STATE/down.$rank"
	"$1" "$rank"
	wait "${reader[$rank]}" 2>/dev/null
	status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 135 ] ||
		trouble "the reader of the node that went ($1): exit $status: $(tail -n 1 "$T/out.reader.$rank")"
	unset "reader[$rank]"
	did "$1"
}

killed_one() { # RANK
	kill_node "$1"
	umount -l "$W/mnt/$1"
}

stopped_one() { # RANK
	timeout "$(patient 120)" "$COPPER" stop --local "$W/mnt/$1" >"$T/out.stop.one" 2>&1 ||
		trouble "stop --local of node $1: exit $?: $(tail -n 1 "$T/out.stop.one")"
	cop_killed[$1]=0
}

# The storage stands still for a few seconds, for everyone.
stand_still() {
	slow_fault "hang=/$1"
	sleep $((1 + RANDOM % 4))
	slow_fault clear
	did stand
}

restart_one() {
	local rank
	for rank in "${!cop_killed[@]}"; do
		unset "cop_killed[$rank]"
		if start_node "$rank" "${options[@]}"; then
			start_reader "$rank"
			did restart
		else
			cop_killed[$rank]=0
			trouble "node $rank does not start again: $(tail -n 1 "$W/out.$rank")"
		fi
		return
	done
}

replace_some() {
	"${worker[@]}" replace "$ORIGIN" $((1 + RANDOM % 8)) || trouble 'the writer'
	did replace
}

# A node that is not there cannot forget anything, and that is told; of any other node it is an error.
answered_but_for_the_dead() { # FILE
	local line rank
	while IFS= read -r line; do
		rank=$(sed -n 's/.*(rank \([0-9]*\)) did not answer$/\1/p' <<<"$line")
		[[ "$line" == invalidated\ on\ * ]] || { [ -n "$rank" ] && ! is_living "$rank"; } || return 1
	done <"$1"
}

invalidate() { # [PATH]
	local rank
	rank=$(some_living_rank)
	timeout $((60 * cop_slower)) "$COPPER" cache-stats --invalidate "$W/mnt/$rank" ${1:+"$1"} >"$T/out.invalidate" 2>&1 ||
		answered_but_for_the_dead "$T/out.invalidate" ||
		trouble "--invalidate ${1:-} on node $rank: exit $?: $(cat "$T/out.invalidate")"
	did invalidate
}

# After an invalidation every node shows what the source has.
check_fresh() {
	local rank
	replace_some
	invalidate
	for ((rank = 0; rank < nodes; rank++)); do
		is_living "$rank" || continue
		timeout $((60 * cop_slower)) "${worker[@]}" fresh "$W/mnt/$rank" "$ORIGIN" >"$T/out.fresh" 2>&1 ||
			trouble "$(tail -n 1 "$T/out.fresh")"
	done
	did fresh
}

drop_caches() {
	[ ! -w /proc/sys/vm/drop_caches ] || echo $((2 + RANDOM % 2)) >/proc/sys/vm/drop_caches
	did drop
}

ask_all() {
	local rank
	rank=$(some_living_rank)
	timeout $((60 * cop_slower)) "$COPPER" cache-stats --json --all "$W/mnt/$rank" >"$T/all.json" 2>"$T/out.all" ||
		trouble "cache-stats --all on node $rank: exit $?: $(cat "$T/out.all")"
	did ask
}

# ---- what must hold meanwhile

check_readers() {
	local rank age
	for rank in "${!reader[@]}"; do
		if ! kill -0 "${reader[$rank]}" 2>/dev/null; then
			wait "${reader[$rank]}"
			trouble "the reader of node $rank in $(cat "$STATE/beat.$rank"): exit $?: $(tail -n 1 "$T/out.reader.$rank")"
			start_reader "$rank"
		elif [ -e "$STATE/beat.$rank" ]; then
			age=$(($(date +%s) - $(stat -c %Y "$STATE/beat.$rank")))
			[ "$age" -le $((60 * cop_slower)) ] || hang "$rank" "$age"
		fi
	done
}

hang() { # RANK SECONDS
	local i
	trouble "the reader of node $1 stands for $2 s in $(cat "$STATE/beat.$1")"
	for ((i = 0; i < nodes; i++)); do
		! is_living "$i" || note "node $i: $(node_json "$i" | cut -c -2000)"
	done
	exit 1
}

# A line for each node: seconds, rank, pid, anonymous memory in KiB, descriptors.
watch_memory() {
	local rank pid
	for ((rank = 0; rank < nodes; rank++)); do
		is_living "$rank" || continue
		pid=$(node_stat "$rank" pid 2>/dev/null)
		[ -n "$pid" ] || continue
		echo "$SECONDS $rank $pid $(awk '/^RssAnon:/ { print $2 }' "/proc/$pid/status") $(find "/proc/$pid/fd" | wc -l)"
	done >>"$T/memory"
}

# The largest of a process's last third beside the largest of its middle third: a leak grows in both.
growing() { # COLUMN SLACK
	awk -v column="$1" -v slack="$2" '
		{ n[$3]++; v[$3, n[$3]] = $column; rank[$3] = $2 }
		function most(pid, from, to,   i, m) {
			for (i = from; i <= to; i++)
				if (v[pid, i] > m) m = v[pid, i]
			return m + 0
		}
		END {
			for (pid in n) {
				third = int(n[pid] / 3)
				if (third < 3) continue
				a = most(pid, third, 2 * third)
				b = most(pid, 2 * third + 1, n[pid])
				if (b > a * 1.15 + slack) printf "rank %d: %d, then %d; ", rank[pid], a, b
			}
		}' "$T/memory"
}

# ---- the run

SRC=$T/src
"${worker[@]}" make "$SRC" || bail 'cannot make the tree'
with_slowfs --meta-us 200 --read-us 200 --slots 16
with_tree "$nodes" "${options[@]}"
for ((rank = 0; rank < nodes; rank++)); do
	start_reader "$rank"
done
note "seed ${2:-$$}, $minutes minutes"
end=$((SECONDS + minutes * 60))
while [ "$SECONDS" -lt "$end" ] && [ "$troubles" -lt 20 ]; do
	case $((RANDOM % 18)) in
	0 | 1) take_one killed_one ;;
	16) take_one stopped_one ;;
	17) stand_still "$([ $((RANDOM % 2)) -eq 0 ] && echo moving || echo "stable/d0$((RANDOM % 10))")" ;;
	2 | 3 | 4) restart_one ;;
	5 | 6 | 7 | 8) replace_some ;;
	9) invalidate ;;
	10) invalidate "moving/file00$((RANDOM % 10))" ;;
	11) invalidate "stable/d0$((RANDOM % 10))" ;;
	12) check_fresh ;;
	13) drop_caches ;;
	*) ask_all ;;
	esac
	check_readers
	[ $((++turns % 4)) -ne 0 ] || watch_memory
	sleep 0.$((RANDOM % 10))
done
: >"$STATE/stop"
for rank in "${!reader[@]}"; do
	wait "${reader[$rank]}" || trouble "the reader of node $rank: exit $?: $(tail -n 1 "$T/out.reader.$rank")"
done
read_by_all=$(cat "$STATE"/count.* | awk '{ sum += $1 } END { print sum + 0 }')
note "events: $(for e in "${!events[@]}"; do echo "$e ${events[$e]},"; done | sort | paste -sd' ')  things read: $read_by_all"
is 'no wrong byte, no error, no hang' "$troubles" 0
is_at_most 'the readers did read' 100 "$read_by_all"
is_at_most 'nodes were killed' 1 "${events[killed_one]:-0}"
is_at_most 'and stopped' 1 "${events[stopped_one]:-0}"
is 'anonymous memory does not keep growing' "$(growing 4 8192)" ''
is_at_most 'and stays by the budget' "$(awk '{ if ($4 > m) m = $4 } END { print m }' "$T/memory")" \
	$(((cache_mib * 2 + 64) * 1024 * cop_slower))
is 'descriptors do not keep growing' "$(growing 5 20)" ''
ok 'the tree stops' without_tree
without_slowfs
is 'no node is left' "$(nodes_running) $(mounts_left)" '0 0'
