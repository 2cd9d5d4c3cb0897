#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the traces of several runs with pandas, asks copper trace compare and copper trace
checkpoint, and compares the answers number by number.

    trace_cases_judge.py compare COPPER NAME=PATH...             "same WHAT" or "differs WHAT: HOW"
    for each question trace_cases_judge.py checkpoint COPPER TIER=PREFIX... -- [--event=RE]
    NAME=PATH...

It is written from copper-trace(1), not from the code."""
import csv
import io
import json
import math
import subprocess
import sys

import pandas as pd
import trace_judge
from trace_judge import ask, canon, close, table, told


class Runs:
    """The runs of a command line, and what pandas reads from them."""

    def __init__(self, words):
        self.words, self.names, self.events, self.first = words, [], {}, {}
        for word in words:
            name, paths = word.split('=', 1)
            self.names.append(name)
            self.events[name], self.first[name], _ = trace_judge.load(paths.split(','))
            self.events[name]['interval'] = (self.events[name].ts -
                self.first[name]) // 30000000000 * 30

    def after(self, name):
        return (self.events[name].ts - self.first[name]) / 1e9


# ---- compare

def judge_compare(copper, runs, what, keys, cols, words=(), chosen=None, per=None, then=None):
    extra = ['--per', per, '--then', then] if per else []
    got = ask([copper, 'trace', 'compare', '--json', '--by', keys, '--show', cols, *extra, *words,
               *runs.words])
    want, names = {}, cols.split(',')
    for run in runs.names:
        events = runs.events[run]
        events = events if chosen is None else events[chosen(run, events)]
        for key, values in (table(events, keys, cols, per, then) if len(events) else {}).items():
            want.setdefault(key, {})[run] = values
    faults, seen = [], set()
    for row in got:
        key = tuple(canon(row[k]) for k in keys.split(','))
        faults += ['%s comes twice' % (key,)] * (key in seen)
        seen.add(key)
        wanted = want.get(key, {})
        if list(row) != keys.split(',') + ['%s:%s' % (run, c) for c in names for run in runs.names]:
            faults.append('the columns are %s' % list(row))
            continue
        for run in runs.names:
            have = [row['%s:%s' % (run, c)] for c in names]
            if run not in wanted:
                faults += ['%s has %s of %s, which it has not' %
                           (run, have, key)] * any(v is not None for v in have)
                continue
            faults += ['%s of %s in %s is %s, not %s' % (c, key, run, a, b)
                       for c, a, b in zip(names, have, wanted[run]) if not close(a, b)]
    faults += ['only one has %s' % (key,) for key in seen ^ set(want)]
    told(what, faults)


def judge_order(copper, runs):
    """Largest first in the column by which tables are sorted; CSV has the cells of JSON; the
    terminal has a ratio."""
    words = ['--by', 'name', '--show', 'count,dur', *runs.words]
    got = ask([copper, 'trace', 'compare', '--json', *words])
    values = [[-1 if row['%s:dur' % run] is None else row['%s:dur' % run] for run in runs.names]
              for row in got]
    told('the order', [] if values == sorted(values, reverse=True) else ['it is %s' % values])
    text = subprocess.run([copper, 'trace', 'compare', '--csv', *words], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    rows = [[None if cell == '' else cell if k == 'name' else float(cell)
             for k, cell in row.items()] for row in csv.DictReader(io.StringIO(text))]
    told('CSV', [] if rows == [list(row.values()) for row in got] else ['it is not what JSON is'])
    text = subprocess.run([copper, 'trace', 'compare', *words], stdout=subprocess.PIPE,
                          check=True).stdout.decode().split('\n')
    first, faults = runs.names[0], []
    heads = ['name'] + ['%s:count' % run for run in runs.names] + ['%s/%s' % (run, first)
        for run in runs.names[1:]] + ['%s:dur' % run for run in runs.names]
    faults += ['the head is %s' % text[0]] * (text[0].split() != heads)
    for line, row in zip(text[1:], got):
        cells = line[-(len(line) - len(row['name'])):].split()
        for i, run in enumerate(runs.names[1:]):
            counts = [row['%s:count' % r] for r in (first, run)]
            ratio = '-' if None in counts or not counts[0] else '%.2f' % (counts[1] / counts[0])
            if cells[len(runs.names) + i] != ratio:
                faults += ['%s/%s of %s is %s, not %s' %
                           (run, first, row['name'], cells[-len(heads) + 1:], ratio)]
    told('ratios', faults)


def compare(copper, words):
    runs = Runs(words)
    for keys in ('name', 'cat', 'class', 'dir', 'pid', 'host', 'size', 'interval', 'name,tid'):
        judge_compare(copper, runs, 'by ' + keys, keys, 'count,dur,size')
    judge_compare(copper, runs, 'every column', 'name', trace_judge.ALL)
    judge_compare(copper, runs, 'the busiest thread', 'name', 'dur,count', per='pid,tid',
                  then='max')
    judge_compare(copper, runs, 'the mean of classes', 'class', 'dur,size', per='pid', then='mean')
    for select, chosen in (
            (['--name', 'write'], lambda run, e: e.name.str.contains('write')),
            (['--cat', 'POSIX', '--not-file', 'layer-1'], lambda run,
             e: e.cat.str.contains('POSIX') & ~e.file.str.contains('layer-1')),
            (['--from', '1', '--to', '3.5'], lambda run,
             e: (runs.after(run) >= 1) & (runs.after(run) < 3.5))):
        judge_compare(copper, runs, ' '.join(select), 'name', 'count,dur,size:50%', select, chosen)
    judge_order(copper, runs)


# ---- checkpoint

LIMIT = 7
MTBF = 7200
NODES = (1, 12)
SCHEMES = (('partner', 2), ('xor:5', 1.25))


def subtract(a, b):
    """What spans of a cover and those of b do not."""
    out = []
    for start, stop in a:
        for x, y in b:
            if y <= start or x >= stop:
                continue
            if x > start:
                out.append([start, x])
            start = max(start, y)
        if start < stop:
            out.append([start, stop])
    return out


def covered(spans):
    """Spans that touch or overlap become one."""
    out = []
    for start, stop in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], stop)
        else:
            out.append([start, stop])
    return out


def spans_of(events):
    return covered(zip(events.ts, events.ts + events.dur))


def inside(marks):
    """Which of these lie within another one of their thread."""
    found = pd.Series(False, index=marks.index)
    for _, group in marks[marks.single].groupby(['pid', 'tid']):
        rows = list(zip(group.index, group.ts, group.ts + group.dur))
        for n, (index, start, stop) in enumerate(rows):
            found[index] = any(a <= start and b >= stop and ((a, b) != (start, stop) or m < n)
                               for m, (_, a, b) in enumerate(rows) if m != n)
    return found


def lost(cost, interval):
    """What is not useful of the time that an interval takes when failures are exponential."""
    expected = MTBF * (math.exp((interval + cost) / MTBF) - 1)
    return (expected - interval) / expected


def pace(marks):
    """Of the thread with most time: checkpoints, the time of each, and between them."""
    best = None
    for _, group in marks[marks.single].groupby(['pid', 'tid']):
        whole = ((group.ts + group.dur).max() - group.ts.min()) / 1e9
        best = max(best or (0, 0, 0), (group.dur.sum() / 1e9, whole, len(group)))
    if not best:
        return []
    dur, whole, n = best
    cost, interval = dur / n, (whole - dur) / (n - 1) if n > 1 else None
    x = cost / (2 * MTBF)
    daly = math.sqrt(2 * cost * MTBF) * (1 + math.sqrt(x) / 3 + x / 9) - cost
    return [n, cost, interval, MTBF, math.sqrt(2 * cost * MTBF), daly,
            lost(cost, interval) if interval else None, lost(cost, daly)]


class Case:
    def __init__(self, events, tiers, event):
        events = events.copy()
        prefixes = sorted(((p.rstrip('/'), name) for name, p in tiers), key=lambda t: -len(t[0]))
        events['tier'] = [next((n for p, n in prefixes if f and (f == p or f.startswith(p + '/'))),
                               None) for f in events.file]
        marks = events[events.name.str.contains(event)]
        nested = inside(marks)
        self.nested, self.marks = marks[nested], marks[~nested]
        self.nodes = max(1, events[events.host != ''].host.nunique())
        self.calls = events[(events.cat == 'POSIX') & events.tier.notna()]
        names = list(dict.fromkeys(name for name, _ in tiers))
        self.tier = {name: self.calls[self.calls.tier == name] for name in names}
        writes = self.calls[self.calls.name.str.contains('write')]
        self.produced = self.marks['size'].sum()
        if not self.produced:
            own = set(zip(self.marks.pid, self.marks.tid))
            self.produced = writes[[key in own
                                    for key in zip(writes.pid, writes.tid)]]['size'].sum() or None
        self.flush = {}
        slow = writes[(writes.tier != names[0]) & writes.single]
        for key, group in slow.groupby(['pid', 'tid']):
            mine = self.marks[(self.marks.pid == key[0]) & (self.marks.tid == key[1]) &
                              self.marks.single]
            self.flush[key] = subtract(spans_of(group), spans_of(mine))

    def written(self, tier):
        calls = self.tier[tier]
        return calls[calls.name.str.contains('write')]['size'].sum()


def slowest(events, keys=('pid', 'tid')):
    return events.groupby(list(keys)).dur.sum().max() / 1e9 if len(events) else 0


def top(groups, column):
    """Rows with the keys in front, largest first, equal ones by key."""
    rows = sorted(groups,
                  key=lambda row: tuple((0, float(k), '') if k.replace('.', '').isdigit()
                                        else (1, 0, k) for k in row[0]))
    return sorted(rows, key=lambda row: -row[1][column])[:LIMIT]


def rows_of(case, name, first, model):
    """Every table of a case, as lists of [key..., value...]."""
    out = {k: []
           for k in ('cases', 'nested', 'tiers', 'classes', 'calls', 'files', 'sizes',
                     'frequent', 'flush', 'interval', 'model')}
    if len(case.nested):
        sums = case.nested.groupby('name')[['count', 'dur']].sum()
        out['nested'] = [[name, call, row['count'], row.dur / 1e9] for call, row in
                         sums.sort_values('dur', ascending=False).iterrows()]
    out['interval'] = [[name] + pace(case.marks)] if pace(case.marks) else []
    out['cases'].append([name, case.marks['count'].sum(), slowest(case.marks)] +
                        [slowest(c) for c in case.tier.values()])
    for tier, calls in case.tier.items():
        files = calls.file.nunique()
        count = calls['count'].sum()
        reads = calls[calls.name.str.contains('read') &
                      ~calls.name.str.contains('write')]['size'].sum()
        out['tiers'].append([name, tier, slowest(calls), calls['size'].sum(), reads,
                             case.written(tier), case.produced,
                             case.written(tier) / case.produced if case.produced else None, files,
                             count, count / files if files else None])
        if not len(calls):
            continue
        sums = calls.groupby(['class', 'pid'])[['dur', 'size']].sum().groupby('class').max()
        out['classes'] += [[name, tier, k[0], *v]
                           for k, v in top([((i,), [r.dur / 1e9, r['size']])
                                            for i, r in sums.iterrows()], 0)]
        sums, counts = calls.groupby(['name', 'pid'])[['dur',
            'size']].sum().groupby('name').max(), calls.groupby('name')['count'].sum()
        base = first.tier[tier]
        for call, row in sums.sort_values('dur', ascending=False).iterrows():
            each = counts[call] / files
            extra = each - base[base.name ==
                                call][
                'count'].sum() / base.file.nunique() if first is not case and len(base) else None
            out['calls'].append([name, tier, call, counts[call], each, extra, row.dur / 1e9,
                                 row['size']])
        sums = calls.groupby('file')[['dur', 'size', 'count']].sum()
        out['files'] += [[name, tier, k[0], *v]
                         for k, v in top([((i,), [r.dur / 1e9, r['size'], r['count']])
                                          for i, r in sums.iterrows()], 0)]
        sized = calls[calls['size'].notna() & (calls.kind != 'A')]
        for call, group in sized.groupby('name'):
            d = group['size'].describe()
            out['sizes'].append([name, tier, call] + [d[k]
                for k in ('count', 'mean', 'std', 'min', '25%', '50%', '75%', 'max')])
        often = sized.groupby(['name', 'size']).size()
        out['frequent'] += [[name, tier, k[0], float(k[1]), v[0]]
                            for k, v in top([((i[0], '%d' % i[1]), [n]) for i, n in often.items()],
                                            0)]
    flush, marks = covered(s for spans in case.flush.values()
                           for s in spans), spans_of(case.marks[case.marks.single])
    each = [trace_judge.length(spans) for spans in case.flush.values()]
    out['flush'].append([name, max(each, default=0), trace_judge.length(flush),
                         trace_judge.both(flush, marks), 0, sum(e > 0 for e in each)])
    tiers = list(case.tier)
    for nodes in NODES:
        for scheme, factor in SCHEMES:
            rate = {t: v * (nodes if t == tiers[0] else 1) for t, v in model.items()}
            sizes = {t: (case.produced or case.written(t) or math.nan) *
                     (factor if t == tiers[0] else 1) * nodes / case.nodes for t in tiers}
            out['model'] += [[name, t, sizes[t], sizes[t] / rate[t], nodes, scheme, factor]
                             for t in tiers if t in model]
            if len(tiers) > 1 and tiers[0] in model and tiers[-1] in model:
                size = sizes[tiers[-1]]
                out['model'].append([name, 'async', size, size / rate[tiers[0]] +
                                     size / rate[tiers[-1]], nodes, scheme, factor])
    return out


def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return close(a, b)


def checkpoint(copper, words):
    tiers = [w.split('=', 1) for w in words[:words.index('--')]]
    words = words[words.index('--') + 1:]
    event = words.pop(0)[8:] if words[0].startswith('--event=') else '[Cc]heckpoint'
    runs = Runs(words)
    model = {name: 1.5e9 / (i + 1)
             for i, name in enumerate(dict.fromkeys(name for name, _ in tiers))}
    cases = []
    for name in runs.names:
        events = runs.events[name]
        events['kind'] = ['X' if c == 1 else 'A' for c in events['count']]
        events['single'] = events.kind == 'X'
        cases.append(Case(events, tiers, event))
    asked = [copper, 'trace', 'checkpoint', '--json', '--event', event, '--limit', str(LIMIT)]
    for name, prefix in tiers:
        asked += ['--tier', '%s=%s' % (name, prefix)]
    for name, value in model.items():
        asked += ['--model', '%s=%r%s' % (name, value, '/node' if name == tiers[0][0] else '')]
    asked += ['--mtbf', '2h', '--nodes', ','.join(map(str, NODES))]
    for scheme, _ in SCHEMES:
        asked += ['--scheme', scheme]
    got = ask(asked + words)
    wanted = [rows_of(case, name, cases[0], model) for case, name in zip(cases, runs.names)]
    for section in wanted[0]:
        want = [row for case in wanted for row in case[section]]
        have = [list(row.values()) for row in got[section]]
        faults = ['%d rows, not %d' % (len(have), len(want))] * (len(have) != len(want))
        for a, b in zip(have, want):
            faults += ['%s is %s, not %s' % (list(got[section][0]), a, b)] * (len(a) != len(b)
                or not all(map(same, a, b)))
        told(section, faults)
    print('advice %s' %
          json.dumps([[row['case'], row['about'], row['text']] for row in got['advice']]))


def main():
    if sys.argv[1] == 'compare':
        compare(sys.argv[2], sys.argv[3:])
    else:
        checkpoint(sys.argv[2], sys.argv[3:])


main()
