#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Small files that are fetched beside others of their kind, on a chain of three nodes: how many
# messages this saves, what it costs the storage, that every byte is right, and what happens if
# memory is short, a file is replaced, or the parent dies meanwhile. Then the same for listings that
# are fetched with that of the directory above, and for the names that links lead to.
# covers: guess fetch
# modes: release asan tsan
# limit: 300
# takes: 50
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 86

SRC=$T/src
make_source() {
	rm -rf "$SRC"
	mkdir -p "$SRC"
	local d i
	for d in a b c d; do
		mkdir "$SRC/$d"
		for i in {1..12}; do
			echo "$d $i.py $RANDOM" >"$SRC/$d/f$i.py"
			seq "$i" $((i * 900)) >"$SRC/$d/f$i.json"
		done
	done
	rm "$SRC"/[ad]/f{7..12}.py
	mkdir "$SRC/many"
	for i in {1..60}; do
		echo "many $i" >"$SRC/many/f$i.py"
	done
	# The timestamps are old enough that none is young.
	find "$SRC" -exec touch -d '1 hour ago' {} +
	sleep 0.1
}
# Waits until what is in flight is complete.
settle() {
	until [ "$(node_stat 0 waiting.flights) $(node_stat 1 waiting.flights) $(node_stat 2 \
			waiting.flights)" = '0 0 0' ]; do
		sleep 0.1
	done
}
read_files() { # RANK FILE…, one after another
	local rank=$1 file
	shift
	for file in "$@"; do
		cmp "$SRC/$file" "$W/mnt/$rank/$file" || return 1
		settle
	done
}
messages=0
count_messages() { # since the last time, of rank 2
	local now
	now=$(node_stat 2 fabric.request_messages)
	counted=$((now - messages))
	messages=$now
}

# ---- what it saves, and costs

make_source
with_tree 3 --fanout 1
ls -l "$W/mnt/2" "$W/mnt/2/a" "$W/mnt/2/b" "$W/mnt/2/c" "$W/mnt/2/d" "$W/mnt/2/many" >"$T/list"
settle
count_messages
own=$(($(node_stat 1 fabric.requests_sent) - $(node_stat 2 fabric.requests_sent)))
reads=$(node_stat 0 origin.reads)
ok 'the first file is right' read_files 2 a/f1.py
is 'the first file brings no others' "$(node_stat 2 bundle.files)" 0
ok 'the second one is right' read_files 2 a/f2.py
is 'the second file brings the other four' "$(node_stat 2 bundle.files)" 4
is 'files of another kind, and other files, are not read' "$(($(node_stat 0 origin.reads) - reads))" 6
count_messages
is 'the two files cost two messages' "$counted" 2
is 'the node between has asked for as much' \
	"$(($(node_stat 1 fabric.requests_sent) - $(node_stat 2 fabric.requests_sent)))" "$own"
ok 'all files that were brought are right' read_files 2 a/f{3..6}.py
count_messages
is 'the files that were brought cost no other message' "$counted" 0
is 'all files that were brought are used' "$(node_stat 2 bundle.used_files)" 4
is 'all bytes that were brought are used' "$(node_stat 2 bundle.used_bytes)" "$(node_stat 2 bundle.bytes)"
ok 'all files of another directory are used, too' read_files 2 d/f{1..6}.py
ok 'the kind has proved itself' read_files 2 b/f5.py
is 'the first file of the next directory brings the other eleven' "$(node_stat 2 bundle.files)" 19
ok 'the files of the next directory are right' read_files 2 b/f{6..9}.py
ok 'a large directory' read_files 2 many/f{1..4}.py
is 'a large directory brings no files' "$(node_stat 2 bundle.files)" 19
is 'the nodes above decide nothing for others' \
	"$(node_stat 1 bundle.files) $(node_stat 0 bundle.files)" '0 0'

# ---- a file is replaced before it is brought

echo 'quite another one' >"$SRC/c/f9.py.new" && mv "$SRC/c/f9.py.new" "$SRC/c/f9.py"
rm "$SRC/c/f10.py"
ok 'a sibling of the replaced file is right' read_files 2 c/f1.py
is 'the replaced and the removed one were not brought' "$(node_stat 2 bundle.files)" 28
ok 'the other siblings are right' read_files 2 c/f{2..8}.py
is 'the other siblings were brought' "$(node_stat 2 bundle.used_files)" 19
fails_with 1 'Stale file handle' cat "$W/mnt/2/c/f9.py"
new_file() {
	[ "$(cat "$W/mnt/2/c/f9.py" 2>/dev/null)" = 'quite another one' ]
}
ok 'a reader of the replaced file gets an error, then the new file' wait_for 10 new_file
without_tree

