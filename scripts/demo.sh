#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 1, 2 and 4 nodes on this machine run an unmodified python from a slow file system, first without
# Copper, then through it. The demo shows how many operations reached that file system, which any
# machine can reproduce, and then the times of this one. `make demo` calls it after the build.
#
#   scripts/demo.sh           root, or any user who may mount with FUSE; needs python3 and
#                             python3-numpy
#
# DEMO_REPORT=FILE keeps the job's page (copper report).
# BUILD (build) has copper and slowfs, DEMO_IMPORT is what is imported besides numpy, as the words
# of an import statement (numpy), DEMO_NODES how many nodes there are in each step (1 2 4), the
# largest last, DEMO_META_US what a metadata operation takes (300), DEMO_TRIES how often a step that
# other work disturbs is measured (3). Exit 0 only if everything went as the text says.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
copper=$build/copper
slowfs=$build/slowfs
python=/usr/bin/python3
read -ra sizes <<<"${DEMO_NODES:-1 2 4}"
most=${sizes[-1]}
meta_us=${DEMO_META_US:-300}
most_tries=${DEMO_TRIES:-3}
# Milliseconds that all repetitions together may take.
patience=20000
export LC_ALL=C.UTF-8

[ -t 1 ] && bold=$(printf '\033[1m') plain=$(printf '\033[0m') || bold='' plain=''
say() { fold -s -w 112 <<<"$*" | sed 's/^/   /; s/ *$//'; }
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

grouped() { # NUMBER
	sed ':again; s/\([0-9]\)\([0-9]\{3\}\)\(,\|$\)/\1,\2\3/; t again' <<<"$1"
}

# Runs the python below that prefix as a job would start it: PYTHONHOME for its own library,
# LD_LIBRARY_PATH for the shared ones. With a node: in its view, in which the prefix is the tree.
# copper run gets these variables, too, because a view without mounts changes them.
run_python() { # PREFIX [NODE]
	local lib through=()
	lib=$1/lib/$(uname -m)-linux-gnu
	[ -z "${2:-}" ] || through=("$copper" run --mount "$2" --)
	env -i COPPER_DEMO="$dir" HOME="$dir" XDG_RUNTIME_DIR="$dir/run" PATH="$1/bin:/usr/bin:/bin" \
		PYTHONHOME="$1" PYTHONDONTWRITEBYTECODE=1 \
		LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack:$1/lib" "${through[@]}" \
		python3 -c "import numpy; import $modules; print(numpy.__file__, int(numpy.arange(1000).sum()))"
}

