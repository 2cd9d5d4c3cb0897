#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The measurements behind the figures in the manual (man copper-design).
#
#   scripts/bench/run.sh [--out FILE] [NAME…]     all of them, or those named
#   scripts/bench/run.sh --list
#
# Each line is: what | copper | compared with | ratio | figure to reach | met or MISSED; a value is a median with the least
# and the most. --out appends one JSON object a line, with every sample. Exit 1 if a measurement could not be
# made; a missed figure is not an error, because the machine may be busy with something else.
set -u
here=$(cd "$(dirname "$0")" && pwd)
all=(warm-import import-requests four-at-once many memory origin-scale cold-slowfs cold-manifest cold-nodes
	profile-cost hop-small hop-bulk relay ready idle warm-find read-cold book aggregate paths)
names=()

usage() {
	sed -n '5,6s/^# *//p' "$0" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--out)
		[ $# -ge 2 ] || usage
		case $2 in
		/*) export BENCH_OUT=$2 ;;
		*) export BENCH_OUT=$PWD/$2 ;;
		esac
		shift
		;;
	--list)
		printf '%s\n' "${all[@]}"
		exit 0
		;;
	-*) usage ;;
	*)
		if [[ " ${all[*]} " != *" $1 "* ]]; then
			echo "run.sh: no measurement is called $1; --list shows them" >&2
			exit 2
		fi
		names+=("$1")
		;;
	esac
	shift
done

[ "${#names[@]}" -gt 0 ] || names=("${all[@]}")
echo "what | copper | compared with | ratio | figure to reach | verdict"
broken=0
for name in "${names[@]}"; do
	"$here/$name.sh" || {
		echo "$name | could not be measured | - | - | - | FAILED"
		broken=1
	}
done
echo "# $(nproc) processors, load $(cut -d ' ' -f 1-3 /proc/loadavg)" >&2
exit "$broken"
