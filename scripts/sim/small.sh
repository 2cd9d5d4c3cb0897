#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints a trace for copper-sim: a program that reads many small files one after another, as a
# training reads its samples. With copper-sim --shuffle, each node reads them in an order of its
# own.
#
#   scripts/sim/small.sh [FILES [BYTES]]      2000 files of 110000 bytes
set -u
files=${1:-2000}
bytes=${2:-110000}
case $files$bytes in
*[!0-9]*)
	sed -n 's/^#   //p' "$0" >&2
	exit 2
	;;
esac
echo '# copper-sim trace 1'
echo "# command: cat small/*"
echo "# direct $((files * 4 + 5)) $((files * bytes))"
echo 'entry -1 10 1 104 0 0 2 0 .'
echo 'listing 0 10 1 200 0 0 4 0 .'
echo 'entry 1 10 1 104 0 0 2 0 small'
echo "listing 2 10 1 $((files * 80)) 0 0 $((files + 5)) 0 small"
for ((i = 0; i < files; i++)); do
	echo "chunk $((3 + i)) 50 1 $bytes $bytes 0 0 0 small/$i"
done
echo "end $((3 + files)) 0 1 0 0 0 0 0 -"
