#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts that would work, but not as their user intends: no allocation, a mount point on a shared
# file system, a secret that an older job left.
# covers: check conf
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec of MPICH; scripts/install-deps.sh all installs it'
plan 33

SRC=$T/src
small_tree "$SRC"
export COPPER SRC T
mkdir -p "$T"/mnt/{0,1}
running() {
	echo "$(nodes_running) $(mounts_left)"
}

# ---- no allocation

timeout "$(patient 40)" mpiexec.hydra -launcher fork -n 2 \
	sh -c 'exec "$COPPER" mount --source "$SRC" "$T/mnt/$PMI_RANK"' \
	>"$T/out.mpi" 2>&1 </dev/null
is 'two tasks of a launcher without hosts do not become two trees' "$?: $(running)" '1: 0 0'
matches 'they get the reason, and what to do' "$(cat "$T/out.mpi")" \
	'^copper mount: PMI_SIZE=2 says that this is one of several, .*give --hosts FILE\|LIST .*--hosts localhost for a tree of one node on each$'
matches 'the check refuses it, too' "$(PMI_RANK=1 "$COPPER" mount --check "$T/mnt/0" 2>&1)" \
	'^failed +hosts +PMI_RANK=1 says'
PMI_SIZE=2 "$COPPER" mount --hosts localhost --source "$SRC" "$T/mnt/0" >"$T/out.meant" 2>&1
is 'with --hosts for one node there is no note' "$?: $(cat "$T/out.meant")" '0: '
"$COPPER" stop "$T/mnt/0" >/dev/null
"$COPPER" serve --source "$SRC" >"$T/out.serve" 2>&1
matches 'a relay that serves nobody says that it is alone' "$?: $(cat "$T/out.serve")" \
	'^0: copper: note: a tree of one node, since there is no --hosts'
"$COPPER" stop >/dev/null

# ---- a mount point on a shared file system

# shellcheck disable=SC2119
with_slowfs
mkdir "$ORIGIN/shared" "$T/local"
"$COPPER" mount --hosts localhost --source "$ORIGIN" "$T/slow/shared" >"$T/out.shared" 2>&1
matches 'a mount point on a shared file system is warned of' "$?: $(cat "$T/out.shared")" \
	"^0: copper: warning: $T/slow/shared is on fuse\.slowfs, .*choose a directory of the node itself, such as one below /tmp$"
is 'a mount point on a shared file system works' "$(cat "$T/slow/shared/hello")" hello
matches 'the check warns of it, too' \
	"$("$COPPER" mount --check --source "$ORIGIN" "$T/slow/empty" 2>&1)" \
	'^warning +mountpoint .* is on fuse\.slowfs'
"$COPPER" stop "$T/slow/shared" >/dev/null
"$COPPER" mount --hosts localhost --source "$SRC" "$T/local" >"$T/out.local" 2>&1
is 'a source on one is what Copper is for' "$?: $(cat "$T/out.local")" '0: '
"$COPPER" stop "$T/local" >/dev/null
without_slowfs
export SRC

# ---- a secret of an older job

address_of 0 >"$T/hosts"
address_of 1 >>"$T/hosts"
number=$((5000 + 29 * COP_LANE))
old=$number.server new=$((number + 1)).server
job() { # NUMBER RANK [OPTION…]
	local number=$1 rank=$2
	shift 2
	PBS_NODEFILE=$T/hosts PBS_JOBID=$number PALS_NODEID=$rank timeout "$(patient 60)" \
		"$COPPER" mount -d "$T/job" --source "$SRC" "$@" "$T/mnt/$rank" >"$T/out.$rank" \
		2>&1 </dev/null
}
both() { # NUMBER
	local other status
	job "$1" 1 &
	other=$!
	job "$1" 0
	status=$?
	wait "$other"
	echo "$status $?"
}
pids_of_nodes() {
	local rank
	for rank in 0 1; do
		node_stat "$rank" pid
	done
}
kill_both() {
	local pid rank
	for pid in $(pids_of_nodes); do
		is_ours "$pid" && kill -KILL "$pid"
	done
	for rank in 0 1; do
		umount -l "$T/mnt/$rank"
	done
	wait_for 10 eval '[ "$(running)" = "0 0" ]'
}
is 'the first job starts' "$(both $old): $(cat "$T"/out.[01])" '0 0: '
first=$(cat "$T/job/secret")
kill_both
is 'killed, it leaves its secret' \
	"$(stat -c '%a %s' "$T/job/secret")" "600 $(wc -c <"$T/job/secret")"
fails_with 1 "waited 300 ms for rank 0 to replace .*/job/secret, which is of job $old while this is job $new" \
	env PBS_NODEFILE="$T/hosts" PBS_JOBID=$new PALS_NODEID=1 "$COPPER" mount -d "$T/job" \
	--source "$SRC" --ready-timeout 300ms "$T/mnt/1"
