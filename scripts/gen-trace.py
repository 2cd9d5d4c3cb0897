#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces as programs leave them, the same for the same words, for tests and measurements.

    gen-trace.py FORM EVENTS SEED FILE [late] [gzip=N]

FORM: 0 (dlio_profiler), 1 (DFTracer 1.x), 2 (DFTracer 2.x), perfflow (array), perfflow-object,
verbose (perfflow in halves), chrome (odd things of Chrome's form), torch (torch.profiler with
record_shapes: nested arguments, kernels, flows); direct, sync, async, slow (checkpoints of a
program, EVENTS of them, as DFTracer 1.x has them: written to the parallel file system, or to an SSD
twice and copied meanwhile, by another thread, or by one that is slow). late: hashes are defined
after their use. gzip=N: members of N events; gzip=0: one member."""
import gzip
import json
import random
import sys
import zlib

NAMES = ['open64', 'close', 'read', 'write', 'lseek64', 'fxstat64', '__xstat64', 'mmap', 'fsync',
         'opendir', 'readdir', 'pread64']
WEIGHTS = [3, 3, 30, 40, 8, 4, 4, 1, 1, 1, 1, 4]
SIZES = [4096, 65536, 1 << 20, 32 << 20]
START = 1698080323781412


def hash64(text):
    return zlib.crc32(text.encode()) << 32 | zlib.crc32(text[::-1].encode())


def files():
    for step in range(0, 200, 50):
        for layer in range(8):
            yield '/p/lustre1/user/ckpt/step-%d/layer-%d-1-%d-0.pt' % (step, layer, step)
    yield '/p/ssd/cache/index.json'
    yield '/usr/lib/python3.11/os.py'


FILES = list(files())


def calls(rng, n):
    """name, cat, pid, tid, ts, dur, result, file, image_size: a process of some threads, in the
    order of ends."""
    pid = 1000 + rng.randrange(1000)
    ts = START + rng.randrange(1000000)
    for _ in range(n):
        ts += rng.randrange(40000)
        dur = int(rng.expovariate(1 / 300.0)) + 1
        kind = rng.random()
        tid = pid + rng.randrange(4)
        if kind < 0.03:
            yield 'compute step', 'trainer', pid, tid, ts, dur * 50, None, None, None
        elif kind < 0.06:
            yield 'save', 'checkpoint', pid, tid, ts, dur * 20, None, None, rng.choice(SIZES) * 3
        else:
            name = rng.choices(NAMES, WEIGHTS)[0]
            result = rng.choice([rng.choice(SIZES), rng.randrange(1, 5000), 0,
                                 -1]) if 'rea' in name or name == 'write' else 0
            yield name, 'POSIX', pid, tid, ts, dur, result, rng.choice(FILES), None


def dlio(rng, n):
    yield '['
    for i, (name, cat, pid, tid, ts, dur, ret, path, image) in enumerate(calls(rng, n)):
        args = {'hostname': 'corona%d' % (pid % 3)}
        if ret is not None:
            args.update(ret=ret, fname=path)
        if image:
            args['image_size'] = image
        line = {'id': str(i), 'name': name, 'cat': cat, 'pid': str(pid), 'tid': str(tid),
                'ts': str(ts), 'dur': str(dur), 'ph': 'X', 'args': args}
        text = json.dumps(line, separators=(',', ':'))
        # As the field has it: a control character as such.
        yield text.replace('"/p/ssd/cache', '"/p/ssd/ca\x01che')


RANKS = 4


def piece(rng, kind, rank, step, tid, ts, tier, layer, size, chunk):
    """One file, written in chunks."""
    path = '%s/step-%d/layer-%d-%d.pt' % (tier, step, rank, layer)
    pid = 4000 + rank
    yield 'open64', 'POSIX', pid, tid, ts, 40, 7, path, None
    ts += 50
    if kind != 'direct':
        yield 'fxstat64', 'POSIX', pid, tid, ts, 5, 0, path, None
        ts += 10
    while size:
        part = min(chunk, size)
        dur = part // (200 if 'ssd' in tier else 20) // 10 + rng.randrange(1, 50)
        yield 'write', 'POSIX', pid, tid, ts, dur, part, path, None
        ts += dur + rng.randrange(5)
        size -= part
    yield 'close', 'POSIX', pid, tid, ts, 8, 0, path, None


def last(events, ts):
    return max([ts] + [e[4] + e[5] for e in events]) + 1


def checkpoint(rng, kind, rank, step, ts, busy):
    """A checkpoint of one rank, and the flush of it, which may begin before its end, but not while
    its thread is busy."""
    pid, sizes = 4000 + rank, [rng.choice([1 << 20, 5000000, 8 << 20]) * rng.randrange(1, 4)
                               for _ in range(3)]
    inside, start = [], ts
    for layer, size in enumerate(sizes):
        tier = '/p/lustre1/ckpt' if kind == 'direct' else '/l/ssd/scr'
        inside += piece(rng, kind, rank, step, pid, last(inside, ts), tier, layer, size, size)
        if kind != 'direct':
            inside += piece(rng, kind, rank, step, pid, last(inside, ts), '/l/ssd/scr/partner',
                            layer, size, 131072)
    flush, at = [], max(last(inside, ts) - 3000, busy)
    for layer, size in enumerate(sizes if kind != 'direct' else []):
        tid = pid if kind == 'sync' else pid + 100
        at = last(inside if kind == 'sync' else flush, at)
        read = [('read', 'POSIX', pid, tid, at, size // 4000 + 1, size,
                 '/l/ssd/scr/step-%d/layer-%d-%d.pt' % (step, rank, layer), None)]
        copy = read + list(piece(rng, kind, rank, step, tid, last(read, at), '/p/lustre1/ckpt',
                                 layer, size, 1 << 20))
        if kind == 'slow':
            copy = [c[:4] + (at + (c[4] - at) * 3, c[5] * 3) + c[6:] for c in copy]
        (inside if kind == 'sync' else flush).extend(copy)
    end = last(inside, ts)
    yield from inside
    yield 'save_checkpoint', 'checkpoint', pid, pid, start, end - start, None, None, sum(sizes)
    yield 'compute', 'model', pid, pid, end, 400000, None, None, None
    yield 'open64', 'POSIX', pid, pid, end, 30, 5, '/usr/lib/python3.11/os.py', None
    yield from flush


def checkpoints(rng, n, kind):
    for rank in range(RANKS):
        ts = busy = START + rank * 100
        for step in range(n):
            events = list(checkpoint(rng, kind, rank, step, ts, busy))
            busy = last(events, busy)
            ts = last([e for e in events if e[0] == 'compute'], ts)
            yield from events


def dftracer(rng, n, late, second, scenario=None):
    host = 'node%d' % rng.randrange(4)
    write = (lambda v: '%x' % v) if second else (lambda v: v)
    kind = {'X': 1, 'M': 4, 'A': 3} if second else {'X': 'X', 'M': 'M', 'A': 'X'}
    defined = []

    def define(what, name):
        return json.dumps({'id': 0, 'name': what, 'cat': 'dftracer', 'pid': 1, 'tid': 1,
                           'ph': kind['M'],
                           'args': {'hhash': write(hash64(host)), 'name': name,
                                    'value': write(hash64(name))}}, separators=(',', ':'))
    events = list(checkpoints(rng, n, scenario) if scenario else calls(rng, n))
    for path in dict.fromkeys(e[7] for e in events if e[7]) if scenario else FILES:
        defined.append(define('FH', path))
    defined.append(define('HH', host))
    if not second:
        yield '['
    if not late:
        yield from defined
    for i, (name, cat, pid, tid, ts, dur, ret, path, image) in enumerate(events):
        args = {'hhash': write(hash64(host))}
        if ret is not None:
            args.update(fhash=write(hash64(path)), ret=ret)
        if image:
            args['image_size'] = image
        line = {'id': i, 'name': name, 'cat': cat, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur,
                'ph': kind['X'], 'args': args}
        if second:
            line['type'] = 1
            if rng.random() < 0.05:
                count = rng.randrange(1, 50)
                line['ph'] = kind['A']
                args.update(dft_cnt=count, dur_min=1, dur_max=dur, dur_sum=count * dur // 2 + 1)
                args.pop('ret', None)
        yield json.dumps(line, separators=(',', ':'))
        if i == len(events) // 2 and late:
            yield from defined
    if not second:
        yield ']'


def perfflow(rng, n, form):
    yield '[' if form != 'perfflow-object' else '{ "displayTimeUnit":"us", "otherData":{ }, "traceEvents":['
    for name, cat, pid, tid, ts, dur, _, _, _ in calls(rng, n):
        start = ts + rng.randrange(1000) / 1000.0
        common = '"cat":"%s","pid":%d,"tid":%d' % (cat, pid, tid)
        if form != 'verbose':
            yield '{"name":"%s",%s,"ts":%.3f,"ph":"X","dur":%.3f},' % (name, common, start,
                dur + 0.125)
        elif rng.random() < 0.2:
            number = rng.randrange(3)
            yield '{"name":"%s",%s,"ts":%.3f,"ph":"b","id":%d,"scope":"%s"},' % (name, common,
                start, number, cat)
            yield '{"name":"%s end",%s,"ts":%.3f,"ph":"e","id":%d,"scope":"%s"},' % (name, common,
                start + dur, number, cat)
        else:
            yield '{"name":"%s",%s,"ts":%.3f,"ph":"B"},' % (name, common, start)
            if rng.random() < 0.5:
                yield '{"name":"inner",%s,"ts":%.3f,"ph":"B"},' % (common, start + dur / 4)
                yield '{"name":"inner",%s,"ts":%.3f,"ph":"E"},' % (common, start + dur / 2)
            if rng.random() < 0.99:
                yield '{"name":"%s",%s,"ts":%.3f,"ph":"E"},' % (name, common, start + dur)
        if rng.random() < 0.02:
            yield '{"name":"usage",%s,"ts":%.3f,"ph":"C","args":{"cpu_usage":12.5,"memory_usage":1}},' % (common, start)


def chrome(rng, n):
    events = [{'ph': 'M', 'name': 'process_name', 'pid': 1, 'args': {'name': 'python'}}]
    for name, cat, pid, tid, ts, dur, _, _, _ in calls(rng, n):
        args = {'Input Dims': [[1, 2], []], 'External id': 3} if rng.random() < 0.5 else {}
        events.append({'ph': 'X', 'cat': cat, 'name': 'aten::%s "é"' % name,
                       'pid': rng.choice([pid, 'Spans']), 'tid': tid,
                       'ts': ts + rng.randrange(1000) / 1000.0, 'dur': dur + 0.25, 'args': args})
        if rng.random() < 0.05:
            events.append({'ph': 'i', 'name': 'marker', 'pid': pid, 'tid': tid, 'ts': ts, 's': 't'})
    yield from json.dumps({'schemaVersion': 1, 'deviceProperties': [{'name': 'A {[100'}],
                           'traceEvents': events, 'traceName': 'x'}, indent=1).split('\n')


OPS = ['aten::linear', 'aten::addmm', 'aten::layer_norm', 'aten::_softmax', 'aten::bmm', 'aten::add_',
       'autograd::engine::evaluate_function: AddmmBackward0', 'aten::copy_']
KERNELS = ['ampere_sgemm_128x64_tn', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)',
           'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>']
TORCH_OP = """  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d,"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["float", "float", ""], "Input Strides": [[%d, 1], [%d, 1], []], "Input Dims": [[%d, %d], [%d, %d], []], "Ev Idx": %d
    }
  },"""
TORCH_LAUNCH = """  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 4242, "tid": 4242, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g"
  },"""
TORCH_KERNEL = """  {
    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %d, "registers per thread": 64, "shared memory": 16384, "blocks per SM": 1.5, "warps per SM": 12, "grid": [%d, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %%": 37
    }
  },
  {
    "ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },"""


def torch(rng, n):
    """Five events for each launch of a kernel, besides operators that launch none."""
    yield '{\n  "schemaVersion": 1,\n  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},\n  "traceEvents": ['
    ts, device, i = 1000000.0, 1000000.0, 0
    while i < n:
        a, b, dur = rng.choice([32, 128, 4096]), rng.choice([64, 768]), rng.uniform(5, 90)
        yield TORCH_OP % (rng.choice(OPS), ts, dur, i, b, a, a, b, b, a, i)
        i += 1
        if rng.random() < 0.3:
            stream, length = rng.choice([7, 7, 7, 20]), rng.uniform(3, 120)
            yield TORCH_LAUNCH % (ts + 2, 3.5, i, i, i, ts + 2)
            device = max(device, ts + 8)
            yield TORCH_KERNEL % (rng.choice(KERNELS), stream, device, length, i, stream, i, a, i,
                                  stream, device)
            device += length
            i += 4
        ts += dur + rng.uniform(0, 12)
    yield '  {\n    "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": %.3f\n  }' % ts
    yield '  ],\n  "traceName": "rank0.json",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 1700000000000000000\n}'


def main():
    if len(sys.argv) < 5 or not (sys.argv[2] + sys.argv[3]).isdigit():
        sys.exit(__doc__.split('\n\n')[1].strip())
    form, n, seed, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    words = sys.argv[5:]
    members = next((int(w[5:]) for w in words if w.startswith('gzip=')), None)
    rng = random.Random(seed)
    lines = {'0': lambda: dlio(rng, n), '1': lambda: dftracer(rng, n, 'late' in words, False),
             '2': lambda: dftracer(rng, n, 'late' in words, True),
             'chrome': lambda: chrome(rng, n), 'torch': lambda: torch(rng, n),
             **{k: lambda: dftracer(rng, n, 'late' in words, False, form)
                for k in ('direct', 'sync', 'async', 'slow')}}.get(form,
                lambda: perfflow(rng, n, form))()
    if members is None:
        with open(path, 'w', encoding='utf-8') as out:
            out.writelines(line + '\n' for line in lines)
        return
    with open(path, 'wb') as out:
        part = []
        for line in lines:
            part.append(line + '\n')
            if members and len(part) == members:
                out.write(gzip.compress(''.join(part).encode(), 6))
                part = []
        out.write(gzip.compress(''.join(part).encode(), 6))


main()
