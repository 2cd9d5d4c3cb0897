#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a site would do instead of Copper: the time until the last of 1, 2, 4 and 8 nodes has
# imported numpy from an environment on a slow storage, with all the staging that a method needs,
# and the same import once more; compared with programs directly on the storage.
#
# A node is a mount namespace with its own mount of the storage, so with a client's caches of its
# own, and with a directory on the local disk that stands for /tmp. All nodes share the storage's
# service slots: 16 operations at once of 5 ms each, and reads of at most 128 KiB. The client keeps
# names, attributes and pages, as a parallel file system's does. Every sample begins with new nodes
# that have nothing. The environment is Debian's Python with its standard library, numpy, the
# libraries that they need, and nothing else. BENCH_MODULE=large takes, in place of numpy, a package
# of 3,500 files and 1.1 GB (large-tree.py); torch is Debian's, if it is installed.
#
# Not counted: making the squashfs image, which a site does once and again after each change; the
# job in which Copper recorded its manifest; starting a Slurm job (for sbcast the command itself
# counts, and its image is mounted like the copied one). What is not installed is named and left out
# (scripts/install-deps.sh installs nothing that only this needs). Copies take a minute each, nearly
# all of it waiting, so one round of them is enough. BENCH_NODES, BENCH_METHODS, BENCH_US and
# BENCH_SLOTS choose others. On a busy machine BENCH_NICE=-15 gives everything that is measured,
# which mostly waits, precedence over what else runs.
#
# Finally `copper predict` says the same from the recording and from what it measures at this
# storage; how far it is off is a row for each way.
# limit: 7200
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../t/slurm.sh
. "$cop_t/slurm.sh"

[ "$(id -u)" -eq 0 ] || bail 'only root can make nodes with mounts of their own'
module=${BENCH_MODULE:-numpy}
read -ra at_once <<<"${BENCH_NODES:-1 2 4 8}"
read -ra methods <<<"${BENCH_METHODS:-direct cp tar rsync image image-there sbcast bindfs passthrough copper manifest}"
costs=(--meta-us "${BENCH_US:-5000}" --read-us "${BENCH_US:-5000}" --slots "${BENCH_SLOTS:-16}"
	--cache-s 3600 --keep-pages)
examples=/usr/share/doc/libfuse3-dev/examples
export T COPPER
export STORAGE=$T/storage DISK=$T/disk HOME=$T/home
mkdir -p "$T/store/env" "$STORAGE" "$DISK" "$T/disks" "$HOME" "$T/bin"

# ---- what is here

skip_all() { # what a Slurm that does not start calls
	bail "$*"
}
leave_out() { # METHOD REASON
	local method kept=()
	note "$1 is left out: $2"
	for method in "${methods[@]}"; do
		[ "$method" = "$1" ] || kept+=("$method")
	done
	methods=("${kept[@]}")
}
needs() { # PROGRAM PACKAGE METHOD…
	local program=$1 package=$2 method
	shift 2
	command -v "$program" >/dev/null || for method; do
		leave_out "$method" "no $program (package $package)"
	done
}
# This is libfuse's own example, as Debian's package has it; no package has the compiled program.
make_passthrough() {
	local flags
	read -ra flags <<<"$(pkg-config --cflags --libs fuse3)"
	cc -O2 -o "$T/bin/passthrough" -x c "$examples/passthrough_ll.c" "${flags[@]}" \
		2>"$T/out.cc" ||
		leave_out passthrough 'its example (package libfuse3-dev) cannot be built'
}
needs rsync rsync rsync
needs mksquashfs squashfs-tools image image-there sbcast
needs squashfuse_ll squashfuse image image-there sbcast
needs bindfs bindfs bindfs
needs sbcast slurm-client sbcast
needs slurmctld slurmctld sbcast
needs slurmd slurmd sbcast
needs munged munge sbcast
make_passthrough

# ---- the environment

