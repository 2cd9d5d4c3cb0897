#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a tree of everything that is unusual but legal.
#
#   scripts/t/make-tree.sh [--many N] DIR
#
# --many N adds a directory of N small files. As an ordinary user the same tree is made, but the
# files of mode 000 can't be read by their owner either.
set -eu

many=0
while [ $# -gt 1 ]; do
	case $1 in
	--many)
		many=$2
		shift
		;;
	*) break ;;
	esac
	shift
done
[ $# -eq 1 ] || {
	echo "usage: make-tree.sh [--many N] DIR" >&2
	exit 2
}
mkdir -p "$1"
cd "$1"

# The result is the same each time.
bytes() { # COUNT
	/usr/bin/python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[1])).randbytes(int(sys.argv[1])))' "$1"
}

names() {
	mkdir names
	cd names
	local long
	long=$(printf '%0255d' 7)
	for name in 'with space' '  ' ' leading' 'trailing ' "quote'" 'double"quote' '-rf' \
		'--help' '...' '.hidden' \
		'back\slash' '$(dollar)' '*' '?' '[a]' '~' '#' '%s%n' $'new\nline' \
		$'tab\t' $'\x01\x02' \
		$'\xff\xfe not utf-8' $'\xc3\xa9' 'é' $'e\xcc\x81' '日本語' "$long" 'a;b' 'a|b' 'a&b' \
		':' 'C:' '{' '}'; do
		printf '%s\n' "$name" >"./$name"
	done
	mkdir './-dir' 'dir with space' $'dir\nline' $'\xff'
	echo inside >'./-dir/-file'
	echo inside >$'dir\nline/new\nline'
	echo inside >$'\xff/\xfe'
	cd ..
}

plain() {
	mkdir -p plain/empty-dir plain/deep
	: >plain/empty
	echo one line >plain/line
	printf 'no newline' >plain/no-newline
	local path=plain/deep i
	for i in $(seq 1 60); do
		path=$path/level$i
	done
	mkdir -p "$path"
	echo bottom >"$path/bottom"
}

links() {
	mkdir -p links/dir
	local base
	base=$(pwd)
	echo target >links/target
	ln links/target links/hard1
	ln links/target links/dir/hard2
	ln -s target links/relative
	ln -s ../links/dir links/to-dir
	ln -s dir/../target links/through
	ln -s "$base/links/target" links/absolute-inside
	ln -s "$base/links/dir" links/absolute-inside-dir
	ln -s /etc/hostname links/absolute-outside
	ln -s nowhere links/dangling
	ln -s loop-b links/loop-a
	ln -s loop-a links/loop-b
	ln -s self links/self
	ln -s "$(printf '%01000d' 0)" links/long
	ln -s links/target links/dir/up
	ln -s $'new\nline' links/odd-target
	echo through >links/dir/file
}

sizes() {
	mkdir -p sizes
	local size
	for size in 1 4095 4096 4097 131071 131072 131073 262143 262144 1048575 1048576 1048577 \
		2097151 2097152 \
		2097153 3145729 4194304 5000000; do
		bytes "$size" >"sizes/$size"
	done
}

sparse() {
	mkdir -p big
	truncate -s 1M big/hole-only
	truncate -s 3M big/hole-middle
	bytes 5000 | dd of=big/hole-middle conv=notrunc status=none
	bytes 4000 | dd of=big/hole-middle conv=notrunc bs=1 seek=3000000 status=none
	truncate -s 8M big/data-then-hole
	bytes 10000 | dd of=big/data-then-hole conv=notrunc status=none
	truncate -s 4400M big/over-4-gib
	printf 'begin' | dd of=big/over-4-gib conv=notrunc status=none
	printf 'past' | dd of=big/over-4-gib conv=notrunc bs=1 seek=4300000000 status=none
	printf 'tail' | dd of=big/over-4-gib conv=notrunc bs=1 \
		seek=$((4400 * 1048576 - 4)) status=none
}

modes() {
	mkdir -p modes/sticky modes/search-only modes/closed
	local mode
	for mode in 000 400 711 1777 4755 2755 644 600 777; do
		echo "$mode" >"modes/file$mode"
		chmod "$mode" "modes/file$mode"
	done
	echo seen >modes/search-only/file
	echo hidden >modes/closed/file
	chmod 1777 modes/sticky
	chmod 711 modes/search-only
	chmod 700 modes/closed
}

times() {
	mkdir -p times
	local when i=0
	for when in '1970-01-01 00:00:00.000000000' '1969-12-31 23:59:58.5' '1901-12-14 00:00:00' \
		'2038-01-19 03:14:08' '2100-01-01 00:00:00.999999999' \
		'2001-02-03 04:05:06.123456789'; do
		i=$((i + 1))
		: >"times/file$i"
		touch -d "$when UTC" "times/file$i"
	done
	mkdir times/dir
	touch -d '1999-12-31 23:59:59.000000001 UTC' times/dir
}

special() {
	mkdir -p special
	mkfifo special/fifo
	/usr/bin/python3 -c 'import socket, os; os.chdir("special"); socket.socket(socket.AF_UNIX).bind("socket")'
}

names
plain
links
sizes
sparse
modes
times
special
[ "$many" -eq 0 ] || {
	mkdir -p many
	for i in $(seq 1 "$many"); do
		echo "file $i" >"many/$i"
	done
}
