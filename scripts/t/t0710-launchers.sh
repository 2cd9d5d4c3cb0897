#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpiexec of MPICH, host files as PBS writes them, the ranks of PALS, PMIx and Flux, plain processes
# as ssh starts them; and the messages for wrong starts.
# covers: conf scheduler
# modes: release
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec of MPICH; scripts/install-deps.sh all installs it'
plan 36

small_tree "$T/src"
SRC=$T/src
export COPPER SRC T
mkdir -p "$T"/mnt/{0,1,2,3}
nodes=$T/nodes
for i in 0 1 2 3; do
	address_of "$i"
done >"$nodes"
# PBS lists a host once for each of its cores.
while read -r host; do
	printf '%s\n%s\n%s\n' "$host" "$host" "$host"
done <"$nodes" >"$T/pbs"

# Hydra takes these addresses for four hosts, and starts a proxy on each: by fork, not by ssh.
each_host() { # COMMAND…
	timeout "$(patient 40)" mpiexec.hydra -launcher fork -f "$nodes" -ppn 1 -n 4 "$@" </dev/null
}
mounted() {
	grep -c " $T/mnt/[0-9] .* - fuse.copper " /proc/self/mountinfo
}
stops() { # HOW
	is "$1: all four read" "$(cat "$T"/mnt/*/hello | sort | uniq -c | tr -s ' ')" ' 4 hello'
	matches "$1: all four stop" "$("$COPPER" stop "$T/mnt/3" 2>&1)" '^stopped 4/4 nodes$'
	is "$1: nothing is mounted" "$(mounted)" 0
}

# ---- mpiexec and a PBS job

job=$((4000 + 29 * COP_LANE))
PBS_NODEFILE=$T/pbs PBS_JOBID=$job.server each_host sh -c \
	'"$COPPER" mount -d "$T/job.pbs" --source "$SRC" "$T/mnt/$PMI_RANK"' >"$T/out.pbs" 2>&1
is 'mpiexec returns 0 when the tree is ready, and does not wait for the nodes to end' \
	"$?: $(cat "$T/out.pbs")" '0: '
for i in 0 1 2 3; do
	is "node $i has the port of its rank" \
		"$(ss -Hltn | grep -c ":$(((job * 16) % 8192 + 20480 + i)) ")" 1
done
stops 'mpiexec'

# ---- hosts with ports, without a scheduler

port=$(free_port)
sed "s/$/:$port/" "$nodes" >"$T/hosts"
each_host sh -c '"$COPPER" mount --hosts "$T/hosts" --rank "$PMI_RANK" -d "$T/job.hosts" --source "$SRC" "$T/mnt/$PMI_RANK"' \
	>"$T/out.hosts" 2>&1
is 'a host file with ports' "$?: $(cat "$T/out.hosts")" '0: '
stops 'ports'

# ---- the ranks of other launchers

variables=(PALS_NODEID PMIX_RANK FLUX_TASK_RANK PALS_NODEID)
for i in 0 1 2 3; do
	env PBS_NODEFILE="$T/pbs" PBS_JOBID=$((job + 1)) "${variables[i]}=$i" \
		timeout "$(patient 40)" \
		"$COPPER" mount -d "$T/job.ranks" --source "$SRC" "$T/mnt/$i" \
		>"$T/out.rank.$i" 2>&1 &
	pids[i]=$!
done
for i in 0 1 2 3; do
	wait "${pids[i]}"
	is "${variables[i]} tells the rank of node $i" "$?: $(cat "$T/out.rank.$i")" '0: '
done
stops 'ranks'

# ---- as pdsh or ssh start it: a list and nothing else

port=$(free_port)
for i in 0 1 2 3; do
	env -i PATH="$PATH" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" COP_TEST_DIR="$T" \
		timeout "$(patient 40)" "$COPPER" mount --hosts \
		"127.0.0.[11-14]" --port "$port" --rank "$i" -d "$T/job.list" --source "$SRC" \
		"$T/mnt/$i" >"$T/out.list.$i" 2>&1 &
