#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The blocks of README and of the manual, each with its kind, as files that a test can run.

    blocks.py list FILE...                 a line for each block: file, line, kind and what follows
                                           it
    blocks.py write DIR FILE...            and the text of each, as DIR/NUMBER.KIND, in that order
    blocks.py compare SHOWN PRINTED        lines of SHOWN that PRINTED does not have, but for
                                           numbers and sizes

In README a block stands between fences, and its kind follows "```sh"; a fence without a word is
"text". In a page it is a display (.Bd, .Dl), and a comment says its kind on the line before: .\\"
block: KIND What the kinds mean stands in t0420-blocks.sh."""
import os
import re
import sys

UNESCAPE = {r'\(aq': "'", r'\(ga': '`', r'\(dq': '"', r'\(ha': '^', r'\(ti': '~', r'\(rs': '\\',
            r'\e': '\\', r'\-': '-', r'\&': ''}
ESCAPE = re.compile(r"\\\(..|\\.")


# Formatters turn these into typographic characters unless they are written as \(aq, \(ga, \(ha,
# \(ti, and then nobody can paste them.
CHANGED = re.compile(r"['`^~]")


def unescape(line):
    """What a formatter shows of a line of a literal display."""
    return ESCAPE.sub(lambda m: UNESCAPE.get(m.group(), m.group()), line)


def blocks_of_markdown(lines):
    kind = None
    for number, line in enumerate(lines, 1):
        fence = line.startswith('```')
        if fence and kind is None:
            words = line[3:].split()
            kind, start, body = ' '.join(words[1:] if words[:1] == ['sh'] else ['text'] if not words
                                         else ['?'] + words), number, []
        elif fence:
            yield start, kind or '?', body
            kind = None
        elif kind is not None:
            body.append(line)
    if kind is not None:
        yield start, '?', body


def blocks_of_page(lines):
    kind, inside = None, False
    for number, line in enumerate(lines, 1):
        marked = re.match(r'^\.\\" block: (.*)$', line)
        if marked:
            kind = marked.group(1)
        elif re.match(r'^\.Bd\b', line):
            start, body, inside = number, [], True
        elif line.startswith('.Ed'):
            yield start, kind or '?', body
            kind, inside = None, False
        elif inside:
            if re.match(r"^[.']", line):
                kind = '? macro'
            elif CHANGED.search(line) and kind not in ('text', None):
                kind = '? quote'
            body.append(unescape(line))
        elif line.startswith('.Dl '):
            yield number, kind or '?', [unescape(line[4:])]
            kind = None
        elif kind is not None:
            yield number, '? display', []
            kind = None


def blocks(files):
    for name in files:
        with open(name, encoding='utf-8') as file:
            lines = file.read().split('\n')
        found = blocks_of_markdown(lines) if name.endswith('.md') else blocks_of_page(lines)
        for start, kind, body in found:
            yield os.path.basename(name), start, kind, body


def write(where, files):
    for number, (name, start, kind, body) in enumerate(blocks(files), 1):
        with open(os.path.join(where, '%03d.%s' % (number, kind.split()[0])), 'w',
                  encoding='utf-8') as out:
            out.write('\n'.join(body) + '\n')
        print('%03d\t%s\t%d\t%s' % (number, name, start, kind))


def shape(line):
    """A line without its numbers, sizes and the width of its columns."""
    line = re.sub(r'\d[\d.,]*( ?(B|[KMGT]iB))?\b', '0', line)
    return ' '.join(line.split())


def compare(shown, printed):
    with open(printed, encoding='utf-8', errors='replace') as file:
        have = {shape(line) for line in file}
    with open(shown, encoding='utf-8') as file:
        for line in file:
            if shape(line) and shape(line) != '...' and shape(line) not in have:
                print(line.rstrip('\n'))


def main(args):
    if args[:1] == ['list']:
        for name, start, kind, _ in blocks(args[1:]):
            print('%s\t%d\t%s' % (name, start, kind))
    elif args[:1] == ['write']:
        write(args[1], args[2:])
    elif args[:1] == ['compare'] and len(args) == 3:
        compare(args[1], args[2])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
