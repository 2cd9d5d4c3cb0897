#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The OpenTelemetry files of a job, every line of them decoded by protobuf with OpenTelemetry's
# definitions: a tree of three nodes with a failover, a trace that was begun elsewhere, a start that
# fails, a root that is killed, a full disk, a job directory that disappears.
# covers: otel telemetry read
# modes: release asan
# limit: 180
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system of its own'
"$PYTHON" -c 'import google.protobuf' 2>/dev/null && command -v protoc >/dev/null ||
	skip_all 'no protobuf for Python, or no protoc'

plan 74
otlp() { # WHAT [EXPRESSION]
	timeout "$(patient 60)" "$PYTHON" "$cop_t/otlp_judge.py" "$1" "$JOB/otel" "${@:2}"
}
otlp_total() { # NAME
	otlp totals | awk -v name="$1" '$1 == name { print $2 }'
}
lines_of() { # traces | metrics | logs
	cat "$JOB/otel/$1.jsonl" 2>/dev/null | wc -l
}
has_lines() { # FILE COUNT
	[ "$(lines_of "$1")" -ge "$2" ]
}
log_says() { # TEXT
	grep -q "$1" "$JOB"/logs/*-output.log
}

fabric_value() { # METRIC
	awk -F, -v metric="$1" '$1 == metric { print $2 }' \
		"$JOB"/profiling/cluster/cluster-profiling_fabric.csv
}

# ---- three nodes

SRC=$T/src
small_tree "$SRC"
echo 'n = 42' >"$SRC/answer.py"
STORE=$T/runs.db
with_tree 3 --otel --prefetch auto --store "$STORE" --profile --store-interval 200ms
read_everything 0 1 2
is 'every node imports a module of Python' \
	"$(for i in 0 1 2; do PYTHONPATH=$W/mnt/$i "$PYTHON" \
		-c 'import answer; print(answer.n)'; done)" $'42\n42\n42'
ok 'metrics are written while the job runs' wait_for 30 has_lines metrics 3
expect=()
for name in fuse.read_bytes origin.operations origin.bytes origin.stats; do
	expect+=("$(tree_sum $name)")
done
ok 'the tree stops' without_tree
matches 'every line is what OpenTelemetry defines' \
	"$(otlp check 2>&1)" '^traces=[0-9]+ metrics=[0-9]+ logs=[0-9]+$'
is 'bytes read are those of all nodes' "$(otlp_total copper.fuse.io)" "${expect[0]}"
is 'operations at the source are those of all nodes' \
	"$(otlp_total copper.origin.operations)" "${expect[1]}"
is 'bytes read at the source are those of all nodes' "$(otlp_total copper.origin.io)" "${expect[2]}"
is 'attributes read at the source are those of all nodes' \
	"$(otlp_total copper.origin.objects/attributes)" "${expect[3]}"
is 'the cluster files say the same of the source' \
	"$(otlp_total copper.origin.operations) $(otlp_total copper.origin.io)" \
	"$(cluster_value storage_operations) $(cluster_value storage_bytes)"
is 'the cluster files say the same of the time of the source' \
	"$(printf %.6f "$(otlp_total copper.origin.time)")" \
	"$(cluster_value storage_time_seconds)"
is 'the cluster files say the same of the network' \
	"$(otlp_total copper.fabric.io/receive) $(otlp_total copper.fabric.io/transmit)" \
	"$(fabric_value fabric_bytes_in) $(fabric_value fabric_bytes_out)"
is 'the cluster files say the same of measured requests' \
	"$(otlp totals | awk '/^copper.fuse.request.duration/ { n += $2 } END { print n }')" \
	"$(cluster_value total_counted_fuse_operations)"
is 'all nodes have answered' \
	"$(otlp_total copper.node.count/answered) $(otlp_total copper.node.count/missing)" '3 0'
phases=$(otlp spans | awk '/^copper\.start\./ { print $1, $2 }' | sort | uniq -c | tr -s ' ')
matches 'below the start are the nodes, and below them their phases' \
	"$phases" '^ 3 copper.start.node copper.start$'
is 'all three have these phases' \
	"$(grep -c '^ 3 copper.start.[a-z]* copper.start.node$' <<<"$phases")" \
	"$(grep -c . <<<"$phases" | awk '{ print $1 - 1 }')"
is 'the names are those of the cluster files' \
	"$(grep -o 'copper.start.[a-z]* copper.start.node' <<<"$phases" | sed 's/ .*//; s/.*\.//' |
		sort | tr '\n' ' ')" \
	"$(head -1 "$JOB/profiling/cluster/cluster_nodes.csv" | tr ',' '\n' |
		sed -n 's/^phase_\(.*\)_s$/\1/p' | sort | tr '\n' ' ')"