matches 'the check knows that it will be replaced' \
	"$(PBS_NODEFILE=$T/hosts PBS_JOBID=$new PALS_NODEID=0 \
	"$COPPER" mount --check -d "$T/job" --source "$SRC" "$T/mnt/0" 2>&1)" \
	'^ok +secret +rank 0 will create'
is 'the next job starts in the same directory' "$(both $new)" '0 0'
matches 'the next job says what became of the secret' "$(cat "$T/out.0")" \
	"^copper: note: $T/job/secret was left behind by job $old; this job, $new, has a new one$"
is 'only rank 0 reports the secret of the older job' "$(cat "$T/out.1")" ''
isnt_first=$([ "$(cat "$T/job/secret")" = "$first" ] && echo the same || echo another)
is 'the new secret is another one' "$isnt_first" another
is 'the new secret is private, and the only one' "$(stat -c '%a' "$T"/job/secret*)" 600
matches 'the whole tree stops' "$("$COPPER" stop "$T/mnt/0")" '^stopped 2/2 nodes$'

# ---- another program has the port that follows from a job's number

taken=()
take() { # RANK PORT
	"$PYTHON" -c '
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen()
print(flush=True)
time.sleep(1000)' "$(address_of "$1")" "$2" >"$T/listens.${#taken[@]}" &
	taken+=($!)
	wait_for 10 test -s "$T/listens.$((${#taken[@]} - 1))"
}
port_of() { # RANK
	echo $((20480 + ((number + 2) * 16 + $1) % 8192))
}
second_of() { # RANK
	echo $((20480 + ((number + 2) * 16 + $1 + 4096) % 8192))
}
third=$((number + 2)).server
take 0 "$(port_of 0)"
take 1 "$(port_of 1)"
is 'the nodes take another one' "$(both "$third")" '0 0'
is 'the nodes with another secret read' \
	"$(cat "$T"/mnt/?/hello | sort | uniq -c | tr -s ' ')" ' 2 hello'
ok 'the log says so' grep \
	-q "rendezvous at port $(second_of 0): port $(port_of \
		0) is taken by process ${taken[0]} (python3" \
	"$T"/job/logs/"$(address_of 0)"-*-output.log
fails_with 1 "$(address_of 1) \(rank 1\) of this tree runs already, as process $(node_stat 1 \
		pid) \(copper\)" env PBS_NODEFILE="$T/hosts" PBS_JOBID="$third" PALS_NODEID=1 \
	"$COPPER" mount -d "$T/job" --source "$SRC" "$T/local"
matches 'the nodes with another secret stop' "$("$COPPER" stop "$T/mnt/0")" '^stopped 2/2 nodes$'
take 1 "$(second_of 1)"
fails_with 1 "cannot listen on .* port $(second_of 1) .* taken by process ${taken[2]}" \
	env PBS_NODEFILE="$T/hosts" PBS_JOBID="$third" PALS_NODEID=1 \
	"$COPPER" mount -d "$T/job" --source "$SRC" "$T/mnt/1"
matches 'the check says it, too' \
	"$(PBS_NODEFILE=$T/hosts PBS_JOBID=$third PALS_NODEID=1 "$COPPER" mount --check \
		-d "$T/job" --source "$SRC" "$T/mnt/1" 2>&1)" \
	"^failed +port .* taken by process ${taken[2]}"
kill "${taken[@]}"

# Without a scheduler nothing distinguishes one job from the next.
port=$(free_port)
sed "s/$/:$port/" "$T/hosts" >"$T/hosts.plain"
plain() {
	local pids=() rank status=
	for rank in 0 1; do
		timeout "$(patient 60)" "$COPPER" mount --hosts "$T/hosts.plain" --rank "$rank" \
			-d "$T/plain" --source "$SRC" "$T/mnt/$rank" \
			>"$T/out.$rank" 2>&1 </dev/null &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do
		wait "$rank"
		status="$status$?"
	done
	echo "$status: $(cat "$T"/out.[01])"
}
is 'a tree without a scheduler starts' "$(plain)" '00: '
"$COPPER" stop "$T/mnt/1" >/dev/null
ok 'the secret ends with its tree' test ! -e "$T/plain/secret"
is 'the next job has a secret of its own' "$(plain)" '00: '
kill_both
first=$(cat "$T/plain/secret")
matches 'one that a killed tree left is named' "$(plain)" \
	"^00: copper: note: $T/plain/secret exists from an earlier start .*to get a new one, remove the file before a start .*$"
is 'a left secret is used by the next node' "$(cat "$T/plain/secret")" "$first"
"$COPPER" stop "$T/mnt/0" >/dev/null
ok 'the secret stays until its tree stops' test ! -e "$T/plain/secret"

wait_for 10 eval '[ "$(running)" = "0 0" ]'
is 'no node and no mount remains' "$(running)" '0 0'
