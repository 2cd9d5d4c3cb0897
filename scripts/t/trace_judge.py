#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads traces with pandas, asks copper trace the same questions, and compares the answers number
by number.

    trace_judge.py COPPER PATH...          "same WHAT" or "differs WHAT: HOW" for each question

It is written from the description of the formats and of the columns, copper-trace(1), not from the
code."""
import decimal
import json
import math
import os
import re
import subprocess
import sys
import zlib

import numpy as np
import pandas as pd


# ---- reading

def content(path):
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] != b'\x1f\x8b':
        return data
    out = b''
    while data:
        member = zlib.decompressobj(31)
        out += member.decompress(data)
        data = member.unused_data
    return out


def objects(path):
    text = content(path).decode('utf-8', 'replace')
    try:
        whole = parse(text)
        if isinstance(whole, dict) and 'traceEvents' in whole:
            yield from whole['traceEvents']
            return
    except ValueError:
        pass
    for line in text.split('\n'):
        line = line.strip().rstrip(',')
        if line and line[0] not in '[]':
            try:
                yield parse(line)
            except ValueError:
                pass


def number(value):
    return None if value is None else float(value)


def nanoseconds(value):
    """Exact: the numbers of a trace have more digits than a float."""
    return 0 if value is None else int((decimal.Decimal(value) *
                                        1000).to_integral_value(decimal.ROUND_HALF_UP))


def parse(text):
    return json.loads(text, strict=False, parse_float=decimal.Decimal)


def as_hash(value):
    return int(value, 16) if isinstance(value, str) else value


def size_of(event, args):
    ret, name = number(args.get('ret')), event.get('name', '')
    if event.get('cat') == 'POSIX' and ret is not None and ret > 0 and ('read' in name
            or 'write' in name) and 'readdir' not in name:
        return ret
    return number(args.get('image_size'))


PHASES = {1: 'X', 2: 'C', 3: 'A', 4: 'M'}


class File:
    def __init__(self, path):
        self.events = list(objects(path))
        self.names = {}
        for event in self.events:
            if self.phase(event) == 'M' and event['name'] in ('FH', 'HH'):
                self.names[event['name'], as_hash(event['args']['value'])] = event['args']['name']

    @staticmethod
    def phase(event):
        ph = PHASES.get(event['ph'], event['ph'])
        return 'A' if ph == 'X' and 'dft_cnt' in event.get('args', {}) else ph

    def named(self, kind, args, plain, hashed):
        if plain in args:
            return args[plain]
        return self.names.get((kind, as_hash(args[hashed])),
                              str(args[hashed])) if hashed in args else ''

    def row(self, event, start, dur, lowest, highest, count):
        args = event.get('args', {})
        return {'name': event.get('name', ''), 'cat': event.get('cat', ''),
                'pid': str(event.get('pid', '')), 'tid': str(event.get('tid', '')),
                'file': self.named('FH', args, 'fname', 'fhash'),
                'host': self.named('HH', args, 'hostname', 'hhash'),
                'ts': start, 'dur': dur, 'min': lowest, 'max': highest, 'count': count,
                'size': size_of(event, args)}

    def rows(self):
        stacks = {}
        for event in self.events:
            ph, args = self.phase(event), event.get('args', {})
            start = nanoseconds(event.get('ts'))
            if ph == 'X':
                dur = nanoseconds(event.get('dur'))
                yield self.row(event, start, dur, dur, dur, 1)
            elif ph == 'A':
                yield self.row(event, start,
                               *(nanoseconds(args[k]) for k in ('dur_sum', 'dur_min', 'dur_max')),
                               args['dft_cnt'])
            elif ph in 'BEbe':
                key = (ph in 'be',) + ((event.get('id'), event.get('scope')) if ph in 'be'
                                       else (event['pid'], event['tid']))
                if ph in 'Bb':
                    stacks.setdefault(key, []).append((event, start))
                elif stacks.get(key):
                    begin, begun = stacks[key].pop()
                    yield self.row(begin, begun, start - begun, start - begun, start - begun, 1)


def load(paths):
    found = []
    for path in paths:
        if os.path.isdir(path):
            found += [os.path.join(where, name) for where, _, names in os.walk(path)
                      for name in names]
        else:
            found.append(path)
    files = [File(path) for path in found]
    events = pd.DataFrame([row for file in files for row in file.rows()])
    first = min(nanoseconds(e['ts']) for f in files for e in f.events if f.phase(e) != 'M')
    events['dir'] = events.file.map(os.path.dirname)
    events['class'] = events.file.map(lambda path: re.sub('[0-9-]', '', os.path.basename(path)))
    return events, first, files


# ---- the same questions

def spread(group, column):
    """Values with the spans that an aggregate stands for, each with the mean."""
    if column == 'size':
        return group['size'].dropna()
    return pd.Series(np.repeat((group.dur // group['count'].clip(lower=1)).to_numpy(),
                               group['count'].to_numpy()), dtype=float) / 1e9


def column(group, name):
    if name == 'count':
        return float(group['count'].sum())
    if name == 'dur':
        return group.dur.sum() / 1e9
    if name == 'size':
        return float(group['size'].sum())
    if name == 'bandwidth':
        return group['size'].sum() / (group.dur.sum() /
                                      1e9) if group[
            'size'].notna().any() and group.dur.sum() else math.nan
    what, how = name.split(':')
    values = spread(group, what)
    if not len(values):
        return math.nan
    if how == 'std':
        return values.std()
    if how.endswith('%'):
        return values.quantile(int(how[:-1]) / 100)
    if what == 'dur' and how in ('min', 'max'):
        return getattr(group[group['count'] > 0][how], how)() / 1e9
    if what == 'dur' and how == 'mean':
        return group.dur.sum() / group['count'].sum() / 1e9
    return float(getattr(values, how)())


ALL = ('count,dur,size,bandwidth,dur:mean,dur:std,dur:min,dur:25%,dur:50%,dur:75%,dur:max,'
       'size:mean,size:std,size:min,size:25%,size:50%,size:75%,size:max')


def table(events, keys, cols, per=None, then=None):
    keys, cols, per = keys.split(','), cols.split(','), per.split(',') if per else []
    rows = {}
    together = keys + per
    for key, group in events.groupby(together if len(together) > 1 else together[0], dropna=False,
                                     sort=False):
        key = key if isinstance(key, tuple) else (key,)
        rows.setdefault(key[:len(keys)], []).append([column(group, c) for c in cols])
    if per:
        reduce = {'max': np.nanmax, 'sum': np.nansum, 'mean': np.nanmean}[then]
        rows = {k: [[math.nan if np.isnan(c).all() else reduce(c)
                     for c in np.array(v, dtype=float).T]] for k, v in rows.items()}
    return {tuple(canon(k) for k in key): values[0] for key, values in rows.items()}


def canon(key):
    """A key as text, whichever side it is from."""
    if key is None or (isinstance(key, float) and math.isnan(key)):
        return ''
    whole = isinstance(key, (int, float, np.integer)) and key == int(key)
    return str(int(key)) if whole else str(key)


def close(a, b):
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return (a is None or math.isnan(a)) == (b is None or math.isnan(b))
    # Durations come to the nanosecond, sizes to a thousandth.
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + (2e-9 if abs(a) < 1e6 else 1e-3) or abs(a -
        b) <= 6e-4


def ask(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError('%s: %s' % (' '.join(words[1:]), done.stderr.decode()))
    return json.loads(done.stdout)


def told(what, faults):
    print('differs %s: %s' % (what, '; '.join(faults[:3])) if faults else 'same %s' % what)


def judge_table(copper, paths, events, first, what, keys, cols, words=(), per=None, then=None):
    extra = ['--per', per, '--then', then] if per else []
    got = ask([copper, 'trace', 'table', '--json', '--by', keys, '--show', cols, *extra,
               *words, *paths])
    shown = ['size:sum' if c == 'size' and 'size' in keys.split(',') else c
             for c in cols.split(',')]
    have = {tuple(canon(row[k]) for k in keys.split(',')): [row[c] for c in shown] for row in got}
    want = table(events, keys, cols, per, then)
    faults = ['only one has %s' % (k,) for k in set(have) ^ set(want)]
    for key in set(have) & set(want):
        faults += ['%s of %s is %s, not %s' % (c, key, a, b)
                   for c, a, b in zip(cols.split(','), have[key], want[key]) if not close(a, b)]
    if len(have) != len(got):
        faults.append('a key comes twice')
    told(what, faults)


def cover(events):
    spans, end, out = sorted(zip(events.ts, events.ts + events.dur)), None, []
    for start, stop in spans:
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], stop)
        else:
            out.append([start, stop])
    return out


def length(spans):
    return sum(b - a for a, b in spans) / 1e9


def both(a, b):
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a
               for y in b) / 1e9 if len(a) * len(b) < 4e6 else sweep(a, b)


def sweep(a, b):
    i = k = total = 0
    while i < len(a) and k < len(b):
        total += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return total / 1e9


def judge_summary(copper, paths, events, first, files):
    got = ask([copper, 'trace', 'summary', '--json', *paths])
    single = events[events.single]
    app = cover(single[single.cat.str.contains('reader|checkpoint')])
    compute = cover(single[single.name.str.contains('compute')])
    posix = cover(single[single.cat == 'POSIX'])
    defined = {name for f in files for (kind, _), name in f.names.items() if kind == 'FH'}
    outright = {e.get('args', {}).get('fname') for f in files for e in f.events} - {None}
    hosts = {name for f in files for (kind, _), name in f.names.items() if kind == 'HH'}
    hosts |= {e.get('args', {}).get('hostname') for f in files for e in f.events} - {None}
    # Without a host, the file tells processes apart; ends alone are no process.
    who = {(f.named('HH', e.get('args', {}), 'hostname', 'hhash') or n, str(e.get('pid', '')),
            str(e.get('tid', ''))) for n, f in enumerate(files) for e in f.events
           if f.phase(e) not in 'MEe'}
    want = {
        'spans': events['count'].sum(), 'processes': len({w[:2] for w in who}),
        'threads': len(who),
        'files': len(defined | outright), 'hosts': len(hosts),
        'counters': sum(f.phase(e) == 'C' for f in files for e in f.events),
        'instants': sum(f.phase(e) == 'i' for f in files for e in f.events)}
    seconds = {
        'total': ((events.ts + events.dur).max() - events.ts.min()) / 1e9, 'app_io': length(app),
               'compute': length(compute), 'posix': length(posix),
        'app_io_alone': length(app) - both(app, compute),
               'compute_without_app_io': length(compute) - both(app, compute),
        'posix_alone': length(posix) - both(posix, compute),
               'compute_without_posix': length(compute) - both(posix, compute)}
    faults = ['%s is %s, not %s' % (k, got[k], v) for k, v in want.items() if got[k] != v]
    faults += ['%s takes %s, not %s' % (k, got['seconds'][k], v) for k, v in seconds.items()
               if abs(got['seconds'][k] - v) > 1e-6]
    cols = 'count,dur,size,size:min,size:25%,size:mean,size:50%,size:75%,size:max'
    functions = table(events, 'name', cols)
    for row in got['functions']:
        faults += ['%s of %s is %s' % (c, row['name'], row[c])
                   for c, v in zip(cols.split(','), functions.pop((row['name'],), [-1] * 9))
                   if not close(row[c], v)]
    intervals = table(events[events.cat == 'POSIX'], 'interval',
                      'count,dur,size,bandwidth') if (events.cat == 'POSIX').any() else {}
    for row in got['intervals']:
        have = [row[c] for c in ('count', 'dur', 'size', 'bandwidth')]
        want = intervals.pop((canon(row['interval']),), [-1] * 4)
        if not all(map(close, have, want)):
            faults += ['interval %s is %s' % (row['interval'], have)]
    faults += ['%s is not there' % (k,) for k in list(functions) + list(intervals)]
    told('summary', faults)


def judge_events(copper, paths, events, first, words, chosen, what):
    got = [e for e in ask([copper, 'trace', 'events', '--json', *words, *paths])
           if e['kind'] in ('span', 'aggregate')]
    have = sorted((round(e['time'] * 1e9), round(e['dur'] * 1e9), e['name'], e['pid'], e['file'],
                   e['size'] or 0) for e in got)
    want = sorted(zip(chosen.ts - first, chosen.dur, chosen.name, chosen.pid, chosen.file,
                      chosen['size'].fillna(0)))
    faults = [] if have == want else ['%d events, not %d, or others: %s' % (len(have), len(want),
        [x for x in zip(have, want) if x[0] != x[1]][:1])]
    times = [e['time'] for e in got]
    faults += [] if times == sorted(times) else ['not in order']
    told(what, faults)


def main():
    copper, paths = sys.argv[1], sys.argv[2:]
    events, first, files = load(paths)
    events['interval'] = ((events.ts - first) // 30000000000) * 30
    events['single'] = (events['count'] == 1) & (events['min'] == events['max']) & (events['max'] ==
        events.dur)

    def each(what, keys, cols=ALL, chosen=events, **more):
        judge_table(copper, paths, chosen, first, what, keys, cols, **more)
    each('every column by name', 'name')
    for key in ('cat', 'file', 'dir', 'class', 'pid', 'tid', 'host', 'size', 'interval'):
        each('by ' + key, key, 'count,dur,size')
    each('by two keys', 'name,cat', 'count,dur:50%')
    for then in ('max', 'sum', 'mean'):
        each('per thread, then ' + then, 'name', 'count,dur,size,dur:mean', per='pid,tid',
             then=then)
    each('classes per process', 'class', 'dur,size', per='pid', then='max')
    after = (events.ts - first) / 1e9
    for words, chosen in (
            (['--name', 'read|write'], events.name.str.contains('read|write')),
            (['--name', '^read$', '--name', 'open'], events.name.str.contains('^read$|open')),
            (['--cat', 'POSIX', '--not-name', 'stat'],
             events.cat.str.contains('POSIX') & ~events.name.str.contains('stat')),
            (['--file', '^/p/lustre1/.*layer-[0-3]'],
             events.file.str.contains('^/p/lustre1/.*layer-[0-3]')),
            (['--not-file', 'layer'], ~events.file.str.contains('layer')),
            (['--host', '1$'], events.host.str.contains('1$')),
            (['--pid', events.pid.iloc[0]], events.pid == events.pid.iloc[0]),
            (['--tid', events.tid.iloc[0], '--not-pid', '0'], events.tid == events.tid.iloc[0]),
            (['--from', '2', '--to', '5.5'], (after >= 2) & (after < 5.5))):
        if chosen.any():
            each(' '.join(words), 'name,cat', 'count,dur,size,size:75%', events[chosen],
                 words=words)
            judge_events(copper, paths, events, first, words, events[chosen],
                         'events ' + ' '.join(words))
    judge_events(copper, paths, events, first, [], events, 'all events')
    judge_summary(copper, paths, events, first, files)


if __name__ == '__main__':
    main()
