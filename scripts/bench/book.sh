#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A site's address book of 10,000 hosts filtered to a job of 8,300 of them, in the job's order,
# beside awk doing the same.
# limit: 60
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

for ((i = 0; i < 10000; i++)); do
	printf 'x%04dc0s0b0n%d ofi+cxi://0x%06x00\n' $((i / 8)) $((i % 8)) "$i"
done >"$T/site"
cut -d ' ' -f 1 "$T/site" | shuf -n 8300 --random-source="$T/site" >"$T/hosts"

copper() {
	"$BENCH/book" "$T/site" "$T/hosts" "$T/ours" >"$T/seconds" || bail "book failed"
	add copper "$(cat "$T/seconds")"
}
with_awk() {
	add awk "$(wall 1 awk 'NR == FNR { address[$1] = $2; next } { print $1, address[$1] > "'"$T/theirs"'" }' "$T/site" "$T/hosts")"
}
in_turn "${BENCH_PAIRS:-8}" copper with_awk
cmp -s "$T/ours" "$T/theirs" || bail "the two books differ"
report 'an address book of 10,000 hosts filtered to 8,300, seconds' s at_most 0.1 copper -
report 'the same / awk' s none - copper awk
