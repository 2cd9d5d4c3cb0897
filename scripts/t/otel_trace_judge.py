#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judges what copper trace reads of a job's OpenTelemetry directory.

    otel_trace_judge.py COPPER DIR     what differs, or "same S spans, I instants, C counters"

Every span, span event, log record and data point is compared with Python's reading of the JSON:
events with its arguments, summary with the counts, table with the values of each metric."""
import collections
import glob
import json
import subprocess
import sys


def attributes(of):
    known = {'stringValue': str, 'intValue': int}
    return {a['key']: known[kind](v) for a in of.get('attributes', [])
            for kind, v in a['value'].items()}


def items(folder, name, resources, scopes, what):
    for line in open('%s/%s.jsonl' % (folder, name)):
        for resource in json.loads(line)[resources]:
            for scope in resource[scopes]:
                for item in scope[what]:
                    yield scope['scope']['name'], item


def spans(folder):
    for cat, s in items(folder, 'traces', 'resourceSpans', 'scopeSpans', 'spans'):
        start = int(s['startTimeUnixNano'])
        yield 'span', s['name'], cat, start, int(s['endTimeUnixNano']) - start, attributes(s)
        for e in s.get('events', []):
            yield 'instant', e['name'], cat, int(e['timeUnixNano']), 0, attributes(e)


def records(folder):
    for _, r in items(folder, 'logs', 'resourceLogs', 'scopeLogs', 'logRecords'):
        yield ('instant', r['eventName'], r['severityText'], int(r['timeUnixNano']), 0,
               {'body': r['body']['stringValue'], **attributes(r)})


def values(point):
    if 'count' in point:
        return {'count': int(point['count']), 'sum': point['sum']}
    return {'value': int(point['asInt']) if 'asInt' in point else point['asDouble']}


def points(folder):
    for cat, m in items(folder, 'metrics', 'resourceMetrics', 'scopeMetrics', 'metrics'):
        for kind in ('sum', 'gauge', 'histogram'):
            for p in m.get(kind, {}).get('dataPoints', []):
                yield (m['name'], cat, int(p['timeUnixNano']), values(p), attributes(p))


def trace(copper, *args):
    done = subprocess.run([copper, 'trace', *args], capture_output=True, check=True, text=True)
    if done.stderr:
        raise SystemExit('%s: %s' % (args[0], done.stderr))
    return json.loads(done.stdout)


def same(what, want, have):
    for side, some in (('missing', want - have), ('too many', have - want)):
        for one in sorted(some, key=str)[:3]:
            print(what, side, one)
    return want == have


def in_table(counters):
    """The values of each series: how many, the last, the largest."""
    series = collections.defaultdict(list)
    for name, _, time, numbers, described in counters:
        label = ','.join(str(described[k]) for k in sorted(described))
        for key, v in numbers.items():
            series[name, key, label].append((time, v))
    return collections.Counter((*key, len(v), float(max(v)[1]), float(max(n for _, n in v)))
                               for key, v in series.items())


def main():
    copper, folder = sys.argv[1:]
    counters = list(points(folder))
    events = [*spans(folder), *records(folder),
              *(('counter', name, cat, time, 0, {**numbers, **described})
                for name, cat, time, numbers, described in counters)]
    first = min(e[3] for e in events)
    want = collections.Counter(
        (kind, name, cat, time - first, dur, json.dumps(args, sort_keys=True))
        for kind, name, cat, time, dur, args in events)
    have = collections.Counter(
        (e['kind'], e['name'], e['cat'], round(e['time'] * 1e9), round(e['dur'] * 1e9),
         json.dumps(e.get('args', {}), sort_keys=True))
        for e in trace(copper, 'events', '--json', folder))
    good = same('events', want, have)
    kinds = collections.Counter(e[0] for e in events)
    summary = trace(copper, 'summary', '--json', folder)
    good &= same('summary', collections.Counter({k + 's': n for k, n in kinds.items()}),
                 collections.Counter({k + 's': summary[k + 's'] for k in kinds}))
    labels = ['arg:' + k for k in sorted({k for c in counters for k in c[4]})]
    rows = trace(copper, 'table', '--json', '--by', ','.join(['name', 'series', *labels]),
                 '--show', 'value:count,value,value:max', folder)
    good &= same('table', in_table(counters), collections.Counter(
        (r['name'], r['series'], ','.join(str(r[k]) for k in labels if r[k] not in ('', None)),
         r['value:count'], float(r['value']), float(r['value:max'])) for r in rows))
    if good:
        print('same %d spans, %d instants, %d counters' %
              tuple(kinds[k] for k in ('span', 'instant', 'counter')))


main()