is 'phases follow each other to the end of their node' \
	"$(otlp ask 'all(sorted((c.start_time_unix_nano, c.end_time_unix_nano) for c in spans if c.parent_span_id == n.span_id)[-1][1] == n.end_time_unix_nano for n in spans if n.name == "copper.start.node")')" True
is 'the log has what the cluster files have' \
	"$(otlp ask '"".join("%s %d %s\n" % (r.event_name[7:], attributes(r)["copper.rank"], attributes(r)["host.name"]) for r in records if ".job." not in r.event_name)' | grep . | sort)" \
	"$("$PYTHON" -c 'import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    print(r["event"], r["rank"], r["host"])' "$JOB/profiling/cluster/cluster_events.csv" | sort)"
is 'the job is the first span, its start and stop are below' \
	"$(otlp spans | grep -v -e '^copper\.start\.' -e prefetch | sort)" \
	$'copper.job - 1\ncopper.start copper.job 0\ncopper.stop copper.job 0'
is 'the job has its source and end' \
	"$(otlp ask 'attributes(span("copper.job"))["copper.source"], attributes(span("copper.job"))["copper.end.reason"]')" \
	"('$SRC', 'stopped')"
is 'the span of the job ends at the stop' \
	"$(otlp ask 'span("copper.job").end_time_unix_nano == span("copper.stop").end_time_unix_nano')" True
is 'the resource is that of rank 0' \
	"$(otlp ask 'attributes(traces[0].resource_spans[0].resource)["service.instance.id"]')" 0
is 'the log has the beginning and the end' \
	"$(otlp ask '[r.event_name for r in records if r.event_name.startswith("copper.job.")]')" \
	"['copper.job.ready', 'copper.job.stopped']"
is 'all files have the same resource' \
	"$(otlp ask 'len({x.SerializeToString() for x in [l.resource_spans[0].resource for l in traces] + [l.resource_logs[0].resource for l in logs] + [l.resource_metrics[0].resource for l in metrics]})')" 1
is 'every instrument is in the manual, with its unit' \
	"$(otlp ask '"\n".join(sorted({m.name + " " + m.unit for l in metrics for m in l.resource_metrics[0].scope_metrics[0].metrics}))')" \
	"$("$PYTHON" -c 'import re, sys
text = open(sys.argv[1]).read()
text = text[text.index(".Ss Instruments"):]
for names, unit in re.findall(r"\n.It Li (copper[^\n]*)\n.Li (\S+) ,", text[:text.index("\n.Sh ")]):
    for name in names.split(" , "):
        print(name, unit)' "$cop_root/man/copper-formats.5" | LC_ALL=C sort)"
is 'files that only rank 0 writes' \
	"$(cd "$JOB/otel" && echo *)" 'logs.jsonl metrics.jsonl traces.jsonl'
matches 'copper trace reads all that the job left for OpenTelemetry' \
	"$(timeout "$(patient 60)" "$PYTHON" "$cop_t/otel_trace_judge.py" "$COPPER" "$JOB/otel" 2>&1)" \
	'^same [1-9][0-9]* spans, [1-9][0-9]* instants, [1-9][0-9]* counters$'
is 'the store has the run, too' \
	"$("$COPPER" runs --store "$STORE" --json | json_value 0.status)" FINISHED

# ---- a dead node

