#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What job scripts of Copper 1.0 call and look for: the lines of the logs, its commands by their old names, a reset of the counters.
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 99

# ---- log lines

logs_of() { # RANK: what its log says, without times and places
	sed -n 's/^[0-9-]* [0-9.-]* \[[A-Z][a-z]*\] ([a-z_]*) //p' "$JOB/logs/$(address_of "$1")"-*-output.log
}
with_tree 4 -k 2 -l 4 -P -N 20
for i in 0 1 2 3; do
	cat "$W/mnt/$i/hello" "$W/mnt/$i/dir/numbers" >/dev/null
	ls "$W/mnt/$i/dir" >/dev/null
done
for line in 'user-facing log_level: 4' 'profile_metrics: enabled' 'profile_top_n: 20' 'profile_paths_full: disabled' \
	'starting [a-z]+ engine' 'engine started' 'server running at address: ofi[+]tcp://[0-9.:]+' \
	'provider registration completed after [0-9]+ us' 'parent readiness confirmed after [0-9]+ us'; do
	is "every log says once: $line" "$(for i in 0 1 2 3; do logs_of $i | grep -cxE "$line"; done | tr '\n' ' ')" '1 1 1 1 '
done
is 'each node that has a parent says once when that first answered' \
	"$(for i in 0 1 2 3; do
		logs_of $i | grep -cE '^first successful parent rpc_(lstat|readfile|readdir) completed after [0-9]+ us since provider startup; path=/'
	done | tr '\n' ' ')" '0 1 1 1 '
is 'rank 0 says how long the addresses took' \
	"$(for i in 0 1 2 3; do logs_of $i | grep -cxE 'prepared address book generation took [0-9]+ s'; done | tr '\n' ' ')" '1 0 0 0 '
cp -r "$JOB/logs" "$T/logs.4"
ok 'the tree stops' without_tree

with_tree 2 -l 5 -A
cat "$W/mnt/1/hello" >/dev/null
matches 'level 5 is told' "$(logs_of 1)" '^user-facing log_level: 5$'
matches 'and tells all paths' "$(logs_of 1)" '^profile_paths_full: enabled$'
is 'level 4 has no debug lines' "$(cat "$T"/logs.4/*-output.log | grep -c '\[Debug\]')" 0
matches 'level 5 tells what was asked for' "$(logs_of 1)" '^asking kind=(listing|entry) path="/" index=0 rank=0$'
matches 'and what was answered' "$(logs_of 1)" '^answer kind=chunk path="/hello" index=0 rank=0 status=0 bytes=6$'
matches 'what was served' "$(logs_of 0)" '^serving kind=chunk path="/hello" index=0$'
matches 'and read from the source' "$(logs_of 0)" '^reading the source kind=chunk path="/hello" index=0$'
ok 'and this tree stops' without_tree
