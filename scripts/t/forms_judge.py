#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judges what copper trace reads of one file, event by event.

    forms_judge.py COPPER FILE [SHOWN]     what differs, or "same N events"

SHOWN is the file that copper reads if it is another one with the same events (compressed)."""
import collections
import decimal
import json
import subprocess
import sys

import trace_reader

KINDS = {'X': 'span', 'A': 'aggregate', 'C': 'counter', **dict.fromkeys('iInTpPR', 'instant'),
         **dict.fromkeys('stf', 'flow')}


def nanoseconds(value):
    return int((decimal.Decimal(value or 0) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def as_hash(value):
    return int(value, 16) if isinstance(value, str) else value


def values(kind, args):
    return json.dumps(args, default=float, sort_keys=True) if kind == 'counter' else ''


def row(e, kind, start, dur, hosts):
    args = e.get('args') or {}
    host = args.get('hostname', hosts.get(as_hash(args.get('hhash')), ''))
    return (kind, e.get('name', ''), e.get('cat', ''), str(e.get('pid', '')),
            str(e.get('tid', '')), host, values(kind, e.get('values', args)), start, dur)


def wanted(path):
    events = list(trace_reader.objects(path))
    hosts = {as_hash(e['args']['value']): e['args']['name'] for e in events
             if e.get('name') == 'HH'}
    for e in events:
        kind = KINDS.get(trace_reader.phase(e))
        if kind:
            dur = {'span': e.get('dur'), 'aggregate': (e.get('args') or {}).get('dur_sum')}
            yield row(e, kind, nanoseconds(e['ts']), nanoseconds(dur.get(kind)), hosts)
    for begin, end in trace_reader.halves(events):
        start = nanoseconds(begin['ts'])
        if end:
            yield row(begin, 'span', start, nanoseconds(end['ts']) - start, hosts)


def main():
    copper, path = sys.argv[1:3]
    want = list(wanted(path))
    first = min(e[7] for e in want)
    have = json.loads(subprocess.run([copper, 'trace', 'events', '--json', sys.argv[-1]],
                                     stdout=subprocess.PIPE, check=True).stdout)
    have = collections.Counter(
        (e['kind'], e['name'], e['cat'], e['pid'], e['tid'], e['host'],
         values(e['kind'], e.get('args', {})), round(e['time'] * 1e9), round(e['dur'] * 1e9))
        for e in have if not e.get('unfinished')
        and e['kind'] in KINDS.values())
    want = collections.Counter(e[:7] + (e[7] - first, e[8]) for e in want)
    for what, some in (('missing', want - have), ('too many', have - want)):
        for e in sorted(some.elements())[:3]:
            print(what, e)
    if want == have:
        print('same %d events' % sum(want.values()))


main()
