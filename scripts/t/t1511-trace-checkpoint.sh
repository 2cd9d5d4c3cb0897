#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace checkpoint: every table gives what pandas gives, number by number, for checkpoints
# that are written to a parallel file system, or to an SSD and flushed; the advice follows from the
# figures; what is wrongly asked for.
# covers: checkpoint
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
"$PYTHON" -c 'import pandas' 2>/dev/null ||
	skip_all 'no pandas here; scripts/install-deps.sh all installs it'
plan 48

# TIER=PREFIX… -- [--event=RE] NAME=PATH…: prints what differs, or that too little is the same.
judge() {
	timeout "$(patient 120)" "$PYTHON" "$cop_t/trace_cases_judge.py" checkpoint "$COPPER" \
		"$@" >"$T/judged" 2>&1
	grep -v -e '^same ' -e '^advice ' "$T/judged" | head -n 5
	[ "$(grep -c '^same ' "$T/judged")" -eq 11 ] ||
		echo "only $(grep -c '^same ' "$T/judged") answers"
}
generate direct 4 1 "$T/direct.pfw"
generate sync 4 2 "$T/sync.pfw.gz" gzip=100
generate async 4 3 "$T/async.pfw.gz" late gzip=0
generate slow 3 4 "$T/slow.pfw"
generate 0 800 5 "$T/other.pfw"
generate 2 800 6 "$T/aggregates.pfw"
runs=("direct=$T/direct.pfw" "sync=$T/sync.pfw.gz" "async=$T/async.pfw.gz" "slow=$T/slow.pfw")
tiers=(ssd=/l/ssd pfs=/p/lustre1)

is 'four ways to write checkpoints: every answer is that of pandas' \
	"$(judge "${tiers[@]}" -- "${runs[@]}")" ''
cp "$T/judged" "$T/four"
is 'checkpoints by another event, of several files, or without any: every answer is that of pandas' \
	"$(judge "${tiers[@]}" -- --event=save_ "a=$T/async.pfw.gz,$T/other.pfw" \
		"b=$T/aggregates.pfw" "${runs[0]}")" ''
is 'three tiers, one within another, one with two prefixes' \
	"$(judge partner=/l/ssd/scr/partner/ ssd=/l/ssd/scr pfs=/p/lustre1/ckpt ssd=/p/ssd -- \
		"${runs[@]}" "o=$T/other.pfw")" ''
is 'events without a size: their threads say what was produced' \
	"$(judge "${tiers[@]}" -- --event=compute "${runs[@]}")" ''
is 'prefixes end at the end of a name' "$(judge ssd=/l/ss pfs=/p -- "${runs[@]}")" ''

# ---- advice, each with its figures

advice=$(sed -n 's/^advice //p' "$T/four")
pick() { # CASE ABOUT
	"$PYTHON" -c 'import json, sys; print("".join(t for c, a, t in json.loads(sys.argv[1]) if [c, a] == sys.argv[2:]))' "$advice" "$@"
}
is 'a program that writes to the file system itself needs none' \
	"$(pick direct buffer)$(pick direct flush)$(pick direct redundancy)" ''
matches 'small copies' "$(pick async buffer)" \
	'written to pfs go in [0-9]+ calls of 1048576 bytes .*SCR_FILE_BUF_SIZE'
is 'a flush within the checkpoint is none' "$(pick sync buffer)$(pick sync flush)" ''
matches 'redundancy' "$(pick sync redundancy)" \
	'^ssd gets [0-9]+ bytes \([0-9.]+ [GM]iB\), 2\.00 times .*131072 bytes .*SCR_MPI_BUF_SIZE'
matches 'a flush within the checkpoint' "$(pick sync async)" \
	'of the [0-9.]+ s of checkpoints of a thread are writes to pfs: SCR_FLUSH_ASYNC=1'
matches 'no cache' "$(pick direct cache)" 'SCR_CACHE_BYPASS=0 .* with SCR_CACHE_BASE on ssd'
matches 'too frequent' "$(pick async interval)" 'SCR_CHECKPOINT_SECONDS=[0-9]+ '
matches 'a flush that does not keep up' "$(pick slow often)" 'SCR_FLUSH=2 .*SCR_CACHE_SIZE=2'
matches 'a slow flush' "$(pick slow flush)" '4 threads flush; at most SCR_FLUSH_WIDTH'
is 'a quick one' "$(pick async flush)" ''

# ---- forms