# ---- the option

make_source
with_tree 3 --fanout 1 --bundle off
ok 'off: the files are right' read_files 2 a/f{1..6}.py
is 'off: no other file is fetched' "$(node_stat 0 origin.reads) $(node_stat 2 bundle.files)" '6 0'
without_tree

# ---- listings of directories in others

make_packages() {
	rm -rf "$SRC"
	mkdir -p "$SRC"
	local i
	for i in {1..9}; do
		mkdir -p "$SRC/p$i/cache"
		echo "$i" >"$SRC/p$i/cache/file"
	done
	mkdir "$SRC/large"
	rm -r "$SRC/p7/cache"
	for i in {1..1100}; do
		: >"$SRC/large/$i"
	done
	ln -s libx.so.1.2 "$SRC/large/libx.so.1"
	echo linked >"$SRC/large/libx.so.1.2"
	find "$SRC" -exec touch -h -d '1 hour ago' {} +
	sleep 0.1
}
list_all() { # DIR…, one after another, at rank 2
	local dir
	for dir in "$@"; do
		[ "$(ls "$W/mnt/2/$dir")" = "$(ls "$SRC/$dir")" ] || return 1
		settle
	done
}

make_packages
with_tree 3 --fanout 1
messages=0
ok 'three directories with one of a name in them' list_all . p1 p1/cache p2 p2/cache p3 p3/cache
is 'bring nothing' "$(node_stat 2 bundle.listings)" 0
count_messages
lists=$(node_stat 0 origin.lists)
operations=$(node_stat 0 origin.operations)
ok 'the fourth one' list_all p4
count_messages
is 'the fourth directory costs one message' "$counted" 1
is 'the listing of the fourth directory brings that of the directory in it' \
	"$(node_stat 2 bundle.listings) $(($(node_stat 0 origin.lists) - lists))" '1 2'
operations=$(($(node_stat 0 origin.operations) - operations))
ok 'the listing that was brought is right' list_all p4/cache
count_messages
is 'a listing that was brought costs no other message' "$counted $(node_stat 2 bundle.used_listings)" '0 1'
ok 'the fifth directory is listed with the directory in it' list_all p5 p5/cache
lists=$(node_stat 0 origin.lists)
before=$(node_stat 0 origin.operations)
ok 'a directory without a subdirectory is listed' list_all p7
is 'a directory without a subdirectory costs no listing more' "$(($(node_stat 0 origin.lists) - lists))" 1
is_at_most 'and costs half of the operations' \
	"$(($(node_stat 0 origin.operations) - before))" $((operations / 2))
mkdir "$SRC/p7/cache"
found_later() {
	ls "$W/mnt/2/p7/cache" >"$T/cache" 2>"$T/cache.err"
}
ok 'a subdirectory that is made later is found' wait_for 10 found_later
is 'the nodes above decide nothing for others' \
	"$(node_stat 1 bundle.listings) $(node_stat 0 bundle.listings)" '0 0'
ls "$W/mnt/2/large/1" >"$T/list"
settle
count_messages
is 'a link in a large directory is right' "$(cat "$W/mnt/2/large/libx.so.1")" linked
settle
count_messages
is 'in one message: both names, and the bytes of the file' "$counted" 1
without_tree

# ---- modules that others import

make_modules() {
	rm -rf "$SRC"
	mkdir -p "$SRC/lib/pack"
	local i
	for i in $(seq "$1"); do
		echo "value = $i" >"$SRC/lib/m$i.py"
	done
	printf '%s\n' 'import os, m10, m20.x as x, m1000' 'from pack import y' \
		'def later():' '    import m40' >"$SRC/lib/m1.py"
	echo 'import m21' >"$SRC/lib/m20.py"
	: >"$SRC/lib/pack/__init__.py"
	"$PYTHON" -m compileall -q "$SRC/lib" || bail 'Python compiles nothing'
	tag=$("$PYTHON" -c 'import sys; print(sys.implementation.cache_tag)')
	find "$SRC" -exec touch -d '1 hour ago' {} +
	sleep 0.1
}
read_modules() { # NUMBER…, one after another, at rank 2
	local i
	for i in "$@"; do
		read_files 2 "lib/__pycache__/m$i.$tag.pyc" || return 1
	done
}

