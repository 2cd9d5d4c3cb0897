#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that use one source in turn keep their recordings: each gets what it needs as soon as it
# begins, and little else; two programs with the same beginning are told apart.
# covers: prefetch manifest
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 24

SRC=$T/src
for program in a b c one two; do
	numbered_files "$SRC/$program" 20 20000
done
numbered_files "$SRC/shared" 12 20000
touch -d '1 hour ago' "$SRC"/*/* "$SRC"
manifest=$T/.slow.copper-manifest
with_slowfs --meta-us 100 --cache-s 3600

# What programs read, in this order; one and two are scripts of an interpreter, which is shared.
files_of() { # PROGRAM
	case $1 in
	one | two) echo "$SRC"/shared/* "$SRC/$1"/* ;;
	*) echo "$SRC/$1"/* "$SRC"/shared/file0000[0-3] ;;
	esac
}
prefetched() {
	[ "$(node_stat 0 prefetching.state)" = "done" ]
}
# Runs a program in a job of its own. Then extra is the bytes that were fetched ahead and not
# needed, per mille of those that were needed, and late is what it had to ask for.
job() { # PROGRAM [OPTION…]
	local program=$1 files file before need
	shift
	with_tree 1 --prefetch auto --kernel-ahead off "$@"
	wait_for 20 prefetched
	before=$(node_stat 0 cache.misses)
	read -r -a files <<<"$(files_of "$program")"
	cat "${files[0]/#"$SRC"/$W/mnt/0}" >"$T/read"
	sleep 0.1
	wait_for 20 prefetched
	late=$(node_stat 0 cache.misses)
	for file in "${files[@]:1}"; do
		cat "${file/#"$SRC"/$W/mnt/0}" >>"$T/read"
	done
	late=$(($(node_stat 0 cache.misses) - late))
	need=$((${#files[@]} * 20000))
	got=$(node_stat 0 prefetch.file_bytes)
	extra=$(((got > need ? got - need : 0) * 1000 / need))
	[ "$got" -ge 20000 ] || late=all
	cat "${files[@]}" | cmp -s - "$T/read" || bail "job $program: wrong bytes"
	without_tree || bail "job $program does not stop: $before"
}
parts() { # the first files of the manifest's parts
	awk '/^part / { print $3 }' "$manifest" | tr '\n' ' '
}

job a
is 'the manifest of one program has no parts' "$(parts)" ''
job b
is 'another program gets a part of its own' "$(parts)" 'a/file00000 b/file00000 '
job c
is 'and so does a third' "$(parts)" 'a/file00000 b/file00000 c/file00000 '
is 'for which nothing was fetched' "$got" 0
for round in 1 2; do
	for program in a b c; do
		job "$program"
		is "round $round: what $program needs is there when it has begun" "$late" 0
		is_at_most 'and hardly anything else' "$extra" 100
	done
done
is 'no part was lost' "$(parts)" 'a/file00000 b/file00000 c/file00000 '

# A copper that does not know parts skips their lines.
is 'the manifest says how many items it has' "$(tail -n 1 "$manifest")" \
	"end $(grep -c '^[dnf] ' "$manifest")"
with_tree 1 --prefetch "$manifest" --kernel-ahead off
wait_for 20 prefetched
is 'a manifest that is given is fetched at once' "$(node_stat 0 origin.bytes)" \
	$((60 * 20000 + 4 * 20000))
without_tree

# ---- the same beginning

rm "$manifest"
job one
job two
job one
job two
matches 'two scripts of an interpreter are told apart' "$(parts)" \
	'^shared/file00000 one/file00000 two/file00000 $'
job one
is_at_most 'the first of them gets little of the other' "$extra" 100
job two
is_at_most 'and the second, too' "$extra" 100

# ---- the kernel has what was brought, so a recording sees nothing of it

cp "$manifest" "$T/given"
for program in one two one; do
	job "$program" --kernel-ahead on
done
is 'parts stay when the kernel was ahead' "$(parts)" "$(awk '/^part / { print $3 }' "$T/given" | tr '\n' ' ')"

# ---- what is not used leaves

sed -i 's/^part [0-9]* two/part 31 two/' "$manifest"
job one
is 'a part that no program began for 32 jobs leaves' "$(parts)" 'shared/file00000 one/file00000 '