with_tree 3 --otel --prefetch auto --store-interval 200ms --peer-timeout 1 --trees 1 --fanout 1
read_everything 2
kill_node 1
cat "$W/mnt/2/dir/deeper/random" >/dev/null
more() { echo more >"$SRC/more" && [ "$(cat "$W/mnt/2/more" 2>/dev/null)" = more ]; }
ok 'the node below the dead one reads on' wait_for 30 more
failovers=$(tree_sum fabric.failovers)
is_at_most 'it has changed its parent' 1 "$failovers"
ok 'the nodes that are left stop' without_tree
matches 'every line is in order, sums that have fallen too' "$(otlp check 2>&1)" '^traces=[0-9]+ '
matches 'the prefetch is a span' "$(otlp spans)" '^copper.prefetch copper.job 0$'
is 'the failovers are counted' "$(otlp_total copper.fabric.failovers)" "$failovers"
is 'each is a record, a warning with rank and host, and an event of the job' \
	"$(otlp ask '[(r.severity_text, attributes(r)["copper.rank"], attributes(r)["host.name"]) for r in records if r.event_name == "copper.failover"] == [("WARN", 2, "'"$(address_of 2)"'")] * '"$failovers"', [e.name for e in span("copper.job").events].count("copper.failover") == '"$failovers")" '(True, True)'
matches 'the dead node is a record' \
	"$(otlp ask '{(r.event_name, attributes(r).get("copper.detail")) for r in records}')" \
	"'copper.peer_dead', 'rank 1 "
is 'a node is missing' "$(otlp_total copper.node.count/missing) $(otlp ask 'attributes(span("copper.job"))["copper.nodes.missing"]')" '1 1'

# ---- how its commands ended is how the job ended

how_ended() { # status, message and end of the job's span; the last record
	otlp ask '"%d|%s|%s|%s" % (span("copper.job").status.code, span("copper.job").status.message, attributes(span("copper.job"))["copper.end.reason"], records[-1].event_name)'
}
is 'a job of which a node did not answer has not ended well' "$(how_ended)" \
	"2|$(reason='stopped; 1 of 3 nodes did not answer: how commands ended there is not known' && echo "$reason|$reason")|copper.job.failed"
with_tree 2 --otel
"$COPPER" run --mount "$W/mnt/0" -- true
"$COPPER" run --mount "$W/mnt/1" -- sh -c 'exit 3'
is 'a command fails' $? 3
without_tree >/dev/null
is 'and with it the span of the job' "$(how_ended)" \
	'2|exit 3 on rank 1; 1 of 2 commands failed|exit 3 on rank 1; 1 of 2 commands failed|copper.job.failed'
with_tree 1 --otel
"$COPPER" run --mount "$W/mnt/0" -- true
without_tree >/dev/null
is 'a job whose commands ended with 0 is OK' "$(how_ended)" '1||stopped|copper.job.stopped'

# ---- a trace that was begun elsewhere

TRACE=0af7651916cd43dd8448eb211c80319c
job() { # NAME=VALUE… OPTION…
	prepare_tree 1
	cop_tree=1
	(export "${@?}" && start_node 0 --otel --hosts localhost) || bail "$(cat "$W/out.0")"
	without_tree || bail 'it does not stop'
}
of_job() { # EXPRESSION of s, the job's span
	otlp ask "(lambda s: $1)(span('copper.job'))"
}
job TRACEPARENT=00-$TRACE-b7ad6b7169203331-03 TRACESTATE=rojo=00f067aa0ba902b7
matches 'a child of another program: every line is in order' "$(otlp check 2>&1)" '^traces=3 '
is 'the span of the job belongs to the trace and the parent that were given' \
	"$(of_job '(s.trace_id.hex(), s.parent_span_id.hex(), remote(s), s.trace_state)')" \
	"('$TRACE', 'b7ad6b7169203331', True, 'rojo=00f067aa0ba902b7')"
is 'the flags are handed on' \
	"$(otlp ask '{s.flags & 255 for s in spans}, {r.flags for r in records}, {r.trace_id.hex() for r in records}')" "({3}, {3}, {'$TRACE'})"
job TRACEPARENT=00-$TRACE-b7ad6b7169203331-00
is 'a trace that nobody records gets no span, but metrics and records' \
	"$(otlp check 2>&1 | sed 's/metrics=[1-9].*/metrics logs/') $(cd "$JOB/otel" && echo *)" \
	'traces=0 metrics logs logs.jsonl metrics.jsonl'
is 'records belong to the trace that nobody records' \
	"$(otlp ask '{(r.trace_id.hex(), r.flags) for r in records}')" "{('$TRACE', 0)}"
