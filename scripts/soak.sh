#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Random work on a tree of 12 nodes over a slow storage that stands still or fails now and then:
# readers that know every byte; nodes killed, stopped, frozen and started again; links cut; bits of
# packets flipped (if the kernel has netem); files replaced at the source; small caches;
# invalidation; kernel caches dropped. As root the tree has a network namespace of its own, in which
# links can be cut.
#
#   scripts/soak.sh [MINUTES [SEED]]     30 minutes; BUILD=build/asan for another build
#
# To narrow a fault down: SOAK_NODES=N nodes (12), SOAK_TREES=T trees, SOAK_DEAD=N nodes dead at a
# time at most (3), SOAK_SPARE=RANK is never killed.
#
# It fails on a wrong byte, on an error other than the one that the storage gave for this name at
# this time, on a reader that does not move for 60 s, on memory, descriptors or threads that keep
# growing, and on anything left mounted or running. It ends with a table that says, for each kind of
# fault, how often it came and what followed.
# limit: soak_limit
[ -n "${COP_OWN_NET:-}" ] || ! unshare --net true 2>/dev/null ||
	COP_OWN_NET=1 exec unshare --net bash "$0" "$@"
case ${1:-30} in
*[!0-9]*)
	echo "usage: soak.sh [MINUTES [SEED]]" >&2
	exit 2
	;;
esac
# The supervisor's limit is an arithmetic expression, and this variable is its value.
# shellcheck disable=SC2034
soak_limit=$((${1:-30} * 60 + 600))
# shellcheck source=t/harness.sh
. "$(dirname "$0")/t/harness.sh"

# The address sanitizer keeps freed memory for a while: so little of it that a leak shows.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=16:thread_local_quarantine_size_kb=64"
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
# There are ten under the thread sanitizer, which leaves two out.
points=12
[ "$cop_mode" != tsan ] || points=10
plan "$points"

trouble() {
	troubles=$((troubles + 1))
	note "$(date +%T) trouble: $*"
}

did() { # EVENT
	events[$1]=$((${events[$1]:-0} + 1))
}

# ---- what happened when, for the readers and the table

begin_fault() { # KIND [PATH]
	fault_begin=$(date +%s.%3N)
	echo "$1 $fault_begin 0 ${2:-/}" >>"$STATE/faults"
}

end_fault() { # KIND [PATH]
	echo "$1 $fault_begin $(date +%s.%3N) ${2:-/}" >>"$STATE/faults"
	did "$1"
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

# Ends a node and its reader. A reader that had a file mapped ends by SIGBUS, which the shell
# reports as 135.
take_one() { # HOW
	local rank status
	[ "${#cop_killed[@]}" -lt "${SOAK_DEAD:-3}" ] || return 0
	rank=$(some_living_rank)
	[ "$rank" != "${SOAK_SPARE:-}" ] || return 0
	: >"$STATE/down.$rank"
	begin_fault "$1"
	"$1" "$rank"
	end_fault "$1"
	wait "${reader[$rank]}" 2>/dev/null
	status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 135 ] ||
		trouble "the reader of the node that went ($1): exit $status: $(tail -n 1 \
			"$T/out.reader.$rank")"
	unset "reader[$rank]"
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

# The storage stands still for a few seconds, or gives EIO, for everyone.
storage() { # hang|eio PATH
	begin_fault "$1" "$2"
	slow_fault "$1=$2"
	sleep $((1 + RANDOM % 4))
	slow_fault clear
	end_fault "$1" "$2"
}

some_path() { # of the storage, one that stays
	case $((RANDOM % 8)) in
	0) echo / ;;
	1 | 2) echo "stable/d$(printf %02d $((RANDOM % 12)))/file$(printf %03d $((RANDOM % 40)))" ;;
	*) echo "stable/d$(printf %02d $((RANDOM % 12)))" ;;
	esac
}

# All live nodes answer, as they must soon after a fault.
all_answer() {
	local rank
	rank=$(some_living_rank)
	timeout $((60 * cop_slower)) "$COPPER" cache-stats --json --all "$W/mnt/$rank" \
		>"$T/all.json" 2>/dev/null &&
		[ "$(grep -o '"ready":true' "$T/all.json" |
			wc -l)" -ge $((nodes - ${#cop_killed[@]})) ]
}

recovered() { # AFTER-WHAT
	wait_for 40 all_answer || trouble "$1: not all living nodes answer 40 s later"
}

# For a while nothing reaches the address of a node, and the node cannot connect to others.
cut_link() {
	local address
	[ -n "${COP_OWN_NET:-}" ] || return 0
	address=$(address_of "$(some_living_rank)")
	begin_fault link_cut
	ip route add blackhole "$address/32" table local || return 0
	sleep $((1 + RANDOM % 4))
	ip route del blackhole "$address/32" table local
	end_fault link_cut
	recovered 'a link that was cut'
}

# Flips a bit in every fiftieth packet.
flip_packets() {
	[ -n "${COP_OWN_NET:-}" ] && tc qdisc add dev lo root netem corrupt 2% 2>/dev/null ||
		return 0
	begin_fault flipped_packets
	sleep $((2 + RANDOM % 3))
	end_fault flipped_packets
	tc qdisc del dev lo root
	recovered 'flipped packets'
}

