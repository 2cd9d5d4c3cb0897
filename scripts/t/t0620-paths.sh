#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper paths: jobs whose lists were worked out by hand, byte for byte; broken and hostile job
# directories; a real job compared with strace and with a second opinion; and a reduced copy made by
# rsync from keep.txt in which the same program runs.
# covers: paths cluster usage
# quick: yes
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 75
strace=$(command -v strace)

export HOME=$T/no-home
paths() { # ARG…: standard output to $T/out, standard error to $T/err
	timeout "$(patient 60)" "$COPPER" paths "$@" </dev/null >"$T/out" 2>"$T/err"
}

# ---- jobs worked out by hand: testdata/jobs/NAME has the job, the tree that it ran from, and the
# expected files

make_tree() { # FILE: "f SIZE PATH", "d - PATH", "l TARGET PATH"; PATH as printf %b has it
	local type what name
	while read -r type what name; do
		name=$T/$(printf '%b.' "$name")
		name=${name%.}
		mkdir -p "$(dirname "$name")"
		case $type in
		f) truncate -s "$what" "$name" ;;
		d) mkdir -p "$name" ;;
		l) ln -s "$what" "$name" ;;
		esac
	done <"$1"
}
put_roots() { # FROM TO: @ROOT@ is this directory, @JOB@ the job's
	sed "s|@ROOT@|$T|g; s|@JOB@|$JOB|g" "$1" >"$2"
}
with_job() { # NAME
	local file
	JOB=$T/$1
	mkdir -p "$JOB/tables/final"
	[ ! -e "$cop_root/testdata/jobs/$1/tree" ] || make_tree "$cop_root/testdata/jobs/$1/tree"
	for file in "$cop_root/testdata/jobs/$1/job/tables/final"/*; do
		put_roots "$file" "$JOB/tables/final/${file##*/}"
	done
}
same_lists() { # NAME
	local file
	for file in "$cop_root/testdata/jobs/$1/expected"/*; do
		put_roots "$file" "$T/wanted"
		ok "$1: ${file##*/} is as worked out by hand" \
			cmp "$T/wanted" "$JOB/paths_dir/${file##*/}"
	done
}
summary_has() { # DESCRIPTION TEXT
	ok "$1" grep -Fqx -- "$2" "$JOB/paths_dir/paths_summary.md"
}

with_job paths-v1
ok 'a job of Copper 1.0 is read' paths "$JOB"
same_lists paths-v1
is 'copper paths finds no fault in a job of Copper 1.0' "$(cat "$T/err")" ''
summary_has 'the counts table has bytes' \
	'| Not needed by what was used | `prune_candidates.txt` | 8 | 4 | 4 | 0 | 1075010 |'
for words in 'All possible existing paths under the selected roots' 'Actually used in this run' \
	'Not seen in this run, but exists' 'Probed but absent'; do
	ok "the counts table uses the words of Copper 1.0: $words" \
		grep -q "^| $words | \`" "$JOB/paths_dir/paths_summary.md"
done
summary_has 'unused directories are added up' \
	"| \`$T/conda_env/pkgs\` | 1000010 | 976.6 KiB | 2 | 2 |"
summary_has 'an absent name in two directories is a row, probes over all ranks' \
	'| `libc.so.6` | 2 | 11 |'
summary_has 'a directory that gave nothing is one too' "| \`$T/conda_env/lib-extra\` | 1 | 1 |"
is 'no list for odd names is left where there are none' "$(find "$JOB/paths_dir" -name "*.nul")" ""
ok 'the totals are there for scripts' paths "$JOB" --json
is 'the totals have bytes' "$(json_value totals.prune_candidates.bytes <"$T/out")" 1075010
ok 'the lists are written without bytes' paths "$JOB" --json --no-sizes --output-dir "$T/no-sizes"
is 'as null' "$(json_value totals.existing.bytes <"$T/out")" None
ok 'the lists are the same then' \
	cmp "$T/no-sizes/prune_candidates.txt" "$JOB/paths_dir/prune_candidates.txt"

with_job paths-odd
ok 'names of any bytes, links and two roots' \
	paths "$JOB" --usage-root "$T/one" --usage-root "$T/one-b/" --usage-root "$T/one/x"
