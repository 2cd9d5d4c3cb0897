#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that use one source in turn keep their recordings: each gets what it needs as soon as it
# begins, and little else; two programs with the same beginning are told apart.
# covers: prefetch manifest
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 25

SRC=$T/src
for program in a b c one two; do
	numbered_files "$SRC/$program" 20 20000
done
numbered_files "$SRC/shared" 12 20000
numbered_files "$SRC/long" 100 10
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
has_begun() {
	[ "$(node_stat 0 prefetch.file_bytes)" -ge 20000 ] && prefetched
}
# Runs a program in a job of its own. Then extra is the bytes that were fetched ahead and not
# needed, per mille of those that were needed, late is what it had to ask for, and operations what
# the node asked the storage for. known: there is a recording of this program.
known=
job() { # PROGRAM [OPTION…]
	local program=$1 files file before need
	shift
	with_tree 1 --prefetch auto --kernel-ahead off --pack-limit 0 "$@"
	wait_for 20 prefetched
	before=$(node_stat 0 cache.misses)
	read -r -a files <<<"$(files_of "$program")"
	cat "${files[0]/#"$SRC"/$W/mnt/0}" >"$T/read"
	if [ -n "$known" ]; then
		wait_for 20 has_begun
	else
		sleep 0.1
		wait_for 20 prefetched
	fi
	late=$(node_stat 0 cache.misses)
	for file in "${files[@]:1}"; do
		cat "${file/#"$SRC"/$W/mnt/0}" >>"$T/read"
	done
	late=$(($(node_stat 0 cache.misses) - late))
	operations=$(node_stat 0 origin.operations)
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

# What each asks for with the manifest that it leaves when it alone uses the source.
declare -A own worst
for program in a b c; do
	job "$program"
	job "$program"
	own[$program]=$operations
	rm "$manifest"
done

job a
is 'the manifest of one program has no parts' "$(parts)" ''
job b
is 'another program gets a part of its own' "$(parts)" 'a/file00000 b/file00000 '
job c
is 'and so does a third' "$(parts)" 'a/file00000 b/file00000 c/file00000 '
is 'for which nothing was fetched' "$got" 0
for what in late extra operations; do
	for program in a b c; do
		worst[$what-$program]=0
	done
done
known=yes
for ((round = 0; round < 10; round++)); do
	for program in a b c; do
		job "$program"
		for what in late extra operations; do
			[ "${!what}" != all ] && [ "${!what}" -le "${worst[$what-$program]}" ] ||
				worst[$what-$program]=${!what}
		done
	done
done
known=
for program in a b c; do
	is "ten rounds: what $program needs is there when it has begun" "${worst[late-$program]}" 0
	is_at_most 'and hardly anything else' "${worst[extra-$program]}" 100
	# The first file is not fetched ahead, so a few operations more are made for it.
	is_at_most "the storage is asked as with the manifest of $program alone" \
		"${worst[operations-$program]}" "$((own[$program] * 105 / 100 + 10))"
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
cp "$manifest" "$T/two-scripts"

# ---- names of a directory without attributes in its listing, which the program lists first

rm "$manifest"
names=(long/file00{085,071,052,033,014})
for ((round = 0; round < 5; round++)); do
	with_tree 1 --prefetch auto --kernel-ahead off --pack-limit 0
	wait_for 20 prefetched
	(cd "$W/mnt/0" && cat a/file00000 && ls -U long && stat -c %s "${names[@]}") >"$T/read"
	without_tree
done
is 'names that the manifest brought are needed again' "$(grep -c '^n long/' "$manifest")" \
	"${#names[@]}"
is 'and never count as unused' "$(grep -c '^unused ' "$manifest")" 0
cp "$T/two-scripts" "$manifest"

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

# ---- what a program reads in places of a large file comes without what is between them

rm "$manifest"
head -c $((16 << 20)) /dev/urandom >"$ORIGIN/large"
touch -d '1 hour ago' "$ORIGIN/large"
with_tree 1 --prefetch auto --kernel-ahead off --pack-limit 0 --chunk 1M
for at in 20 84 148; do
	dd if="$W/mnt/0/large" bs=64K skip="$at" count=1 status=none
done >/dev/null
without_tree
with_tree 1 --prefetch auto --kernel-ahead off --pack-limit 0 --chunk 1M
wait_for 20 prefetched
is 'of a large file the chunks that were read come' "$(node_stat 0 prefetch.file_bytes)" $((3 << 20))
is 'and no others' "$(node_stat 0 cache.fetched_bytes)" $((3 << 20))
without_tree
