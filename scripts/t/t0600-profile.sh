#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# -A sees what strace sees of a program, existing and absent paths alike; the report files are there when stop returns.
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 12

command -v strace >/dev/null || skip_all 'strace is not installed'
SRC=/usr
with_tree 2 -A -N 10 -I 1
M=$W/mnt/1

run_python() {
	env -i PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$M" PYTHONPATH="$M/lib/python3/dist-packages" \
		LD_LIBRARY_PATH="$M/lib/x86_64-linux-gnu" "$@"
}
strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace.py" \
	env -i PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$M" PYTHONPATH="$M/lib/python3/dist-packages" \
	LD_LIBRARY_PATH="$M/lib/x86_64-linux-gnu" "$M/bin/python3" -c 'import numpy, json, nothing_here' 2>/dev/null
ok 'a program runs' run_python "$M/bin/python3" -c 'import numpy'
strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace.sh" \
	/bin/sh -c "ls '$M/share/zoneinfo' >/dev/null; test -e '$M/no/such/thing'; cat '$M/bin/nothing' 2>/dev/null; cat '$M/share/common-licenses/GPL-3' >/dev/null"
wait_for 10 test -e "$JOB/profiling/runtime-snapshot" || :
ok 'snapshots are written while it runs' test -d "$JOB/profiling/runtime-snapshot"
ok 'the tree stops' without_tree

one() { # a final file of node 1
	local found=("$JOB"/"$1"/final/127.0.0.12-*-"$2")
	echo "${found[0]}"
}
for name in operations aggregate top_paths latency fabric; do
	[ -s "$(one profiling "profiling_$name.csv")" ] || note "no profiling_$name.csv"
done
is 'the header of the operations is what scripts expect' "$(head -n 1 "$(one profiling profiling_operations.csv)")" \
	'operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s'
is 'the totals begin as scripts expect' "$(sed -n '1p;2s/,.*//p' "$(one profiling profiling_aggregate.csv)" | tr '\n' ' ')" \
	'metric,value total_counted_fuse_operations '
ok 'there is a report for people' grep -q 'full-path' "$(one profiling profiling_summary.md)"
ok 'and one before the teardown' test -s "$(dirname "$(one profiling x)")/../pre-destroy"/127.0.0.12-*-pre-destroy-profiling_operations.csv
is 'no temporary file is left' "$(find "$JOB" -name '*.??????' -newer "$HOSTS" | grep -c 'csv\.\|output\.[^.]*$' || :)" 0

"$PYTHON" - "$M" "$(one tables md_table_cache_event.output)" "$T/trace.py" "$T/trace.sh" >"$T/compare" <<'PY'
import os, re, sys
mount, table, *traces = sys.argv[1:]
seen, absent, path = set(), set(), None
for line in open(table, errors="surrogateescape"):
    if line.startswith("/"):
        path = line[:line.rindex(" {")]
        seen.add(path)
    elif line.startswith("neg:") and int(line.split()[1]):
        absent.add(path)
# What strace saw below the mount, as /usr/...
existing, missing = set(), set()
call = re.compile(r'^\d+ +\w+\((?:AT_FDCWD(?:<[^>]*>)?, )?"((?:[^"\\]|\\.)*)"(.*)$')
for trace in traces:
    for line in open(trace, errors="surrogateescape"):
        m = call.match(line)
        if not m:
            continue
        name = m.group(1)
        if not name.startswith(mount + "/"):
            continue
        name = "/usr/" + name[len(mount) + 1:]
        gone = "ENOENT" in m.group(2) or "ENOTDIR" in m.group(2)
        (missing if gone else existing).add(name)
def resolved(name):
    """Every name that the kernel looks up on the way: parents, links and what they point to."""
    todo, out = [os.path.normpath(name)], set()
    while todo:
        parts, at = todo.pop().strip("/").split("/"), ""
        for i, part in enumerate(parts):
            at += "/" + part
            out.add(at)
            if os.path.islink(at):
                target = os.path.normpath(os.path.join(os.path.dirname(at), os.readlink(at)))
                rest = "/".join(parts[i + 1:])
                # A link to /etc leaves the mount, and what it comes back to is not under the mount any more.
                if target.startswith("/usr/"):
                    todo.append(os.path.join(target, rest) if rest else target)
                break
            if not os.path.lexists(at):
                break
    return {p for p in out if p == "/usr" or p.startswith("/usr/")}
wanted = set()
for name in existing | missing:
    wanted |= resolved(name)
gone = {p for p in wanted if not os.path.lexists(p)}
print("existing-not-seen", sorted(p for p in wanted - gone if p not in seen)[:5])
print("absent-not-seen", sorted(gone - absent)[:5])
print("seen-not-by-strace", sorted(seen - wanted)[:5])
print("counted", "enough" if len(wanted) > 200 and len(gone) > 20 else (len(wanted), len(gone)))
PY
is 'every existing path of the program was seen' "$(sed -n 's/^existing-not-seen //p' "$T/compare")" '[]'
is 'every absent one too' "$(sed -n 's/^absent-not-seen //p' "$T/compare")" '[]'
is 'and nothing else' "$(sed -n 's/^seen-not-by-strace //p' "$T/compare")" '[]'
is 'of hundreds' "$(sed -n 's/^counted //p' "$T/compare")" enough
