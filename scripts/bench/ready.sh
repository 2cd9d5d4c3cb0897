#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From the start of 16 `copper mount` at once until the last one has returned with the tree ready.
# limit: 180
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

for ((turn = 0; turn < ${BENCH_PAIRS:-5}; turn++)); do
	prepare_tree 16
	cop_tree=16
	add ready "$(wall 16 sh -c 'rank=$1 && shift && exec "$@" --rank "$rank" "'"$W"'/mnt/$rank"' mount {} \
		"$COPPER" mount --hosts "$HOSTS" --secret-file "$SECRET" --job-dir "$JOB" \
		--source "$SRC")"
	without_tree || bail "the tree does not stop"
done
report 'start to ready, 16 nodes on this machine, seconds' s at_most 0.2 ready -
