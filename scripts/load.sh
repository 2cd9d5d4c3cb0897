#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command on a machine that is as busy as possible: N processes never rest, and another one
# makes the kernel drop its file caches at irregular moments (for root only). The exit status is the
# command's, and nothing stays behind.
#
#   scripts/load.sh 20 scripts/check.sh                the whole suite; the same as make check
#                                                      LOAD=20
#   scripts/load.sh 20 make system T=t0540             one test
#
# COP_LOAD_DROP_S is the longest time in seconds between two such moments (default 10; 0: never).
#
# The busy processes are a session of their own: a kernel that divides its processors among sessions
# first (autogroup) gives all of them together as much as a single test.
set -u

usage() {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}
case ${1:-} in
'' | *[!0-9]*) usage ;;
esac
[ $# -ge 2 ] || usage
count=$1
shift

# If this script is killed, the load ends too: each part of it watches its parent.
busy='while [ -d "/proc/$1" ]; do for ((i = 0; i < 200000; i++)); do :; done; done'
forget='
	while [ "$2" -gt 0 ] && [ -d "/proc/$1" ]; do
		for ((i = RANDOM % (10 * $2) + 1; i > 0; i--)); do [ -d "/proc/$1" ] && sleep 0.1; done
		echo 3 >/proc/sys/vm/drop_caches || exit
	done'
everything='
	for ((n = 0; n < $2; n++)); do bash -c "$4" busy "$1" & done
	bash -c "$5" forget "$1" "$3" &
	wait'
seconds=${COP_LOAD_DROP_S:-10}
if [ ! -w /proc/sys/vm/drop_caches ]; then
	echo 'load.sh: only root makes the kernel forget what it keeps of files; the processors are busy all the same' >&2
	seconds=0
fi
setsid bash -c "$everything" load "$$" "$count" "$seconds" "$busy" "$forget" </dev/null \
	>/dev/null 2>&1 &
load=$!
trap 'kill -- "-$load" 2>/dev/null; wait "$load" 2>/dev/null' EXIT
"$@" <&0 &
command=$!
trap 'kill "$command" 2>/dev/null; wait "$command"; exit 143' TERM HUP
trap 'wait "$command"; exit 130' INT
wait "$command"
