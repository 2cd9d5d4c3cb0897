#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads a job's OpenTelemetry files with protobuf, strictly, and says what is wrong with them or
what they hold.

    otlp_judge.py check DIR               every line: form, values as they are written, what
                                          OpenTelemetry demands; prints how many
    otlp_judge.py totals DIR              NAME[/VALUE of the attribute] NUMBER for each point of the
                                          last line of metrics
    otlp_judge.py spans DIR               NAME PARENT'S-NAME (or -) STATUS, in the order of their
                                          beginning
    otlp_judge.py ask DIR EXPRESSION      of Python: traces, metrics, logs are lists of messages;
                                          spans, records, attributes(x), remote(span)
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

KINDS = {"traces": "TracesData", "metrics": "MetricsData", "logs": "LogsData"}
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def definitions():
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "set")
        subprocess.run(["protoc", "-I", here, "-o", out, "otlp.proto"], check=True)
        with open(out, "rb") as f:
            files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    factory = message_factory.MessageFactory(pool)
    return {kind: factory.GetPrototype(pool.FindMessageTypeByName("otlp." + name))
            for kind, name in KINDS.items()}


def demand(holds, what):
    if not holds:
        raise SystemExit("otlp_judge: " + what)


def as_written(field, value, where):
    """OTLP's JSON is narrower than protobuf's: identifiers, wide integers and enumerations have one
    form each."""
    kind = field.type
    if kind == field.TYPE_MESSAGE:
        return walk(field.message_type, value, where)
    if kind == field.TYPE_BYTES:
        demand(isinstance(value, str) and value == value.lower(),
               f"{where}: {value!r} is not lower case")
        raw = bytes.fromhex(value)
        demand(len(raw) == IDS[field.json_name] and any(raw),
               f"{where}: {value!r} is no identifier")
        return base64.b64encode(raw).decode()
    if kind in (field.TYPE_INT64, field.TYPE_FIXED64, field.TYPE_SFIXED64):
        demand(isinstance(value, str) and str(int(value)) == value,
               f"{where}: {value!r} is no 64-bit integer in a string")
    elif kind in (field.TYPE_ENUM, field.TYPE_UINT32, field.TYPE_FIXED32):
        demand(type(value) is int, f"{where}: {value!r} is no integer")
        demand(kind != field.TYPE_ENUM or value in field.enum_type.values_by_number,
               f"{where}: {value} is not in the enumeration")
    elif kind == field.TYPE_DOUBLE:
        demand(type(value) in (int, float), f"{where}: {value!r} is no number")
    elif kind == field.TYPE_BOOL:
        demand(type(value) is bool, f"{where}: {value!r} is no boolean")
    else:
        demand(kind == field.TYPE_STRING and isinstance(value, str),
               f"{where}: {value!r} is no text")
    return value


def walk(message, value, where):
    """The same in the form that json_format takes; fields by their lowerCamelCase names alone, each
    once."""
    demand(isinstance(value, dict), f"{where}: not an object")
    fields = {f.json_name: f for f in message.fields}
    out = {}
    for key, one in value.items():
        demand(key in fields, f"{where}: {message.name} has no field {key}")
        f, at = fields[key], f"{where}.{key}"
        if f.label == f.LABEL_REPEATED:
            demand(isinstance(one, list) and one, f"{at}: not a list, or an empty one")
            out[key] = [as_written(f, x, at) for x in one]
        else:
            out[key] = as_written(f, one, at)
    return out


def no_key_twice(pairs):
    demand(len(dict(pairs)) == len(pairs),
           f"a name stands twice in one object: {[k for k, _ in pairs]}")
    return dict(pairs)


