#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes whose clocks are seconds apart: each trace says how far its clock is ahead of rank 0's,
# within the round trip in which that was measured; merged, the requests of one node arrive at the
# other between their beginning and their end, and the correction is told.
# covers: sampler timeline
# modes: shared
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
ldd "$COPPER" >/dev/null 2>&1 || skip_all 'a static program takes no library'
# shellcheck source=clocks.sh
. "$(dirname "$0")/clocks.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
plan 13

in_trace() { # WHAT FILE…
	timeout "$(patient 60)" "$PYTHON" "$cop_t/node_trace.py" "$@"
}
trace_of() { # RANK
	echo "$JOB/trace/$(address_of "$1")"-*.pfw.gz
}

# ---- a chain of three; the last has been up for a month, too

set_clock 0 0
set_clock 1 5
set_clock 2 -3
prepare_tree 3
cop_tree=3
pids=()
for rank in 0 1 2; do
	clock_of "$rank"
	[ "$rank" -ne 2 ] || ! unshare --time --monotonic 2592000 true 2>/dev/null ||
		cop_as=(unshare --time --fork --monotonic 2592000 "${cop_as[@]}")
	start_node "$rank" --trace --trees 1 --fanout 1 &
	pids+=($!)
done
cop_as=()
for rank in 0 1 2; do
	wait "${pids[rank]}" || bail "rank $rank: exit $?: $(cat "$W/out.$rank")"
done
knows() { [ "$(in_trace clock "$(trace_of "$1")" | cut -d ' ' -f 1)" = True ]; }
ok 'the second node knows how far its clock is ahead' wait_for 30 knows 1
ok 'the third node knows how far its clock is ahead' wait_for 30 knows 2
read_everything 1 2
ok 'the tree stops' without_tree
is 'the second is 5 s ahead' "$(in_trace clock "$(trace_of 1)" 5000000)" 'True 0'
is 'the third, over the second, is 3 s behind' "$(in_trace clock "$(trace_of 2)" -3000000)" 'True 0'

# ---- merged

is_told 'the merge tells all clocks' 0 \
	"clocks: $(address_of 1) \+.* us .*clocks: $(address_of 2) -.* us " merge \
	-o "$T/all.json" "$JOB/trace"
told() { # RANK MICROSECONDS: whether what is told is that, within what is told
	"$PYTHON" -c '
import re, sys
about = r"clocks: %s (.*) us \(. ([0-9.]+) us\)" % re.escape(sys.argv[2])
offsets, within = re.search(about, open(sys.argv[1]).read()).groups()
print(all(abs(float(o) - float(sys.argv[3])) <= 4 * float(within) + 2000 for o in offsets.split(" to ")))' "$T/err" "$(address_of "$1")" "$2"
}
is 'what is told of the second is right' "$(told 1 5000000)" True
is 'what is told of the third is right' "$(told 2 -3000000)" True
is 'requests arrive after they left and before their answer' \
	"$(in_trace order "$T/all.json" "$JOB"/trace/*)" 'True 0 0'
is_told 'without rank 0, which they go by, the others are corrected as well' 0 \
	"clocks: $(address_of 1) \+" \
	merge -o "$T/two.json" "$(trace_of 1)" "$(trace_of 2)"
is 'without rank 0 the others are in order' \
	"$(in_trace order "$T/two.json" "$JOB"/trace/*)" 'True 0 0'
