#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Four nodes on this machine run an unmodified Debian python from a slow file system, first without
# Copper, then through it, and show which requests the file system got. `make demo` calls it after
# the build.
#
#   scripts/demo.sh           root, or any user who may mount with FUSE; needs python3 and
#                             python3-numpy
#
# DEMO_REPORT=FILE keeps the job's page (copper report).
# BUILD (build) has copper and slowfs, DEMO_IMPORT is what is imported (numpy, and torch if it is
# installed). Exit 0 only if everything went as the text says.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
copper=$build/copper
slowfs=$build/slowfs
python=/usr/bin/python3
nodes=4
meta_us=300
export LC_ALL=C.UTF-8

[ -t 1 ] && bold=$(printf '\033[1m') plain=$(printf '\033[0m') || bold='' plain=''
say() { printf '   %s\n' "$*"; }
title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# ---- leaving nothing behind

# Processes that the demo started are recognized by their environment, which daemons inherit, too:
# nothing is ended by its name. Callers remove the mark from the environment first, so that grep
# does not find itself.
started() {
	grep -lzFx "COPPER_DEMO=$dir" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

mounted() {
	awk -v dir="$dir/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | tac
}

end_started() { # SIGNAL
	local pids tries=30
	while pids=$(started) && [ -n "$pids" ] && [ "$tries" -gt 0 ]; do
		# shellcheck disable=SC2086
		kill "-$1" $pids 2>/dev/null
		sleep 0.1
		tries=$((tries - 1))
	done
}

unmount_all() {
	local where
	for where in $(mounted); do
		umount "$where" 2>/dev/null || fusermount3 -q -u "$where" 2>/dev/null ||
			umount -l "$where" 2>/dev/null || fusermount3 -q -u -z "$where" 2>/dev/null
	done
}

clean_up() {
	local status=$?
	trap '' INT TERM HUP
	trap - EXIT
	export -n COPPER_DEMO
	end_started TERM
	unmount_all
	end_started KILL
	unmount_all
	rm -rf --one-file-system "$dir"
	if [ -e "$dir" ] || [ -n "$(mounted)" ]; then
		echo "demo: $dir could not be cleaned up" >&2
		status=1
	fi
	exit "$status"
}

# ---- measuring

now_ms() {
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

seconds() { # MS
	printf '%d.%02d s' $(($1 / 1000)) $(($1 % 1000 / 10))
}

# Runs the python below that prefix as a job would start it: PYTHONHOME for its own library,
# LD_LIBRARY_PATH for the shared ones. With a node: in its view, in which the prefix is the tree.
run_python() { # PREFIX [NODE]
	local lib view=()
	lib=$1/lib/$(uname -m)-linux-gnu
	[ -z "${2:-}" ] || view=("$copper" run --mount "$2" --)
	"${view[@]}" env -i COPPER_DEMO="$dir" HOME="$dir" PATH="$1/bin:/usr/bin:/bin" \
		PYTHONHOME="$1" PYTHONDONTWRITEBYTECODE=1 \
		LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack:$1/lib" \
		python3 -c "import numpy; import $modules; print(numpy.__file__, int(numpy.arange(1000).sum()))"
}

# Imports once below that prefix; writes the milliseconds to a file.
timed() { # NAME PREFIX [NODE]
	local begin
	begin=$(now_ms)
	run_python "$2" "${3:-}" >"$dir/$1.out" 2>"$dir/$1.err" || return 1
	echo $(($(now_ms) - begin)) >"$dir/$1.ms"
	case $(cat "$dir/$1.out") in
	# If there are no views, variables name the node.
	"$2"/*" 499500" | "${3:-$2}"/*" 499500") ;;
	*) return 1 ;;
	esac
}

timed_or_die() { # NAME PREFIX
	timed "$@" || die "the import below $2 failed: $(tail -n 3 "$dir/$1.out" "$dir/$1.err")"
}

# Runs as many imports at once as there are nodes, each below the prefix and in the node that the
# function returns for its number.
all_at_once() { # NAME FUNCTION
	local i pids=() begin
	begin=$(now_ms)
	for ((i = 0; i < nodes; i++)); do
		# The words are two.
		# shellcheck disable=SC2046
		timed "$1.$i" $("$2" "$i") &
		pids+=($!)
	done
	for ((i = 0; i < nodes; i++)); do
		wait "${pids[i]}" ||
			die "import $i failed: $(tail -n 3 "$dir/$1.$i.out" "$dir/$1.$i.err")"
	done
	echo $(($(now_ms) - begin)) >"$dir/$1.ms"
}

in_node() { echo "$dir/slow $dir/node$1"; }
local_prefix() { echo /usr; }

times_of() { # NAME
	local i text=
	for ((i = 0; i < nodes; i++)); do
		text="$text  node $i $(seconds "$(cat "$dir/$1.$i.ms")")"
	done
	say "each:$text"
}

origin_saw() { # NAME STATE-FILE: keeps "METADATA READS BYTES"
	"$slowfs" --print "$2" | awk '
		$1 ~ /^(lookup|getattr|readlink|open|opendir|readdir|access|statfs)$/ { meta += $2 }
		$1 == "read" { reads = $2 }
		$1 == "bytes" { bytes = $2 }
		END { print meta + 0, reads + 0, bytes + 0 }' >"$dir/$1.origin"
}

origin_line() { # LABEL NAME
	awk -v label="$1" -v ms="$(cat "$dir/$2.ms")" '
		{ printf "   %-38s %7.2f s %10d %8d %8.1f\n", label, ms / 1000, $1, $2, $3 / 1e6 }' "$dir/$2.origin"
}

# ---- steps

prepare() {
	local i
	[ -x "$copper" ] || die "there is no $copper; run make first"
	[ -x "$slowfs" ] || die "there is no $slowfs; run make first"
	[ -x "$python" ] || die "there is no $python; install python3 and python3-numpy"
	"$python" -c 'import numpy' 2>/dev/null ||
		die "$python cannot import numpy; install python3-numpy"
	modules=${DEMO_IMPORT:-}
	if [ -z "$modules" ]; then
		modules=numpy
		"$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' \
			2>/dev/null &&
			modules='numpy, torch'
	fi
	mkdir "$dir/slow" "$dir/run"
	chmod 700 "$dir/run"
	for ((i = 0; i < nodes; i++)); do
		mkdir "$dir/node$i"
	done
	export XDG_RUNTIME_DIR=$dir/run COPPER_DEMO=$dir PYTHONDONTWRITEBYTECODE=1
}

slow_mount() { # COUNTERS MOUNTPOINT
	"$slowfs" --meta-us "$meta_us" --counters "$dir/$1" /usr "$dir/$2" ||
		die "slowfs does not mount"
}

direct() {
	title "1  One process, straight from the slow file system"
	slow_mount direct.state slow
	say "slowfs shows /usr and charges $meta_us us for each metadata operation, as a busy parallel file system does."
	say "\$ python3 -c 'import $modules'"
	timed_or_die direct "$dir/slow"
	origin_saw direct "$dir/direct.state"
	say "wall time $(seconds "$(cat "$dir/direct.ms")")"
	unmount_all
}

# An unused port at the demo's addresses.
free_port() {
	local port i tries=50
	while [ "$tries" -gt 0 ]; do
		tries=$((tries - 1))
		port=$((29000 + RANDOM % 3000))
		for ((i = 0; i < nodes; i++)); do
			! (exec 3<>"/dev/tcp/127.0.0.$((11 + i))/$port") 2>/dev/null || continue 2
		done
		echo "$port"
		return 0
	done
	return 1
}

start_nodes() {
	local i pids=() begin port
	title "2  A tree of $nodes Copper nodes over the same slow file system"
	slow_mount copper.state slow
	port=$(free_port) || die "no free port"
	for ((i = 0; i < nodes; i++)); do
		echo "127.0.0.$((11 + i)):$port"
	done >"$dir/hosts"
	say "\$ copper mount --hosts hosts --rank I -d job -N 20 --source slow nodeI     on each node, I = 0..$((nodes - 1))"
	begin=$(now_ms)
	for ((i = 0; i < nodes; i++)); do
		"$copper" mount --hosts "$dir/hosts" --rank "$i" -d "$dir/job" -N 20 \
			--source "$dir/slow" \
			--ready-timeout 20 "$dir/node$i" >"$dir/mount.$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < nodes; i++)); do
		wait "${pids[i]}" || die "node $i did not start: $(cat "$dir/mount.$i")"
	done
	say "all $nodes are mounted and ready after $(seconds $(($(now_ms) - begin)))"
	"$slowfs" --reset "$dir/copper.state"
}

import_cold() {
	title "3  The same import on all $nodes nodes at once, nothing cached anywhere"
	say "\$ copper run --mount nodeI -- python3 -c 'import $modules'     with the same paths as in step 1"
	all_at_once cold in_node
	origin_saw cold "$dir/copper.state"
	"$copper" cache-stats --all "$dir/node0" >"$dir/cold.json" || die "no statistics"
	times_of cold
}

import_warm() {
	title "4  Once more on all $nodes nodes: now the kernels have what they need"
	"$slowfs" --reset "$dir/copper.state"
	all_at_once warm in_node
	origin_saw warm "$dir/copper.state"
	"$copper" cache-stats --all "$dir/node0" >"$dir/warm.json" || die "no statistics"
	times_of warm
}

# Measures what the machine itself needs for this many imports at once.
import_local() {
	title "5  For comparison: $nodes processes at once from the local disk, without any of this"
	all_at_once local local_prefix
	echo '0 0 0' >"$dir/local.origin"
	times_of local
}

# Prints rows of the nodes. Returns 1 if anyone but node 0 read the source, or a node missed its
# share.
asked() {
	"$python" - "$dir/cold.json" "$dir/warm.json" <<'PY'
import json, sys
runs = [json.load(open(name))["nodes"] for name in sys.argv[1:]]
cold, warm = ({node["rank"]: node for node in run} for run in runs)
keys = [("fuse", "lookup"), ("fuse", "negative"), ("fuse", "read"), ("fuse", "ioctl"), ("fabric", "requests_sent"), ("origin", "operations")]
row = "   %-13s %9s %9s %9s %9s %11s %11s"
print(row % ("", "lookups", "absent", "reads", "ioctls", "to parent", "at origin"))
for rank in sorted(cold):
    print(row % ("node %d  cold" % rank, *(cold[rank][g][n] for g, n in keys)))
for rank in sorted(warm):
    print(row % ("node %d  warm" % rank, *(warm[rank][g][n] - cold[rank][g][n] for g, n in keys)))
others = [warm[rank]["origin"]["operations"] for rank in warm if rank]
errors = [warm[rank]["fuse"]["errors"] for rank in warm]
sys.exit(len(cold) != 4 or any(others) or any(errors) or not warm[0]["origin"]["operations"])
PY
}

compare() {
	title "6  What the slow file system saw"
	printf '   %-38s %9s %10s %8s %8s\n' '' 'wall' 'metadata' 'reads' 'MB read'
	origin_line 'direct: 1 process' direct
	origin_line "Copper, cold: $nodes nodes at once" cold
	origin_line "Copper, warm: $nodes nodes at once" warm
	origin_line "local disk: $nodes processes at once" local
	say "Direct, every further process costs it the first line once more. Through Copper the other nodes cost it"
	say "nothing, because only node 0, the root of the tree, reads it. Copper reads whole chunks of 1 MiB and"
	say "ahead of the reader, so that the bytes may exceed what one process happens to touch."
	title "7  What each node was asked"
	asked || die "only node 0 may touch the slow file system, and no request may fail"
	say "absent: lookups of names that do not exist; that is checked again after 2 s or more (--enoent-ttl-ms)."
	say "ioctls: python's isatty() on each file that it opens; in the view of copper run the kernel itself answers."
}

stop_nodes() {
	local answer
	title "8  The end"
	say "\$ copper stop node$((nodes - 1))"
	answer=$("$copper" stop "$dir/node$((nodes - 1))" 2>&1) || die "stop failed: $answer"
	say "$answer"
	[ "$answer" = "stopped $nodes/$nodes nodes" ] || die "not every node stopped"
	unmount_all
	[ -z "$(mounted)" ] || die "still mounted: $(mounted)"
}

page() {
	title "9  What the job was like, on one page"
	say "\$ copper report job"
	"$copper" report "$dir/job" >/dev/null || die "no page of the job"
	sed -n 's|.*<h2[^>]*>\(.*\)</h2>.*|\1|p' "$dir/job/report.html" | sed 's/<[^>]*>//g' |
		while read -r heading; do
		say "$heading"
	done
	[ -z "${DEMO_REPORT:-}" ] || cp "$dir/job/report.html" "$DEMO_REPORT" ||
		die "the page is not kept"
}

verdict() {
	local name
	for name in direct cold warm local; do
		printf -v "$name" '%s' "$(seconds "$(cat "$dir/$name.ms")")"
	done
	# shellcheck disable=SC2154
	printf '\n   direct, 1 process: %s   Copper, %d nodes: cold %s, warm %s   local disk, %d processes: %s\n' \
		"$direct" "$nodes" "$cold" "$warm" "$nodes" "$local"
}

dir=$(mktemp -d "${TMPDIR:-/tmp}/copper-demo.XXXXXX") || exit 1
dir=$(readlink -f "$dir")
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
prepare
printf '%sCopper demo: %d nodes on this machine import %s%s\n' "$bold" "$nodes" "$modules" "$plain"
direct
start_nodes
import_cold
import_warm
import_local
compare
stop_nodes
page
verdict