# DIR: the libraries that programs and modules in it need, except those of the C library
shared_libraries() {
	find "$1" -type f \( -name '*.so*' -o -perm -u+x \) -exec ldd {} + 2>/dev/null |
		awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
		sort -u | grep -vE '/lib(c|m|dl|rt|util|pthread)\.so\.'
}
make_environment() {
	local env=$T/store/env packages=/usr/lib/python3/dist-packages
	mkdir -p "$env/bin" "$env/lib/python3/dist-packages" "$env/lib/x86_64-linux-gnu"
	cp -L /usr/bin/python3 "$env/bin/python3"
	cp -a "$(python_library)" "$env/lib/"
	rm -rf "$env"/lib/python3.*/{config-*,dist-packages,test}
	case $module in
	numpy) cp -a "$packages/numpy" "$env/lib/python3/dist-packages/" ;;
	large) "$PYTHON" "$(dirname "${BASH_SOURCE[0]}")/large-tree.py" "$env/lib/python3/dist-packages" ;;
	torch)
		[ -d "$packages/torch" ] || bail 'torch is not installed (package python3-torch)'
		cp -a "$packages"/{torch,functorch,torchgen,numpy,typing_extensions.py} \
			"$env/lib/python3/dist-packages/"
		;;
	*) bail "there is no environment for BENCH_MODULE=$module" ;;
	esac
	shared_libraries "$env" | xargs cp -L -t "$env/lib/x86_64-linux-gnu"
	note "the environment has $(find "$env" |
			wc -l) files and directories, $(du -sm --apparent-size "$env" |
			cut -f 1) MB"
}
python_library() {
	"$PYTHON" -c 'import os; print(os.path.dirname(os.__file__))'
}
make_image() {
	command -v mksquashfs >/dev/null || return 0
	mksquashfs "$T/store/env" "$T/store/env.squashfs" -comp zstd -Xcompression-level 5 \
		-no-progress -quiet >"$T/out.image" 2>&1 || bail "$(cat "$T/out.image")"
	note "its image has $(du -m --apparent-size "$T/store/env.squashfs" | cut -f 1) MB (zstd)"
}

# ---- what each way does on each node before the import, and where the environment is then

stage() { # METHOD RANK
	case $1 in
	cp) cp -r "$STORAGE/env" "$DISK/env" ;;
	tar) tar -C "$STORAGE" -cf - env | tar -C "$DISK" -xf - ;;
	rsync) rsync -a "$STORAGE/env" "$DISK/" ;;
	image)
		cp "$STORAGE/env.squashfs" "$DISK/" &&
			squashfuse_ll "$DISK/env.squashfs" "$DISK/mnt"
		;;
	image-there) squashfuse_ll "$STORAGE/env.squashfs" "$DISK/mnt" ;;
	sbcast) squashfuse_ll "$DISK/env.squashfs" "$DISK/mnt" ;;
	bindfs) bindfs "$STORAGE/env" "$DISK/mnt" ;;
	passthrough) passthrough -o source="$STORAGE/env" "$DISK/mnt" ;;
	copper) copper_node "$2" ;;
	manifest) copper_node "$2" --prefetch auto ;;
	esac
}
# The storage stands for Lustre, which lists all its names.
copper_node() { # RANK OPTION…
	"$COPPER" mount --hosts "$HOSTS" --rank "$@" --secret-file "$SECRET" --job-dir "$JOB" \
		--cache-size 1G --hidden none --source "$STORAGE/env" "$DISK/mnt"
}
environment_of() { # METHOD
	case $1 in
	direct | copper | manifest) echo "$STORAGE/env" ;;
	cp | tar | rsync) echo "$DISK/env" ;;
	*) echo "$DISK/mnt" ;;
	esac
}
use() { # METHOD
	local import through=()
	import_from "$(environment_of "$1")"
	case $1 in
	copper | manifest) through=("$COPPER" run --) ;;
	esac
	"${through[@]}" "${import[@]}"
}
export module PATH=$T/bin:$PATH
export -f stage copper_node environment_of use import_from

# ---- nodes

# The kernel gives each session a share of the processors, and a daemon begins its own session.
urgent() { # PID
	[ -z "${BENCH_NICE:-}" ] || echo "$BENCH_NICE" >"/proc/$1/autogroup"
}
urgent_daemons() {
	local pid
	while sleep 0.3; do
		for pid in $(pgrep -x 'copper|slowfs|squashfuse_ll|bindfs|passthrough|slurm.*'); do
			! is_ours "$pid" || urgent "$pid"
		done
	done 2>/dev/null
}
urgent self
export -f urgent
if [ -n "${BENCH_NICE:-}" ]; then
	urgent_daemons &
	helper=$!
