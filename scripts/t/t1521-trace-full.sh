#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system that is full: a merged timeline is written whole or not at all, and a node goes on
# without its trace, which is readable up to there. A signal while the timeline's temporary file is
# created leaves none. What reads from a slow one tells how far it is.
# covers: timeline tracer
# modes: release asan
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system of its own'
plan 25

mkdir "$T/full"
mount -t tmpfs -o size=200k,mode=755 tmpfs "$T/full" || skip_all 'no tmpfs here'

# ---- a merged timeline

generate 1 20000 3 "$T/large.pfw"
for name in new.json new.json.gz; do
	is_told "$name" 1 \
		"^copper trace merge: $T/full/$name cannot be written: No space left on device $" \
		merge -o "$T/full/$name" "$T/large.pfw"
	is "$name: nothing is left behind" "$(find "$T/full" -type f)" ''
done
echo kept >"$T/full/old.json"
is_told 'one that is replaced' 1 'old\.json cannot be written: No space left on device' merge \
	-o "$T/full/old.json" "$T/large.pfw"
is 'stays as it was' "$(cat "$T/full/old.json") $(find "$T/full" -type f | wc -l)" 'kept 1'
head -c 1000000 /dev/zero >"$T/full/fill" 2>/dev/null
is_told 'without any room' 1 'none\.json cannot be written: No space left on device' merge \
	-o "$T/full/none.json" "$T/large.pfw"
is 'no temporary file remains on the full disk' "$(cd "$T/full" && echo *)" 'fill old.json'
wait_for 5 umount "$T/full"

# ---- a signal at the moment at which the temporary file is created

printf '%s\n' '{"name":"x","ph":"X","pid":5,"tid":6,"ts":1,"dur":1}' >"$T/small.pfw"
traced() { # STRACE-OPTION…
	timeout "$(patient 60)" strace -o "$T/calls" -e trace=openat "$@" "$COPPER" trace merge \
		-o "$T/full/x.json" "$T/small.pfw" 2>"$T/err"
}
if traced 2>/dev/null; then
	rm "$T/full/x.json"
	nth=$(grep openat "$T/calls" | grep -n O_EXCL | head -n 1 | cut -d : -f 1)
	{ traced -e inject="openat:signal=SIGTERM:when=$nth"; } 2>/dev/null
	is 'a signal meanwhile ends it' "$?" 143
	is 'a signal leaves nothing' "$(find "$T/full" -type f)" ''
	slow=(strace -f -o "$T/calls" -e trace=pread64 -e inject=pread64:delay_enter=300000
		"$COPPER" trace table --by name "$T/large.pfw")
	timeout "$(patient 60)" script -qec "${slow[*]}" /dev/null </dev/null >"$T/out"
	matches 'what takes long tells on a terminal how far it is' \
		"$(tr '\r' '\n' <"$T/out" | grep -m 1 read)" \
		'^copper trace table: [1-9][0-9]* events read'
	timeout "$(patient 60)" "${slow[@]}" >"$T/out" 2>"$T/err"
	is 'without a terminal nothing tells how far it is' "$? $(cat "$T/err")" '0 '
else
	pass 'what takes long tells on a terminal how far it is # SKIP nothing can be traced here'
	pass 'progress goes nowhere but to a terminal # SKIP nothing can be traced here'
	pass 'a signal meanwhile ends it # SKIP nothing can be traced here'
	pass 'a signal leaves no temporary file # SKIP nothing can be traced here'
fi

# ---- a node's own trace

SRC=$T/src
small_tree "$SRC"
prepare_tree 1
mkdir -p "$JOB/trace"
mount -t tmpfs -o size=300k,mode=755 tmpfs "$JOB/trace" || bail 'no tmpfs'
cop_tree=1
start_node 0 --trace
ends() { grep -c 'trace truncated' "$JOB"/logs/*.log; }
ask() { # FROM: for names that are not there
	for ((i = $1; i < $1 + 3000; i++)); do
		echo "$W/mnt/0/dir/absent.$i"
	done | xargs stat >/dev/null 2>&1
}
fill_trace() {
	ask "$RANDOM$RANDOM"
	[ "$(ends)" -gt 0 ]
}
ok "the file system of a node's trace gets full" wait_for 60 fill_trace
matches 'the log says so' "$(grep -h 'trace truncated' "$JOB"/logs/*.log)" \
	'file=.*/trace/.*\.pfw\.gz error="No space left on device"; the node continues without it'
ask 1
ok 'the node goes on' diff -r "$SRC" "$W/mnt/0"
is 'the node says it once' "$(ends)" 1
file=$(echo "$JOB"/trace/*.pfw.gz)
ok 'the trace is whole members up to there' gzip -t "$file"
is_told 'a trace of whole members is read' 0 '^$' summary "$file"
ok 'with the requests before' test "$("$PYTHON" "$cop_t/node_trace.py" posix "$file")" -gt 100
ok 'the node stops' without_tree
wait_for 5 umount "$JOB/trace"