ok 'CSV' trace checkpoint --csv --tier "${tiers[0]}" --tier "${tiers[1]}" "${runs[@]}"
is 'CSV has twelve tables' "$(grep -c '^case,' "$T/out")" 12
is 'with an empty line between them' "$(grep -c '^$' "$T/out")" 11
ok 'for a terminal' trace checkpoint --tier "${tiers[0]}" --tier "${tiers[1]}" "${runs[@]}"
is 'a terminal gets the tables that are not empty' "$(grep -c '^case  ' "$T/out")" 9
is_at_most 'the help fits a screen' "$("$COPPER" trace checkpoint --help | wc -l)" 24

# ---- events inside of others; patterns

cat >"$T/nested.pfw" <<'L'
[
{"name":"Checkpointing.get","cat":"app","pid":1,"tid":1,"ts":1100,"dur":200,"ph":"X"}
{"name":"Checkpointing.save_state","cat":"app","pid":1,"tid":1,"ts":1001,"dur":900,"ph":"X"}
{"name":"Checkpointing.checkpoint","cat":"app","pid":1,"tid":1,"ts":1000,"dur":1000,"ph":"X"}
L
sed 's/"dur":1000/"dur":3000/' "$T/nested.pfw" >"$T/nested2.pfw"
trace checkpoint --csv --tier ssd=/l "a=$T/nested*.pfw" "b=$T/nested.pfw"
is 'only the outermost event of a thread counts, and a pattern stands for files' \
	"$(sed -n 2,3p "$T/out")" $'a,2,0.003000000,0.000000000\nb,1,0.001000000,0.000000000'
is 'what lies inside is shown' "$(sed -n '/^case,name,count,dur$/,/^$/p' "$T/out" | paste -sd ' ')" \
	'case,name,count,dur a,Checkpointing.save_state,2,0.001800000 a,Checkpointing.get,2,0.000400000 b,Checkpointing.save_state,1,0.000900000 b,Checkpointing.get,1,0.000200000 '

printf 'half' >"$T/half.pfw"
trace checkpoint --json --tier ssd=/l "a=$T/nested.pfw,$T/half.pfw" "b=$T/nested.pfw"
matches 'JSON names what was lost of the files of each run' "$(sed -n 's/.*"lost"://p' "$T/out")" \
	'^\{"a":\[\{"file":"[^"]*/half\.pfw","why":.*\],"b":\[\]\}\}$'

# ---- what is wrongly asked for

printf 'hello\n' >"$T/no.pfw"
is_told 'no tier' 2 '--tier is missing' checkpoint "${runs[0]}"
is_told 'a tier without a prefix' 2 "--tier: 'ssd' is not NAME=PREFIX" checkpoint \
	--tier ssd "${runs[0]}"
is_told 'a bandwidth of no tier' 2 "--model: 'nvme' is not a tier" checkpoint \
	--tier ssd=/l --model nvme=1G "${runs[0]}"
is_told 'no bandwidth' 2 "'fast' is not a number of bytes per second" checkpoint \
	--tier ssd=/l --model ssd=fast "${runs[0]}"
is_told 'no scheme' 2 "--scheme: 'raid' is neither single, partner, xor:N" checkpoint \
	--tier ssd=/l --scheme raid "${runs[0]}"
is_told 'no number of nodes' 2 "--nodes: '4,x' is not numbers of nodes" checkpoint \
	--tier ssd=/l --nodes 4,x "${runs[0]}"
is_told 'no time between failures' 2 "--mtbf: '3y' is not a time" checkpoint \
	--tier ssd=/l --mtbf 3y "${runs[0]}"
is_told 'a pattern that matches nothing' 2 "'[^']*nothing.*gz' matches no file" checkpoint \
	--tier ssd=/l "a=$T/nothing*.gz"
is_told 'an expression that does not compile' 1 "--event 'a\\(b' is not an extended regular" \
	checkpoint --tier ssd=/l --event 'a(b' "${runs[0]}"
is_told 'a run without a name' 2 'is not NAME=PATH' checkpoint --tier ssd=/l "$T/direct.pfw"
is_told 'a run with no trace' 1 'b: none of the 1 files is a trace' checkpoint \
	--tier ssd=/l "${runs[0]}" "b=$T/no.pfw"
is_told 'a run that is not there' 1 'c: there is no file to read' checkpoint \
	--tier ssd=/l "${runs[0]}" "c=$T/nowhere"
