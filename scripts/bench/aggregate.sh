#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `copper aggregate` over the files of 10,000 ranks (three each, 80 top paths): from a local file
# system, and from a slow one that takes 1 ms per metadata operation or read, serves 64 at once, or
# 16, and remembers no attribute from one turn to the next. A file costs four operations there
# (lookup, open, size, read): with three files per rank, 16 at once cannot be served in less than
# 7.5 s.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

ranks=10000
"$PYTHON" "$cop_t/make-ranks.py" "$T/job/profiling/final" "$ranks"
for ((turn = 0; turn < ${BENCH_PAIRS:-5}; turn++)); do
	add local "$(wall 1 "$COPPER" aggregate --no-coverage "$T/job")"
done
report "aggregate of $ranks ranks, local file system, seconds" s at_most 5 local -

# slowfs keeps a descriptor for each file that the kernel knows. If there may not be enough, there
# are fewer ranks, and their time counts in proportion.
slow=$((($(ulimit -Hn) - 200) / 3))
[ "$slow" -lt "$ranks" ] || slow=$ranks
ulimit -n "$(ulimit -Hn)"
rm -r "$T/job"
"$PYTHON" "$cop_t/make-ranks.py" "$T/slow.job/profiling/final" "$slow"
for slots in 64 16; do
	SRC=$T/slow.job
	with_slowfs --meta-us 1000 --read-us 1000 --slots "$slots"
	for ((turn = 0; turn < 5; turn++)); do
		add "slow.$slots" "$(wall 1 "$COPPER" aggregate --no-coverage --output-dir "$T/out" "$SRC" | awk -v n="$slow" -v of="$ranks" '{ print $1 * of / n }')"
	done
	without_slowfs
	rm "$SLOW_STATE"
	report "aggregate of $ranks ranks, slow file system, $slots slots, seconds" \
		s at_most 5 "slow.$slots" -
done