for parent in 00-$TRACE-0000000000000000-01 00-${TRACE^^}-b7ad6b7169203331-01 \
	ff-$TRACE-b7ad6b7169203331-01 00-$TRACE-b7ad6b7169203331-01-x nonsense; do
	job TRACEPARENT="$parent" TRACESTATE=rojo=1
	is "a trace with this parent is begun anew: $parent" \
		"$(of_job "(s.trace_id.hex() == '$TRACE', s.parent_span_id, remote(s), s.trace_state, s.flags & 255)")" "(False, b'', False, '', 1)"
done

# ---- a start that fails

prepare_tree 2
fails_with any 'rank 1|missing|127' timeout "$(patient 60)" "$COPPER" mount --hosts "$HOSTS" \
	--rank 0 --secret-file "$SECRET" --job-dir "$JOB" --source "$SRC" \
	--otel --ready-timeout 1s "$W/mnt/0"
matches 'a failed start: every line is in order' "$(otlp check 2>&1)" '^traces=2 metrics=0 logs=1$'
is 'the job and its start have failed' \
	"$(otlp spans | sort)" $'copper.job - 2\ncopper.start copper.job 2'
matches 'the failed spans say why' \
	"$(of_job 's.status.message') $(otlp ask \
		'(records[0].event_name, records[0].severity_text)')" \
	"[a-z]+.*'copper.job.failed', 'ERROR'"

# ---- a root that is killed

with_tree 1 --otel --store-interval 100ms
ok 'lines come' wait_for 30 has_lines metrics 3
kill_node 0
is 'all lines but the last are whole' "$("$PYTHON" -c '
import json, sys
for path in sys.argv[1:]:
    for line in open(path).read().split("\n")[:-1]:
        json.loads(line)
print("whole")' "$JOB"/otel/*.jsonl)" whole
unmount_killed
cop_tree=0

# ---- a full disk, and then no directory

mkdir "$T/small"
mount -t tmpfs -o size=2m tmpfs "$T/small" || skip_all 'no tmpfs here'
prepare_tree 1
JOB=$T/small/job
cop_tree=1
start_node 0 --otel --store-interval 100ms --hosts localhost || bail "$(cat "$W/out.0")"
ok 'lines come where there is room' wait_for 30 has_lines metrics 3
head -c 4000000 /dev/zero >"$T/small/fill" 2>/dev/null
ok 'the log says that there is no more' \
	wait_for 30 log_says 'OpenTelemetry files are incomplete: .*metrics.jsonl: No space left'
is 'the job goes on' "$(cat "$W/mnt/0/hello")" hello
rm "$T/small/fill"
had=$(lines_of metrics)
ok 'lines come again' wait_for 30 has_lines metrics $((had + 2))
ok 'the job with lines again stops' without_tree
matches 'nothing of the lines that did not fit is there' \
	"$(otlp check 2>&1)" '^traces=3 metrics=[0-9]+ logs=3$'
is 'the log has one sentence about lines that did not fit' \
	"$(grep -c 'OpenTelemetry files' "$JOB"/logs/*-output.log)" 1
umount "$T/small"

with_tree 1 --otel --store-interval 100ms
ok 'lines come' wait_for 30 has_lines metrics 2
rm -r "$JOB/otel"
ok 'the log says that the directory is gone' \
	wait_for 30 log_says 'OpenTelemetry files are incomplete: .*No such file'
is 'the job goes on' "$(cat "$W/mnt/0/hello")" hello
ok 'the job without room stops' without_tree
ok 'removed files are not made again' test ! -e "$JOB/otel"

# ---- other ways to start

JOB=$T/job.run
ok 'copper run has it' "$COPPER" run --source "$SRC" --hosts localhost --job-dir "$JOB" --otel -- \
	cat "$SRC/hello"
matches 'copper run leaves whole files' "$(otlp check 2>&1)" '^traces=3 metrics=[0-9]+ logs=3$'
JOB=$T/job.serve
"$COPPER" serve --hosts localhost --job-dir "$JOB" --source "$SRC" --otel >"$T/out.serve" 2>&1 ||
	bail "$(cat "$T/out.serve")"
ok 'copper serve has it' "$COPPER" stop --job-dir "$JOB"
matches 'copper serve leaves whole files' "$(otlp check 2>&1)" '^traces=3 metrics=[0-9]+ logs=3$'

# ---- misuse

fails_with 2 'give --job-dir' "$COPPER" mount --otel --source "$SRC" "$W/mnt/0"
