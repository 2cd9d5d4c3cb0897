# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by harness.sh: trees of nodes on this machine, one address of 127.0.0.0/8 each, and
# slowfs.
# shellcheck disable=SC2154

address_of() { # RANK
	echo "127.0.$((($1 + 11) / 250)).$((($1 + 11) % 250))"
}

# An unused port of this test's lane that was not given out before. All are below the ports of jobs
# (20480 on) and those that the kernel chooses itself.
free_port() {
	local n port tries=150
	n=$(cat "$T/.port" 2>/dev/null || echo $((RANDOM % 150)))
	while [ "$tries" -gt 0 ]; do
		n=$(((n + 1) % 150))
		port=$((10000 + 150 * COP_LANE + n))
		if [ -z "$(ss -Hltn "sport = :$port")" ]; then
			echo "$n" >"$T/.port"
			echo "$port"
			return 0
		fi
		tries=$((tries - 1))
	done
	return 1
}

small_tree() { # DIR
	mkdir -p "$1/dir/deeper" "$1/empty"
	echo hello >"$1/hello"
	: >"$1/nothing"
	seq 1 20000 >"$1/dir/numbers"
	head -c 3000000 /dev/urandom >"$1/dir/deeper/random"
	ln -s dir/numbers "$1/link"
	chmod -R a+rX "$1"
}

# Files whose content follows from their number, so that a reader can tell a wrong byte: DIR COUNT
# BYTES.
numbered_files() {
	mkdir -p "$1"
	"$PYTHON" - "$1" "$2" "$3" <<'PY'
import os, random, sys
where, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(count):
    with open(os.path.join(where, "file%05d" % i), "wb") as f:
        f.write(random.Random(i).randbytes(size))
PY
}

# A file that goes round all trees and compresses to nearly nothing.
striped_file() { # FILE
	seq -f '%015.0f' 4200000 >"$1"
}
# DIR: relative names and sums of all regular files, in order; b2sum takes half of the time of
# sha256sum.
checksums() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r b2sum)
}

# Root always may; where root may not, tests fail.
may_mount() {
	[ "$(id -u)" -eq 0 ] || { command -v fusermount3 && : <>/dev/fuse; } >/dev/null 2>&1
}

need_mounts() {
	may_mount || skip_all 'this user may not mount: it takes fusermount3 and a /dev/fuse open to all'
}