# A node gets no processor for a while: to it, the clocks jump.
freeze_one() {
	local pid
	pid=$(node_stat "$(some_living_rank)" pid) && is_ours "$pid" || return 0
	begin_fault frozen
	kill -STOP "$pid"
	sleep $((1 + RANDOM % 5))
	kill -CONT "$pid"
	end_fault frozen
	recovered 'a node that was frozen'
}

restart_one() {
	local rank
	for rank in "${!cop_killed[@]}"; do
		unset "cop_killed[$rank]"
		begin_fault restart
		if start_node "$rank" "${options[@]}"; then
			start_reader "$rank"
			end_fault restart
		else
			cop_killed[$rank]=0
			trouble "node $rank does not start again: $(tail -n 1 "$W/out.$rank")"
		fi
		return
	done
}

replace_some() {
	begin_fault replaced_files
	"${worker[@]}" replace "$ORIGIN" $((1 + RANDOM % 8)) || trouble 'the writer'
	end_fault replaced_files
}

# A dead node cannot forget anything, which is reported; for any other node this is an error.
answered_but_for_the_dead() { # FILE
	local line rank
	while IFS= read -r line; do
		rank=$(sed -n 's/.*(rank \([0-9]*\)) did not answer$/\1/p' <<<"$line")
		[[ "$line" == invalidated\ on\ * ]] || {
			[ -n "$rank" ] && ! is_living "$rank"
		} || return 1
	done <"$1"
}

invalidate() { # [PATH]
	local rank
	rank=$(some_living_rank)
	begin_fault invalidation
	timeout $((60 * cop_slower)) "$COPPER" cache-stats --invalidate "$W/mnt/$rank" ${1:+"$1"} \
		>"$T/out.invalidate" 2>&1 ||
		answered_but_for_the_dead "$T/out.invalidate" ||
		trouble "--invalidate ${1:-} on node $rank: exit $?: $(cat "$T/out.invalidate")"
	end_fault invalidation
}

# After an invalidation every node shows what the source has.
check_fresh() {
	local rank
	replace_some
	invalidate
	for ((rank = 0; rank < nodes; rank++)); do
		is_living "$rank" || continue
		timeout $((60 * cop_slower)) "${worker[@]}" fresh "$W/mnt/$rank" "$ORIGIN" \
			>"$T/out.fresh" 2>&1 ||
			trouble "$(tail -n 1 "$T/out.fresh")"
	done
	did fresh
}

drop_caches() {
	begin_fault dropped_caches
	[ ! -w /proc/sys/vm/drop_caches ] || echo $((2 + RANDOM % 2)) >/proc/sys/vm/drop_caches
	end_fault dropped_caches
}

ask_all() {
	local rank
	rank=$(some_living_rank)
	timeout $((60 * cop_slower)) "$COPPER" cache-stats --json --all "$W/mnt/$rank" \
		>"$T/all.json" 2>"$T/out.all" ||
		trouble "cache-stats --all on node $rank: exit $?: $(cat "$T/out.all")"
	did ask
}

faults=(kill stop hang eio cut flip freeze restart)
rest=(replace replace replace replace invalidate invalidate-file invalidate-dir fresh drop ask ask)

happen() { # WHAT
	case $1 in
	kill) take_one killed_one ;;
	stop) take_one stopped_one ;;
	hang) storage hang "$([ $((RANDOM % 2)) -eq 0 ] && echo moving || some_path)" ;;
	eio) storage eio "$(some_path)" ;;
	cut) cut_link ;;
	flip) flip_packets ;;
	freeze) freeze_one ;;
	restart) restart_one ;;
	replace) replace_some ;;
	invalidate) invalidate ;;
	invalidate-file) invalidate "moving/file00$((RANDOM % 10))" ;;
	invalidate-dir) invalidate "stable/d0$((RANDOM % 10))" ;;
	fresh) check_fresh ;;
	drop) drop_caches ;;
	ask) ask_all ;;
	esac
}