done
wait
is 'a list is enough' "$(cat "$T"/out.list.*)" ''
stops 'list'

# ---- wrongly

printf '%s\n' "$(hostname)" no-such-host >"$T/pbs.one"

timeout "$(patient 40)" mpiexec.hydra -launcher fork -n 2 env PBS_NODEFILE="$T/pbs.one" sh -c \
	'exec "$COPPER" mount --ready-timeout 2 -d "$T/job.wrong" --source "$SRC" "$T/mnt/$PMI_RANK"' >"$T/out.wrong" 2>&1 </dev/null
matches 'a second task on a host gets advice how to start' "$(cat "$T/out.wrong")" \
	"^copper mount: several copper processes were started on $(hostname): start one copper on each host .*-ppn 1"
fails_with 1 'PMIX_RANK is 7, but PBS_NODEFILE names 2 hosts: start one copper on each host' \
	env PBS_NODEFILE="$T/pbs.one" PMIX_RANK=7 "$COPPER" mount -d "$T/job.wrong" \
	--source "$SRC" "$T/mnt/0"


# Two nodes with one host and port.
seconds=$(patient 8)
"$COPPER" mount --hosts "127.0.0.11,127.0.0.12" --port "$port" --rank 0 -d "$T/job.twice" \
	--ready-timeout "$seconds" --source "$SRC" "$T/mnt/0" \
	>"$T/out.twice" 2>&1 &
wait_for 10 eval 'ss -Hltn "src 127.0.0.11:$port" | grep -q .'
fails_with 1 "127\.0\.0\.11 \(rank 0\) of this tree runs already, as process [0-9]+ \(copper\); end that tree with .copper stop -d" \
	"$COPPER" mount --hosts "127.0.0.11,127.0.0.12" --port "$port" --rank 0 -d "$T/job.twice" \
	--source "$SRC" "$T/mnt/1"

# A secret that is not this job's, and one that has expired.
echo 'sixteen bytes, or more, of another job' >"$T/old-secret"
chmod 600 "$T/old-secret"
fails_with 1 'the tree is not ready: .*127\.0\.0\.11.*secret' \
	"$COPPER" mount --hosts "127.0.0.11,127.0.0.12" --port "$port" --rank 1 \
	--secret-file "$T/old-secret" -d "$T/job.twice" --ready-timeout 1 --source "$SRC" "$T/mnt/1"
wait
matches 'the root names who is missing' \
	"$(cat "$T/out.twice")" "1 of 2 nodes not ready after $seconds s: 127\.0\.0\.12"
lines() { # RANK: of its log, without times and what varies
	sed -n 's/^[0-9-]* [0-9.-]* \[Info\] ([a-z_]*) //p' \
		"$T/job.pbs/logs/127.0.0.1$(($1 + 1))"-*-output.log | sed 's/[0-9][0-9.]*/N/g'
}
for line in 'provider registration completed after N us' \
	'server running at address: ofi+tcp://N:N' 'parent readiness confirmed after N us' \
	'first successful parent rpc_(lstat|readdir) completed after N us since provider startup; path=/'; do
	matches "the log says: $line" "$(lines 1)" "^${line//+/[+]}\$"
done
matches 'the log says: parent not ready yet' \
	"$(cat "$T"/job.twice/logs/127.0.0.12-*)" '\[Info\] \([a-z_]*\) parent not ready yet'
matches 'the log says: timed out' "$(cat "$T"/job.twice/logs/127.0.0.12-*)" \
	'\[Info\] \([a-z_]*\) timed out waiting for parent readiness'
chmod 644 "$T/job.twice/secret"
fails_with 1 "the secret file $T/job.twice/secret is open to others .*chmod 600" \
	"$COPPER" mount --hosts "127.0.0.11,127.0.0.12" --port "$port" --rank 0 -d "$T/job.twice" \
	--source "$SRC" "$T/mnt/0"

wait_for 5 eval '[ "$(nodes_running) $(mounted)" = "0 0" ]'
is 'no mount and no node remains' "$(nodes_running) $(mounted)" '0 0'
