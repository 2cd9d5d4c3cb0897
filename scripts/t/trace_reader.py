# SPDX-License-Identifier: BSD-3-Clause
"""Reads traces for the judges of copper trace, by Python's own JSON, from the description of the
formats (testdata/traces/README.md), not from the code."""
import datetime
import decimal
import json
import re
import zipfile
import zlib

INSTANTS = tuple('iInTpPR')
TIMED = INSTANTS + tuple('XABEbeSFCstf')
PHASES = {1: 'X', 2: 'C', 3: 'A', 4: 'M'}
DECODER = json.JSONDecoder(strict=False, parse_float=decimal.Decimal)
HEAD = re.compile(r'\{(?:[^{}]|\{[^{}]*\})*?"traceEvents"\s*:\s*\[')


def content(path):
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return b''.join(archive.read(name) for name in archive.namelist())
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


def in_document(document):
    """The events of one value, with the time from which theirs count, and their rank."""
    if isinstance(document, list):
        yield from ((e, 0, None) for e in document if isinstance(e, dict) and e)
    elif 'traceEvents' in document:
        rank = document.get('distributedInfo', {}).get('rank')
        for event in document['traceEvents']:
            if isinstance(event, dict) and event:
                yield event, document.get('baseTimeNanoseconds', 0), rank
    elif any(key in document for key in OTLP):
        for key, read in OTLP.items():
            for resource in document.get(key, []):
                yield from ((e, 0, None) for e in read(resource))
    elif 'start_time' in document or 'StartTime' in document:
        yield from ((e, 0, None) for e in console(document))
    elif document:
        yield document, 0, None


def with_bases(path):
    text = content(path).decode('utf-8', 'replace')
    at, skip = 0, re.compile(r'[\s,\]}\ufeff]*')
    while (at := skip.match(text, at).end()) < len(text):
        try:
            document, at = DECODER.raw_decode(text, at)
            if isinstance(document, (dict, list)):
                yield from in_document(document)
            continue
        except ValueError:
            pass
        head = HEAD.match(text, at)
        if head:
            at = head.end()
        elif text[at] == '[':
            at += 1
        else:
            at = text.find('\n', at) + 1 or len(text)


def objects(path):
    """All events; times are put on the real-time clock."""
    for event, base, _ in with_bases(path):
        if base and event.get('ts') is not None:
            event['ts'] = decimal.Decimal(event['ts']) + decimal.Decimal(base) / 1000
        yield event


# ---- OpenTelemetry

def attributes(found):
    if isinstance(found, dict):
        return found
    out = {}
    for one in found or []:
        value = one.get('value', one.get('Value'))
        for kind, inner in value.items():
            if kind != 'Type':
                out[one.get('key', one.get('Key'))] = int(inner) if kind == 'intValue' else inner
    return out


def date(text):
    """Microseconds since 1970."""
    found = re.fullmatch(r'(.{19})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)', text)
    whole = datetime.datetime.fromisoformat(found[1] + found[3].replace('Z', '+00:00'))
    return decimal.Decimal(int(whole.timestamp())) * 1000000 + decimal.Decimal(
        '0.' + (found[2] or '0')) * 1000000


def event(name, cat, resource, args, start, end=None):
    args = dict(args)
    host = args.get('host.name', resource.get('host.name'))
    if host:
        args['hostname'] = host
    out = {'name': name, 'cat': cat, 'pid': resource.get('process.pid', ''),
           'tid': args.get('thread.id', ''), 'ts': start, 'args': args}
    if end is None:
        return [dict(out, ph='i')]
    if out['tid'] != '':
        return [dict(out, ph='X', dur=end - start)]
    # Without a thread it may overlap others.
    return [dict(out, ph='b', id=id(out)), dict(out, ph='e', id=id(out), ts=end)]