# Imports once below that prefix. If a node's view has no mounts, numpy has to come from the node.
import_once() { # NAME PREFIX [NODE]
	local from=$2
	[ -z "${3:-}" ] || [ "$view" != env ] || from=$3
	run_python "$2" "${3:-}" >"$dir/$1.out" 2>"$dir/$1.err" || return
	case $(cat "$dir/$1.out") in
	"$from"/*" 499500") ;;
	*)
		echo "numpy did not come from $from" >>"$dir/$1.err"
		return 1
		;;
	esac
}

# Imports on so many nodes at once, on each below the prefix and in the view that the function
# returns for it; sets took_ms.
all_at_once() { # NODES FUNCTION
	local i pids=() begin
	begin=$(now_ms)
	for ((i = 0; i < $1; i++)); do
		# The words are two.
		# shellcheck disable=SC2046
		import_once "import.$i" $("$2" "$i") &
		pids+=($!)
	done
	for ((i = 0; i < $1; i++)); do
		wait "${pids[i]}" || die "the import on node $i failed: $(tail -n 3 \
				"$dir/import.$i.out" "$dir/import.$i.err")"
	done
	took_ms=$(($(now_ms) - begin))
}

in_slow() { echo "$dir/slow$1"; }
in_node() { echo "$dir/slow0 $dir/node$1"; }
in_local() { echo /usr; }

# Prints METADATA READS BYTES that reached the slow file system since the last reset.
storage_saw() {
	"$slowfs" --print "$dir/storage" | awk '
		$1 ~ /^(lookup|getattr|readlink|open|opendir|readdir|access|statfs)$/ { meta += $2 }
		$1 == "read" { reads = $2 }
		$1 == "bytes" { bytes = $2 }
		END { print meta + 0, reads + 0, bytes + 0 }'
}

# Prints the time of all processors together, how much of it was idle, how much the hypervisor gave
# to other machines, and how much processes took that are not the demo's; in ticks.
processor_time() {
	local pid
	{
		cat /proc/stat
		for pid in $$ $(started); do
			cat "/proc/$pid/stat"
		done
	} 2>/dev/null | awk '
		$1 == "cpu" {
			busy = $2 + $3 + $4; idle = $5 + $6; stolen = $9
			all = busy + idle + $7 + $8 + stolen
		}
		sub(/^[0-9]+ \(.*\) /, "") { own += $12 + $13 + $14 + $15 }
		END { print all + 0, idle + 0, stolen + 0, busy - own }'
}

# Sets stolen and others to what the hypervisor and other processes took since that moment, in
# percent of all processors. Returns 1 if that did not delay the demo.
was_disturbed() { # PROCESSOR-TIME
	local before now all idle
	read -ra before <<<"$1"
	read -ra now <<<"$(processor_time)"
	all=$((now[0] - before[0]))
	[ "$all" -gt 0 ] || all=1
	idle=$((100 * (now[1] - before[1]) / all))
	stolen=$((100 * (now[2] - before[2]) / all))
	others=$((100 * (now[3] - before[3]) / all))
	[ "$others" -ge 0 ] || others=0
	[ "$stolen" -ge 3 ] || { [ "$others" -ge 8 ] && [ "$idle" -lt 25 ]; }
}

# Imports on so many nodes, and again if that was disturbed: three times at most, or until two
# repetitions agree. Keeps the shortest time, with the operations of the same repetition.
measure() { # NAME NODES PREPARE FUNCTION
	local tries=0 begin times=() disturbed reason=
	while :; do
		"$3" "$2"
		"$slowfs" --reset "$dir/storage"
		begin=$(processor_time)
		all_at_once "$2" "$4"
		disturbed=
		if was_disturbed "$begin"; then
			disturbed=1
			reason=$(name_disturbance)
			[ $((others + stolen)) -le "$worst" ] || worst=$((others + stolen))
		fi
		tries=$((tries + 1))
		mapfile -t times < <(printf '%s\n' "$took_ms" "${times[@]}" | sort -n)
		[ "${times[0]}" -ne "$took_ms" ] || storage_saw >"$dir/$1.$2.saw"
		[ -n "$disturbed" ] && [ "$tries" -lt "$most_tries" ] && [ "$patience" -gt 0 ] || break
		[ "$tries" -eq 1 ] || [ $((100 * times[1])) -gt $((115 * times[0])) ] || break
		patience=$((patience - took_ms))
	done
	echo "${times[0]}" >"$dir/$1.$2.ms"
	remark=
	[ -z "$reason" ] || remark=$(remark_on "$tries" "$reason" "${times[0]}" "${times[-1]}")
}

name_disturbance() {
	if [ "$stolen" -ge 3 ]; then
		echo "other machines took $stolen %, other programs $others % of the processors"
	else
		echo "other programs took $others % of the processors"
	fi
}

remark_on() { # TRIES REASON SHORTEST LONGEST
	if [ "$1" -eq 1 ]; then
		echo "($2)"
	else
		echo "(best of $1, longest $(seconds "$4"): $2)"
	fi
}

# Prints what a measurement found: the operations, then the time.
found() { # NAME NODES
	local saw
	read -ra saw <"$dir/$1.$2.saw"
	printf '%9s operations  %8s' "$(grouped $((saw[0] + saw[1])))" "$(seconds "$(cat "$dir/$1.$2.ms")")"
}

nodes() { # NUMBER
	[ "$1" -eq 1 ] && echo '1 node ' || echo "$1 nodes"
}

in_words() {
	if [ "${sizes[*]}" = 1 ]; then
		echo '1 node'
	else
		sed 's/ /, /g; s/, \([^,]*\)$/ and \1/; s/$/ nodes/' <<<"${sizes[*]}"
	fi
}

# ---- steps

prepare() {
	local i
	[ -x "$copper" ] || die "there is no $copper; run make first"
	[ -x "$slowfs" ] || die "there is no $slowfs; run make first"
	"$python" -c 'import numpy' 2>/dev/null ||
		die "$python cannot import numpy: scripts/install-deps.sh demo installs both (python3, python3-numpy)"
	[ "$(id -u)" -eq 0 ] || command -v fusermount3 >/dev/null ||
		die 'an ordinary user needs fusermount3: scripts/install-deps.sh demo installs it (fuse3)'
	modules=${DEMO_IMPORT:-numpy}
	mkdir "$dir/run"
	chmod 700 "$dir/run"
	for ((i = 0; i < most; i++)); do
		mkdir "$dir/node$i" "$dir/slow$i"
	done
	export XDG_RUNTIME_DIR=$dir/run XDG_CACHE_HOME=$dir/cache COPPER_DEMO=$dir
	export PYTHONDONTWRITEBYTECODE=1
	# No job leaves anything for the next: each first start is one.
	export COPPER_PREFETCH=off
}

slow_mounts() {
	local i
	for ((i = 0; i < most; i++)); do
		"$slowfs" --meta-us "$meta_us" --share "$dir/storage" /usr "$dir/slow$i" ||
			die "slowfs does not mount: this user has to be able to open /dev/fuse and to mount"
	done
}

direct() {
	local n
	title '1  Straight from a slow file system'
	say "slowfs shows /usr to each node; a metadata operation takes $meta_us us, as on a busy parallel file system."
	say "\$ python3 -c 'import $modules'     on all nodes at once"
	slow_mounts
	for n in "${sizes[@]}"; do
		measure direct "$n" : in_slow
		say "$(nodes "$n")  $(found direct "$n")  $remark"
	done
}

# An unused port at the demo's addresses.
free_port() {
	local port i tries=50
	while [ "$tries" -gt 0 ]; do
		tries=$((tries - 1))
		port=$((29000 + RANDOM % 3000))
		for ((i = 0; i < most; i++)); do
			! (exec 3<>"/dev/tcp/127.0.0.$((11 + i))/$port") 2>/dev/null || continue 2
		done
		echo "$port"
		return 0
	done
	return 1
}

stop_nodes() {
	local answer
	[ "$running" -gt 0 ] || return 0
	answer=$("$copper" stop "$dir/node$((running - 1))" 2>&1) || die "stop failed: $answer"
	grep -qx "stopped $running/$running nodes" <<<"$answer" || die "not every node stopped: $answer"
	running=0
	! mounted | grep -q '/node[0-9]*$' || still_mounted
}

still_mounted() {
	local hint=
	[ -e /etc/mtab ] || hint=': fusermount3 needs /etc/mtab, which is missing here (ln -s ../proc/self/mounts /etc/mtab)'
	die "still mounted: $(mounted | xargs)$hint"
}

# A tree of so many nodes that knows nothing yet.
fresh_tree() { # NODES
	local i pids=() port
	stop_nodes
	rm -rf "$dir/job"
	port=$(free_port) || die "no free port"
	for ((i = 0; i < $1; i++)); do
		echo "127.0.0.$((11 + i)):$port"
	done >"$dir/hosts"
	for ((i = 0; i < $1; i++)); do
		"$copper" mount --hosts "$dir/hosts" --rank "$i" -d "$dir/job" -N 20 \
			--source "$dir/slow0" --store "$dir/runs.db" \
			--ready-timeout 20 "$dir/node$i" >"$dir/mount.$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < $1; i++)); do
		wait "${pids[i]}" || die "node $i did not start: $(cat "$dir/mount.$i")"
	done
	running=$1
	[ -n "$view" ] || find_view
}

# Sets view to what copper run does on this machine: overlay, bind or env.
find_view() {
	local line
	line=$("$copper" run --check --mount "$dir/node0" 2>&1 | grep -E '^[a-z]+ +view ')
	read -r _ _ view line <<<"$line"
	view=${view%[:;,]}
	case $view in
	overlay | bind) say "the view of copper run: $view, so programs find the tree at the path of the slow file system" ;;
	env)
		say "the view of copper run: env, because this machine allows none with mounts ($line). So copper run" \
			"changes PATH, PYTHONHOME and LD_LIBRARY_PATH to the node's mount, and that is what is measured."
		;;
	*) die "copper run has no view here: $("$copper" run --check --mount "$dir/node0" 2>&1)" ;;
	esac
}

through_copper() {
	local n line
	title '2  Through Copper'
	say "\$ copper mount --hosts hosts --rank I -d job --source slow nodeI     on node I of a tree; nothing is cached yet"
	say "\$ copper run --mount nodeI -- python3 -c 'import $modules'     on all nodes at once, then once more"
	for n in "${sizes[@]}"; do
		measure cold "$n" fresh_tree in_node
		"$copper" cache-stats --all "$dir/node0" >"$dir/stats.json" || die 'no statistics'
		check_nodes "$n" || die "the demo measured something else than Copper"
		say "$(nodes "$n")  $(found cold "$n")  $remark"
		measure warm "$n" : in_node
		say "  again  $(found warm "$n")  $remark"
	done
}

# Prints what each node was asked, and complains if a node was asked nothing, or anyone but node 0
# read the source, or a request failed.
check_nodes() { # NODES
	"$python" - "$dir/stats.json" "$1" "$view" >"$dir/asked" <<'PY'
import json, sys
nodes = sorted(json.load(open(sys.argv[1]))["nodes"], key=lambda node: node["rank"])
keys = [("fuse", "lookup"), ("fuse", "negative"), ("fuse", "read"), ("fuse", "ioctl"), ("fabric", "requests_sent"), ("origin", "operations")]
row = "   %-8s %9s %9s %9s %9s %11s %11s"
print(row % ("", "lookups", "absent", "reads", "ioctls", "to parent", "at origin"))
for node in nodes:
    print(row % ("node %d" % node["rank"], *(node[group][name] for group, name in keys)))
wrong = []
if len(nodes) != int(sys.argv[2]):
    wrong.append("%d nodes answered, not %s" % (len(nodes), sys.argv[2]))
for node in nodes:
    rank = node["rank"]
    if not node["fuse"]["lookup"]:
        wrong.append("node %d saw no lookup: its program did not read through Copper (view %s)" % (rank, sys.argv[3]))
    if rank and node["origin"]["operations"]:
        wrong.append("node %d read the slow file system, which only node 0 may do" % rank)
    if node["fuse"]["errors"]:
        wrong.append("node %d answered requests with errors" % rank)
if nodes and not nodes[0]["origin"]["operations"]:
    wrong.append("node 0 never read the slow file system")
for sentence in wrong:
    print("demo: " + sentence, file=sys.stderr)
sys.exit(bool(wrong))
PY
}

# Measures what the machine itself needs for so many imports.
local_disk() {
	local n
	title '3  From the local disk, without any of this'
	for n in "${sizes[@]}"; do
		measure local "$n" : in_local
		say "$(nodes "$n")  $(seconds "$(cat "$dir/local.$n.ms")")  $remark"
	done
}

# What a training script does with three lines of Python, by a shell.
training() {
	say "\$ copper run --mount node0 -- copper runs log --metric train_loss=1 --step 0     and so on, as a training does"
	# shellcheck disable=SC2016
	# The view was told before.
	"$copper" run --mount "$dir/node0" -l 1 -- sh -c 'for step in 0 1 2 3 4 5 6 7; do
		"$0" runs log --metric "train_loss=$((1000 / (step + 1)))e-3" --step $step >/dev/null || exit
	done' "$copper" || die "the program cannot record its loss"
}

the_end() {
	title '4  What each node was asked at its first start'
	cat "$dir/asked"
	say "absent: lookups of names that do not exist. Only node 0, the root of the tree, reads the slow file system."
	say "\$ copper stop node$((most - 1))"
	stop_nodes
	say "stopped $most/$most nodes"
	unmount_all
	[ -z "$(mounted)" ] || still_mounted
}

page() {
	say "\$ copper runs show --metric train_loss"
	"$copper" runs show --store "$dir/runs.db" --metric train_loss >"$dir/loss" || die "the loss is not in the run store"
	say "the loss of the program, beside what Copper measured: $(awk 'NR > 1 { printf "%s%s", (NR > 2 ? ", " : ""), $NF }' "$dir/loss")"
	say "\$ copper report job"
	"$copper" report --store "$dir/runs.db" "$dir/job" >/dev/null || die "no page of the job"
	say "one page: $(sed -n 's|.*<h2[^>]*>\(.*\)</h2>.*|\1|p' "$dir/job/report.html" |
		sed 's/<[^>]*>//g' | paste -sd ';' | sed 's/;/; /g')"
	[ -z "${DEMO_REPORT:-}" ] || cp "$dir/job/report.html" "$DEMO_REPORT" ||
		die "the page is not kept"
}

# ---- results: what does not depend on this machine comes first

heading() { # TEXT
	local n
	printf '\n   %s%-40s%s' "$bold" "$1" "$plain"
	for n in "${sizes[@]}"; do
		printf '%12s' "$(nodes "$n" | xargs)"
	done
	echo
}

operations_row() { # LABEL NAME
	local n saw
	printf '   %-40s' "$1"
	for n in "${sizes[@]}"; do
		read -ra saw <"$dir/$2.$n.saw"
		printf '%12s' "$(grouped $((saw[0] + saw[1])))"
	done
	echo
}

times_row() { # LABEL NAME
	local n
	printf '   %-40s' "$1"
	for n in "${sizes[@]}"; do
		printf '%12s' "$(seconds "$(cat "$dir/$2.$n.ms")")"
	done
	echo
}

fewer() {
	local direct copper
	read -ra direct <"$dir/direct.$most.saw"
	read -ra copper <"$dir/cold.$most.saw"
	awk -v a=$((direct[0] + direct[1])) -v b=$((copper[0] + copper[1])) 'BEGIN { printf "%.1f", a / (b ? b : 1) }'
}

results() {
	title '5  Results'
	heading 'Operations at the slow file system'
	operations_row 'direct' direct
	operations_row 'through Copper, first start' cold
	operations_row 'through Copper, second start' warm
	say "$most without Copper: $(fewer) times as many as with it, because only one of Copper's nodes reads the storage."
	heading 'Time until the last node has imported'
	times_row 'direct' direct
	times_row 'through Copper, first start' cold
	times_row 'through Copper, second start' warm
	times_row 'local disk' local
	[ "$worst" -eq 0 ] ||
		say "Beside other work: up to $worst % of the processors were not the demo's." \
			"That changes times, not operations."
	[ "$view" != env ] || say 'With the view env, absolute paths inside files bypass Copper (copper-run(1)).'
}

dir=$(mktemp -d "${TMPDIR:-/tmp}/copper-demo.XXXXXX") || exit 1
dir=$(readlink -f "$dir")
running=0
view=
worst=0
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
prepare
printf '%sCopper demo: %s on this machine import %s%s\n' "$bold" "$(in_words)" "$modules" "$plain"
direct
through_copper
local_disk
training
the_end
page
results
