# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by harness.sh and the measurements. The kernel drops what it keeps of files whenever it
# likes, even what was read a moment ago. So a test that says that the kernel answers by itself, and
# that nobody is asked, takes the best of several rounds: a node that asks for too much, or keeps
# too little, does so in each.
# shellcheck disable=SC2154

# ENOUGH COMMAND…: the least number that the command prints; no further round once it is at most
# ENOUGH.
least() {
	local enough=$1 round number best=
	shift
	for ((round = 0; round < 30; round++)); do
		number=$("$@") || return 1
		[ -n "$best" ] && [ "$number" -ge "$best" ] || best=$number
		[ "$best" -gt "$enough" ] || break
	done
	echo "$best"
}

# For long rounds that is not enough: from here on the kernel keeps what it has of these files, and
# their names (hold.py).
hold_pages() { # FILE|DIR…
	local before=${cop_holder:-}
	rm -f "$T/held"
	"$PYTHON" "$cop_t/hold.py" "$@" >"$T/held" 2>&1 &
	cop_holder=$!
	wait_for 60 test -s "$T/held" || bail "hold.py: $(cat "$T/held")"
	is_ours "$cop_holder" || bail "hold.py: $(cat "$T/held")"
	let_go "$before"
}
let_go() { # [PID]
	local pid=${1-${cop_holder:-}}
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	[ "$pid" != "${cop_holder:-}" ] || cop_holder=
}

# How many times the kernel has been made to forget all unused names.
times_forgotten() {
	awk '$1 == "drop_slab" { print $2 }' /proc/vmstat
}

# The files that a node has been asked for so far, in its mount and, for comparison, in the source
# itself; also in the mounts of other nodes.
hold_what_was_read() { # RANK [RANK…]
	local rank kept=() relative
	"$COPPER" cache-stats --output-dir "$T/lists" "$W/mnt/$1" >/dev/null ||
		bail 'no list of what the node holds'
	mapfile -t relative \
		< <(sed -n "s|^$SRC/\(.*\): [0-9]*\$|\1|p" "$T/lists/data_cache_size.output")
	kept=("${relative[@]/#/$SRC/}")
	for rank in "$@"; do
		kept+=("${relative[@]/#/$W/mnt/$rank/}")
	done
	hold_pages "${kept[@]}"
}
