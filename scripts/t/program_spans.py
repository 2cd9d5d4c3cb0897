# SPDX-License-Identifier: BSD-3-Clause
# A program that traces itself as users of OpenTelemetry's Python SDK do, with the files that its
# exporters write: console (several lines a span, or one), or OTLP (all spans in one line).
# program_spans.py console|line|otlp FILE FILE-TO-READ
import datetime
import json
import os
import random
import sys
import time

form, path, data = sys.argv[1:]
version, trace, parent, flags = os.environ["TRACEPARENT"].split("-")
spans = []


class span:
    def __init__(self, name, **attributes):
        self.name, self.attributes = name, attributes

    def __enter__(self):
        global parent
        self.outer, self.id = parent, "%016x" % random.getrandbits(64)
        parent = self.id
        self.start = time.time_ns()
        return self

    def __exit__(self, *error):
        global parent
        self.end, parent = time.time_ns(), self.outer
        spans.append(self)


def date(ns):
    at = datetime.datetime.fromtimestamp(ns // 1000000000, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + "%06dZ" % (ns // 1000 % 1000000)


def console(s):
    return {"name": s.name,
            "context": {"trace_id": "0x" + trace, "span_id": "0x" + s.id, "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL", "parent_id": "0x" + s.outer,
            "start_time": date(s.start), "end_time": date(s.end),
            "status": {"status_code": "UNSET"}, "attributes": s.attributes,
            "events": [{"name": "begun", "timestamp": date(s.start), "attributes": {}}],
            "links": [],
            "resource": {"attributes": {"telemetry.sdk.language": "python",
                                        "service.name": "unknown_service"}, "schema_url": ""}}


def otlp(s):
    return {"traceId": trace, "spanId": s.id, "parentSpanId": s.outer, "name": s.name, "kind": 1,
            "startTimeUnixNano": str(s.start), "endTimeUnixNano": str(s.end),
            "attributes": [{"key": key, "value": {"intValue": str(value)}}
                           for key, value in s.attributes.items()], "status": {}}


with span("training.fit", epochs=2):
    for epoch in range(2):
        with span("epoch", epoch=epoch):
            with span("load"):
                open(data, "rb").read()
            with span("step <b>"):
                time.sleep(0.05)
with open(path, "w") as f:
    if form == "otlp":
        resource = [{"key": "service.name", "value": {"stringValue": "train"}},
                    {"key": "host.name", "value": {"stringValue": "n001"}},
                    {"key": "process.pid", "value": {"intValue": str(os.getpid())}}]
        f.write(json.dumps({"resourceSpans": [{"resource": {"attributes": resource},
                "scopeSpans": [{"scope": {"name": "train"}, "spans": [otlp(s) for s in spans]}]}]}))
        f.write("\n")
    for s in spans if form != "otlp" else ():
        f.write(json.dumps(console(s), indent=4 if form == "console" else None) + "\n")
