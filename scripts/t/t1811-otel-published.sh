#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every line of a job's OpenTelemetry files, with a failover and a trace that was begun elsewhere,
# decoded by OpenTelemetry's own published definitions and compared value by value; and lines that
# are wrong are found out.
# covers: otel
# modes: shared
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
for name in node npm; do
	command -v "$name" >/dev/null ||
		skip_all "no $name, with which OpenTelemetry's definitions come"
done
timeout 90 npm install --prefix "$T/npm" --no-audit --no-fund \
	--ignore-scripts '@opentelemetry/otlp-transformer@0.208.0' '@opentelemetry/api@1' \
	</dev/null >"$T/npm.log" 2>&1 ||
	skip_all 'no registry of npm is reached, from which OpenTelemetry'\''s definitions come'
plan 7

published() { # DIR
	timeout "$(patient 60)" node "$cop_t/otlp_published.js" "$T/npm/node_modules" "$1" 2>&1
}
changed() { # FILE SED: a copy of the files with one line changed
	rm -rf "$T/changed"
	cp -r "$JOB/otel" "$T/changed"
	sed -i "$2" "$T/changed/$1"
	! cmp -s "$T/changed/$1" "$JOB/otel/$1" || echo 'nothing changed'
	published "$T/changed"
}

SRC=$T/src
small_tree "$SRC"
export TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
with_tree 3 --otel --profile --prefetch auto --store-interval 200ms --trees 1 --fanout 1 \
	--peer-timeout 1
cat "$W/mnt/2/hello" >/dev/null
kill_node 1
ok 'a node reads past a dead one' cat "$W/mnt/2/dir/numbers"
wait_for 20 eval '[ "$(wc -l <"$JOB/otel/metrics.jsonl")" -ge 3 ]'
without_tree
matches 'every line is as published' \
	"$(published "$JOB/otel")" '^traces=[1-9][0-9]* metrics=[1-9][0-9]* logs=[1-9][0-9]*$'
ok 'a failover is among them' grep -q '"copper.failover"' "$JOB/otel/logs.jsonl"
ok 'the trace that was begun elsewhere is among them' \
	grep -q '"traceId":"0af7651916cd43dd8448eb211c80319c"' "$JOB/otel/traces.jsonl"
matches 'a field that is not defined is found out' \
	"$(changed traces.jsonl '1s/"startTimeUnixNano"/"startTime"/')" 'startTime is not defined$'
matches 'a number where a string belongs is found out' \
	"$(changed metrics.jsonl '1s/"asInt":"\([0-9]*\)"/"asInt":\1/')" 'asInt is no string$'
matches 'an identifier in another form is found out' \
	"$(changed logs.jsonl '1s/"traceId":"[0-9a-f]*"/"traceId":"abc"/')" 'traceId is abc$'
