#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace index: every subcommand answers the same with it as without; files of one gzip
# member and of many; a file that has changed, an index that is damaged or of something else; a
# directory that is read-only; four builders at once.
# covers: trace/read
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
plan 19
export XDG_CACHE_HOME=$T/cache HOME=$T

mkdir "$T/in"
generate 1 40000 7 "$T/in/one.pfw.gz" gzip=0
generate 1 40000 8 "$T/in/many.pfw.gz" gzip=3000
generate chrome 20000 9 "$T/in/torch.json" late
cat >"$T/questions" <<Q
summary
summary --name write
table --by name
table --by name --name save --json
table --by file --file step-50 --show count,size,dur
table --by process,thread --cat checkpoint
table --by pid,tid --from 1 --to 1.5 --csv
table --by name --show self,busy --name write
events --from 2 --to 2.01 --json
events --name compute --limit 30
diagnose
compare --by name --from 1 a=$T/in/one.pfw.gz b=$T/in/many.pfw.gz
checkpoint --event save --tier pfs=/p/lustre1 a=$T/in
merge --from 1 --to 1.1 -o $T/merged
Q
ask() { # FILE: the answers to all questions
	local words paths
	while read -ra words; do
		paths=("$T/in")
		[[ " ${words[*]} " != *=$T/in* ]] || paths=()
		"$COPPER" trace "${words[@]}" "${paths[@]}" </dev/null 2>&1
		[ "${words[0]}" != merge ] || sha256sum <"$T/merged"
	done <"$T/questions" >"$1"
}
ask "$T/without"
trace index "$T/in"
is 'three indexes are made' "$? $(grep -c ': made, [0-9]* events in [0-9]* parts' "$T/out") $(
	find "$T/in" -name '*.copper-index' | wc -l)" '0 3 3'
for name in one.pfw.gz many.pfw.gz torch.json; do
	is "$name: at most 5 % of the file" "$(($(stat -c %s "$T/in/$name.copper-index") * 20 <= \
		$(stat -c %s "$T/in/$name")))" 1
done
ask "$T/with"
is 'every answer is the same' "$(cmp "$T/without" "$T/with" 2>&1)" ''
trace index "$T/in"
is 'again: they are current' "$? $(grep -c ': current, ' "$T/out")" '0 3'
trace index --json "$T/in/one.pfw.gz"
is 'JSON has the same' "$("$PYTHON" -c "import json, sys
[r] = json.load(open(sys.argv[1]))
print(r['index'], r['events'], r['parts'] > 1, r['path'] == r['file'] + '.copper-index')" "$T/out")" \
	"current $(zcat "$T/in/one.pfw.gz" | grep -c ph) True True"

told_and_same() { # DESCRIPTION PATTERN
	trace table --by name "$T/in/one.pfw.gz"
	matches "$1: a note" "$(cat "$T/err")" "^copper trace table: $T/in/one.pfw.gz: $2"
	is "$1: the answer is the file's" "$(cmp "$T/out" "$T/answer" 2>&1)" ''
}
trace table --by name "$T/in/one.pfw.gz"
cp "$T/out" "$T/answer"
index=$T/in/one.pfw.gz.copper-index
cp "$index" "$T/kept"
touch -d '1 hour ago' "$T/in/one.pfw.gz"
told_and_same 'stale' 'the file has changed since its index was made'
trace index "$T/in/one.pfw.gz"
is 'stale: it is made again' "$? $(grep -c ': made' "$T/out")" '0 1'
printf 'something else' >"$index"
told_and_same 'foreign' 'what is called its index is none'
trace index "$T/in/one.pfw.gz"
printf 'xxxx' | dd of="$index" bs=1 seek=$(($(stat -c %s "$index") - 20)) conv=notrunc 2>/dev/null
told_and_same 'damaged' 'its index is damaged'

rm "$index"
for _ in 1 2 3 4; do
	"$COPPER" trace index "$T/in/one.pfw.gz" >/dev/null 2>>"$T/builders" &
done
wait
trace table --by name "$T/in/one.pfw.gz"
is 'four builders: one index, no temporary file, no word' "$(cat "$T/builders" "$T/err") $(
	find "$T/in" -name '*one*' | wc -l)" ' 2'

mkdir "$T/readonly"
mount -t tmpfs -o size=64m none "$T/readonly" || bail 'no tmpfs'
cp "$T/in/one.pfw.gz" "$T/readonly/"
mount -o remount,ro "$T/readonly"
trace index "$T/readonly"
matches 'a read-only directory: it is in the cache directory' "$(cat "$T/out")" \
	": made, .*: $T/cache/copper/trace-index/[0-9a-f]{16}\.copper-index$"
trace index "$T/readonly"
is 'which is used' "$(grep -c ': current' "$T/out")" 1
umount "$T/readonly"

printf 'no trace' >"$T/none.pfw"
is_told 'no trace' 1 'none.pfw: no index: it is neither JSON nor gzip' index "$T/none.pfw"
