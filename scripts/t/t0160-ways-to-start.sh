#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An address book instead of the rendezvous, a root without a mount, another provider, several
# trees, packed chunks: each way to start gives the same files.
# covers: launch conf node endpoint
# modes: release asan shared
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

if [ "$cop_mode" = release ]; then
	matches 'the binary is static' "$(file "$COPPER")" 'statically linked'
elif [ "$cop_mode" = shared ]; then
	matches 'the binary uses the libfabric of the site' "$(ldd "$COPPER")" 'libfabric\.so'
else
	pass 'a sanitizer build is linked as the sanitizer wants it'
fi
small_tree "$T/src"
SRC=$T/src
want=$(checksums "$SRC")

same_everywhere() { # WHAT RANK…
	local what=$1 rank
	shift
	for rank in "$@"; do
		is "$what: node $rank has the same files" "$(checksums "$W/mnt/$rank")" "$want"
	done
}

# ---- an address book: "hostname address" lines; the fabric listens where the book says

prepare_tree 3
cop_tree=3
while IFS=: read -r host _; do
	echo "$host ofi+tcp://$host:$(free_port)"
done <"$HOSTS" >"$T/book"
echo '192.0.2.1 ofi+tcp://192.0.2.1:1' >>"$T/book"
for rank in 2 1 0; do
	start_node "$rank" --address-book "$T/book" &
done
wait
same_everywhere 'with a book' 2 1 0
is 'each node listens, so that the others can tell whether it lives' \
	"$(ss -Hltn "sport = :$cop_port" | wc -l)" 3
ok 'the tree with an address book stops' without_tree

prepare_tree 2
head -n 1 "$T/book" >"$T/short-book"
fails_with 1 '127\.0\.0\.12' "$COPPER" mount --hosts "$HOSTS" --rank 0 --secret-file "$SECRET" \
	--source "$SRC" \
	--address-book "$T/short-book" "$W/mnt/0"

# ---- a root that serves and does not mount

prepare_tree 3
cop_tree=3
for rank in 1 2; do
	start_node "$rank" &
done
"$COPPER" serve --hosts "$HOSTS" --rank 0 --secret-file "$SECRET" --job-dir "$JOB" --source "$SRC"
is 'serve returns when the tree is ready' $? 0
wait
same_everywhere 'below a root without a mount' 1 2
is 'the nodes that mount asked the origin nothing' \
	"$(node_stat 1 origin.operations)$(node_stat 2 origin.operations)" 00
cop_killed[0]=1
matches 'all three stop' "$("$COPPER" stop "$W/mnt/1" 2>&1)" '^stopped 3/3 nodes$'
cop_tree=0

# ---- three trees, packed chunks, small chunks

striped_file "$SRC/large"
want=$(checksums "$SRC")
with_tree 5 --trees 3 --fanout 2 --compress on --chunk 64K
same_everywhere 'three trees, packed' 4 0
roots=0
for rank in 0 1 2 3 4; do
	[ "$(node_stat "$rank" origin.reads)" -eq 0 ] || roots=$((roots + 1))
done
is 'three roots read the origin' "$roots" 3
ok 'the three nodes stop' without_tree
rm "$SRC/large"
want=$(checksums "$SRC")

# ---- shm, within one machine

if [ "$cop_mode" = release ]; then
	with_tree 2 --net-type shm
	same_everywhere 'over shared memory' 1
	ok 'the tree stops' without_tree
else
	pass 'shm: only with the release build'
	pass 'shm: only with the release build'
fi
