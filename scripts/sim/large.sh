#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints a trace for copper-sim: a program that reads one large file from its beginning to its end,
# with a window of chunks ahead of it.
#
#   scripts/sim/large.sh [MIB [WINDOW]]      1024 MiB, and the 16 chunks of a file that goes round
#                                            four trees; 8 where it has one way
set -u
mib=${1:-1024}
window=${2:-16}
case $mib$window in
*[!0-9]*)
	sed -n 's/^#   //p' "$0" >&2
	exit 2
	;;
esac
bytes=$((mib << 20))
echo '# copper-sim trace 1'
echo "# command: cat large"
echo "# direct $((mib * 8 + 3)) $bytes"
echo 'entry -1 10 1 104 0 0 2 0 .'
echo 'listing 0 10 1 200 0 0 4 0 .'
echo 'entry 1 10 1 104 0 0 2 0 large'
for ((i = 0; i < mib; i++)); do
	echo "chunk $((i < window ? 2 : 3 + i - window)) 50 1 1048576 $bytes $i 0 0 large"
done
echo "end $((2 + mib)) 0 1 0 0 0 0 0 -"
