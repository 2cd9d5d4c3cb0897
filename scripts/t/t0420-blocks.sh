#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands that README and the manual show work as they are printed. Each block has a kind
# (blocks.py says how it is marked):
#
#	run          alone, by a shell that stops at the first failure; leaves nothing
#	part NAME    the parts of one name in one file are one script, in their order
#	output NAME  what such a script prints, but for numbers
#	tree         on a node of a tree of three, mounted on /tmp/view, with its job directory in
#	             $job
#	tree SECONDS the same, but it runs on and is interrupted then
#	env          the same, and nothing of the environment is read past the mount
#	job          behind a job with -A, in $HOME/copper/$JOBID
#	build        make targets: make knows them
#	text         not commands: files, lines of a log
#	slurm, mpi   in t0740-blocks-jobs.sh
#	check WHAT   there, too: WHAT is not here, so that options, hosts and files are checked and
#	             nothing is started
#
# /soft and /tmp stand for directories of the test.
# covers: launch opt
# modes: release
# limit: 180
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=soft.sh
. "$(dirname "$0")/soft.sh"

cd "$cop_root" || exit 1
files=(README.md man/*.[157])
mkdir "$T/blocks" "$T/bin" "$T/tmp" "$T/home"
"$PYTHON" "$cop_t/blocks.py" write "$T/blocks" "${files[@]}" >"$T/index" || bail 'blocks.py fails'
ln -s "$COPPER" "$T/bin/copper"
export HOME=$T/home TMPDIR=$T/tmp PATH=$T/bin:$PATH JOBID=4711 USER=tester
export PYTHONPATH=$cop_root/internal/writers/runs/python

kinds() { # WORD…: the blocks of these kinds: number, file, line, kind
	local word
	for word in "$@"; do
		awk -F '\t' -v word="$word" '{ split($4, w, " ") } w[1] == word' "$T/index"
	done
}
count() {
	kinds "$@" | wc -l
}
parts=$(kinds part | cut -f 2,4 | sort -u | wc -l)
plan $((6 + $(count run tree env job build text output) + parts))

known=(run part output tree env job build text slurm mpi check)
note "$(wc -l <"$T/index") blocks in ${#files[@]} files: $(for kind \
		in "${known[@]}"; do printf '%s %s, ' "$(count "$kind")" "$kind"; done)"
note "left to t0740-blocks-jobs.sh: $(count slurm mpi check)"
is 'every block has a kind' "$(awk -F '\t' '$4 ~ /^\?/ { print $2 ":" $3 }' "$T/index")" ''
is 'every block has a test that runs it' "$(wc -l <"$T/index")" "$(count "${known[@]}")"
ok 'README has blocks that are run' test "$(kinds run part slurm mpi | grep -c README.md)" -ge 4

# ---- pages show what is run: quotes and dashes that a formatter changes could not be pasted

mkdir "$T/pages"
for page in man/*.[157]; do
	for format in 'mandoc -T utf8' 'groff -mandoc -Tutf8 -P-cbou'; do
		command -v "${format%% *}" >/dev/null || continue
		$format "$page" 2>/dev/null | sed 's/.\x08//g' | expand >"$T/pages/${page##*/} ${format%% *}"
	done
done
shown=$("$PYTHON" - "$T" <<'PY'
import os, sys
top = sys.argv[1]
blocks = [line.rstrip("\n").split("\t") for line in open(f"{top}/index")]
for shown in sorted(os.listdir(f"{top}/pages")):
    page, formatter = shown.split()
    text = open(f"{top}/pages/{shown}").read()
    for number, name, line, kind in blocks:
        if name != page:
            continue
        for command in open(f"{top}/blocks/{number}.{kind.split()[0]}"):
            command = command.strip("\n").lstrip(" \t").expandtabs()
            if command not in text:
                print(f"{formatter} {page}:{line}: {command}")
PY
)
is 'a block looks in the manual as it is run' "$shown" ''

# ---- what each kind needs

texts() { # NUMBER…: with the test's directories in place of those that the text names
	local number
	for number in "$@"; do
		cat "$T/blocks/$number".*
	done | sed -E "s#(^|[^[:alnum:]_./}-])/tmp\b#\1$T/tmp#g; s#(^|[^[:alnum:]_./}-])/soft\b#\1$SOFT#g"
}
# In a network of its own, so that the ports that the text names are free.
isolated=()
! unshare --net true 2>/dev/null || isolated=(unshare --net)
run_block() { # COMMAND…: runs $T/block; its output is $T/out.block
	(cd "$T/tmp" && "${isolated[@]}" bash -c 'ip link set lo up 2>/dev/null; exec "$@"' run \
			timeout "$(patient 60)" "$@" bash -eu -o pipefail "$T/block") \
		</dev/null >"$T/out.block" 2>&1
}
left() {
	wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
	find "$T/tmp" -mindepth 1 -maxdepth 1
	[ "$(nodes_running)" -eq 0 ] || echo "$(nodes_running) nodes run"
}
clean() {
	if [ "$(nodes_running)" -gt 0 ]; then
		"$COPPER" stop >/dev/null 2>&1
		awk -v t="$T/tmp/" 'index($5, t) == 1 { print $5 }' /proc/self/mountinfo |
			while read -r mount; do
			"$COPPER" stop "$mount" || umount -l "$mount"
		done >/dev/null 2>&1
		wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
	fi
	find "$T/tmp" -mindepth 1 -delete 2>/dev/null
}
judge() { # STATUS WHAT
	local rest
	rest=$(left)
	if [ "$1" = 0 ] && [ -z "$rest" ]; then
		pass "$2"
	else
		fail "$2" "exit $1, left: $rest" "$(cat "$T/out.block")"
		clean
	fi
}
where() { # FILE LINE
	echo "$1, line $2:"
}

