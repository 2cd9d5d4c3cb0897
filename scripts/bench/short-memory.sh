#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file of four times the memory of all nodes together, which four nodes read through Copper, in
# order at once and by mmap one after the other, compared with the same readers on the storage
# itself. Each node has a client of the storage of its own (slowfs) with 40 MB/s, a fifth of what is
# usual, because the readers share this machine's processors.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

nodes=4
mib=512
SRC=$T/src
random_file "$SRC/weights" $mib
for ((rank = 0; rank < nodes; rank++)); do
	mkdir -p "$W/client/$rank"
	"$SLOWFS" --counters "$W/state.$rank" --mb-per-s 40 "$SRC" "$W/client/$rank" ||
		bail "slowfs does not mount"
done

# All nodes of a job have the same --source; so each has a mount namespace, where its client is
# mounted there.
prepare_tree $nodes
mkdir -p "$W/source"
start_apart() { # RANK
	unshare -m --propagation private bash -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' - \
		"$W/client/$1" "$W/source" "$COPPER" mount --hosts "$HOSTS" --rank "$1" \
		--secret-file "$SECRET" --job-dir "$JOB" --source "$W/source" --cache-size 32M \
		"$W/mnt/$1"
}
pids=()
for ((rank = 0; rank < nodes; rank++)); do
	start_apart "$rank" >"$W/out.$rank" 2>&1 &
	pids+=($!)
done
for ((rank = 0; rank < nodes; rank++)); do
	wait "${pids[rank]}" || bail "no node: $(cat "$W/out.$rank")"
done
declare -A node
for pid in $(processes_of "$COPPER"); do
	rank=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--rank$/ { n; p }')
	node[$rank]=$pid
done
copy_of() { # SIDE RANK
	case $1 in
	copper) echo "/proc/${node[$2]}/root$W/mnt/$2/weights" ;;
	direct) echo "$W/client/$2/weights" ;;
	esac
}

# The wall seconds until the last node has read the file, and what the storage gave, as a multiple
# of it: SIDE HOW SKEW_S.
read_by_all() {
	local rank began gave=0 readers=()
	for ((rank = 0; rank < nodes; rank++)); do
		forget_pages "$(copy_of copper "$rank")"
		forget_pages "$(copy_of direct "$rank")"
		"$SLOWFS" --reset "$W/state.$rank"
	done
	began=$(date +%s%3N)
	for ((rank = 0; rank < nodes; rank++)); do
		{
			sleep $((rank * $3))
			"$PYTHON" "$cop_t/one_memory.py" "$2" "$(copy_of "$1" "$rank")" \
				"$SRC/weights" "$rank"
		} &
		readers+=($!)
	done
	for rank in "${!readers[@]}"; do
		wait "${readers[rank]}" || bail "a reader failed"
	done
	add "$1-$2" "$(awk -v ms=$(($(date +%s%3N) - began)) 'BEGIN { print ms / 1000 }')"
	for ((rank = 0; rank < nodes; rank++)); do
		gave=$((gave + $("$SLOWFS" --print "$W/state.$rank" | awk '$1 == "bytes" { print $2 }')))
	done
	add "gave-$1-$2" "$(awk -v b=$gave -v m=$mib 'BEGIN { print b / m / 1048576 }')"
}
for how in 'read 0' 'mmap 3'; do
	read -r way skew <<<"$how"
	copper() { read_by_all copper "$way" "$skew"; }
	direct() { read_by_all direct "$way" "$skew"; }
	in_turn "${BENCH_PAIRS:-3}" copper direct
	report "four nodes, by $way, ${skew} s apart / direct" s at_most 1 "copper-$way" "direct-$way"
	report "bytes of the storage / file, by $way" times none - "gave-copper-$way" \
		"gave-direct-$way"
done
nsenter -m -t "${node[0]}" "$COPPER" stop "$W/mnt/0" >"$W/out.stop" 2>&1 ||
	bail "the tree does not stop: $(cat "$W/out.stop")"
for ((rank = 0; rank < nodes; rank++)); do
	umount "$W/client/$rank"
done