def same(message, value, where):
    """Whether the decoded message has what was written, and nothing else."""
    set_fields = {f.json_name: (f, v) for f, v in message.ListFields()}
    for key, (f, got) in set_fields.items():
        demand(key in value, f"{where}: decoding made up {key}")
        many = f.label == f.LABEL_REPEATED
        got, wanted = (list(got), value[key]) if many else ([got], [value[key]])
        demand(len(got) == len(wanted), f"{where}.{key}: {len(got)} of {len(wanted)} were decoded")
        for g, w in zip(got, wanted):
            if f.type == f.TYPE_MESSAGE:
                same(g, w, f"{where}.{key}")
            elif f.type == f.TYPE_BYTES:
                demand(g.hex() == w, f"{where}.{key}: {g.hex()} is not {w}")
            else:
                demand(g == (int(w) if f.cpp_type in (f.CPPTYPE_INT64, f.CPPTYPE_UINT64) else w),
                       f"{where}.{key}: {g!r} is not {w!r}")
    for key, w in value.items():
        demand(key in set_fields or w in (0, "0", "", {}, 0.0, False),
               f"{where}: decoding lost {key}")


def read(folder, kind, prototype):
    """Every line of a file, checked and decoded."""
    path = os.path.join(folder, kind + ".jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="strict") as f:
        text = f.read()
    demand(not text or text.endswith("\n"), f"{path}: the last line is cut")
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{kind}:{number}"
        demand(len(line) < 1 << 20, f"{where}: longer than a receiver takes")
        value = json.loads(line, object_pairs_hook=no_key_twice)
        message = json_format.ParseDict(walk(prototype.DESCRIPTOR, value, where), prototype(),
                                        ignore_unknown_fields=False)
        same(message, value, where)
        demand(prototype.FromString(message.SerializeToString()) == message,
               f"{where}: another message in binary")
        out.append(message)
    return out


def value_of(v):
    return getattr(v, v.WhichOneof("value"))


def attributes(x):
    keys = [a.key for a in x.attributes]
    demand(len(set(keys)) == len(keys) and all(keys), f"attributes twice, or without a key: {keys}")
    return {a.key: value_of(a.value) for a in x.attributes}


def each(data, resources, scopes, what):
    for line in data:
        for r in getattr(line, resources):
            demand(attributes(r.resource).get("service.name") == "copper",
                   "a resource without service.name")
            for s in getattr(r, scopes):
                demand(s.scope.name == "copper" and s.scope.version,
                       "a scope without a name or version")
                yield from getattr(s, what)


def remote(span):
    return bool(span.flags & 0x200)


def check_spans(spans):
    ids = {s.span_id for s in spans}
    demand(len(ids) == len(spans), "two spans have one identifier")
    demand(len({s.trace_id for s in spans}) <= 1, "spans of several traces")
    for s in spans:
        demand(s.name and s.kind == 1 and s.end_time_unix_nano >= s.start_time_unix_nano > 0,
               f"span {s.name}: kind or times")
        demand(not s.parent_span_id or s.parent_span_id in ids or remote(s),
               f"span {s.name}: its parent is not there")
        demand(s.flags & 0x100 and (s.parent_span_id or not remote(s)),
               f"span {s.name}: flags {s.flags:x}")
        attributes(s)
        for e in s.events:
            demand(e.name and e.time_unix_nano, f"span {s.name}: an event without a name or time")
            attributes(e)
    parents = [s for s in spans if not s.parent_span_id or remote(s)]
    demand(len(parents) == (1 if spans else 0), f"{len(parents)} spans are the first")


def check_records(records, spans):
    of = {(s.trace_id, s.span_id) for s in spans}
    for r in records:
        demand(r.time_unix_nano and r.observed_time_unix_nano and r.event_name
               and r.severity_number, f"record {r.event_name}: incomplete")
        demand(r.severity_text == {9: "INFO", 13: "WARN", 17: "ERROR"}[r.severity_number],
               f"record {r.event_name}: severity")
        demand(len(r.trace_id) == 16 and (not of or (r.trace_id, r.span_id) in of),
               f"record {r.event_name}: its span is not there")
        attributes(r)


def check_name(m):
    demand(all(p and p.replace("_", "").islower() for p in m.name.split(".")),
           f"{m.name}: not a name of the conventions")
    demand(m.unit in ("s", "By")
           or (m.unit[0] == "{" and m.unit[-1] == "}" and not m.unit[:-1].endswith("s")),
           f"{m.name}: unit {m.unit}")
    demand(m.description, f"{m.name}: no description")


def points(m):
    return getattr(m, m.WhichOneof("data")).data_points


def key_of(m, p):
    return (m.name,) + tuple(sorted(attributes(p).items()))


def number_of(p):
    return value_of(p) if hasattr(p, "as_int") else p.count


def check_point(m, p, last):
    """Within one series: time goes on, and a cumulative one falls only when it begins anew."""
    key, kind = key_of(m, p), m.WhichOneof("data")
    demand(p.time_unix_nano > 0, f"{key}: no time")
    if kind == "gauge":
        return
    demand(0 < p.start_time_unix_nano < p.time_unix_nano,
           f"{key}: {p.start_time_unix_nano} to {p.time_unix_nano}")
    demand(number_of(p) >= 0, f"{key}: negative")
    start, time, number = last.get(key, (0, 0, 0))
    demand(p.time_unix_nano > time and p.start_time_unix_nano >= start, f"{key}: time goes back")
    demand(p.start_time_unix_nano > start or number_of(p) >= number,
           f"{key}: falls from {number} to {number_of(p)}")
    demand(p.start_time_unix_nano in (start, time) or not start, f"{key}: begins at no line")
    last[key] = (p.start_time_unix_nano, p.time_unix_nano, number_of(p))
    if kind == "histogram":
        demand(len(p.bucket_counts) == len(p.explicit_bounds) + 1
               and sum(p.bucket_counts) == p.count, f"{key}: buckets")
        demand(list(p.explicit_bounds) == sorted(set(p.explicit_bounds)),
               f"{key}: bounds do not ascend")
        top = max(i for i, n in enumerate(p.bucket_counts) if n)
        bounds = [0, *p.explicit_bounds, float("inf")]
        demand(bounds[top] <= p.max <= bounds[top + 1],
               f"{key}: max {p.max} is not in the last bucket that counts")
        demand(p.max <= p.sum + 1e-9, f"{key}: sum")


def check_metrics(metrics):
    last = {}
    for line in metrics:
        names, keys = set(), set()
        for m in each([line], "resource_metrics", "scope_metrics", "metrics"):
            check_name(m)
            demand(m.name not in names, f"{m.name} stands twice in a line")
            names.add(m.name)
            data = getattr(m, m.WhichOneof("data"))
            demand(m.WhichOneof("data") == "gauge" or data.aggregation_temporality == 2,
                   f"{m.name}: not cumulative")
            demand(m.WhichOneof("data") != "sum" or data.is_monotonic, f"{m.name}: not monotonic")
            for p in data.data_points:
                demand(key_of(m, p) not in keys, f"{key_of(m, p)} stands twice in a line")
                keys.add(key_of(m, p))
                check_point(m, p, last)


def totals(metrics):
    out = {}
    for m in each(metrics[-1:], "resource_metrics", "scope_metrics", "metrics"):
        for p in points(m):
            out["/".join([m.name] + [str(v) for v in attributes(p).values()])] = number_of(p)
    return out


def main():
    what, folder = sys.argv[1:3]
    data = {kind: read(folder, kind, p) for kind, p in definitions().items()}
    spans = sorted(each(data["traces"], "resource_spans", "scope_spans", "spans"),
                   key=lambda s: s.start_time_unix_nano)
    records = list(each(data["logs"], "resource_logs", "scope_logs", "log_records"))
    if what == "check":
        check_spans(spans)
        check_records(records, spans)
        check_metrics(data["metrics"])
        print(*(f"{kind}={len(lines)}" for kind, lines in data.items()))
    elif what == "totals":
        print("\n".join(f"{k} {v}" for k, v in totals(data["metrics"]).items()))
    elif what == "spans":
        names = {s.span_id: s.name for s in spans}
        for s in spans:
            print(s.name, names.get(s.parent_span_id, "-"), s.status.code)
    else:
        known = dict(data, spans=spans, records=records, attributes=attributes, remote=remote,
                     totals=lambda: totals(data["metrics"]))
        known["span"] = lambda name: next(s for s in spans if s.name == name)
        print(eval(sys.argv[3], known))


main()
