#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory of many nodes as one, on the simulator, whose nodes run the product's own fetch and
# cache: data of half, twice and 20 times the memory of a node, which all nodes read, in the order
# of the file or each in an order of its own, all at once, one after the other within 30 s, or while
# one node in a hundred dies. What the storage gives / the data, and what the busiest node sends /
# the mean. The memory of all nodes together is at least three times the data.
#
#   BENCH_NODES='64 1000 10000' scripts/bench/run.sh one-memory     the last takes an hour
#
# limit: 7200
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SIM=$BUILD/copper-sim
[ -x "$SIM" ] || bail "there is no $SIM; run make"

simulate() { # NODES CACHE_MIB OPTION…
	local nodes=$1 cache=$2
	shift 2
	"$SIM" --json --nodes "$nodes" --trees "$nodes" --set land_mb_per_s=3000 \
		--set "cache_mib=$cache" "$@" "$T/trace" >"$T/row" 2>"$T/err" ||
		bail "copper-sim: $(cat "$T/err")"
}
value() { # KEY
	"$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <"$T/row"
}
# Adds the last run to the worst of these nodes, and shows it: BYTES WHAT.
judge() {
	local storage busiest
	storage=$(awk -v got="$(value storage_bytes)" -v data="$1" 'BEGIN { printf "%.3f", got / data }')
	busiest=$(awk -v n="$(value nodes)" -v most="$(value node_bytes)" -v all="$(value bytes)" \
			'BEGIN { printf "%.2f", most * n / all }')
	echo "$storage" >>"$T/storage"
	echo "$busiest" >>"$T/busiest"
	note "$2: storage $storage, busiest $busiest, the longest wait $(value waiting_s) s," \
		"$(value died) died"
}

# Half, twice and 20 times: the MiB of a node's memory and of the file, which is large enough to be
# spread, and how far a reader is ahead.
sizes=('0.5 128 64 32' '2 64 128 16' '20 32 640 8')
for nodes in ${BENCH_NODES:-64 1000}; do
	rm -f "$T/storage" "$T/busiest"
	for size in "${sizes[@]}"; do
		read -r times cache mib window <<<"$size"
		bytes=$((mib << 20))
		"$cop_root/scripts/sim/large.sh" "$mib" "$window" >"$T/trace"
		for order in '' --shuffle; do
			what="$nodes nodes, $times times the memory of a node${order:+, own orders}"
			# shellcheck disable=SC2086
			simulate "$nodes" "$cache" $order
			took_ms=$(awk -v s="$(value last_s)" 'BEGIN { print int(s * 1000) + 1 }')
			judge "$bytes" "$what"
			# shellcheck disable=SC2086
			simulate "$nodes" "$cache" $order --skew 30s
			judge "$bytes" "$what, within 30 s"
			# shellcheck disable=SC2086
			simulate "$nodes" "$cache" $order --die $((10000 + 1000000 / nodes)) \
				--die-within "${took_ms}ms"
			judge "$bytes" "$what, nodes die"
		done
	done
	add "storage-$nodes" "$(sort -g "$T/storage" | tail -n 1)"
	add "busiest-$nodes" "$(sort -g "$T/busiest" | tail -n 1)"
	report "$nodes simulated nodes: bytes of the storage / data, worst case" times at_most 1.05 \
		"storage-$nodes" -
	report "$nodes simulated nodes: busiest node / mean, worst case" times at_most 1.5 \
		"busiest-$nodes" -
done
