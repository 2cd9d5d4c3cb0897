#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Bytes passed on per CPU second of the middle node of a chain of three, which also keeps and checks
# them, compared with a process that receives chunks on one TCP socket and sends them on another. As
# in hop-bulk, the third pass is comparable. A raw relay that also keeps what it passes on, as a
# cache must, shows how much of the difference is memory: first with fresh memory, then with memory
# that it used before.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

copper() {
	"$BENCH/hop" relay 1073741824 1048576 >"$T/relay" || bail "hop failed"
	add first "$(sed -n 1p "$T/relay")"
	add third "$(sed -n 3p "$T/relay")"
}
tcp() {
	add tcp "$("$BENCH/tcprelay" 1073741824 1048576)"
}
keeping() {
	"$BENCH/tcprelay" 1073741824 1048576 keep >"$T/keep" || bail "tcprelay failed"
	add tcp-fresh "$(sed -n 1p "$T/keep")"
	add tcp-used "$(sed -n 2p "$T/keep")"
}
both() {
	tcp && keeping
}
in_turn "${BENCH_PAIRS:-8}" copper both
report 'bytes relayed per CPU second / raw TCP relay' B/s at_least 0.8 third tcp
report 'the same into fresh memory / raw TCP relay' B/s at_least 0.5 first tcp
report 'bytes relayed per CPU second / raw TCP relay that keeps them' B/s none - third tcp-used
report 'the same into fresh memory / raw TCP relay that keeps them' B/s none - first tcp-fresh
