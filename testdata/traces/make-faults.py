#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces of a program of four ranks in the form of DFTracer 1.x, each with one seeded fault
that copper trace diagnose must name, and traces without any.

    make-faults.py list                the names of the faults, each with the cause to be named
    make-faults.py clean               the names of the traces without a fault
    make-faults.py NAME DIRECTORY      writes the trace: a file for each rank

Every rank reads batches of 4 MiB in a thread of its own while it computes, and writes a checkpoint
of 16 MiB now and then; a fault changes that in one place."""
import json
import os
import random
import sys
import zlib

MIB = 1 << 20
START = 1700000000000000
RANKS = 4
STEPS = 60

CAUSES = {
    'small': 'small transfers',
    'random': 'random access',
    'unaligned': 'unaligned transfers',
    'slow-rank': 'one slow process',
    'slow-server': 'slow file server',
    'metadata': 'metadata storm',
    'failing': 'failing lookups',
    'reopened': 'repeated opens',
    'unoverlapped': 'input and output beside no computing',
    'hang': 'a begin that never ended',
    'idle': 'idle gaps',
    'clock': 'clock step',
    'sync': 'sync after each write',
    'reread': 'data read again',
    'one-writer': 'one process moves the data of all',
}
CLEAN = ('training', 'simulation', 'reading', 'writing', 'computing')


class Rank:
    """Events of a rank; at is when its main thread goes on."""

    def __init__(self, rng, rank):
        self.rng, self.rank, self.at = rng, rank, START + rng.randrange(300)
        self.pid, self.host = 4000 + rank, 'node%d' % (rank // 2)
        self.files, self.events, self.loader = {}, [], self.at

    def hashed(self, text):
        self.files[text] = zlib.crc32(text.encode()) + (1 << 33)
        return self.files[text]

    def span(self, name, cat, ts, dur, tid=0, path=None, **args):
        args['hhash'] = zlib.crc32(self.host.encode())
        if path:
            args['fhash'] = self.hashed(path)
        self.events.append({'name': name, 'cat': cat, 'pid': self.pid, 'tid': self.pid + tid,
                            'ts': int(ts), 'dur': int(dur), 'ph': 'X', 'args': args})
        return ts + dur

    def posix(self, name, ts, dur, tid, path, **args):
        return self.span(name, 'POSIX', ts, dur * self.rng.uniform(0.95, 1.05), tid, path, **args)

    def transfer(self, name, ts, tid, path, size, slow=1.0, **args):
        """2 GB/s, and 50 us for each call."""
        return self.posix(name, ts, slow * (50 + size / 2000), tid, path, ret=size, **args)

    def read_file(self, ts, path, size=4 * MIB, piece=MIB, slow=1.0, tid=1):
        ts = self.posix('open64', ts, 30, tid, path, ret=5)
        for offset in range(0, size, piece):
            ts = self.transfer('pread64', ts, tid, path, min(piece, size - offset), slow,
                               offset=offset)
        return self.posix('close', ts, 10, tid, path, ret=0)

    def write_file(self, ts, path, size=16 * MIB, piece=4 * MIB, slow=1.0):
        ts = self.posix('open64', ts, 60, 0, path, ret=6)
        for _ in range(size // piece):
            ts = self.transfer('write', ts, 0, path, piece, slow)
        return self.posix('close', ts, 20, 0, path, ret=0)

    def compute(self, dur=20000):
        self.at = self.span('compute', 'model', self.at, dur * self.rng.uniform(0.97, 1.03))


def shard(rank, step):
    return '/lustre/data/ost%d/shard-%d-%d.bin' % (step % 6, rank, step)


def step(r, n, fault):
    """One step of a rank: a batch is read beside the computing."""
    begin = r.at
    slow = 6.0 if fault == 'slow-server' and n % 6 == 2 else 1.0
    if fault == 'unoverlapped':
        r.at = r.read_file(r.at, shard(r.rank, n), 32 * MIB, 4 * MIB, tid=0)
    elif fault not in ('computing', 'writing'):
        r.loader = max(r.read_file(max(begin, r.loader), shard(r.rank, n), slow=slow), begin)
    r.compute(45000 if fault == 'slow-rank' and r.rank == 2 else 20000)
    if fault in FAULTY:
        FAULTY[fault](r, n)
    if n % 20 == 19 and fault not in ('reading', 'one-writer'):
        r.at = r.write_file(r.at, '/lustre/ckpt/step-%d/rank-%d.pt' % (n, r.rank),
                            16 * MIB if fault != 'writing' else 64 * MIB)


def small(r, n):
    path = '/lustre/out/log-%d.txt' % r.rank
    for _ in range(200):
        r.at = r.posix('write', r.at, 45, 0, path, ret=120)


def random_reads(r, n):
    path = '/lustre/data/index-%d.bin' % r.rank
    for _ in range(12):
        r.at = r.transfer('pread64', r.at, 0, path, 128 * 1024, slow=12,
                          offset=r.rng.randrange(1 << 20) * 131072)


def unaligned(r, n):
    """Records of one file that all ranks write, a stride apart."""
    size = 1000007
    for k in range(3):
        r.at = r.transfer('pwrite64', r.at, 0, '/lustre/out/shared.dat', size, slow=4,
                          offset=((n * 3 + k) * RANKS + r.rank) * size)


def metadata(r, n):
    for k in range(60):
        path = '/lustre/small/dir-%d/f-%d-%d-%d' % (k % 7, r.rank, n, k)
        for name, dur in (('fxstat64', 60), ('open64', 90), ('fxstat64', 30), ('close', 40)):
            r.at = r.posix(name, r.at, dur, 0, path, ret=0)


def failing(r, n):
    for k in range(120):
        r.at = r.posix('open64', r.at, 70, 0, '/usr/lib/site/dir%d/mod%d.py' % (k % 40, n),
                       ret=-1)


def reopened(r, n):
    path = '/lustre/config/settings.ini'
    for _ in range(40):
        r.at = r.posix('open64', r.at, 150, 0, path, ret=4)
        r.at = r.posix('close', r.at, 20, 0, path, ret=0)


def sync(r, n):
    path = '/lustre/out/journal-%d' % r.rank
    for _ in range(6):
        r.at = r.transfer('write', r.at, 0, path, 128 * 1024)
        r.at = r.posix('fsync', r.at, 2500, 0, path, ret=0)


def reread(r, n):
    r.at = r.read_file(r.at, '/lustre/data/table.bin', 8 * MIB, MIB, tid=0)


def one_writer(r, n):
    if r.rank == 0 and n % 5 == 0:
        r.at = r.write_file(r.at, '/lustre/ckpt/step-%d.pt' % n, 256 * MIB, 16 * MIB)


def idle(r, n):
    if n in (20, 40):
        r.at += 700000


FAULTY = {'small': small, 'random': random_reads, 'unaligned': unaligned, 'metadata': metadata,
          'failing': failing, 'reopened': reopened, 'sync': sync, 'reread': reread,
          'one-writer': one_writer, 'idle': idle}


def barrier(ranks):
    """All ranks wait for the last."""
    at = max(r.at for r in ranks)
    for r in ranks:
        r.at = at


def trace(name):
    rng = random.Random(zlib.crc32(name.encode()))
    ranks = [Rank(rng, n) for n in range(RANKS)]
    for n in range(STEPS):
        for r in ranks:
            step(r, n, name)
        if name not in ('simulation', 'reading'):
            barrier(ranks)
    if name == 'hang':
        r = ranks[3]
        r.events.append({'name': 'MPI_Barrier', 'cat': 'MPI', 'pid': r.pid, 'tid': r.pid,
                         'ts': r.at - 100000, 'ph': 'B',
                         'args': {'hhash': zlib.crc32(r.host.encode())}})
    return ranks


def lines(r, name):
    yield '['
    for what, names in (('HH', {r.host: zlib.crc32(r.host.encode())}), ('FH', r.files)):
        for text, value in names.items():
            yield json.dumps({'name': what, 'cat': 'dftracer', 'ph': 'M', 'pid': r.pid,
                              'tid': r.pid, 'args': {'name': text, 'value': value}})
    yield json.dumps({'name': 'PR', 'cat': 'dftracer', 'ph': 'M', 'pid': r.pid, 'tid': r.pid,
                      'args': {'name': 'rank', 'value': r.rank}})
    # A writer appends when a call ends.
    events = sorted(r.events, key=lambda e: e['ts'] + e.get('dur', 0))
    for i, event in enumerate(events):
        if name == 'clock' and r.rank == 1 and i > len(events) // 2:
            event['ts'] -= 350000
        yield json.dumps(event)
    yield ']'


def main():
    if sys.argv[1:] == ['list']:
        print('\n'.join('%s\t%s' % row for row in CAUSES.items()))
    elif sys.argv[1:] == ['clean']:
        print('\n'.join(CLEAN))
    elif len(sys.argv) == 3 and (sys.argv[1] in CAUSES or sys.argv[1] in CLEAN):
        for r in trace(sys.argv[1]):
            path = os.path.join(sys.argv[2], '%s-%d.pfw' % (sys.argv[1], r.rank))
            with open(path, 'w', encoding='utf-8') as out:
                out.writelines(line + '\n' for line in lines(r, sys.argv[1]))
    else:
        sys.exit(__doc__)


main()
