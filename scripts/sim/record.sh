#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Records what a program asks of Copper, for copper-sim: two nodes on this machine, the program in
# the mount of the one that is a leaf, whose requests are those of every node of a large tree; once
# without bundles and once with them, over a storage that takes META_US for each operation, so that
# what comes ahead of the program is not here at once. Of several rounds the quickest is kept, since
# neighbours only add. Then the same program without Copper under strace says what one direct client
# asks of the storage.
#
#   scripts/sim/record.sh OUTPUT COMMAND [ARGUMENT]…        {} in an argument is the root of the
#                                                           tree, /usr or its mount
#   ROUNDS=5 SOURCE=/usr META_US=1000
#
#   scripts/sim/record.sh --all                  the three in testdata/sim
# limit: 900
# shellcheck source=../bench/lib.sh
. "$(dirname "$0")/../bench/lib.sh"

source=${SOURCE:-/usr}
here=$(cd "$(dirname "$0")" && pwd)

# The command with the root in the place of {}; as that of a clean environment.
at() { # ROOT COMMAND…
	local root=$1 word
	shift
	command=(env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1)
	for word in "$@"; do
		command+=("${word//\{\}/$root}")
	done
}

round() { # BUNDLE COMMAND…
	local command began ended bundle=$1
	shift
	SRC=$source
	with_slowfs --meta-us "${META_US:-1000}" --read-us "${META_US:-1000}" --cache-s 3600
	with_tree 2 -T 1 --compress off --bundle "$bundle" --trace
	at "$W/mnt/1" "$@"
	began=$(date +%s%6N)
	"${command[@]}" >/dev/null 2>&1 || bail "$* failed"
	ended=$(date +%s%6N)
	without_tree
	"$PYTHON" "$here/reduce.py" trace "$SRC" "$began" "$ended" \
		"$JOB"/trace/127.0.0.12-*.pfw* >"$T/round.txt" || bail "no trace"
	without_slowfs
	total=$(awk '$1 !~ /[+].*[ju]/ { s += $3 } END { print s + 0 }' "$T/round.txt")
	[ -n "$least" ] && [ "$total" -ge "$least" ] || {
		least=$total
		cp "$T/round.txt" "$T/best.$bundle"
	}
}

record() { # OUTPUT COMMAND…
	local out=$1 i least total command bundle
	shift
	# What it reads is in memory here, so the times are those of slowfs.
	at "$source" "$@"
	"${command[@]}" >/dev/null 2>&1
	for bundle in off auto; do
		least=''
		for ((i = 0; i < ${ROUNDS:-5}; i++)); do
			round "$bundle" "$@"
		done
	done
	at "$source" "$@"
	strace -f -qq -e trace=file,read,pread64,mmap,getdents64 -y -o "$T/strace" "${command[@]}" \
		>/dev/null 2>&1 || bail "$* failed under strace"
	{
		echo "# copper-sim trace 2"
		echo "# command: ${*//$T/TMP}"
		"$PYTHON" "$here/reduce.py" direct "$source" "$T/strace"
		cat "$T/best.off"
		echo "# with bundles"
		cat "$T/best.auto"
	} >"$out.new" && mv "$out.new" "$out"
}

if [ "${1:-}" = --all ]; then
	data=$cop_root/testdata/sim
	libs='LD_LIBRARY_PATH={}/lib/x86_64-linux-gnu'
	record "$data/numpy.txt" env PYTHONHOME={} PYTHONPATH={}/lib/python3/dist-packages \
		OPENBLAS_NUM_THREADS=1 \
		"$libs" {}/bin/python3 -c 'import numpy'
	record "$data/perl.txt" \
		env "PERL5LIB={}/share/perl/5.36:{}/lib/x86_64-linux-gnu/perl/5.36:{}/lib/x86_64-linux-gnu/perl-base" \
		"$libs" {}/bin/perl -MPOSIX -MStorable -MIO::Socket -MHTTP::Tiny -MUnicode::UCD -e 1
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void)\n{\n\treturn puts("") < 0;\n}\n' >"$T/small.c"
	record "$data/gcc.txt" env "$libs" {}/bin/gcc -nostdinc \
		-isystem {}/lib/gcc/x86_64-linux-gnu/12/include -isystem {}/include \
		-isystem {}/include/x86_64-linux-gnu -S -O2 -o /dev/null "$T/small.c"
else
	[ $# -ge 2 ] || bail 'usage: record.sh OUTPUT COMMAND [ARGUMENT]…, or record.sh --all'
	record "$@"
fi
