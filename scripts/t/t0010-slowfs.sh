#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The stand-in for a parallel file system: what it shows, counts, costs and refuses.
# covers: dirops
# modes: release asan tsan
# limit: 60
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 37

fresh() { # OPTION…: slowfs over $T/src again
	without_slowfs
	rm -f "$W/slow.state"
	SRC=$T/src
	with_slowfs "$@"
}

elapsed_ms() { # COMMAND…
	local begin=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1
	echo $(((${EPOCHREALTIME/./} - begin) / 1000))
}

bash "$cop_t/make-tree.sh" --many 50 "$T/src"
fresh
ok 'the odd tree is the same through it' diff -r --no-dereference "$T/src/plain" "$SRC/plain"
list='%p %y %m %s %n %i %l %T@ %C@\n'
(cd "$T/src" && find . -printf "$list" | sort) >"$T/want"
(cd "$SRC" && find . -printf "$list" | sort) >"$T/got"
ok 'every attribute is passed through' cmp "$T/want" "$T/got"
is 'data past 4 GiB is there' \
	"$(tail -c 4 "$SRC/big/over-4-gib")" "$(tail -c 4 "$T/src/big/over-4-gib")"
is 'holes are seen' "$("$PYTHON" -c 'import os,sys; print(os.lseek(os.open(sys.argv[1], 0), 4096, os.SEEK_DATA))' "$SRC/big/over-4-gib")" \
	"$("$PYTHON" -c 'import os,sys; print(os.lseek(os.open(sys.argv[1], 0), 4096, os.SEEK_DATA))' "$T/src/big/over-4-gib")"
echo change >"$T/src/many/1"
is 'a change at the source is seen at once' "$(cat "$SRC/many/1")" change
matches 'writing is refused' "$(touch "$SRC/new" 2>&1)" 'Read-only'

fresh --direct-io
stat "$SRC/many" >/dev/null
slow_reset
stat "$SRC/many/1" "$SRC/many/2" >/dev/null
is 'each path component is asked for anew' "$(slow_count lookup)" 4
slow_reset
[ ! -e "$SRC/none" ]
is 'a missing name is counted as such' "$(slow_count negative)" 1
head -c 1000000 /dev/urandom >"$T/src/million"
slow_reset
dd if="$SRC/million" of="$T/copy" bs=100000 status=none
is 'bytes are counted exactly' "$(slow_count bytes)" 1000000
is 'reads are counted exactly' "$(slow_count read)" 11
is 'an open is counted' "$(slow_count open)" 1
is 'a close is counted' \
	"$(wait_for 5 eval '[ "$(slow_count release)" = 1 ]' && slow_count release)" 1

fresh --cache-s 100
stat "$SRC/many/1" >/dev/null
asked_again() {
	slow_reset
	stat "$SRC/many/1" >/dev/null
	echo $(($(slow_count lookup) + $(slow_count getattr)))
}
is 'with --cache-s the kernel answers again by itself' "$(least 0 asked_again)" 0

read_again() {
	slow_reset
	cat "$SRC/many/1" >/dev/null
	slow_count read
}
ok 'pages are read again after each open' test "$(least 0 read_again)" -gt 0
fresh --cache-s 100 --keep-pages
cat "$SRC/many/1" >/dev/null
is 'with --keep-pages pages stay after an open' "$(least 0 read_again)" 0

fresh --tick 10
touch -d '2020-02-02 02:02:19.5' "$T/src/many/5"
touch -d '1969-12-31 23:59:59.5 UTC' "$T/src/many/6"
is 'with --tick all time stamps are rounded down to it' \
	"$(stat -c '%.Y %X' "$SRC/many/5" "$SRC/many/6" |
		tr , .) $(($(stat -c %Z "$SRC/many/5") % 10))" \
	"$(date -d '2020-02-02 02:02:10' +%s).000000000 $(date -d '2020-02-02 02:02:10' +%s)
-10.000000000 -10 0"

fresh --meta-us 20000
cd "$SRC" || exit 1
ms=$(elapsed_ms test -e none)
cd / || exit 1
is_at_most 'a lookup costs at least what was asked for' 20 "$ms"

fresh --direct-io --read-us 200000 --slots 1
slow_reset
ms=$(elapsed_ms sh -c 'for i in 1 2 3 4 5 6 7 8; do cat "$0/many/$i" & done; wait' "$SRC")
is_at_most 'one slot serves one after the other' 1600 "$ms"
is 'with one slot, no two operations are served at once' "$(slow_count max_served)" 1
is_at_most 'many wait at once' 4 "$(slow_count max_outstanding)"

fresh --direct-io --mb-per-s 10
is_at_most 'a megabyte at 10 MB/s takes a tenth of a second' 100 "$(elapsed_ms cat "$SRC/million")"

mkdir "$T/second"
fresh --direct-io --meta-us 10000 --slots 1 --share "$T/share"
"$SLOWFS" --direct-io --meta-us 10000 --slots 1 --share "$T/share" "$T/src" "$T/second"
"$SLOWFS" --reset "$T/share"
ms=$(elapsed_ms sh -c 'for i in 1 2 3 4 5; do test -e "$0/none$i"; done & for i in 1 2 3 4 5; do test -e "$1/none$i"; done; wait' "$SRC" "$T/second")
is_at_most 'two mounts share one slot' 100 "$ms"
is 'the two mounts share the counters' \
	"$("$SLOWFS" --print "$T/share" | awk '$1 == "negative" { print $2 }')" 10
is 'two mounts have counters of their own' "$(slow_count negative)" 5
umount "$T/second"

fresh
slow_fault enoent=/many/3
ok 'a fault says that a name is not there' test ! -e "$SRC/many/3"
slow_fault clear
slow_fault eio=/many/3
matches 'a fault gives EIO' "$(cat "$SRC/many/3" 2>&1)" 'Input/output error'
ok 'a fault leaves its neighbour alone' test -s "$SRC/many/30"
slow_fault clear
ok 'a cleared fault is gone' test -s "$SRC/many/3"
slow_fault hang=many/4
cat "$SRC/many/4" >"$T/hung" &
hung=$!
sleep 1
ok 'a hang lasts' is_ours "$hung"
slow_fault clear
wait "$hung"
is 'a hang ends when it is cleared' "$(cat "$T/hung")" "$(cat "$T/src/many/4")"
slow_fault hang=many/4
timeout -s KILL 0.5 cat "$SRC/many/4" >/dev/null 2>&1
is 'a killed reader is let go' $? 137
slow_fault clear
real=$(stat -c %s "$SRC/many/5")
slow_fault size=1000:many/5
slow_fault size=-2:many/6
is 'a size that is reported too large' "$(stat -c %s "$SRC/many/5")" $((real + 1000))
is 'a size can be reported too small' "$(stat -c %s "$SRC/many/6")" $((real - 2))
slow_fault clear
is 'sizes are right when the fault is cleared' "$(stat -c %s "$SRC/many/5")" "$real"

fails_with 2 'SOURCE and MOUNTPOINT' "$SLOWFS" "$T/src"
fails_with 1 'source .*none: No such' "$SLOWFS" "$T/none" "$T/second"
fails_with 2 'not a number' "$SLOWFS" --slots many "$T/src" "$T/second"
without_slowfs
