#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes traces of four ranks that use devices, asks copper trace what analysts ask of them, and
compares the answers with a computation of its own, by the standard library alone.

    trace_questions_judge.py COPPER DIRECTORY      "same WHAT" or "differs WHAT: HOW" for each one

It is written from copper-trace(1), not from the code."""
import json
import math
import os
import random
import statistics
import subprocess
import sys

RANKS = 4


# ---- the traces

def spans(rng, rank):
    """Spans that nest, by two threads; times in microseconds."""
    out = []
    for tid in (1, 2):
        at = 1000 + rng.randrange(50)
        for step in range(12):
            length = rng.randrange(200, 400)
            args = {'step': step, 'epoch': 'é%d' % (step // 4)}
            out.append(span('step', 'user', 1, tid, at, length, args))
            inner = at + rng.randrange(10)
            while inner < at + length - 20:
                part = min(rng.randrange(5, 60), at + length - inner)
                name = rng.choice(['forward', 'backward', 'load'])
                out.append(span(name, 'cpu_op', 1, tid, inner, part,
                                {'step': step, 'Input Dims': [[2, 3], []]}))
                if part > 20:
                    out.append(span('aten::mm', 'cpu_op', 1, tid, inner + 3, part // 3, {}))
                inner += part + rng.randrange(4)
            at += length + rng.randrange(40)
    for stream in (7, 20):
        at = 1000 + rng.randrange(90)
        for i in range(60):
            length = rng.randrange(3, 40) + rng.randrange(4) / 4
            name, cat = ('ncclDevKernel_AllReduce' if stream == 20 else 'gemm_%d' % (i % 15),
                         'kernel')
            if stream == 7 and i % 7 == 0:
                name, cat = 'Memcpy HtoD', 'gpu_memcpy'
            out.append(span(name, cat, 0, stream, at, length, {'stream': stream, 'device': rank}))
            at += length + rng.randrange(25)
    return out


def span(name, cat, pid, tid, ts, dur, args):
    return {'ph': 'X', 'name': name, 'cat': cat, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur,
            'args': args}


def trace(rng, rank):
    events = spans(rng, rank)
    for i in range(20):
        events.append({'ph': 'C', 'name': 'train_loss', 'pid': 1, 'tid': 1, 'ts': 1000 + 37 * i,
                       'args': {'loss': rng.random() / (i + 1), 'lr': 0.001 * rank}})
    events.append({'ph': 'i', 'name': 'mark', 'pid': 50 + rank, 'tid': 1, 'ts': 1500})
    events.append({'ph': 'B', 'name': 'barrier', 'cat': 'user', 'pid': 1, 'tid': 1,
                   'ts': 9000 + rank, 'args': {'step': 99}})
    rng.shuffle(events)
    meta = [{'ph': 'M', 'name': 'process_name', 'pid': 1, 'args': {'name': 'python'}},
            {'ph': 'M', 'name': 'thread_name', 'pid': 1, 'tid': 1, 'args': {'name': 'main'}}]
    return {'distributedInfo': {'rank': rank, 'world_size': RANKS},
            'traceEvents': meta + events}


# ---- asking

class Judge:
    def __init__(self, copper, directory):
        rng = random.Random(5)
        self.copper = copper
        self.paths = [os.path.join(directory, 'rank%d.json' % r) for r in range(RANKS)]
        self.events = []
        for rank, path in enumerate(self.paths):
            document = trace(rng, rank)
            with open(path, 'w', encoding='utf-8') as out:
                json.dump(document, out, ensure_ascii=rank % 2 == 0, indent=rank or None)
            for event in document['traceEvents']:
                if event['ph'] != 'M':
                    self.events.append(dict(event, trace=path, rank=rank))
        self.spans = [e for e in self.events if e['ph'] == 'X']
        self.first = min(e['ts'] for e in self.events)
        self.own()

    def own(self):
        """The self time of each span, the slow way: the length of what no later span covers."""
        by_thread = {}
        for e in self.spans:
            by_thread.setdefault((e['trace'], e['pid'], e['tid']), []).append(e)
        for group in by_thread.values():
            group.sort(key=lambda e: (e['ts'], -e['dur']))
            for i, e in enumerate(group):
                inside = [(o['ts'], min(o['ts'] + o['dur'], e['ts'] + e['dur']))
                          for o in group[i + 1:] if o['ts'] < e['ts'] + e['dur']]
                e['self'] = e['dur'] - length(inside)

    def ask(self, *words):
        done = subprocess.run([self.copper, 'trace', *words, *self.paths],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise RuntimeError('%s: %s' % (' '.join(words), done.stderr.decode()))
        return json.loads(done.stdout)

    def table(self, what, key, keys, cols, events, words=()):
        """cols: name of a column -> what it is for a list of events."""
        got = self.ask('table', '--json', '--by', keys, '--show', ','.join(cols), *words)
        groups = {}
        for e in events:
            groups.setdefault(key(e), []).append(e)
        want = {k: [f(v) for f in cols.values()] for k, v in groups.items()}
        have = {tuple(str(row[k]) for k in keys.split(',')): [row[c] for c in cols] for row in got}
        faults = ['%d rows, not %d' % (len(got), len(want))] * (len(got) != len(want))
        faults += ['only one has %s' % (k,) for k in set(want) ^ set(have)]
        for k in set(want) & set(have):
            faults += ['%s of %s is %s, not %s' % (c, k, a, b)
                       for c, a, b in zip(cols, have[k], want[k]) if not close(a, b)]
        told(what, faults)


def close(a, b):
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-9)


def told(what, faults):
    print('differs %s: %s' % (what, '; '.join(faults[:3])) if faults else 'same %s' % what)


def length(pieces):
    total, end = 0, -math.inf
    for start, stop in sorted(pieces):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def busy(events):
    return length([(e['ts'], e['ts'] + e['dur']) for e in events]) / 1e6


def overlap(a, b):
    return busy(a) + busy(b) - busy(a + b)


def quantile(values, p):
    values, at = sorted(values), p * (len(values) - 1)
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def durs(events):
    return [e['dur'] / 1e6 for e in events]


# ---- the questions

def by_keys(j):
    dur = {'dur': lambda g: sum(durs(g))}
    j.table('by rank', lambda e: (str(e['rank']),), 'rank', dur, j.spans)
    j.table('by trace', lambda e: (e['trace'],), 'trace', dur, j.spans)
    j.table('by arguments', lambda e: (str(e['args'].get('step', '')),
                                       e['args'].get('epoch', '')),
            'arg:step,arg:epoch', dur, j.spans)
    j.table('by thread name', lambda e: ('main' if (e['pid'], e['tid']) == (1, 1)
                                         else str(e['tid']), str(e['rank'])),
            'thread,rank', dur, j.spans)
    got = j.ask('table', '--json', '--by', 'process', '--show', 'count')
    told('processes are told apart', ['%s' % got] * (len(got) != 2 * RANKS))


def by_columns(j):
    j.table('self, busy, first, last', lambda e: (e['name'], str(e['rank'])), 'name,rank',
            {'self': lambda g: sum(e['self'] for e in g) / 1e6, 'busy': busy,
             'first': lambda g: (min(e['ts'] for e in g) - j.first) / 1e6,
             'last': lambda g: (max(e['ts'] + e['dur'] for e in g) - j.first) / 1e6}, j.spans)
    j.table('self of what is selected', lambda e: (e['name'],), 'name',
            {'self': lambda g: sum(e['self'] for e in g) / 1e6},
            [e for e in j.spans if e['name'] == 'step'], ('--name', '^step$'))
    j.table('quantiles', lambda e: (e['cat'],), 'cat',
            {'dur:p90': lambda g: quantile(durs(g), .9),
             'dur:90%': lambda g: quantile(durs(g), .9),
             'dur:99%': lambda g: quantile(durs(g), .99),
             'dur:1%': lambda g: quantile(durs(g), .01), 'dur:count': len,
             'size:count': lambda g: 0}, j.spans)
    ends = [e for e in j.events if e['ph'] in 'XB']
    j.table('what never ended', lambda e: (e['name'],), 'name',
            {'count': lambda g: sum(e['ph'] == 'X' for e in g),
             'unfinished': lambda g: sum(e['ph'] == 'B' for e in g)}, ends)
    totals = {}
    for e in j.spans:
        totals.setdefault(e['name'], {}).setdefault((e['rank'], e['pid']), []).append(
            e['dur'] / 1e6)
    got = j.ask('table', '--json', '--by', 'name', '--per', 'pid', '--then',
                'dur=max,count=sum,dur:mean=mean')
    want = {n: [max(map(sum, p.values())), sum(map(len, p.values())),
                statistics.mean(map(statistics.mean, p.values()))] for n, p in totals.items()}
    told('per process, a word for each column',
         ['%s is %s' % (row, want[row['name']]) for row in got
          if not all(map(close, list(row.values())[1:], want[row['name']]))] +
         ['%d rows' % len(got)] * (len(got) != len(want)))


def values(j):
    found = [dict(e, series=k, value=v) for e in j.events if e['ph'] == 'C'
             for k, v in e['args'].items()]

    def last(group):
        return max(group, key=lambda e: (e['ts'], e['trace']))['value']

    j.table('values of counters', lambda e: (e['name'], e['series'], str(e['rank'])),
            'name,series,rank',
            {'value': last, 'value:count': len,
             'value:first': lambda g: min(g, key=lambda e: e['ts'])['value'],
             'value:mean': lambda g: statistics.mean(e['value'] for e in g),
             'value:std': lambda g: statistics.stdev(e['value'] for e in g),
             'value:min': lambda g: min(e['value'] for e in g),
             'value:max': lambda g: max(e['value'] for e in g),
             'value:75%': lambda g: quantile([e['value'] for e in g], .75)}, found)
    got = j.ask('table', '--json', '--by', 'rank,series,time', '--show', 'value', '--sort', 'time')
    have = sorted((row['rank'], row['series'], round(row['time'] * 1e6), row['value'])
                  for row in got)
    want = sorted((e['rank'], e['series'], e['ts'] - j.first, e['value']) for e in found)
    told('each value again', [] if have == want else ['%s' % [x for x in zip(have, want)
                                                             if x[0] != x[1]][:1]])


def events(j):
    got = j.ask('events', '--json')
    have = sorted((round(e['time'] * 1e6, 3), e['kind'], e['name'], e['trace'],
                   json.dumps(e.get('args', {}), sort_keys=True)) for e in got)
    kinds = {'X': 'span', 'B': 'unfinished', 'C': 'counter', 'i': 'instant'}
    want = sorted((round(e['ts'] - j.first, 3), kinds[e['ph']], e['name'], e['trace'],
                   json.dumps(e.get('args', {}), sort_keys=True)) for e in j.events)
    told('all events with all arguments',
         [] if have == want else ['%s' % [x for x in zip(have, want) if x[0] != x[1]][:1]])
    got = j.ask('events', '--json', '--sort', 'dur', '--limit', '20', '--min-dur', '0.00001',
                '--name', 'aten')
    want = sorted((e for e in j.spans if 'aten' in e['name'] and e['dur'] >= 10),
                  key=lambda e: (-e['dur'], e['ts']))[:20]
    have = [(round(e['dur'] * 1e6, 3), round(e['time'] * 1e6, 3)) for e in got]
    told('the longest', [] if have == [(e['dur'], e['ts'] - j.first) for e in want]
         else ['%s' % have])


def summary(j):
    got = j.ask('summary', '--json', '--class', 'steps=^step$', '--class', 'compute=gemm|aten',
                '--class', 'comm=nccl')
    want = {'spans': len(j.spans), 'unfinished': RANKS, 'instants': RANKS,
            'counters': 20 * RANKS, 'processes': 3 * RANKS, 'threads': 5 * RANKS}
    told('counts', ['%s is %s, not %s' % (k, got[k], v) for k, v in want.items() if got[k] != v])
    sets = {'steps': [e for e in j.spans if e['name'] == 'step'],
            'compute': [e for e in j.spans if 'gemm' in e['name'] or 'aten' in e['name']],
            'comm': [e for e in j.spans if 'nccl' in e['name']]}
    rows = {row['class']: row for row in got['classes']}
    faults = ['%s takes %s' % (k, rows[k]['dur']) for k, v in sets.items()
              if not close(rows[k]['dur'], busy(v))]
    faults += ['%s with %s is %s' % (a, b, rows[a]['with:' + b]) for a in sets for b in sets
               if not close(rows[a]['with:' + b], overlap(sets[a], sets[b]))]
    told('classes', faults)
    faults = ['%d devices' % len(got['devices'])] * (len(got['devices']) != RANKS)
    for row in got['devices']:
        mine = [e for e in j.spans if e['rank'] == row['rank'] and e['pid'] == 0]
        comm = [e for e in mine if 'nccl' in e['name']]
        copies = [e for e in mine if 'Memcpy' in e['name']]
        rest = [e for e in mine if e not in comm and e not in copies]
        total = (max(e['ts'] + e['dur'] for e in mine) - min(e['ts'] for e in mine)) / 1e6
        wanted = {'total': total, 'kernels': busy(rest), 'communication': busy(comm),
                  'copies': busy(copies), 'idle': total - busy(mine),
                  'overlap': overlap(comm, rest), 'count': len(rest) + len(comm)}
        faults += ['%s of rank %s is %s, not %s' % (k, row['rank'], row[k], v)
                   for k, v in wanted.items() if not close(row[k], v)]
    told('devices', faults)
    sums = {}
    for e in j.spans:
        if e['cat'] == 'kernel':
            sums[e['name']] = sums.get(e['name'], 0) + e['dur'] / 1e6
    told('kernels', ['%s' % row for row in got['kernels'] if not close(row['dur'],
                                                                      sums.pop(row['name']))] +
         ['%s is missing' % k for k in sums])
    told('what never ended, in the summary',
         ['%s' % got['never_ended']] * ([r['unfinished'] for r in got['never_ended']] !=
                                        [1] * RANKS))
    timeline = os.path.join(os.path.dirname(j.paths[0]), 'merged.out')
    subprocess.run([j.copper, 'trace', 'merge', '-o', timeline, *j.paths], check=True,
                   stderr=subprocess.DEVNULL)
    with open(timeline, encoding='utf-8') as file:
        merged = json.load(file)['traceEvents']
    told('as many processes as merge has',
         ['%d' % n for n in [len({e['pid'] for e in merged})] if n != got['processes']])


def main():
    j = Judge(sys.argv[1], sys.argv[2])
    for ask in (by_keys, by_columns, values, events, summary):
        ask(j)


main()
