#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judges a merged timeline: by itself, and against the traces that it was made of.

    merge_judge.py FILE [PATH...]          one line for each fault, or "same N events"

It is written from the description of the formats, not from the code. Of the sources every event is
looked for by name, time and duration, corrected by the clocks that the sources tell; B and E become
X; what is aggregated becomes an instant."""
import bisect
import collections
import decimal
import fractions
import json
import re
import sys

import trace_reader

def content(path):
    return trace_reader.content(path).decode('utf-8', 'replace')


def nanoseconds(value):
    return int((decimal.Decimal(value) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def as_hash(value):
    return int(value, 16) if isinstance(value, str) else value


class Sources:
    def __init__(self, paths):
        self.events, self.clocks, self.files = [], collections.defaultdict(list), []
        for path in paths:
            events = [e for e in trace_reader.objects(path)
                      if isinstance(e.get('ph'), (str, int))]
            self.files.append((path, events))
            hosts = {as_hash(e['args']['value']): e['args']['name'] for e in events
                     if e.get('name') == 'HH' and self.phase(e) == 'M'}
            for e in events:
                args = e.get('args') if isinstance(e.get('args'), dict) else {}
                host = args.get('hostname') or (hosts.get(as_hash(args['hhash']),
                    str(args['hhash'])) if 'hhash' in args else '')
                if self.phase(e) == 'M' and e.get('name') == 'CO' and args.get('name') == 'clock':
                    self.clocks[host].append((nanoseconds(e['ts']), nanoseconds(args['value'])))
                self.events.append((path, host, e, args))
        for points in self.clocks.values():
            points.sort()

    phase = staticmethod(trace_reader.phase)

    def corrected(self, host, ts):
        points = self.clocks.get(host)
        if not points:
            return ts
        i = bisect.bisect_right(points, (ts, float('inf')))
        if i in (0, len(points)):
            return ts - points[max(i - 1, 0)][1]
        (t0, o0), (t1, o1) = points[i - 1], points[i]
        return ts - (o0 + fractions.Fraction(o1 - o0) * (ts - t0) / (t1 - t0))

    def wanted(self):
        """Name, phase in the timeline, time and duration of what stands in one event, or in a begin
        and its end."""
        out, host_of = collections.Counter(), {}
        for _, host, e, _ in self.events:
            ph, ts = self.phase(e), e.get('ts')
            host_of[id(e)] = host
            if ph not in trace_reader.TIMED or ts is None or ph in 'BEbeSF':
                continue
            ts = nanoseconds(ts)
            start = self.corrected(host, ts)
            dur = 0
            if ph == 'X':
                dur = round(self.corrected(host, ts + nanoseconds(e.get('dur', 0)))) - round(start)
            ph = dict.fromkeys('AIRP', 'i').get(ph, ph)
            ph = ('n' if 'id' in e else 'i') if ph in 'Tp' else ph
            out[(e.get('name', ''), ph, round(start), dur)] += 1
        for _, events in self.files:
            for begin, end in trace_reader.halves(events):
                if not end:
                    continue
                host, thread = host_of[id(begin)], begin['ph'] == 'B'
                start = self.corrected(host, nanoseconds(begin['ts']))
                stop = self.corrected(host_of[id(end)], nanoseconds(end['ts']))
                out[(begin['name'], 'X' if thread else 'b', round(start),
                     round(stop) - round(start) if thread else 0)] += 1
        return out


def close(a, b):
    """The same but for a nanosecond of rounding."""
    return a[:2] == b[:2] and abs(a[2] - b[2]) <= 1 and abs(a[3] - b[3]) <= 2


def compare(want, have):
    """What of the one is not in the other."""
    left, right = sorted((want - have).elements()), sorted((have - want).elements())
    faults = ['%d are missing, %d are too many: %s, %s' %
              (len(left), len(right), left[:1], right[:1])] if len(left) != len(right) else []
    return faults + ['%s became %s' % (a, b) for a, b in zip(left, right) if not close(a, b)]


def refuse(word):
    raise ValueError('%s is no JSON' % word)


def by_itself(events):
    faults, last, async_open = [], None, collections.Counter()
    open_spans, flows = collections.defaultdict(list), collections.defaultdict(set)
    processes, ids = {}, collections.defaultdict(set)
    for e in events:
        if e['ph'] == 'M':
            if e['name'] == 'process_name':
                if e['pid'] in processes:
                    faults.append('two processes are %s' % e['pid'])
                processes[e['pid']] = e['args']['name']
            continue
        ts = decimal.Decimal(e['ts'])
        if last is not None and ts < last:
            faults.append('%s comes after %s' % (ts, last))
        last = ts
        if e['pid'] not in processes:
            faults.append('process %s has no name' % e['pid'])
        if not (isinstance(e['pid'], int) and isinstance(e['tid'], int)):
            faults.append('%s is no number' % e['pid'])
        if e['ph'] == 'B':
            open_spans[e['pid'], e['tid']].append(e)
        elif e['ph'] == 'E':
            if not open_spans[e['pid'], e['tid']]:
                faults.append('an end without a begin')
            else:
                open_spans[e['pid'], e['tid']].pop()
        elif e['ph'] in 'stf':
            flows[e.get('cat'), e['name'], e['id']].add(e['ph'])
        elif e['ph'] in 'be':
            async_open[e.get('cat') if e['ph'] == 'b' else None, e['id']] += 0
            async_open[e['id']] += 1 if e['ph'] == 'b' else -1
            if async_open[e['id']] < 0:
                faults.append('an end of %s without a begin' % e['id'])
        if e['ph'] in 'benstf':
            ids[e['id']].add(e['pid'])
            if not re.fullmatch('0x[0-9a-f]+', e['id']):
                faults.append('%s is no id' % e['id'])
        if e['ph'] == 'X' and decimal.Decimal(e['dur']) < 0:
            faults.append('a duration below 0')
        if e['ph'] == 'C':
            faults += ['%s is no value' % v for v in e['args'].values() if isinstance(v, str)]
    faults += ['%d begins without an end' % len(v) for v in open_spans.values() if v]
    faults += ['%s does not end' % k for k, v in async_open.items() if v]
    faults += ['flow %s only has %s' % (k, ''.join(v)) for k, v in flows.items()
               if not {'s', 'f'} <= v]
    if len(set(processes.values())) != len(processes):
        faults.append('two processes have one name')
    return faults


def main():
    path, paths = sys.argv[1], sys.argv[2:]
    document = json.loads(content(path), parse_float=decimal.Decimal, parse_constant=refuse)
    events = document['traceEvents']
    faults = by_itself(events)
    if document.get('displayTimeUnit') != 'ms':
        faults.append('displayTimeUnit is %s' % document.get('displayTimeUnit'))
    if paths:
        have = collections.Counter()
        for e in events:
            if e['ph'] not in 'Me' and not (e.get('args') or {}).get('unfinished'):
                have[(e['name'], e['ph'], nanoseconds(e['ts']), nanoseconds(e.get('dur', 0)))] += 1
        faults += compare(Sources(paths).wanted(), have)
    for fault in faults[:5]:
        print(fault)
    if not faults:
        print('same %d events' % sum(e['ph'] != 'M' for e in events))


main()
