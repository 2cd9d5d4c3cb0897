#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The measurements behind the figures in man/measurements.md and in README.
#
#   scripts/bench/run.sh [--json FILE] [NAME…]     all of them but the long ones, or those named
#   scripts/bench/run.sh --list
#
# Each line is: what | copper | compared with | ratio | figure to reach | met, MISSED or UNRELIABLE;
# a value is a median with the least and the most. --json also writes them to FILE, with every
# sample and what the machine is, once all have been made. Exit 1 if a measurement could not be
# made; a missed figure is not an error, because the machine may be busy with something else.
set -u
here=$(cd "$(dirname "$0")" && pwd)
all=(warm-import import-requests absent-again four-at-once many memory origin-scale cold-slowfs
	cold-manifest cold-nodes cold-cpu one-request profile-cost hop-small hop-bulk relay stripes
	ready idle view warm-find read-cold large-reads read-ahead stopped one-memory short-memory
	book aggregate paths mark trace trace-cost programs-in-turn)
# These take half an hour or more each, so they run only by name.
long=(side-by-side)
names=()
json=

usage() {
	sed -n '5,6s/^# *//p' "$0" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--json)
		[ $# -ge 2 ] || usage
		json=$2
		shift
		;;
	--list)
		printf '%s\n' "${all[@]}"
		printf '%s (takes half an hour: only by name)\n' "${long[@]}"
		exit 0
		;;
	-*) usage ;;
	*)
		if [[ " ${all[*]} ${long[*]} " != *" $1 "* ]]; then
			echo "run.sh: no measurement is called $1; --list shows them" >&2
			exit 2
		fi
		names+=("$1")
		;;
	esac
	shift
done

# Writes one document in the place of FILE, whole or not at all.
write_json() {
	python3 - "$here/../.." "$json" "$BENCH_ROWS" <<-'EOP'
		import json, os, subprocess, sys, time
		root, path, rows = sys.argv[1:]
		def run(*command):
		    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
		    return done.stdout.strip()
		with open(rows, encoding="utf-8") as lines:
		    document = {
		        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
		        "revision": run("git", "describe", "--always", "--dirty"),
		        "kernel": os.uname().release,
		        "machine": os.uname().machine,
		        "processors": os.cpu_count(),
		        "rows": [json.loads(line) for line in lines],
		    }
		with open(path + ".part", "w", encoding="utf-8") as out:
		    json.dump(document, out, indent=1)
		    out.write("\n")
		os.replace(path + ".part", path)
	EOP
}

[ "${#names[@]}" -gt 0 ] || names=("${all[@]}")
if [ -n "$json" ]; then
	BENCH_ROWS=$(mktemp "${TMPDIR:-/tmp}/copper-bench.XXXXXX") || exit 1
	export BENCH_ROWS
	trap 'rm -f "$BENCH_ROWS" "$json.part"' EXIT
fi
echo "what | copper | compared with | ratio | figure to reach | verdict"
broken=0
for name in "${names[@]}"; do
	"$here/$name.sh" || {
		echo "$name | could not be measured | - | - | - | FAILED"
		broken=1
	}
done
echo "# $(nproc) processors, load $(cut -d ' ' -f 1-3 /proc/loadavg)" >&2
if [ -n "$json" ]; then
	write_json || exit 1
	echo "# written to $json" >&2
fi
exit "$broken"