# Prepares the hosts, the secret and the directories of a tree of N nodes.
prepare_tree() { # N
	local i mounts=()
	[ -x "$COPPER" ] || bail "there is no $COPPER; run make"
	need_mounts
	if [ -z "$SRC" ]; then
		SRC=$T/src
		small_tree "$SRC"
	fi
	cop_tree_number=$((cop_tree_number + 1))
	cop_port=$(free_port) || bail "no free port"
	JOB=$W/job.$cop_tree_number
	HOSTS=$W/hosts.$cop_tree_number
	SECRET=$W/secret.$cop_tree_number
	cop_killed=()
	for ((i = 0; i < $1; i++)); do
		echo "$(address_of "$i"):$cop_port"
		mounts+=("$W/mnt/$i")
	done >"$HOSTS"
	as_user mkdir -p "${mounts[@]}"
	(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$SECRET")
	chmod 644 "$HOSTS"
	[ -z "$cop_user" ] || chown "$cop_user" "$SECRET" "$HOSTS"
}

# Starts one node of a prepared tree; further options come last and override others.
start_node() { # RANK [OPTION…]
	local rank=$1 secret=(--secret-file "$SECRET")
	shift
	[ -z "${cop_plain:-}" ] || secret=()
	as_user timeout "$(patient 90)" "$COPPER" mount --hosts "$HOSTS" --rank "$rank" \
		"${secret[@]}" --job-dir "$JOB" --source "$SRC" "$@" "$W/mnt/$rank" \
		</dev/null >"$W/out.$rank" 2>&1
}

# Starts N nodes at once and returns when each is mounted; ends the test if one is not.
with_tree() { # N [OPTION…]
	local n=$1 i pids=() bad=()
	shift
	prepare_tree "$n"
	cop_tree=$n
	for ((i = 0; i < n; i++)); do
		start_node "$i" "$@" &
		pids+=($!)
	done
	for ((i = 0; i < n; i++)); do
		wait "${pids[i]}" || bad+=("rank $i: exit $?: $(cat "$W/out.$i")")
	done
	if [ "${#bad[@]}" -gt 0 ]; then
		fail "a tree of $n nodes starts" "${bad[@]}"
		exit 1
	fi
}

# The same without the harness's secret: the job directory provides one.
start_plain() { # N [OPTION…]
	local cop_plain=yes
	with_tree "$@"
}

living_rank() {
	local i
	for ((i = 0; i < cop_tree; i++)); do
		if [ -z "${cop_killed[$i]:-}" ]; then
			echo "$i"
			return 0
		fi
	done
	return 1
}

is_mounted() { # DIR; a dead FUSE mount is one too
	local lines line
	mapfile -t lines </proc/self/mountinfo
	for line in "${lines[@]#* * * * }"; do
		[ "${line%% *}" != "$1" ] || return 0
	done
	return 1
}

unmount_killed() {
	local i
	for i in "${!cop_killed[@]}"; do
		! is_mounted "$W/mnt/$i" || umount -l "$W/mnt/$i" 2>/dev/null
	done
}

# Stops the whole tree; 0 if every live node was counted and left no mount. The output of stop is in
# $W/out.stop; with dead nodes it ends with 1.
without_tree() {
	local i rank status=0 dead=${#cop_killed[@]} code
	rank=$(living_rank) || return 1
	as_user timeout "$(patient 60)" "$COPPER" stop "$W/mnt/$rank" >"$W/out.stop" 2>&1
	code=$?
	[ "$code" -eq "${cop_stop_ends:-$((dead > 0))}" ] || status=1
	[ "$dead" -eq 0 ] || grep -q "^stopped $((cop_tree - dead))/$cop_tree nodes" \
		"$W/out.stop" || status=1
	unmount_killed
	for ((i = 0; i < cop_tree; i++)); do
		if is_mounted "$W/mnt/$i"; then
			note "node $i is still mounted"
			status=1
		fi
	done
	[ "$status" -eq 0 ] || note "$(cat "$W/out.stop")"
	cop_tree=0
	return "$status"
}

# The same if the reports cannot be written, which stop reports with status 1.
without_tree_and_reports() {
	local cop_stop_ends=1
	without_tree
}

node_json() { # RANK
	look_around
	as_user timeout $((30 * cop_slower * CROWD)) "$cop_asks" cache-stats --json "$W/mnt/$1"
}

# One value of a JSON object on standard input, by its path: budget.used_bytes. Python takes ten
# times as long to start as awk, which finds whole numbers, words and texts without a backslash.
json_value() { # PATH
	value_in "$1" "$(</dev/stdin)"
}
value_in() { # PATH TEXT
	local text=$2 cop_value
	[[ $text != *\\* ]] && {
		value_of_objects "$1" "$text" && echo "$cop_value" && return
		awk -v path="$1" -f "$cop_t/json_value.awk" <<<"$text" && return
	}
	"$PYTHON" -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if isinstance(value, list) else value[key]
print(json.dumps(value) if isinstance(value, (bool, dict, list)) else value)' "$1" <<<"$text"
}

# Sets cop_value. Another process is most of what a question costs, so this finds by itself what
# nodes write: objects in objects, and nothing between the signs.
value_of_objects() { # PATH TEXT
	local LC_ALL=C keys rest=${2#"{"} depth=0 part
	[ "$rest" != "$2" ] || return 1
	IFS=. read -ra keys <<<"$1"
	while [ -n "$rest" ] && [ "$depth" -ge 0 ]; do
		part=,${rest%%[][{\}]*}
		rest=${rest:${#part}-1}
		if [ "$depth" -eq 0 ] && [ "${#keys[@]}" -eq 1 ] && [[ $part == *,\"${keys[0]}\":* ]]; then
			value_at_start "${part#*,\""${keys[0]}"\":}"
			return
		fi
		case ${rest:0:1} in
		'{') if [ "$depth" -eq 0 ] && [[ $part == *,\"${keys[0]}\": ]]; then
			keys=("${keys[@]:1}")
		else
			depth=$((depth + 1))
		fi ;;
		'[') depth=$((depth + 1)) ;;
		*) depth=$((depth - 1)) ;;
		esac
		rest=${rest:1}
	done
	return 1
}
value_at_start() { # TEXT
	[[ $1 =~ ^(-?[0-9]+|true|false)(,|$) || $1 =~ ^\"([^\"]*)\" ]] && cop_value=${BASH_REMATCH[1]}
}

node_stat() { # RANK PATH
	local json
	json=$(node_json "$1") && value_in "$2" "$json"
}

tree_sum() { # PATH: the sum over living nodes
	local i sum=0
	for ((i = 0; i < cop_tree; i++)); do
		[ -n "${cop_killed[$i]:-}" ] || sum=$((sum + $(node_stat "$i" "$1")))
	done
	echo "$sum"
}

is_ours() { # PID
	grep -qzFx "COP_TEST_DIR=$T" "/proc/$1/environ" 2>/dev/null
}

# Whether a process has ended with all its threads, so that its files are closed: its environment
# disappears before them. A process whose environment is not ours was given the number afterwards.
is_gone() { # PID
	! is_ours "$1" && {
		! grep -hs '^State:' "/proc/$1/task/"*/status | grep -qv '[ZX] (' ||
			grep -qz . "/proc/$1/environ" 2>/dev/null
	}
}

# The processes of this test that run a program.
processes_of() { # BINARY
	local pid binary
	binary=$(readlink -f "$1")
	while read -r pid; do
		[ "$(readlink "/proc/$pid/exe")" != "$binary" ] || echo "$pid"
	done < <(grep -lzFx "COP_TEST_DIR=$T" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3)
}

nodes_running() { # how many
	processes_of "$COPPER" | wc -l
}

mounts_left() {
	grep -c " $W/" /proc/self/mountinfo
}

kill_node() { # RANK
	local pid
	pid=$(node_stat "$1" pid) || bail "no pid of node $1"
	is_ours "$pid" || bail "pid $pid of node $1 is not of this test"
	kill -KILL "$pid"
	cop_killed[$1]=$pid
	wait_for 5 is_gone "$pid" || bail "node $1 survives SIGKILL"
}

# ---- slowfs

# Puts slowfs over SRC: from here on SRC is the slow mount and ORIGIN the real directory.
with_slowfs() { # [OPTION…]
	need_mounts
	if [ -z "$SRC" ]; then
		SRC=$T/src
		small_tree "$SRC"
	fi
	ORIGIN=$SRC
	cop_slow=$W/slow
	SLOW_STATE=$W/slow.state
	as_user mkdir -p "$cop_slow"
	as_user "$SLOWFS" --counters "$SLOW_STATE" "$@" "$SRC" "$cop_slow" ||
		bail "slowfs does not mount"
	SRC=$cop_slow
}

# A mount namespace that was made meanwhile keeps the mount until it ends, and slowfs would serve
# for as long as that; so slowfs is told to end.
without_slowfs() {
	local pid
	[ -n "$cop_slow" ] || return 0
	as_user "$SLOWFS" --fault "$SLOW_STATE" clear
	if umount "$cop_slow"; then
		for pid in $(processes_of "$SLOWFS"); do
			! grep -qzFx "$cop_slow" "/proc/$pid/cmdline" || kill "$pid" 2>/dev/null
		done
	else
		umount -l "$cop_slow"
	fi
	SRC=$ORIGIN
	cop_slow=
}

slow_count() { # NAME
	local word number
	while read -r word number; do
		[ "$word" != "$1" ] || echo "$number"
	done < <(as_user "$SLOWFS" --print "$SLOW_STATE")
}

slow_reset() {
	as_user "$SLOWFS" --reset "$SLOW_STATE"
}

slow_fault() { # eio=PATH | hang=PATH | size=BYTES:PATH | clear
	as_user "$SLOWFS" --fault "$SLOW_STATE" "$1"
}

# Removes what an interrupted test may have left: quietly, because the test already has its verdict.
stop_quietly() {
	end_load
	[ -z "$cop_slow" ] || as_user "$SLOWFS" --fault "$SLOW_STATE" clear
	[ "$cop_tree" -eq 0 ] || without_tree >/dev/null 2>&1
	unmount_killed
	without_slowfs >/dev/null 2>&1
}

# ---- a busy machine

# COUNT loops that take all the processor time they get, each in a session of its own, because the
# kernel divides time by sessions first (autogroup). CPUS: on these processors; without it on all.
begin_load() { # COUNT [CPUS]
	local i
	cop_load=()
	for ((i = 0; i < $1; i++)); do
		setsid taskset -c "${2:-0-1023}" bash -c 'while :; do :; done' &
		cop_load+=($!)
	done
}

end_load() {
	[ "${#cop_load[@]}" -gt 0 ] || return 0
	kill "${cop_load[@]}" 2>/dev/null
	wait "${cop_load[@]}" 2>/dev/null
	cop_load=()
}

# Small files in directories with incompressible names: what a node counts by path is then long, and
# its sums do not fit one message.
long_names() { # DIR COUNT
	mkdir -p "$1"
	"$PYTHON" - "$1" "$2" <<'PY'
import os, random, sys
for i in range(int(sys.argv[2])):
    name = random.Random(i).randbytes(60).hex()
    os.mkdir(os.path.join(sys.argv[1], name))
    with open(os.path.join(sys.argv[1], name, "file-" + name), "w") as f:
        f.write(name)
PY
}

# Reads every file through the mounts of these nodes, at the same time.
read_everything() { # RANK…
	local rank pids=()
	for rank; do
		(cd "$W/mnt/$rank" && find . -type f -print0 | xargs -0 cat) >/dev/null &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do
		wait "$rank" || fail 'every file can be read'
	done
}

# A number from the cluster files that stop has written.
cluster_value() { # METRIC
	awk -F, -v metric="$1" '$1 == metric { print $2 }' \
		"$JOB/profiling/cluster/cluster-profiling_aggregate.csv"
}