same_lists paths-odd
matches 'a line that is not a path is reported' "$(cat "$T/err")" 'some of its lines are not paths'

# ---- what a name may hold reaches rsync too

mkdir -p "$T/only/tables/final" "$T/only.src"
for name in '#hash' ';semicolon' $'new\nline' $'return\rhere' ' blank '; do
	echo x >"$T/only.src/$name"
done
"$PYTHON" - "$T/only.src" "$T/only/tables/final/h-1-md_table_cache_event.output" <<'PY'
import os, sys
src, out = map(os.fsencode, sys.argv[1:])
with open(out, "wb") as f:
    f.write(b"title {\n")
    for name in os.listdir(src):
        path = (src + b"/" + name).replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
        f.write(path + b" {\ncache hits: 1,\ncache misses: 0,\nneg: 0\n}\n")
    f.write(b"}\n")
PY
echo never >"$T/only.src/unused"
paths "$T/only" --usage-root "$T/only.src"
eval "$(sed -n "s|^a reduced copy to try: \(.*\) COPY/\$|\1 '$T/only.copy/'|p" "$T/out")"
rm "$T/only.src/unused"
ok 'the command that is printed copies all of them' diff -r "$T/only.src" "$T/only.copy"
rm "$T/only.src"/*[$'\n\r']*
paths "$T/only" --usage-root "$T/only.src"
is 'lists with odd names go when the names go' "$(find "$T/only/paths_dir" -name "*.nul")" ""

# ---- broken job directories

with_job paths-broken
mkfifo "$JOB/tables/final/g-7-data_cache_size.output"
mkdir "$JOB/tables/final/h-8-data_cache_size.output"
ln -s /dev/zero "$JOB/tables/final/i-9-data_cache_size.output"
ok 'what can be used is used' paths "$JOB" --usage-root "$T/nowhere" --json
is 'four tables can be used' "$(json_value tables <"$T/out")" 4
is 'three paths' "$(json_value observed <"$T/out")" 3
is 'eight tables are counted as faulty' "$(json_value faults <"$T/out")" 8
for fault in 'a-1-.*truncated' 'b-2-.*empty' 'c-3-.*not a raw table' 'd-4-.*truncated' \
	'e-5-.*not paths' \
	'g-7-.*not a regular file' 'h-8-.*not a regular file' 'i-9-.*not a regular file'; do
	matches "named: $fault" "$(cat "$T/err")" "^$fault"
done
mkdir -p "$T/empty/tables/final" "$T/useless"
echo nonsense >"$T/useless/x.output"
fails_first_line() { # EXIT REGEX ARG…
	local want=$1 regex=$2 status
	shift 2
	paths "$@"
	status=$?
	[ "$status" -eq "$want" ] && head -n 1 "$T/err" | grep -Eq -- "$regex" && [ ! -s "$T/out" ]
}
ok 'no table at all is a failure' \
	fails_first_line 1 "failed to find raw tables .*$T/empty/tables/final" "$T/empty"
ok 'a directory without any usable table is a failure' \
	fails_first_line 1 '1 tables .* unusable' "$T/useless"
ok 'a job directory that is not there is a failure' \
	fails_first_line 1 'cannot read the job directory' "$T/none"
ok 'a job directory that is a file is a failure' \
	fails_first_line 1 'is not a directory' "$T/useless/x.output"
fails_with 2 'JOBDIR' "$COPPER" paths
fails_with 2 'usage-root' "$COPPER" paths "$T/useless" --usage-root
fails_with 1 'cannot write to standard output; the lists are in' \
	sh -c 'exec "$@" >/dev/full' - "$COPPER" paths --json "$T/only" --usage-root "$T/only.src"
if [ "$(id -u)" -eq 0 ]; then
	# An unused id has no other threads that would count.
	install -D -m 755 "$COPPER" "$T/few/copper"
	install -d -m 777 "$T/few/out"
	ok 'few threads are enough' \
		setpriv --reuid 54321 --regid 54321 --clear-groups prlimit --nproc=4 \
		"$T/few/copper" paths "$T/only" --usage-root "$T/only" --output-dir "$T/few/out"
else
	pass 'few threads # SKIP not root'
fi
paths "$T/only" --usage-root "$T/many.not"
matches 'a root with nothing observed is reported' "$(cat "$T/err")" \
	"all that was observed is below $T/only.src: name roots as they are in the source"
paths "$T/only"
matches 'without a root the observed directory is named' \
	"$(cat "$T/err")" "all that was observed is below $T/only.src: name the directory"
mkdir -p "$T/early/tables/runtime-snapshot"
paths "$T/early"
matches 'snapshots are proposed' "$(cat "$T/err")" "copper paths $T/early/tables/runtime-snapshot"
if [ "$(id -u)" -eq 0 ]; then
	mkdir "$T/small"
	mount -t tmpfs -o size=16k,mode=777 none "$T/small" || bail 'no tmpfs'
	mkdir "$T/many" "$T/small/out"
	(cd "$T/many" && seq -f 'a_file_with_a_long_name_%06.0f' 1 5000 | xargs touch)
	ok 'a full disk is a sentence' fails_first_line 1 'No space left' "$T/only" \
		--usage-root "$T/many" --usage-root "$T/only.src" --output-dir "$T/small/out"
	is 'a full disk leaves nothing half written' "$(ls -A "$T/small/out")" ''
	umount "$T/small"
else
	pass 'a full disk # SKIP not root'
	pass 'a full disk # SKIP not root'
fi

# ---- memory follows the paths, not the ranks

mkdir -p "$T/ranks/tables/final"
{
	echo 'md_cache_event_table {'
	seq -f '/usr/somewhere/in/a/long/path/name%.0f' 1 300 |
		sed 's/$/ {\ncache hits: 1,\ncache misses: 0,\nneg: 0\n}/'
	echo '}'
} >"$T/table"
# Measures a run over the ranks that exist; what a sanitizer keeps of freed memory does not count.
peak_kb() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1 "$PYTHON" - "$COPPER" "$T/ranks" <<'PY'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "paths", sys.argv[2], "--output-dir", sys.argv[2] + "/out"], stdout=subprocess.DEVNULL,
               stderr=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
}
for i in $(seq 1 50); do
	cp "$T/table" "$T/ranks/tables/final/h-$i-md_table_cache_event.output"
done
few=$(peak_kb)
for i in $(seq 51 3000); do
	ln "$T/table" "$T/ranks/tables/final/h-$i-md_table_cache_event.output"
done
many=$(peak_kb)
note "peak of 50 ranks $few kB, of 3000 $many kB"
# A sanitizer's allocator also keeps something of each thread.
is_at_most '3000 ranks take little more memory than 50' \
	"$many" $((few + 6000 * (cop_slower > 1 ? 4 : 1)))

# ---- a real job

version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$T/src/bin" "$T/src/lib" "$T/src/share/deep/er"
cp "/usr/bin/$version" "$T/src/bin/"
ln -s "$version" "$T/src/bin/python3"
cp -r "/usr/lib/$version" "$T/src/lib/"
rm -rf "$T/src/lib/$version/"{test,config-*,idlelib,lib2to3} "$T/src/lib/$version/sitecustomize.py"
printf '#!/bin/sh\nhere=$(dirname "$0")/..\n"$here/bin/python3" -c "import json, sys; print(json.__file__, sys.prefix)"\ncat "$here/share/first/text"\n' >"$T/src/bin/program"
chmod +x "$T/src/bin/program"
echo text >"$T/src/share/deep/er/text"
ln -s second "$T/src/share/first"
ln -s ../share/deep/er "$T/src/share/second"
SRC=$T/src
with_tree 2 -A
M=$W/mnt/1
run_from() { # DIR
	env -i PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$1" "$1/bin/program"
}
run_from "$M" >"$T/from-mount"
: >"$T/trace"
[ -z "$strace" ] ||
	strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace" env -i PATH=/usr/bin:/bin \
		PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$M" "$M/bin/program" >/dev/null 2>&1
ok 'the tree stops' without_tree
ok 'the stopped job has lists' paths "$JOB" --usage-root "$SRC"
"$PYTHON" - "$M" "$SRC" "$JOB" "$T/trace" >"$T/compare" <<'PY'
import glob, os, re, sys
mount, src, job, trace = sys.argv[1:]
def lines(name):
    with open(job + "/paths_dir/" + name, errors="surrogateescape") as f:
        return f.read().splitlines()
seen = set()
for table in glob.glob(job + "/tables/final/*_event.output"):
    for line in open(table, errors="surrogateescape"):
        if line.startswith("/"):
            seen.add(line[:line.rindex(" {")])
everything = {src}
for where, dirs, files in os.walk(src):
    everything |= {os.path.join(where, name) for name in dirs + files}
used = {p for p in seen if os.path.lexists(p)}
def same(name, want):
    got = lines(name)
    want = sorted(want, key=os.fsencode)
    print(name, "same" if got == want else ("differs", len(got), len(want), sorted(set(got) ^ set(want))[:5]))
same("all_possible_existing_paths.txt", everything)
same("used_paths_existing.txt", used)
same("missing_probe_paths.txt", seen - used)
same("same_run_candidate_not_observed_existing_paths.txt", everything - used)
listed, absent = set(lines("used_paths_existing.txt")), set(lines("missing_probe_paths.txt"))
call = re.compile(r'^\d+ +\w+\((?:AT_FDCWD(?:<[^>]*>)?, )?"((?:[^"\\]|\\.)*)"(.*)$')
wrong, checked = [], 0
for line in open(trace, errors="surrogateescape"):
    m = call.match(line)
    if not m or not m.group(1).startswith(mount + "/"):
        continue
    real = os.path.normpath(src + m.group(1)[len(mount):])
    parent = os.path.realpath(os.path.dirname(real))
    real = os.path.join(parent, os.path.basename(real))
    checked += 1
    # Below an absent directory the kernel asks only for the directory.
    while not os.path.lexists(os.path.dirname(real)):
        real = os.path.dirname(real)
    if real not in (listed if os.path.lexists(real) else absent):
        wrong.append(real)
print("strace", "same" if checked > 50 and not wrong else ("differs", checked, wrong[:5]))
PY
for what in all_possible_existing_paths.txt used_paths_existing.txt missing_probe_paths.txt \
	same_run_candidate_not_observed_existing_paths.txt ${strace:+strace}; do
	is "a second opinion: $what" "$(sed -n "s/^$what //p" "$T/compare")" same
done
[ -n "$strace" ] || pass 'a second opinion: strace # SKIP needs strace'

# ---- a kernel before Linux 5.6, or a container that blocks openat2

cp -r "$JOB/paths_dir" "$T/with-openat2"
rm -r "$JOB/paths_dir"
for error in ${strace:+ENOSYS EPERM}; do
	# Under a tracer the sanitizer cannot look for leaks.
	ok "without openat2 ($error) there are lists, too" \
		env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" timeout "$(patient 60)" \
		strace -f -qq -e trace=openat2 -e inject=openat2:error="$error" -o "$T/strace" \
		"$COPPER" paths "$JOB" --usage-root "$SRC"
done
if [ -n "$strace" ]; then
	is "without openat2 ($error) the lists are the same" \
		"$(diff -rq "$T/with-openat2" "$JOB/paths_dir") $(grep -c INJECTED "$T/strace")" ' 1'
else
	for what in '(ENOSYS) there are lists, too' '(EPERM) there are lists, too' \
		'(EPERM) the lists are the same'; do
		pass "without openat2 $what # SKIP needs strace"
	done
	cp -r "$T/with-openat2" "$JOB/paths_dir"
fi
ok 'rsync takes keep.txt' rsync -a --files-from="$JOB/paths_dir/keep.txt" "$SRC/" "$T/copy/"
mv "$SRC" "$SRC.away"
run_from "$T/copy" >"$T/from-copy" 2>&1
is 'the program runs in the reduced copy, from its own prefix' \
	"$(cat "$T/from-copy")" "$(sed "s|$M|$T/copy|g" "$T/from-mount")"
is_at_most 'the reduced copy has less than a fifth of the names' \
	"$(($(find "$T/copy" | wc -l) * 5))" "$(find "$SRC.away" | wc -l)"
is 'keep and prune candidates are all there is' "$({
	find "$T/copy" -mindepth 1 -printf '%P\n'
	cat "$JOB/paths_dir/prune_candidates.txt"
} | LC_ALL=C sort | sha256sum)" \
	"$(find "$SRC.away" -mindepth 1 -printf '%P\n' | LC_ALL=C sort | sha256sum)"
