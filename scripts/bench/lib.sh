# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What every measurement sources first. A measurement is a bash script like a system test: it runs
# in a private directory with a time limit, and supervise.sh ends and unmounts whatever it started:
#
#	#!/usr/bin/env bash
#	# SPDX-License-Identifier: BSD-3-Clause
#	# What is measured, against what, and why that is fair.
#	# limit: 300
#	# shellcheck source=lib.sh
#	. "$(dirname "$0")/lib.sh"
#	ours() { add ours "$(wall 1 true)"; }
#	theirs() { add theirs "$(wall 1 true)"; }
#	in_turn 10 ours theirs
#	report 'doing nothing' s at_most 1.03 ours theirs
#
# Warm means that what is used again was used a moment ago, or is pinned: on a machine that has
# little memory, or is told to save it, the kernel drops pages that are a few seconds old.
#
# Both sides are measured in turn in one run, because the machine is shared and its speed changes.
# The ratio of the medians is judged, and a missed figure is not a failure of the script. If the
# samples of a side spread by more than a third of their median, the row is called unreliable and
# not judged. If there are five samples or more, only the middle half counts, since a busy neighbour
# disturbs a few.
set -u

cop_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cop_t=$cop_root/scripts/t
BUILD=${BUILD:-$cop_root/build}
cop_mode=release
cop_slower=1
bench_name=$(basename "$0" .sh)

# shellcheck source=../t/patience.sh
. "$cop_t/patience.sh"
if [ -z "${COP_TEST_DIR:-}" ]; then
	take_lane || { echo 'no lane is free: too many tests run on this machine' >&2; exit 1; }
	# shellcheck source=../t/supervise.sh
	. "$cop_t/supervise.sh"
	supervise "$@"
fi

T=$COP_TEST_DIR
W=$T
SRC=
COPPER=${COPPER:-$BUILD/copper}
cop_asks=$COPPER
SLOWFS=${SLOWFS:-$BUILD/slowfs}
BENCH=${BENCH:-$BUILD/bench}
PYTHON=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 TMPDIR=$T XDG_CACHE_HOME=$T/cache
export COPPER_PREFETCH=off
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cop_tree=0
cop_tree_number=0
cop_user=
cop_slow=
cop_holder=
cop_load=()
declare -A cop_killed=()

note() {
	printf '%s\n' "$*" | sed 's/^/# /' >&2
}

bail() {
	note "$bench_name: $*"
	exit 1
}

fail() { # what a tree that does not start calls
	note "$bench_name: $*"
}

as_user() {
	"$@"
}

# shellcheck source=../t/kept.sh
. "$cop_t/kept.sh"
# shellcheck source=../t/tree.sh
. "$cop_t/tree.sh"

finish() {
	local status=$?
	trap - EXIT
	let_go
	stop_quietly
	exit "$status"
}
trap finish EXIT

for tool in "$COPPER" "$SLOWFS" "$BENCH/together"; do
	[ -x "$tool" ] || bail "there is no $tool; run make all bench-tools"
done

# ---- samples

# Adds a sample to a side; it is kept until the report.
add() { # SIDE VALUE
	[ -n "$2" ] || bail "no value for $1"
	echo "$2" >>"$T/side.$1"
}

# Runs the functions that add a sample to their sides N times in turn: A B B A A B …, because the
# second of two may find things warmer.
in_turn() { # N FUNCTION FUNCTION
	local turn
	for ((turn = 0; turn < $1; turn++)); do
		if [ $((turn % 2)) -eq 0 ]; then
			"$2" && "$3"
		else
			"$3" && "$2"
		fi || bail "a sample failed"
	done
}

# Prints the wall seconds until the last of N copies of a command has ended; leaves the CPU seconds
# of all of them and the longest wait of one in $T/together.
together() { # N COMMAND…
	"$BENCH/together" "$@" >"$T/together" || bail "$* failed"
}
wall() { # N COMMAND…
	together "$@"
	cut -d ' ' -f 1 "$T/together"
}
waiting() {
	cut -d ' ' -f 3 "$T/together"
}

statistic() { # median|min|max SIDE
	sort -g "$T/side.$2" | awk -v which="$1" '
		{ v[NR] = $1 }
		END {
			middle = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
			printf "%.9g\n", which == "min" ? v[1] : which == "max" ? v[NR] : middle
		}'
}

# 1.234 s (1.200-1.400)
shown() { # SIDE UNIT
	awk -v unit="$2" -v m="$(statistic median "$1")" -v a="$(statistic min "$1")" \
		-v b="$(statistic max "$1")" '
		function text(x) {
			if (unit == "s" && x < 0.001) return sprintf("%.1f us", x * 1e6)
			if (unit == "s" && x < 0.1) return sprintf("%.2f ms", x * 1e3)
			if (unit == "s") return sprintf("%.3f s", x)
			if (unit == "B/s") return sprintf("%.2f GB/s", x / 1e9)
			if (unit == "B") return sprintf("%.1f MiB", x / 1048576)
			return x == int(x) ? sprintf("%d %s", x, unit) : sprintf("%.3g %s", x, unit)
		}
		BEGIN {
			if (a == b) print text(m)
			else printf "%s (%s - %s)\n", text(m), text(a), text(b)
		}'
}

# The spread of a side as a fraction of its median.
spread() { # SIDE
	sort -g "$T/side.$1" | awk '
		{ v[NR] = $1 }
		function at(place, whole) {
			whole = int(place)
			if (whole >= NR) return v[NR]
			return v[whole] + (place - whole) * (v[whole + 1] - v[whole])
		}
		END {
			middle = at((NR + 1) / 2)
			range = v[NR] - v[1]
			if (NR >= 5) range = at(1 + (NR - 1) * 0.75) - at(1 + (NR - 1) * 0.25)
			size = middle < 0 ? -middle : middle
			printf "%.4f\n", range == 0 ? 0 : size == 0 ? 1 : range / size
		}'
}