# The same whether a listing has the attributes, a page has them, or single entries bring them: then
# the modules that are read count as well.
came() {
	echo $(($(node_stat 2 bundle.files) - before))
}
modules() { # COUNT OWN LS…
	local own=$2 before
	make_modules "$1"
	with_tree 3 --fanout 1
	"${@:3}" "$W/mnt/2" "$W/mnt/2/lib" "$W/mnt/2/lib/__pycache__" >"$T/list"
	settle
	messages=0
	before=$(node_stat 2 bundle.files)
	ok 'a module that imports others is right' read_modules 1
	is 'nothing comes before it is needed' "$(came) $(node_stat 2 bundle.listings)" "$own 0"
	count_messages
	ok 'another module is right' read_modules 30
	count_messages
	is 'one message brings what the first one imports, and the listing of a package' \
		"$counted $(came) $(node_stat 2 bundle.listings)" "1 $((2 + 2 * own)) 1"
	ok 'a third module is right' read_modules 31
	is 'what came brings what it imports itself' "$(came)" $((3 + 3 * own))
	count_messages
	ok 'the modules that came are right' read_modules 10 20 21
	ok 'the package is right' list_all lib/pack
	count_messages
	is 'all that costs no other message' \
		"$counted $(node_stat 2 bundle.used_files) $(node_stat 2 bundle.used_listings)" "0 $((3 + 3 * own)) 1"
	stat "$W"/mnt/2/lib/m{10,20,21}.py >"$T/list"
	count_messages
	is 'nor do their sources' "$counted" 0
	without_tree
}
modules 60 0 ls -l
modules 80 0 ls -l
modules 80 1 ls

# ---- bytes that come with a name, where a listing has no attributes

make_libraries() {
	rm -rf "$SRC"
	mkdir -p "$SRC/lib"
	local i
	for i in {1..100}; do
		echo "library $i $RANDOM" >"$SRC/lib/l$i.so"
	done
	for i in {1..8}; do
		echo "text $i" >"$SRC/lib/t$i.txt"
	done
	head -c 300000 /dev/urandom >"$SRC/lib/long.so"
	find "$SRC" -exec touch -d '1 hour ago' {} +
	sleep 0.1
}
make_libraries
with_tree 3 --fanout 1
ls "$W/mnt/2" >"$T/list"
settle
stats=$(node_stat 0 origin.stats)
ls "$W/mnt/2/lib" >"$T/list"
settle
is 'all names of a large directory cost no attributes' \
	"$(wc -l <"$T/list") $(($(node_stat 0 origin.stats) - stats))" '109 0'
count_messages
ok 'files of it are right' read_files 2 lib/l{7,70,31,4}.so
count_messages
is 'each costs one message for its entry and its bytes' "$counted" 4
is 'and the storage the attributes of no other name' "$(($(node_stat 0 origin.stats) - stats))" 4
is 'the bytes that came are used' "$(node_stat 2 bundle.files) $(node_stat 2 bundle.used_files)" '4 4'
is 'nodes above decide nothing for others' "$(node_stat 1 bundle.files) $(node_stat 0 bundle.files)" '0 0'
ok 'a longer file is right' read_files 2 lib/long.so
count_messages
is 'and costs one message for its entry, one for its bytes' "$counted" 2
reads=$(node_stat 0 origin.reads)
stat "$W"/mnt/2/lib/t{3,8,1,7,2,6}.txt >"$T/list"
settle
is 'two files that nobody reads come, and no more' \
	"$(($(node_stat 0 origin.reads) - reads)) $(node_stat 2 bundle.files)" '2 6'
without_tree

# ---- the parent dies while they come, and memory is short

make_source
with_tree 3 --fanout 1
ls -l "$W/mnt/2/a" >"$T/list"
read_files 2 a/f1.json
cat "$W/mnt/2/a/f2.json" >"$T/second" &
kill_node 1
wait $!
ok 'the second file came although its parent died' cmp "$SRC/a/f2.json" "$T/second"
all_right() {
	diff -r "$SRC" "$W/mnt/2"
}
ok 'all files are right after that' all_right
without_tree

make_source
with_tree 3 --fanout 1 --cache-size 16M
for i in {1..15}; do
	head -c 1048576 /dev/urandom >"$SRC/big$i"
done
cat "$W"/mnt/2/big* >"$T/big"
settle
ok 'with a full cache the files are right' all_right
is 'no file is brought if memory is short' "$(node_stat 2 bundle.files)" 0
used=$(node_stat 2 budget.used_bytes)
is_at_most 'and the budget holds' "$used" $((16 << 20))
in_full() { # RANK; the files of one directory at once
	local i
	for i in {1..12}; do
		cmp "$SRC/b/f$i.json" "$W/mnt/$1/b/f$i.json" &
	done
	wait
}
ok 'many readers at once' in_full 2
without_tree
