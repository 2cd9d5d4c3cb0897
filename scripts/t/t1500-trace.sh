#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace: summary, table and events give what pandas gives, number by number, on generated
# traces of every format; what is cut off, broken, no trace or wrongly asked for.
# covers: read trace/table
# modes: release asan
# limit: 240
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
"$PYTHON" -c 'import pandas' 2>/dev/null ||
	skip_all 'no pandas here; scripts/install-deps.sh all installs it'
# Of each format one file is asked for by itself; the directory has all of them, and takes a
# sanitizer the same ways.
one_by_one=7
[ "$cop_mode" = release ] || one_by_one=0
declare -A asked=()
plan $((43 + one_by_one))

judge() { # PATH…: prints what differs, or how much is the same
	timeout "$(patient 120)" "$PYTHON" "$cop_t/trace_judge.py" "$COPPER" "$@" >"$T/judged" 2>&1
	grep -v '^same ' "$T/judged" | head -n 5
	[ "$(grep -c '^same ' "$T/judged")" -ge "$least" ] ||
		echo "only $(grep -c '^same ' "$T/judged") answers"
}

# ---- every format, number by number

least=20
mkdir "$T/all"
seed=1
while read -r name form words; do
	seed=$((seed + 1))
	# The words are words.
	# shellcheck disable=SC2086
	generate "$form" 1500 "$seed" "$T/all/$name" $words
	[ "$one_by_one" -eq 0 ] || [ -n "${asked[$form]:-}" ] ||
		is "$name: every answer is that of pandas" "$(judge "$T/all/$name")" ''
	asked[$form]=yes
done <<'L'
dlio.pfw 0
dftracer1.pfw 1
late.pfw.gz 1 late gzip=100
one-member.pfw.gz 1 gzip=0
dftracer2.pfw 2
late2.pfw.gz 2 late gzip=0
perfflow.cpu.1.pfw perfflow
perfflow.object.cpu.1.pfw perfflow-object
verbose.pfw verbose
verbose.pfw.gz verbose gzip=77
torch.json chrome
torch.json.gz chrome gzip=0
L
is 'a directory of all of them, too' "$(judge "$T/all")" ''
cp "$T/all/late.pfw.gz" "$T/all/no-name"
is 'a copy is another file' "$(judge "$T/all/no-name" "$T/all/dlio.pfw")" ''
rm "$T/all/no-name"

# Larger than a block, so that threads work on one file; the order of blocks does not matter.
generate 1 60000 42 "$T/large.pfw.gz" late gzip=0
generate verbose 20000 43 "$T/large.verbose.pfw"
least=3
"$PYTHON" - "$T/large.pfw.gz" <<'P' >"$T/wanted"
import collections, gzip, json, sys
sums = collections.Counter()
for line in gzip.open(sys.argv[1], 'rt'):
    if line[0] == '{':
        e = json.loads(line)
        if e['ph'] == 'X':
            sums[e['name'], e['tid']] += e['dur']
most = collections.Counter()
for (name, _), dur in sums.items():
    most[name] = max(most[name], dur)