# What happens next, in any order.
deal() { # WHAT…
	local i at hold
	deck=("$@")
	for ((i = ${#deck[@]} - 1; i > 0; i--)); do
		at=$((RANDOM % (i + 1)))
		hold=${deck[i]}
		deck[i]=${deck[at]}
		deck[at]=$hold
	done
}

# ---- what must hold meanwhile

# A program that reads a mapped file gets SIGBUS for EIO.
met_eio() { # RANK STATUS
	[ "$2" -eq 135 ] && "${worker[@]}" excused "$STATE" "$1" >>"$T/out.excused" 2>&1
}

check_readers() {
	local rank age status
	for rank in "${!reader[@]}"; do
		if ! kill -0 "${reader[$rank]}" 2>/dev/null; then
			wait "${reader[$rank]}"
			status=$?
			met_eio "$rank" "$status" ||
				trouble "the reader of node $rank in $(cat "$STATE/beat.$rank"): exit $status: $(tail -n 1 "$T/out.reader.$rank")"
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

# Writes a line for each node: seconds, rank, pid, anonymous memory in KiB, descriptors, threads,
# and threads that wait for the storage.
watch_memory() {
	local rank pid
	for ((rank = 0; rank < nodes; rank++)); do
		is_living "$rank" || continue
		pid=$(node_json "$rank" 2>/dev/null | grep -o '"pid":[0-9]*' | head -n 1 |
				cut -d : -f 2)
		[ -n "$pid" ] || continue
		echo "$SECONDS $rank $pid $(awk '/^RssAnon:/ { print $2 }' "/proc/$pid/status") $(find "/proc/$pid/fd" | wc -l) $(cat "/proc/$pid/task/"*/comm | awk '/^origin-/ { storage++; next } END { print NR - storage, storage + 0 }')"
	done >>"$T/memory"
}

# Compares the largest value of a process's last third with the largest of its middle third: a leak
# grows in both.
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

# For each process of a node that was looked at more than once: its first, largest and last values.
nodes_table() {
	echo 'node  looks  memory (MiB) first most last  descriptors first most last  other threads first most last'
	awk '
		function look(column,   key) {
			key = $3 SUBSEP column
			if (n[$3] == 1) first[key] = $column
			if ($column > most[key]) most[key] = $column
			last[key] = $column
		}
		{ n[$3]++; rank[$3] = $2; look(4); look(5); look(6) }
		END {
			for (pid in n) {
				if (n[pid] < 2) continue
				printf "%4d %6d %20.1f %4.1f %4.1f", rank[pid], n[pid], first[pid, 4] / 1024, most[pid, 4] / 1024, last[pid, 4] / 1024
				printf " %18d %4d %4d %14d %4d %4d\n", first[pid, 5], most[pid, 5], last[pid, 5], first[pid, 6], most[pid, 6], last[pid, 6]
			}
		}' "$T/memory" | sort -n
}

# ---- the run

[ -z "${COP_OWN_NET:-}" ] || ip link set lo up
SRC=$T/src
"${worker[@]}" make "$SRC" || bail 'cannot make the tree'
with_slowfs --meta-us 200 --read-us 200 --slots 16
with_tree "$nodes" "${options[@]}"
for ((rank = 0; rank < nodes; rank++)); do
	start_reader "$rank"
done
note "seed ${2:-$$}, $minutes minutes"
# Each fault comes once, then all in any order.
deal "${faults[@]}"
watch_memory
end=$((SECONDS + minutes * 60))
first_round=${#deck[@]}
while [ "$SECONDS" -lt "$end" ] || [ "$turns" -lt "$first_round" ]; do
	[ "$troubles" -lt 20 ] || break
	[ "${#deck[@]}" -gt 0 ] || deal "${faults[@]}" "${faults[@]}" restart restart "${rest[@]}"
	happen "${deck[0]}"
	deck=("${deck[@]:1}")
	check_readers
	[ $((++turns % 3)) -ne 0 ] || watch_memory
	sleep 0.$((RANDOM % 10))
done
: >"$STATE/stop"
for rank in "${!reader[@]}"; do
	wait "${reader[$rank]}"
	status=$?
	[ "$status" -eq 0 ] || met_eio "$rank" "$status" ||
		trouble "the reader of node $rank: exit $status: $(tail -n 1 "$T/out.reader.$rank")"
done
read_by_all=$(cat "$STATE"/count.* | awk '{ sum += $1 } END { print sum + 0 }')
note "events: $(for e in "${!events[@]}"; do echo "$e ${events[$e]},"; done | sort |
		paste -sd' ')  things read: $read_by_all"
is 'no wrong byte, no error, no hang' "$troubles" 0
is_at_most 'the readers did read' 100 "$read_by_all"
is_at_most 'nodes were killed' 1 "${events[killed_one]:-0}"
is_at_most 'and stopped' 1 "${events[stopped_one]:-0}"
is_at_most 'the storage gave errors' 1 "${events[eio]:-0}"
# What the thread sanitizer keeps of each thread and lock takes more than the node itself, and
# grows.
if [ "$cop_mode" != tsan ]; then
	is 'anonymous memory does not keep growing' "$(growing 4 8192)" ''
	is_at_most 'and stays by the budget' "$(awk '{ if ($4 > m) m = $4 } END { print m }' "$T/memory")" \
		$(((cache_mib * 2 + 64) * 1024 * cop_slower))
fi
is 'descriptors do not keep growing' "$(growing 5 20)" ''
is 'nor do threads' "$(growing 6 8)" ''
# The pool of a root grows up to --origin-ops, 64, and replaces as many that hang.
is_at_most 'a root has at most twice as many threads for the storage as operations' \
	"$(awk '{ if ($7 > m) m = $7 } END { print m + 0 }' "$T/memory")" 128
ok 'the tree stops' without_tree
without_slowfs
is 'no node is left' "$(nodes_running) $(mounts_left)" '0 0'
"${worker[@]}" table "$STATE" | sed 's/^/# /'
nodes_table | sed 's/^/# /'
