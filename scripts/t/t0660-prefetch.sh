#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job records what it needs, and the next one has it before it asks; a manifest that is stale or
# garbage does no harm. Without a pack (t0664), which would take the place of most of it.
# covers: prefetch manifest
# modes: release asan tsan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 57

SRC=$T/src
mkdir -p "$SRC"
numbered_files "$SRC/small" 60 5000
numbered_files "$SRC/large" 1 3000000
head -c 20000000 /dev/urandom >"$SRC/large/more"
mkdir -p "$SRC/deep/er/still" "$SRC/unused"
echo found >"$SRC/deep/er/still/file"
printf 'odd' >"$SRC/deep/er/a"$'\n''b\ c'
ln -s still/file "$SRC/deep/er/link"
echo unused >"$SRC/unused/file"
manifest=$T/.slow.copper-manifest
with_slowfs --meta-us 200 --cache-s 3600

# The application's part, on the given nodes; each must get every byte right.
use() { # RANK…
	local rank m
	for rank in "$@"; do
		m=$W/mnt/$rank
		(cd "$m" && cat small/file0000? large/* deep/er/link deep/er/a*c \
				absent/x 2>/dev/null |
			b2sum >"$T/sum.$rank") &
	done
	wait
	for rank in "$@"; do
		[ "$(cat "$T/sum.$rank")" = "$want" ] || return 1
	done
}
rest() { # the sum of what the source holds now
	(cd "$ORIGIN" && cat small/file0000? large/* deep/er/link deep/er/a*c absent/x 2>/dev/null |
			b2sum)
}
prefetched() { # RANK…: all of them have ended
	local rank
	for rank in "$@"; do
		case $(node_stat "$rank" prefetching.state) in
		done | stopped) ;;
		*) return 1 ;;
		esac
	done
}
state() { # RANK
	node_stat "$1" prefetching.state
}
want=$(rest)

# ---- a first job, and what it leaves

with_tree 1 --prefetch auto --pack-limit 0
wait_for 10 prefetched 0
is 'without a manifest there is nothing to do' \
	"$(state 0): $(node_stat 0 prefetching.why)" 'done: there is no manifest'
ok 'a job runs' use 0
first=$(node_stat 0 origin.bytes)
ok 'the first job stops' without_tree
ok 'the first job leaves its manifest beside the source' test -f "$manifest"
is 'the manifest begins as a manifest' "$(head -n 2 "$manifest")" "copper-manifest 2
source $SRC"
is 'the manifest says how many items it has' "$(tail -n 1 "$manifest")" "end $(grep -c '^[dnf] ' "$manifest")"
ok 'names what was read' grep -q '^f 5000 [0-9]*[.][0-9]* 0-5000 small/file00007$' "$manifest"
ok 'in names of any byte' grep -qF ' deep/er/a\nb\\ c' "$manifest"
is 'the manifest has nothing else' "$(grep -c 'unused\|file00015' "$manifest")" 0
is 'in the order of first need' \
	"$(grep -n '^d' "$manifest" | cut -d ' ' -f 2 | head -n 2 | tr '\n' ' ')" '. small '
is 'no temporary file is left' "$(find "$T" -maxdepth 1 -name '.slow*' | wc -l)" 1

# ---- the second job, on four nodes

cp "$manifest" "$T/given"
slow_reset
with_tree 4 --prefetch auto --pack-limit 0
ok 'four nodes prefetch' wait_for 20 prefetched 0 1 2 3
is 'four nodes prefetch everything' \
	"$(state 0) $(state 1) $(state 2) $(state 3)" 'done done done done'
is 'no item had changed or was refused' \
	"$(tree_sum prefetch.changed) $(tree_sum prefetch.failed)" '0 0'
before=$(tree_sum cache.misses)
reads=$(slow_count read)
ok 'the application gets what it asks for' use 0 1 2 3
is_at_most 'which was there already' $(($(tree_sum cache.misses) - before)) 4
is 'the storage read nothing for it' "$(($(slow_count read) - reads))" 0
is 'all nodes together read what one job read' "$(tree_sum origin.bytes)" "$first"
is 'cache-stats tells it in words' \
	"$(as_user "$COPPER" cache-stats "$W/mnt/2" | grep -c '^prefetch   done, [0-9]* lines')" 1
ok 'the tree stops' without_tree
ok 'the manifest is as good as before' cmp "$T/given" "$manifest"

# ---- jobs that need less

other_job() { # [NUMBER]: a job that needs all but the small file of this number, and is seen to
	with_tree 1 --prefetch auto --pack-limit 0 --kernel-ahead off
	wait_for 20 prefetched 0
	(cd "$W/mnt/0" && cat small/file0000[!"${1:-x}"] large/* deep/er/link deep/er/a*c >"$T/read")
	without_tree
}
# How long ago two files were needed, and how many items there are.
after() {
	awk '/^unused / { age = $2 } / small\/file00003$/ { a = 0 + age } / small\/file00007$/ { b = 1; c = 0 + age }
		/^[dnf] / { n++ } /^end / { end = $2 } END { print a, b ? c : "gone", n == end }' \
		"$manifest"
}
for want_after in '0 1 1' '0 2 1' '0 gone 1'; do
	ok 'a job needs one file less' other_job 7
	is 'what was not needed leaves after three jobs' "$(after)" "$want_after"
done
cp "$T/given" "$manifest"
other_job 7
other_job 3
is 'what is needed again stays' "$(after)" '1 0 1'
other_job
is 'as if it had never been missed' "$(after)" '0 0 1'
cp "$T/given" "$manifest"

# ---- a file that is given

with_tree 2 --prefetch "$T/given"
ok 'a manifest can be given' wait_for 20 prefetched 0 1
is 'a given manifest reaches all nodes' \
	"$(state 1) $(($(node_stat 1 prefetch.objects) > 15))" 'done 1'
ok 'stopping' without_tree
rm "$manifest"
with_tree 1 --prefetch "$T/given"
ok 'stopping at once' without_tree
ok 'a manifest that was given is not written' test ! -e "$manifest"

# ---- from a profile

with_tree 2 -A
ok 'a job with a profile runs' use 0 1
ok 'the job with a profile stops' without_tree
ok 'a manifest is made of the first touches in the profile' "$COPPER" paths "$JOB" --manifest "$T/profiled"
is 'with the same files and bytes' \
	"$(grep '^f' "$T/profiled" | LC_ALL=C sort)" "$(grep '^f' "$T/given" | LC_ALL=C sort)"
with_tree 2 --prefetch "$T/profiled"
wait_for 20 prefetched 0 1
is 'the profiled manifest is prefetched' \
	"$(state 1) $(node_stat 1 prefetch.changed) $(node_stat 1 prefetch.failed)" 'done 0 0'
ok 'the node with the profiled manifest stops' without_tree

# ---- a stale one

echo 'another content' >"$ORIGIN/small/file00001"
head -c 2500000 /dev/urandom >"$ORIGIN/large/file00000"
rm "$ORIGIN/small/file00002" "$ORIGIN/deep/er/link"
mkdir "$ORIGIN/small/file00002"
echo new >"$ORIGIN/deep/er/link"
rm -r "$ORIGIN/unused"
want=$(rest)
without_slowfs
with_slowfs --meta-us 200
with_tree 4 --prefetch "$T/given"
ok 'the application has right bytes while the prefetch runs' use 3 1
ok 'a stale manifest is worked through' wait_for 20 prefetched 0 1 2 3
ok 'the application has right bytes' use 0 2
is 'what changed was seen' "$(node_stat 0 prefetch.changed)" 3
ok 'stopping the four' without_tree

# ---- memory

with_tree 1 --prefetch "$T/given" --cache-size 16M --chunk 4M
wait_for 20 prefetched 0
is 'in a small cache it stops' "$(state 0): $(node_stat 0 prefetching.why | cut -d ';' -f 1)" \
	'stopped: the cache is nearly full'
is 'the prefetch evicts nothing from a small cache' "$(node_stat 0 cache.evictions)" 0
ok 'the application runs with a small cache' use 0
ok 'stopping the small one' without_tree

# ---- a node dies meanwhile

with_tree 4 --prefetch "$T/given" --peer-timeout 1 --trees 1 --fanout 1
kill_node 2
ok 'when a node dies meanwhile the others end' wait_for 30 prefetched 0 1 3
ok 'the nodes that are left read right bytes' use 3 0
ok 'stopping the living' without_tree

# ---- files that are not manifests

head -c 5000 /dev/urandom >"$T/garbage"
with_tree 2 --prefetch "$T/garbage"
matches 'garbage is a warning' "$(cat "$W/out.0")" \
	'^copper: warning: --prefetch .*garbage: this manifest cannot be used: it does not begin like a manifest'
ok 'a file that is no manifest does no harm' use 0 1
ok 'stopping after garbage' without_tree
prepare_tree 1
fails_with 1 'no-such-file: No such file or directory; .copper paths' \
	"$COPPER" mount --source "$SRC" --prefetch "$T/no-such-file" "$W/mnt/0"
fails_with 1 'Is a directory' "$COPPER" mount --source "$SRC" --prefetch "$T" "$W/mnt/0"
