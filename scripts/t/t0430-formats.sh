#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper-formats(5) describes every file of a job directory, with every column and every metric in
# it.
# covers: profile rank stats
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 12

mandoc -T utf8 "$cop_root/man/copper-formats.5" | sed 's/.\x08//g' | tr -s ' \n' ' ' >"$T/page"

SRC=$T/src
small_tree "$SRC"
HOME=$T/home
with_tree 2 -A -N 5 -I 1
cat "$W/mnt/1/hello" "$W/mnt/1/dir/numbers" "$W/mnt/0/absent" >/dev/null 2>&1
ls "$W/mnt/1/dir" "$W/mnt/1/link" >/dev/null
ok 'a snapshot is written' "$COPPER" cache-stats --snapshot "$W/mnt/0"
ok 'the contents of the cache are listed' "$COPPER" cache-stats --output-dir "$JOB/held" "$W/mnt/0"
"$COPPER" cache-stats --all --json "$W/mnt/0" >"$T/all.json"
"$COPPER" cache-stats --json "$W/mnt/1" >"$T/own.json"
wait_for 10 test -d "$JOB/profiling/runtime-snapshot" || :
without_tree
ok 'aggregate works' "$COPPER" aggregate "$JOB" again --usage-root "$SRC"
ok 'paths works' "$COPPER" paths "$JOB" --usage-root "$SRC"

undescribed() { # words, one a line: those that the page does not have as a word
	sort -u | while IFS= read -r word; do
		[ -z "$word" ] || grep -qwF -- "$word" "$T/page" || echo "$word;"
	done | tr '\n' ' '
}
# Without what differs between jobs: host, pid, tag, prefix.
kinds_of_files() {
	(cd "$JOB" && find . -type f -printf '%f\n') |
		sed -E 's/^127\.0\.0\.[0-9]+-[0-9]+-//; s/^(pre-destroy|runtime-snapshot|ioctl-snapshot|pre-reset)-//; s/^(cluster|again)-//'
}
ok 'the job left files of many kinds' test "$(kinds_of_files | sort -u | wc -l)" -ge 25
is 'every file of a job directory is described' "$(kinds_of_files | undescribed)" ''
is 'every directory of a job directory is described' \
	"$(cd "$JOB" && find . -mindepth 1 -type d ! -name held -printf '%f\n' | undescribed)" ''
headers() {
	find "$JOB" -name '*.csv' -exec sh -c 'head -n 1 "$1" | tr , "\n"' header {} \;
}
is 'every column of a CSV file is described' "$(headers | undescribed)" ''
metrics() {
	find "$JOB" -name '*profiling_aggregate.csv' -o -name '*profiling_fabric.csv' -o \
		-name cache_usage_summary.csv | while read -r file; do
		sed '1d; s/,.*//' "$file"
	done
}
is 'every metric and every table is described' "$(metrics | undescribed)" ''
columns() { # of the tables in the reports for people
	find "$JOB" -name '*.md' -exec grep -hB 1 '^|--' {} + | grep -v -e '^|--' -e '^--' |
		sed 's/^| //; s/ |$//; s/ | /\n/g'
}
is 'every column of a table for people is described' "$(columns | undescribed)" ''
keys() {
	"$PYTHON" -c '
import json, sys
def walk(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            print(key)
            walk(inner)
    elif isinstance(value, list):
        for inner in value:
            walk(inner)
walk(json.load(open(sys.argv[1])))' "$T/all.json"
}
is 'every key of the JSON is described' "$(keys | undescribed)" ''

"$COPPER" aggregate "$JOB" --json >"$T/aggregate.json"
"$COPPER" paths "$JOB" --json >"$T/paths.json"
twice() { # FILE…: keys that one object has more than once; JSON, or a document on each line
	"$PYTHON" -c '
import json, sys
def once(pairs):
    keys = [key for key, _ in pairs]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        print(name, key)
    return dict(pairs)
for name in sys.argv[1:]:
    text = open(name).read()
    try:
        json.loads(text, object_pairs_hook=once)
    except ValueError:
        for line in text.splitlines():
            json.loads(line, object_pairs_hook=once)
' "$@" 2>&1
}
mapfile -t documents < <(find "$T"/*.json "$JOB" -type f \( -name '*.json' -o -name '*.jsonl' \))
is 'no object of the JSON has a key twice' "$(twice "${documents[@]}")" ''
