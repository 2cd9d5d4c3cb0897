#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Without --prefetch, a job records in its user's cache directory what programs needed, and the next
# one fetches it; nothing is written beside the source, nor recorded of the system's own files.
# covers: prefetch check conf
# quick: yes
# limit: 90
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 27

unset COPPER_PREFETCH
SRC=$T/soft/env
numbered_files "$SRC/many" 20 9000
touch -d '1 hour ago' "$SRC"/*/* "$SRC"
cache=$XDG_CACHE_HOME/copper
want=$(cat "$SRC"/many/* | b2sum)
use() {
	cat "$W"/mnt/0/many/* | b2sum
}
prefetched() {
	[ "$(node_stat 0 prefetching.state)" = "done" ]
}
kept() {
	find "$cache" -name '*.copper-manifest' | wc -l
}
check() {
	as_user "$COPPER" mount --check --source "$SRC" "$@" "$T/m" 2>&1 | grep ' prefetch '
}
mkdir "$T/m"

matches '--check says where it will be' "$(check)" "^ok .* is recorded for the next job, in $cache/env-.*$"
with_tree 2
matches 'the first job of a user says so' "$(cat "$W/out.0")" \
	"^copper: note: what programs need of $SRC is recorded in $cache, .*; --prefetch off records nothing$"
is 'once' "$(cat "$W/out.0" "$W/out.1" | grep -c recorded)" 1
is 'the first job reads' "$(use)" "$want"
ok 'the first job stops' without_tree
is 'and leaves its recording in the cache directory' "$(kept)" 1
is 'which is this user'\''s alone' "$(stat -c %a "$cache")" 700
is 'and nothing beside the source' "$(find "$T/soft" -maxdepth 1 -name '.*' | wc -l)" 0
matches '--check shows it' "$(check)" "in $cache/env-.*, and kept in $cache/env-.*[.]copper-pack [(].* of at most 1.0 GiB; remove both to forget[)]$"
matches 'or it alone' "$(check --pack-limit 0)" "in $cache/env-.* .*; remove it to forget[)]$"

with_tree 2
ok 'the second job fetches it' wait_for 20 prefetched
is 'without a word' "$(cat "$W/out.0" "$W/out.1" | grep -c recorded)" 0
misses=$(node_stat 0 cache.misses)
is 'the second job reads' "$(use)" "$want"
is 'and has fetched all of it' $(($(node_stat 0 cache.misses) - misses)) 0
ok 'the second job stops' without_tree

# ---- off

matches '--check says that it is off' "$(check --prefetch off)" 'off: nothing is fetched ahead or recorded'
with_tree 1 --prefetch off
is '--prefetch off fetches nothing' "$(node_stat 0 prefetching.state)" off
without_tree
COPPER_PREFETCH=off with_tree 1
is 'and so does the variable' "$(node_stat 0 prefetching.state)" off
without_tree

# ---- what is not safe, what is old

manifest=$(find "$cache" -name '*.copper-manifest')
chmod 666 "$manifest"
with_tree 1
wait_for 20 prefetched
is 'a manifest that others can write is not used' "$(node_stat 0 prefetch.objects)" 0
without_tree
chmod 644 "$manifest"
cp "$manifest" "$cache/old-0.copper-manifest"
touch -d '91 days ago' "$cache/old-0.copper-manifest"
cp "$manifest" "$cache/new-0.copper-manifest"
touch -d '89 days ago' "$cache/new-0.copper-manifest"
: >"$cache/other"
touch -d '91 days ago' "$cache/other"
with_tree 1 --kernel-ahead off
use >/dev/null
without_tree
is 'what no job renewed for 90 days leaves' "$(find "$cache" -name 'old-0.*' -o -name 'new-0.*' -o -name other | wc -l)" 2
cp "$manifest" "$T/soft/.env.copper-manifest"
rm "$manifest"
with_tree 1 --kernel-ahead off
wait_for 20 prefetched
is 'a manifest beside the source is used' "$(node_stat 0 prefetch.file_bytes)" 180000
use >/dev/null
without_tree
is 'and the next one is in the cache directory' "$(kept)" 2

# ---- the system's own

rm -r "$cache"
SRC=/usr/share/misc
matches '--check knows the system'\''s own' "$(check)" "nothing is recorded of $SRC"
with_tree 1
ls -l "$W/mnt/0" >"$T/list"
without_tree
ok 'nothing is recorded of it' test ! -e "$cache"

# ---- nowhere to keep it

SRC=$T/soft/env
unset XDG_CACHE_HOME
HOME=$T/nobody with_tree 1
use >/dev/null
matches 'nothing is recorded for a home that does not exist' "$(HOME=$T/nobody check)" '^warning .*set HOME or XDG_CACHE_HOME'
without_tree
ok 'nor is it made' test ! -e "$T/nobody"
with_tree 1 >"$T/out" 2>&1
unset HOME
matches 'without a home nothing is recorded' "$(check)" '^warning .*set HOME or XDG_CACHE_HOME'
without_tree
