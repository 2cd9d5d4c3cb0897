#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Three programs that use one source in turn, with --prefetch auto: an import of numpy, npm (node)
# and gcc. What each job asks of the storage, beside a job with the manifest that the program
# leaves when it alone uses the source, and how many of the bytes that were fetched no program read.
# All are counts: they do not depend on the machine's load. Every job has a fresh mount of the
# storage, and of the node. BENCH_PACK=yes keeps packs, too. BENCH_NODES=N runs each program on N
# nodes at once. BENCH_PROGRAMS names others: script, link and module share an interpreter; they are
# pydoc, the same by another name, and python3 -m json.tool.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${BENCH_ROUNDS:-10}
nodes=${BENCH_NODES:-1}
read -r -a programs <<<"${BENCH_PROGRAMS:-numpy npm gcc}"
options=(--prefetch auto --kernel-ahead off)
[ "${BENCH_PACK:-no}" = yes ] || options+=(--pack-limit 0)
manifest=$T/.slow.copper-manifest
pack=$T/.slow.copper-pack
echo 'int main(void) { return 0; }' >"$T/main.c"

python_at() { # ROOT ARGUMENT…
	env -i PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$1" LD_LIBRARY_PATH="$1/lib/x86_64-linux-gnu" \
		"$1/bin/python3" "${@:2}" </dev/null >/dev/null
}
run_program() { # PROGRAM NODE
	local root=$W/mnt/$2 import
	case $1 in
	script) python_at "$root" "$root/bin/pydoc3.11" json ;;
	link) python_at "$root" "$root/bin/pydoc3" json ;;
	module) echo '{}' >"$T/in.json" && python_at "$root" -m json.tool "$T/in.json" ;;
	numpy)
		import_from "$root"
		"${import[@]}"
		;;
	npm)
		env -i HOME="$T" LD_LIBRARY_PATH="$root/lib/x86_64-linux-gnu" \
			"$root/bin/node" "$root/lib/node_modules/npm/bin/npm-cli.js" --version >/dev/null
		;;
	gcc)
		env -i PATH="$root/bin" LD_LIBRARY_PATH="$root/lib/x86_64-linux-gnu" TMPDIR="$T" \
			"$root/bin/gcc" -isystem "$root/include" \
			-isystem "$root/include/x86_64-linux-gnu" -include sys/types.h \
			-c -o "$T/main.o.$2" "$T/main.c"
		;;
	esac || bail "$1 fails"
}
# On every node.
prefetched() {
	local node
	for ((node = 0; node < nodes; node++)); do
		case $(node_stat "$node" prefetching.state) in
		done | off) ;;
		*) return 1 ;;
		esac
	done
}
run_everywhere() { # PROGRAM
	local node pids=() pid
	for ((node = 0; node < nodes; node++)); do
		run_program "$1" "$node" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || bail "job $1: the program fails on a node"
	done
}
# Leaves asked, fetched and unused: operations at the storage, bytes of files on all nodes, and of
# those what no program read.
job() { # PROGRAM
	local before node
	SRC=/usr
	with_slowfs --meta-us 100 --cache-s 3600
	before=$(slow_charged)
	with_tree "$nodes" "${options[@]}"
	wait_for 60 prefetched || bail "job $1: the prefetch does not end"
	run_everywhere "$1"
	wait_for 60 prefetched || bail "job $1: the prefetch does not end"
	asked=$(($(slow_charged) - before))
	fetched=0 unused=0
	for ((node = 0; node < nodes; node++)); do
		fetched=$((fetched + $(node_stat "$node" cache.fetched_bytes)))
		unused=$((unused - $(node_stat "$node" cache.used_bytes)))
	done
	unused=$((fetched + unused))
	[ "${BENCH_PACK:-no}" = no ] || sleep 4
	without_tree || bail "job $1: the node does not stop"
	without_slowfs
}
forget() {
	rm -f "$manifest" "$pack"
}
sample() { # SIDE PROGRAM
	job "$2"
	add "$1-asked-$2" "$asked"
	add "$1-unused-$2" "$(awk -v u="$unused" -v f="$fetched" 'BEGIN { print f ? u / f : 0 }')"
	[ -z "${BENCH_VERBOSE:-}" ] || note "$1 $2: asked $asked fetched $fetched unused $unused parts $(
		awk '/^part / { printf "%s ", $3 }' "$manifest")"
}

for program in "${programs[@]}"; do
	forget
	sample none "$program"
	job "$program"
	for ((turn = 0; turn < 3; turn++)); do
		sample own "$program"
	done
done
forget
for program in "${programs[@]}"; do
	job "$program"
done
for ((turn = 0; turn < rounds; turn++)); do
	for program in "${programs[@]}"; do
		sample turn "$program"
	done
done
for program in "${programs[@]}"; do
	report "$program in turn with others: operations at the storage, automatic recording / its own" \
		operations at_most 1.05 "turn-asked-$program" "own-asked-$program"
	report "$program without a recording: operations at the storage" \
		operations none - "none-asked-$program" -
	add "most-unused-$program" "$(statistic max "turn-unused-$program")"
	report "$program in turn with others: most of the bytes of files fetched that were not read" \
		'of 1' at_most 0.10 "most-unused-$program" -
	report "$program with its own recording: part of the bytes of files fetched that were not read" \
		'of 1' none - "own-unused-$program" -
done
