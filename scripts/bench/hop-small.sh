#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The round trip of a small request and its answer through the product's rpc, compared with a round
# trip of fi_pingpong with the same provider, which spins on both sides. Then the same after 2 ms of
# silence, when both progress threads sleep.
# limit: 120
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

command -v fi_pingpong >/dev/null ||
	bail "there is no fi_pingpong; scripts/install-deps.sh all installs it"
# A node in the middle of a tree: its progress thread passes the request on.
copper() {
	"$BENCH/hop" chain 5000 0 >"$T/small" || bail "hop failed"
	add copper "$(cut -d ' ' -f 1 "$T/small")"
	add tail "$(cut -d ' ' -f 2 "$T/small")"
	"$BENCH/hop" small 5000 0 >"$T/small" || bail "hop failed"
	add thread "$(cut -d ' ' -f 1 "$T/small")"
}
# It prints microseconds for one way.
pingpong() {
	local port server
	port=$(free_port) || bail "no free port"
	fi_pingpong -B "$port" -e rdm -p 'tcp;ofi_rxm' -I 5000 -S 256 >/dev/null 2>"$T/server" &
	server=$!
	wait_for 5 eval '[ -n "$(ss -Hltn "sport = :$port")" ]' ||
		bail "fi_pingpong does not listen"
	timeout 60 fi_pingpong -P "$port" -e rdm -p 'tcp;ofi_rxm' -I 5000 -S 256 127.0.0.1 \
		>"$T/pingpong" 2>&1
	wait "$server"
	add pingpong "$(awk '$1 == "256" { print 2 * $(NF - 1) / 1e6 }' "$T/pingpong")"
}
rested() {
	"$BENCH/hop" small 500 2000 >"$T/small" || bail "hop failed"
	add rested "$(cut -d ' ' -f 1 "$T/small")"
}
in_turn "${BENCH_PAIRS:-8}" copper pingpong
rested
rested
rested
report 'one hop, small request, median / fi_pingpong round trip' s at_most 1.0 copper pingpong
report 'the same, asked by another thread (three busy threads)' s none - thread pingpong
report 'one hop, small request, 99th percentile' s none - tail -
report 'one hop, small request after 2 ms of silence, median' s none - rested -
