#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The source changes or fails after it was cached: a reader gets an error or one complete version,
# never 0 bytes with success.
# covers: origin fetch
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 22

SRC=$T/src
mkdir -p "$SRC/d"
version() { # LETTER BYTES
	head -c "$2" /dev/zero | tr '\0' "$1"
}
size=3000000
for name in deleted truncated emptied replaced rewritten grown gone-dir/file; do
	mkdir -p "$(dirname "$SRC/d/$name")"
	version A $size >"$SRC/d/$name"
done
echo fine >"$SRC/fine"
version A 20000000 >"$SRC/large"
with_slowfs --direct-io
with_tree 4
cd "$W/mnt" || exit 1

# A reader gets an error, or one complete version.
whole() { # FILE SUM…
	local sum status
	sum=$(cat "$1" 2>"$T/.whole" | sha256sum | cut -d ' ' -f 1)
	cat "$1" >/dev/null 2>&1
	status=$?
	shift
	[ "$status" -eq 0 ] || return 0
	case " $* " in
	*" $sum "*) return 0 ;;
	esac
	echo "neither an error nor a whole version: $sum"
	return 1
}
sum_of() {
	version "$1" "$2" | sha256sum | cut -d ' ' -f 1
}
old=$(sum_of A $size)

# Node 1 has read everything; nodes 2 and 3 know the names only.
find 1/d -type f -exec cat {} + >/dev/null
ls -lR 2/d 3/d >/dev/null

rm "$ORIGIN/d/deleted"
truncate -s 1000 "$ORIGIN/d/truncated"
: >"$ORIGIN/d/emptied"
version B 2500000 >"$ORIGIN/new" && mv "$ORIGIN/new" "$ORIGIN/d/replaced"
version B $size >"$ORIGIN/d/rewritten"
version A 1000000 >>"$ORIGIN/d/grown"
rm -r "$ORIGIN/d/gone-dir"
for rank in 1 2 3; do
	ok "deleted: node $rank" whole $rank/d/deleted "$old"
	ok "truncated: node $rank" whole $rank/d/truncated "$old" "$(sum_of A 1000)"
	ok "replaced by a shorter one: node $rank" \
		whole $rank/d/replaced "$old" "$(sum_of B 2500000)"
	ok "written over: node $rank" whole $rank/d/rewritten "$old" "$(sum_of B $size)"
done
ok 'emptied: old, an error, or empty with the size of an empty file' \
	whole 3/d/emptied "$old" "$([ ! -s 3/d/emptied ] && sum_of A 0)"
ok 'grown' whole 3/d/grown "$old" "$(sum_of A $((size + 1000000)))"
ok 'the directory of the file gone' whole 3/d/gone-dir/file "$old"

"$COPPER" cache-stats --invalidate "$W/mnt/1" >"$T/.out" 2>&1
is 'everything can be invalidated' $? 0
is 'after the invalidation every node sees what the source has now' \
	"$(sha256sum <1/d/rewritten; sha256sum <3/d/replaced)" \
	"$(sha256sum <"$ORIGIN/d/rewritten"; sha256sum <"$ORIGIN/d/replaced")"
is 'every node sees that a file is gone' "$(cat 2/d/deleted 2>&1 >/dev/null | sed 's/.*: //')" \
	'No such file or directory'

slow_fault eio=/fine
matches 'EIO of the source is EIO here' "$(cat 2/fine 2>&1)" 'Input/output error'
slow_fault clear
is 'EIO is not remembered' "$(cat 2/fine)" fine

# Replaced and invalidated again and again, while four nodes read: each reads at least once between
# two changes.
: >"$T/reads"
read_by_all() { # READS-BEFORE
	[ "$(wc -c <"$T/reads")" -ge $(($1 + 8)) ]
}
(
	for letter in B C D E F G; do
		version $letter 20000000 >"$ORIGIN/new" && mv "$ORIGIN/new" "$ORIGIN/large"
		"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null 2>&1
		wait_for 30 read_by_all "$(wc -c <"$T/reads")"
	done
) &
writer=$!
mixed=0
whole=0
while kill -0 "$writer" 2>/dev/null; do
	for rank in 0 1 2 3; do
		printf r >>"$T/reads"
		cat "$rank/large" >"$T/read.$rank" 2>/dev/null || continue
		if [ "$(stat -c %s "$T/read.$rank")" -eq 20000000 ] &&
			[ "$(tr -s 'A-G' <"$T/read.$rank" | wc -c)" -eq 1 ]; then
			whole=$((whole + 1))
		else
			mixed=$((mixed + 1))
		fi
	done
done
wait "$writer"
is 'two versions are never mixed' "$mixed" 0
is_at_most 'some versions were read whole' 1 "$whole"
note "$whole were read whole"