fi

cat >"$T/on" <<-'EOS'
	#!/usr/bin/env bash
	# RANK COMMAND…: runs it on that node. It passes functions on, which other shells drop. The
	# kernel divides processor time by session.
	read -r pid <"$0.$1"
	shift
	export XDG_RUNTIME_DIR=$DISK/run
	exec setsid nsenter --target "$pid" --mount bash -c 'urgent self; exec "$@"' node "$@"
EOS
chmod +x "$T/on"
on() { # RANK COMMAND…
	"$T/on" "$@"
}
everywhere() { # N COMMAND…: wall seconds of the slowest
	local n=$1
	shift
	wall "$n" "$T/on" {} "$@"
}

holders=()
start_holder() { # RANK
	rm -f "$T/here"
	unshare --mount --propagation private \
		bash -c 'forget_other_tests && : >"$T/here" && exec sleep infinity' &
	holders+=($!)
	echo $! >"$T/on.$1"
	wait_for 20 test -e "$T/here" || bail 'no namespace for a node'
}
# Makes new nodes with empty disks and new clients of the storage. Slurm makes those of sbcast.
nodes_up() { # METHOD N
	local i
	share=$T/share
	rm -f "$share"
	for ((i = 0; i < $2; i++)); do
		mkdir -p "$T/disks/$i"/{mnt,run}
		if [ "$1" = sbcast ]; then
			echo "${slurm_nodes[i + 1]}" >"$T/on.$i"
		else
			start_holder "$i"
		fi
		on "$i" mount --bind "$T/disks/$i" "$DISK" || bail 'no disk for a node'
		on "$i" "$SLOWFS" "${costs[@]}" --share "$share" "$T/store" "$STORAGE" ||
			bail 'slowfs does not mount'
	done
}
nodes_down() { # METHOD N
	local i
	case $1 in
	copper | manifest)
		on 0 "$COPPER" stop "$DISK/mnt" >"$T/out.stop" 2>&1 || bail "$(cat "$T/out.stop")"
		;;
	esac
	for ((i = 0; i < $2; i++)); do
		on "$i" bash -c '! mountpoint -q "$DISK/mnt" || umount "$DISK/mnt"; umount "$STORAGE" && umount "$DISK"' ||
			bail "a mount of node $i is still used"
	done
	wait_for 20 eval '[ -z "$(processes_of "$SLOWFS")" ]' || bail 'slowfs does not end'
	# Without a pid, wait would also wait for Slurm.
	[ "${#holders[@]}" -eq 0 ] || { kill "${holders[@]}" && wait "${holders[@]}"; } 2>/dev/null
	holders=()
	rm -rf "$T/disks"
}

# ---- samples

# The seconds that the command takes inside of a job.
sbcast_seconds() { # N
	local id
	id=$(submit sbcast "$1" --nodelist="n[1-$1]" <<-'EOS'
		begin=$EPOCHREALTIME
		sbcast "$STORAGE/env.squashfs" "$DISK/env.squashfs" && awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }' >"$T/sbcast"
	EOS
	)
	wait_for 120 job_is_over "$id" || bail 'the job of sbcast does not end'
	cat "$T/sbcast"
	rm -f "$T/sbcast"
}
staged() { # METHOD N: seconds until all nodes have imported
	local before=0
	[ "$1" != sbcast ] || before=$(sbcast_seconds "$2")
	[ -n "$before" ] || bail "sbcast failed: $(cat "$T/out.sbcast")"
	everywhere "$2" bash -c 'stage "$0" "$1" && use "$0"' "$1" {} |
		awk -v before="$before" '{ print before + $1 }'
}
sample() { # METHOD N
	export HOSTS SECRET JOB
	SRC=$STORAGE/env
	prepare_tree "$2"
	nodes_up "$1" "$2"
	add "first-$1-$2" "$(staged "$1" "$2")"
	SLOW_STATE=$share
	add "operations-$1-$2" "$(slow_charged)"
	add "bytes-$1-$2" "$(slow_count bytes)"
	slow_reset
	add "second-$1-$2" "$(everywhere "$2" bash -c 'use "$0"' "$1")"
	add "later-$1-$2" "$(slow_charged)"
	nodes_down "$1" "$2"
}
# These are here for what they cost, and do nothing for several nodes.
for_one_node() { # METHOD
	[ "$1" = bindfs ] || [ "$1" = passthrough ]
}
is_copy() { # METHOD
	[ "$1" = cp ] || [ "$1" = tar ] || [ "$1" = rsync ]
}
wanted() { # METHOD N TURN
	[ "$2" -eq 1 ] || ! for_one_node "$1" && { [ "$3" -eq 0 ] || ! is_copy "$1"; }
}
# This is what an earlier job leaves; it is not measured.
record() {
	export HOSTS SECRET JOB
	SRC=$STORAGE/env
	prepare_tree 1
	nodes_up manifest 1
	staged manifest 1 >/dev/null
	nodes_down manifest 1
	find "$T" -xdev -name '*copper-manifest*' | grep -q . ||
		bail 'the first job left no manifest'
}