for name, dur in sorted(most.items()):
    print('%s,%d.%06d000' % (name, dur // 1000000, dur % 1000000))
P
ok 'a large file is read' trace table --csv --by name --per pid,tid --then max --show dur \
	--sort name "$T/large.pfw.gz"
is 'a large file adds up' "$(sed 1d "$T/out")" "$(cat "$T/wanted")"
trace summary --json "$T/large.verbose.pfw" && cp "$T/out" "$T/first"
for _ in 1 2 3; do
	trace summary --json "$T/large.verbose.pfw"
	cmp "$T/first" "$T/out" || echo differs >>"$T/differs"
done
ok 'the answer does not depend on threads' test ! -e "$T/differs"

# ---- events: sorted outside of memory, in files that nobody sees

mkdir "$T/tmp"
export TMPDIR=$T/tmp
ok 'all events of a large file' trace events --csv "$T/large.pfw.gz"
is 'copper trace events prints all events of a large file' "$(wc -l <"$T/out")" 60001
ok 'in order' sh -c "sed 1d '$T/out' | cut -d , -f 1 | sort -n -c"
head -n 11 "$T/out" >"$T/ten"
ok 'the first ten' trace events --csv --limit 10 "$T/large.pfw.gz"
ok '--limit prints the first ten events' cmp "$T/ten" "$T/out"
is 'no temporary file remains' "$(find "$T/tmp" -mindepth 1)" ''

# ---- what is broken

gzip -dc "$T/all/one-member.pfw.gz" >"$T/plain.pfw"
{
	head -n 200 "$T/plain.pfw"
	echo '{"name":"half'
	echo nonsense
	sed -n '201,300p' "$T/plain.pfw"
} >"$T/broken.pfw"
is_told 'broken lines' 0 'broken\.pfw:201: .*broken\.pfw:202: ' table --by name "$T/broken.pfw"
head -c 20000 "$T/all/one-member.pfw.gz" >"$T/cut.pfw.gz"
is_told 'a gzip that is cut off' 0 'cut\.pfw\.gz: the gzip data is cut off' table --by name \
	"$T/cut.pfw.gz"
ok 'what is before the cut counts' test "$(wc -l <"$T/out")" -gt 5
printf 'hello\n' >"$T/no.pfw"
: >"$T/empty.pfw"
printf '\x1f\x8b\x08 no gzip at all' >"$T/none.pfw.gz"
printf '%s\n' '{"name":"a\u0000b","cat":"c","pid":1,"tid":1,"ts":1,"dur":2,"ph":"X"}' \
	'{"name":"next","cat":"c","pid":1,"tid":1,"ts":2,"dur":1,"ph":"X"}' >"$T/nul.pfw"
for form in plain csv json; do
	option=(--"$form")
	[ "$form" != plain ] || option=()
	trace table --by name --show count "${option[@]}" "$T/nul.pfw"
	ok "a name with a NUL does not end the output, $form" grep -aq next "$T/out"
done
is_told 'no trace' 1 'no\.pfw: it is neither JSON nor gzip.*none of the 1 files is a trace' \
	summary "$T/no.pfw"
is_told 'an empty file' 1 'empty\.pfw: it is empty' summary "$T/empty.pfw"
is_told 'no gzip' 1 'none\.pfw\.gz: the gzip data is damaged' events "$T/none.pfw.gz"
is_told 'nothing' 1 "nowhere: No such file or directory.*there is no file to read" \
	summary "$T/nowhere"
is_told 'no trace beside one' 0 'no\.pfw: it is neither' summary "$T/no.pfw" "$T/plain.pfw"
mkdir "$T/some"
cp "$T/plain.pfw" "$T/some/a.pfw"
cp "$T/no.pfw" "$T/some/notes.txt"
{ echo notes; cat "$T/plain.pfw"; } >"$T/some/more-notes.txt"
: >"$T/some/b.pfw"
head -c 12 "$T/all/one-member.pfw.gz" >"$T/some/c.pfw.gz"
trace summary --json "$T/plain.pfw"
cp "$T/out" "$T/alone"
trace summary --json "$T/some"
is 'in a directory, what is called a trace and is none is told' \
	"$(sed "s|.*$T/some/||" "$T/err" | sort | paste -sd ';')" \
	'b.pfw: it is empty;c.pfw.gz: the gzip data is cut off'
is 'what is not called a trace is not read' "$(sed 's/"lost":.*//' "$T/out")" \
	"$(sed 's/"lost":.*//' "$T/alone")"
matches 'JSON names the files that were lost' "$(sed -n 's/.*"lost"://p' "$T/out")" \
	'^\[\{"file":"[^"]*/b\.pfw","why":"it is empty","whole":true,.*/c\.pfw\.gz"'

# ---- what is wrongly asked for

is_told 'an expression that does not compile' 1 \
	"--not-name 'a\(\[b' is not an extended regular expression: .*\(byte 3\)" \
	table --by name --not-name 'a([b' "$T/plain.pfw"
is_told 'an unknown column' 1 "no column 'dur:80%'; the columns are count, dur, size, bandwidth, " \
	table --by name --show dur:80% "$T/plain.pfw"
is_told 'an unknown key' 1 "no key 'names'; the keys are name, cat, " table --by names \
	"$T/plain.pfw"
is_told 'a column to sort by that is not there' 1 'which has name, count' table --by name \
	--show count --sort dur "$T/plain.pfw"
is_told 'no --by' 2 '--by is missing' table "$T/plain.pfw"
trace table --by name
is 'no PATH is misuse' "$?" 2
