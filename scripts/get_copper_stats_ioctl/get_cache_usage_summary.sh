#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copper 1.0's get_cache_usage_summary.sh <output_dir>: get_all_metrics.sh, and
# cache_usage_summary.txt and .csv beside its files. Nodes that do this at once need a directory
# each.
set -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${1:-}" ] || {
	echo 'usage: get_cache_usage_summary.sh <output_dir>'
	exit 1
}
bash "$here/get_all_metrics.sh" "$1" || exit
python3 "$here/summarize_cache_usage.py" "$1" --csv "$1/cache_usage_summary.csv" |
	tee "$1/cache_usage_summary.txt"