# ---- what would have been predicted

# With as many processors as are here, since all nodes share them.
predict() {
	local image=$T/store/env.squashfs own method n
	import_wall "$T/store/env" >/dev/null
	own=$(import_wall "$T/store/env" | awk '{ printf "%d", $1 * 1000 }')
	nodes_up direct 1
	on 0 "$COPPER" predict "$(find "$T" -xdev -name '*.copper-manifest' | head -n 1)" \
		--source "$STORAGE/env" --run "$own" --processors "$(env -u OMP_NUM_THREADS nproc)" \
		--image "$([ -e "$image" ] && stat -c %s "$image" || echo 1M)" \
		--nodes "$(echo "${at_once[*]}" | tr ' ' ,)" --json >"$T/predicted" ||
		bail 'nothing is predicted'
	note "$(sed 's/.*"storage":{\([^}]*\)}.*/predicted from \1/' "$T/predicted"), run $own ms"
	nodes_down direct 1
	for n in "${at_once[@]}"; do
		for method in direct image sbcast manifest; do
			[ ! -e "$T/side.first-$method-$n" ] || compare_predicted "$method" "$n"
		done
	done
}
compare_predicted() { # METHOD N
	local way=${1/manifest/copper} said
	said=$("$PYTHON" -c 'import json, sys
print(*(r[sys.argv[2] + "_s"] for r in json.load(open(sys.argv[1]))["rows"] if r["nodes"] == int(sys.argv[3])))' \
		"$T/predicted" "$way" "$2")
	add "predicted-$1-$2" "$said"
	add "off-$1-$2" "$(awk -v a="$said" -v b="$(statistic median "first-$1-$2")" \
		'BEGIN { printf "%.3f", (a > b ? a / b - 1 : 1 - a / b) }')"
	report "copper predict, $1, $2 nodes, beside what was measured" s none - \
		"predicted-$1-$2" "first-$1-$2"
	report "copper predict, $1, $2 nodes: off by" x at_most 0.20 "off-$1-$2" -
}

make_environment
make_image
case " ${methods[*]} " in
*' sbcast '*) start_slurm "${at_once[-1]}" ;;
esac
import_wall "$T/store/env" >/dev/null
record
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	for n in "${at_once[@]}"; do
		for method in "${methods[@]}"; do
			wanted "$method" "$n" "$turn" || continue
			sample "$method" "$n"
			note "$turn: $n $method $(tail -q -n 1 "$T"/side.{first,second,operations,bytes}-"$method-$n" | paste -sd ' ')"
		done
	done
done
[ "${#slurm_pids[@]}" -eq 0 ] || stop_slurm
[ -z "${BENCH_NICE:-}" ] || kill "$helper"
for n in "${at_once[@]}"; do
	for method in "${methods[@]}"; do
		[ -e "$T/side.first-$method-$n" ] || continue
		report "$method, $n nodes: first start / direct" \
			s none - "first-$method-$n" "first-direct-$n"
		report "$method, $n nodes: second start / direct" \
			s none - "second-$method-$n" "second-direct-$n"
		report "$method, $n nodes: storage operations / direct" \
			ops none - "operations-$method-$n" "operations-direct-$n"
		report "$method, $n nodes: storage bytes / direct" \
			B none - "bytes-$method-$n" "bytes-direct-$n"
		report "$method, $n nodes: storage operations of the second start / direct" \
			ops none - "later-$method-$n" "later-direct-$n"
	done
done
case " ${methods[*]} " in
*' manifest '*) predict ;;
esac