# For the reports that follow: with fewer processors their figures cannot be reached, whatever
# Copper does.
wants_processors() { # N
	bench_wants=$1
}
bench_wants=0

verdict() { # RATIO RULE FIGURE SPREAD
	local has
	has=$(env -u OMP_NUM_THREADS nproc)
	awk -v r="$1" -v rule="$2" -v f="$3" -v s="$4" -v has="$has" -v wants="$bench_wants" '
		BEGIN {
			met = rule == "at_most" ? r <= f : r >= f
			if (s > 1 / 3) printf "UNRELIABLE (spreads by %.2f)\n", s
			else if (met) print "met"
			else print has < wants ? "MISSED (" wants " processors would be needed, " has " are here)" : "MISSED"
		}'
}

samples_json() { # SIDE
	paste -sd, "$T/side.$1"
}

line() { # WHAT OURS THEIRS RATIO FIGURE VERDICT
	printf '%s | %s | %s | %s | %s | %s\n' "$@"
}

# Prints one line of the result. RULE is at_most, at_least or none; THEIRS may be -: then the figure
# applies to the copper side itself.
report() { # WHAT UNIT RULE FIGURE OURS THEIRS
	local ratio theirs=- verdict=- figure=- json widest
	ratio=$(statistic median "$5")
	widest=$(spread "$5")
	if [ "$6" != - ]; then
		theirs="$(shown "$6" "$2")"
		ratio=$(awk -v a="$ratio" -v b="$(statistic median "$6")" \
				'BEGIN { printf "%.4f", b ? a / b : 0 }')
		widest=$(printf '%s\n' "$widest" "$(spread "$6")" | sort -g | tail -n 1)
	fi
	if [ "$3" != none ]; then
		figure="${3/_/ } $4"
		verdict=$(verdict "$ratio" "$3" "$4" "$widest")
	fi
	json=$(printf '"bench":"%s","what":"%s","unit":"%s","rule":"%s","figure":%s,"ratio":%s,"spread":%s,"verdict":"%s","copper":[%s]' \
		"$bench_name" "$1" "$2" "$3" "${4/-/null}" "$ratio" "$widest" "$verdict" \
		"$(samples_json "$5")")
	[ "$6" = - ] || json="$json,\"compared\":[$(samples_json "$6")]"
	[ -z "${BENCH_ROWS:-}" ] || echo "{$json,\"load\":$(cut -d ' ' -f 1 /proc/loadavg)}" \
		>>"$BENCH_ROWS"
	[ "$6" != - ] || ratio=-
	line "$1" "$(shown "$5" "$2")" "$theirs" "$ratio" "$figure" "$verdict"
}

# ---- an import of Debian's Python from a tree that looks like /usr

if [ -d /usr/lib/python3/dist-packages/torch ]; then
	module=torch
else
	module=numpy
fi

# Sets the array `import` to the command, for a root that may contain {} for the number of the copy.
import_from() { # ROOT
	import=(env -i PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
		PYTHONHOME="$1"
		PYTHONPATH="$1/lib/python3/dist-packages" LD_LIBRARY_PATH="$1/lib/x86_64-linux-gnu"
		"$1/bin/python3" -c "import $module")
}

import_wall() { # ROOT [COPIES]
	local import
	import_from "$1"
	wall "${2:-1}" "${import[@]}"
}

# ---- miscellaneous

# From here on trees belong to an ordinary user, if this is root; W is a directory of that user.
be_ordinary_user() {
	local program
	[ "$(id -u)" -eq 0 ] || return 0
	cop_user=nobody
	W=$T/u
	install -d -m 755 -o nobody -g nogroup "$W"
	install -d -m 700 -o nobody -g nogroup "$W/run"
	for program in "$COPPER" "$SLOWFS" "$BENCH/together"; do
		install -D -m 755 "$program" "$T/bin/${program##*/}"
	done
	COPPER=$T/bin/copper
	cop_asks=$COPPER
	SLOWFS=$T/bin/slowfs
	install -m 755 "$BENCH/cputime" "$T/bin"
	BENCH=$T/bin
	as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$W"
		XDG_RUNTIME_DIR="$W/run" TMPDIR="$W")
	# shellcheck disable=SC2317 # called by its name from scripts that source this
	as_user() {
		"${as_nobody[@]}" "$@"
	}
	# For functions that run these programs by their names.
	for program in "$COPPER" "$PYTHON"; do
		printf '#!/bin/sh\nexec %s %s "$@"\n' "${as_nobody[*]}" "$program" \
			>"$T/bin/user-${program##*/}"
		chmod 755 "$T/bin/user-${program##*/}"
	done
	install -d -o nobody "$T/lists"
}

pid_of() { # RANK
	node_stat "$1" pid
}

# Operations on slowfs that cost something.
slow_charged() {
	"$SLOWFS" --print "$SLOW_STATE" |
		awk '$1 ~ /^(lookup|getattr|readlink|access|open|opendir|readdir|read)$/ { sum += $2 } END { print sum }'
}

# Drops the page cache of one file, without touching anybody else's.
forget_pages() { # FILE
	dd if="$1" iflag=nocache count=0 status=none
}

# Incompressible BYTES.
random_file() { # FILE MIB
	mkdir -p "$(dirname "$1")"
	head -c "$(($2 * 1048576))" /dev/urandom >"$1"
}
