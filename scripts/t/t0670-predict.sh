#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper predict says how long a recorded program will take to start, from what it measures at the
# storage; its operations are those that the storage then gets.
# covers: predict model
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 34

unset COPPER_PREFETCH
numbered_files "$T/store/env/lib" 40 9000
numbered_files "$T/store/env/share" 20 300000
SRC=$T/store/env
new_client() { # of the storage, which has seen nothing
	without_slowfs
	with_slowfs --meta-us 4000 --read-us 4000 --slots 8 --cache-s 3600
	slow_reset
}
new_client
# Everything in the order of its name, as a program that lists two directories.
use() { # ROOT
	cat "$1"/lib/* "$1"/share/* | wc -c
}
predict() { # OPTION…
	"$COPPER" predict --nodes 1,2 "$@"
}
# Operations that take time there.
slow_charged() {
	as_user "$SLOWFS" --print "$SLOW_STATE" |
		awk '$1 ~ /^(lookup|getattr|readlink|access|open|opendir|readdir|read)$/ { sum += $2 } END { print sum }'
}
value() { # KEY…: of the JSON in $W/json
	"$PYTHON" - "$W/json" "$@" <<'PY'
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[int(key) if key.isdigit() else key]
print(round(value) if isinstance(value, float) else value)
PY
}
near() { # WHAT GOT WANTED: at most a fifth off
	ok "$1: $2, and $3 were counted" test $((5 * $2)) -ge $((4 * $3)) -a $((5 * $2)) -le $((6 * $3))
}

fails_with 1 'there is no recording of .*/slow in .*\.copper-manifest: a job that uses it' \
	"$COPPER" predict --source "$SRC"
is 'a program reads it directly' "$(use "$SRC")" 6360000
direct=$(slow_charged)
with_tree 1
use "$W/mnt/0" >"$W/used"
without_tree
new_client
with_tree 1
prefetched() {
	[ "$(node_stat 0 prefetching.state)" = "done" ]
}
use "$W/mnt/0" >"$W/used"
wait_for 20 prefetched
copper=$(slow_charged)
without_tree

# ---- what is measured, and what follows

predict --source "$SRC" --json >"$W/json"
is 'the recording of the source is found' "$(value needs files) $(value needs programs)" '60 1'
is 'and all bytes of it' "$(value needs bytes)" 6360000
# A measured time is never less than what slowfs takes, whatever else runs.
ok 'a metadata operation takes what it takes' test "$(value storage metadata_us)" -ge 4000
ok 'a read as well' test "$(value storage read_us)" -ge 4000
ok 'there are operations at once' test "$(value storage slots)" -ge 1
ok 'it was measured' test "$("$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["storage"]["measured_s"] > 0)' "$W/json")" = True
near 'operations of a direct start' "$(value rows 0 direct_operations)" "$direct"
near 'operations of Copper' "$(value rows 0 copper_operations)" "$copper"
is 'two nodes ask directly twice as much' "$(value rows 1 direct_operations)" \
	$((2 * $(value rows 0 direct_operations)))
is 'and through Copper no more' "$(value rows 1 copper_operations)" \
	"$(value rows 0 copper_operations)"

# ---- with figures that are given, nothing is measured

manifest=$(find "$XDG_CACHE_HOME/copper" -name '*.copper-manifest')
given=(--set metadata_us=5000 --set read_us=5000 --set stream_mb_per_s=90 --set mb_per_s=800
	--set slots=16 --set children=20)
slow_reset
predict "$manifest" "${given[@]}" --source /nonexistent >"$W/table"
is 'the storage was not asked' "$(slow_charged)" 0
matches 'the table says what was given' "$(cat "$W/table")" \
	'5\.000 ms a metadata operation, 5\.000 ms a small read, 90 MB/s one reader, 800 several, 16 operations at once .given.$'
is 'it has a row for each number of nodes' "$(grep -cE '^ +[12]( +[0-9.]+){8}$' "$W/table")" 2
is_at_most 'and fits on a screen' "$(wc -l <"$W/table")" 24
is_at_most 'of a hundred columns, but for the first lines' \
	"$(sed 1,5d "$W/table" | awk 'length > most { most = length } END { print most }')" 100
matches 'the fastest way is named' "$(cat "$W/table")" '^fastest +[a-z]+ with [12]'
is 'it is the same each time' "$(predict "$manifest" "${given[@]}" --source /nonexistent | cksum)" \
	"$(cksum <"$W/table")"
predict "$manifest" "${given[@]}" --source /nonexistent --set pack_mb_per_s=1 --json >"$W/json"
is 'a pack elsewhere takes no operation of the storage' "$(value rows 0 copper_operations)" \
	"$(($(value needs directories) + $(value needs names) + $(value needs files)))"
ok 'and as long as it takes to be read' test "$(value rows 0 copper_s)" -ge 6
predict --source "$SRC" "${given[@]}" --json >"$W/json"
ok 'whether it is elsewhere is found out' test "$("$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["storage"]["pack_mb_per_s"] > 0)' "$W/json")" = True
ok 'a million nodes are no problem' "$COPPER" predict "$manifest" "${given[@]}" --nodes 1000000

# ---- what is wrong

head -n 20 "$manifest" >"$W/cut"
matches 'a recording that is cut off is computed with a note' \
	"$(predict "$W/cut" "${given[@]}" --source /nonexistent 2>&1)" 'note: the end of .*/cut is missing'
{ head -n 2 "$manifest" && printf 'n none\nend 1\n'; } >"$W/absent"
fails_with 1 'names no file by which the storage could be measured' "$COPPER" predict "$W/absent"
ok 'with figures it is computed' "$COPPER" predict "$W/absent" "${given[@]}"

for nodes in 0 1000001 1,,2 x ''; do
	fails_with 2 'copper predict: .*--nodes' "$COPPER" predict "$manifest" --nodes "$nodes"
done
fails_with 1 "of /usr, which is the system's own, nothing is recorded" "$COPPER" predict --source /usr
fails_with 2 'give a MANIFEST, or the --source' "$COPPER" predict
fails_with 1 'cannot read the source /nonexistent: No such file' \
	"$COPPER" predict "$manifest" --source /nonexistent
without_slowfs