make_soft "$T/soft"

while IFS=$'\t' read -r number file line _; do
	texts "$number" >"$T/block"
	run_block
	judge $? "$(where "$file" "$line") works and leaves nothing"
done < <(kinds run)

# ---- scripts in parts, and what they print

while IFS=$'\t' read -r file name; do
	mapfile -t numbers < <(awk -F '\t' -v file="$file" -v kind="part $name" '$2 == file && $4 == kind { print $1 }' "$T/index")
	texts "${numbers[@]}" >"$T/block"
	run_block
	judge $? "$file: the ${#numbers[@]} parts of \"$name\" work together and leave nothing"
	sed "s#$T/tmp/#/tmp/#g; s#$SOFT#/soft#g" "$T/out.block" >"$T/printed.$file.$name"
done < <(kinds part | cut -f 2,4 | sed 's/part //' | sort -u)
while IFS=$'\t' read -r number file line kind; do
	printed=$T/printed.$file.${kind#output }
	is "$(where "$file" "$line") is what ${kind#output } prints" \
		"$([ -s "$printed" ] && "$PYTHON" "$cop_t/blocks.py" compare \
			"$T/blocks/$number.output" "$printed" || echo 'no such script')" ''
done < <(kinds output)

# ---- on a node of a tree

start_view() { # [OPTION…]: three nodes, the first on /tmp/view
	local i pids=()
	job=$HOME/copper/$JOBID
	mnt=$T/tmp/view
	export job mnt
	mkdir -p "$T/tmp/view" "$T/tmp/1" "$T/tmp/2"
	prepare_tree 3
	for i in 0 1 2; do
		"$COPPER" mount --hosts "$HOSTS" --rank "$i" -d "$job" --source "$SOFT" "$@" \
			"$(if [ "$i" -eq 0 ]; then echo "$mnt"; else echo "$T/tmp/$i"; fi)" \
			>"$T/out.$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || bail "a node does not start: $(cat "$T"/out.[012])"
	done
}
stop_view() {
	local i
	"$COPPER" stop "$mnt" >/dev/null 2>&1
	for i in view 1 2; do
		is_mounted "$T/tmp/$i" || rmdir "$T/tmp/$i"
	done
}
past_the_mount() { # TRACE: files of the source that were opened or executed where they are
	grep -E '^[0-9]+ +(open|openat|execve|readlink|newfstatat|stat)\(' "$1" |
		grep -F "\"$SOFT/" | grep -v -e ' = -1 ' -e unfinished
}
while IFS=$'\t' read -r number file line kind; do
	start_view
	texts "$number" >"$T/block"
	if [ "$kind" = env ]; then
		cp "$SOFT/train.py" "$T/tmp/"
		run_block strace -f -qq -e trace=%file -e signal=none -o "$T/trace"
		status=$?
		rm -f "$T/tmp/train.py"
		past=$(past_the_mount "$T/trace")
		[ -z "$past" ] || { status=1; echo "read past the mount: $past" >>"$T/out.block"; }
		grep -q "$mnt/" "$T/trace" || {
			status=1
			echo 'nothing read from the mount' >>"$T/out.block"
		}
	else
		seconds=${kind#tree}
		[ -z "$seconds" ] || seconds=$(patient "${seconds# }")
		run_block ${seconds:+timeout -s INT "$((seconds < 60 ? seconds : 60))"}
		status=$?
		[ -z "$seconds" ] || [ "$status" -ne 124 ] || status=0
		[ -s "$T/out.block" ] || [ -z "$seconds" ] || status='1 and silence'
	fi
	stop_view
	judge "$status" "$(where "$file" "$line") works in a tree"
done < <(kinds tree env)

# ---- behind a job

start_view -A -N 10 -I 1
"$mnt/envs/torch/bin/python" "$SOFT/train.py" >"$T/out.block" 2>&1 || bail "$(cat "$T/out.block")"
wait_for 10 eval '[ "$(find "$job/profiling/runtime-snapshot" -name "*-profiling_operations.csv" | wc -l)" -eq 3 ]' || bail 'no snapshots'
stop_view
# What copper predict reads.
env -u COPPER_PREFETCH "$COPPER" run --source "$SOFT/envs/torch" -- \
	"$SOFT/envs/torch/bin/python" -c 'import json' >"$T/out.block" 2>&1 || bail "$(cat "$T/out.block")"
while IFS=$'\t' read -r number file line _; do
	texts "$number" >"$T/block"
	run_block
	judge $? "$(where "$file" "$line") works behind a job"
done < <(kinds job)

# ---- what is not run

while IFS=$'\t' read -r number file line _; do
	texts "$number" | sed 's/#.*//; s/^sudo //' >"$T/block"
	ok "$(where "$file" "$line") make knows it" bash -eu -c '
		while read -r words; do
			case $words in
			"" | "export PATH="*) ;;
			make*) $words -n -q >/dev/null 2>&1 || [ $? -eq 1 ] || { echo "$words"; exit 1; } ;;
			*) echo "not make: $words"; exit 1 ;;
			esac
		done <"$1"' build "$T/block"
done < <(kinds build)
while IFS=$'\t' read -r number file line _; do
	is "$(where "$file" "$line") is no command" \
		"$(grep -nE '^[[:blank:]$#]*(sudo |[A-Z_]+=[^ ]+ )*(copper|make|srun|sbatch|mpiexec|module|rsync)( |$)' "$T/blocks/$number.text")" ''
done < <(kinds text)

# ---- the end

is 'no node and no mount is left' "$(nodes_running) $(mounts_left)" '0 0'
rm -rf "$T/home/copper"
ok 'no file is left' test -z "$(ls -A "$T/tmp")"