def otlp(resource):
    common = attributes(resource.get('resource', {}).get('attributes'))
    for scope in resource['scopeSpans']:
        for span in scope['spans']:
            start, end = (decimal.Decimal(span[k]) / 1000
                          for k in ('startTimeUnixNano', 'endTimeUnixNano'))
            args, cat = attributes(span.get('attributes')), scope.get('scope', {}).get('name', '')
            yield from event(span['name'], cat, common, args, start, end)
            for one in span.get('events', []):
                yield from event(one['name'], cat, common, {'thread.id': args.get('thread.id', '')},
                            decimal.Decimal(one['timeUnixNano']) / 1000)


def metrics(resource):
    common = attributes(resource.get('resource', {}).get('attributes'))
    for scope in resource['scopeMetrics']:
        for metric in scope['metrics']:
            for kind in ('sum', 'gauge', 'histogram', 'exponentialHistogram', 'summary'):
                for point in metric.get(kind, {}).get('dataPoints', []):
                    if point.get('flags', 0) & 1:
                        continue
                    if kind in ('sum', 'gauge'):
                        values = {'value': int(point['asInt']) if 'asInt' in point
                                  else point['asDouble']}
                    else:
                        values = {'count': int(point.get('count', 0))}
                        values.update({'sum': point['sum']} if 'sum' in point else {})
                    described = {**values, **attributes(point.get('attributes'))}
                    [counter] = event(metric['name'], scope.get('scope', {}).get('name', ''),
                                      common, described,
                                      decimal.Decimal(point['timeUnixNano']) / 1000)
                    yield dict(counter, ph='C', values=described)


SEVERITIES = ('TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL')


def logs(resource):
    common = attributes(resource.get('resource', {}).get('attributes'))
    for scope in resource['scopeLogs']:
        for record in scope['logRecords']:
            [body] = record['body'].values()
            args = attributes(record.get('attributes'))
            name = record.get('eventName') or args.get('event.name') or (
                body if isinstance(body, str) else json.dumps(body, separators=(',', ':')))
            number = record.get('severityNumber', 0)
            cat = record.get('severityText') or (SEVERITIES[(number - 1) // 4] if number else '')
            time = int(record.get('timeUnixNano', 0)) or int(record['observedTimeUnixNano'])
            yield from event(name, cat, common, args, decimal.Decimal(time) / 1000)


OTLP = {'resourceSpans': otlp, 'resourceMetrics': metrics, 'resourceLogs': logs}


def console(span):
    small = {k.lower().replace('_', ''): v for k, v in span.items()}
    resource = small['resource']
    common = attributes(resource.get('attributes') if isinstance(resource, dict) else resource)
    yield from event(small['name'], small.get('instrumentationscope', {}).get('Name', ''), common,
                attributes(small['attributes']), date(small['starttime']), date(small['endtime']))


# ---- what belongs together

def phase(e):
    ph = PHASES.get(e.get('ph'), e.get('ph'))
    return 'A' if ph == 'X' and 'dft_cnt' in (e.get('args') or {}) else ph


def halves(events):
    """Pairs of a begin and its end, and then begins without one: (begin, end or None)."""
    stacks, pairs = {}, []
    for e in events:
        ph = phase(e)
        if ph not in ('B', 'E', 'b', 'e', 'S', 'F'):
            continue
        id2 = e.get('id2') or {}
        key = ('B', str(e.get('pid')), str(e.get('tid'))) if ph in 'BE' else (
            ph in 'SF', e.get('cat'), str(e.get('id')), str(id2), e.get('scope'),
            e.get('pid') if 'local' in id2 else None, e['name'] if ph in 'SF' else None)
        stack = stacks.setdefault(key, [])
        if ph in 'BbS':
            stack.append(e)
            continue
        same = [i for i, begun in enumerate(stack) if begun['name'] == e.get('name')]
        if stack and (not e.get('name') or (not same and ph == 'e' and len(stack) == 1)):
            same = [len(stack) - 1]
        if same:
            pairs.append((stack.pop(same[-1]), e))
    return pairs + [(begun, None) for stack in stacks.values() for begun in stack]
