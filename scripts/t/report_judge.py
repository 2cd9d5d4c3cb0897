#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a page of copper report says, read by a parser of HTML that knows nothing of Copper.

report_judge.py FILE whole               prints "whole" if each tag is closed in order and no id
                                         comes twice
report_judge.py FILE sections            the ids of the sections, in order
report_judge.py FILE loads               what a browser would load or run: nothing
report_judge.py FILE missing             the ids of sections that say that something is missing
report_judge.py FILE says TEXT           prints "yes" if the text of the page has it
report_judge.py FILE table ID HEADING... rows of the first table of that section that has these
headings, those cells
report_judge.py FILE operations CSV      prints "same" if the calls, hits, misses of each operation
                                         are those of the CSV
report_judge.py FILE paths CSV           the same for the most read paths
report_judge.py FILE nodes CSV           the same for the requests, operations at the storage and
                                         parents of all nodes
"""
import csv
import html.parser
import re
import sys

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.sections, self.faults, self.loads = [], set(), [], [], []
        self.missing, self.text, self.tables, self.cell = [], [], [], None

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in a:
            if a["id"] in self.ids:
                self.faults.append("twice: " + a["id"])
            self.ids.add(a["id"])
        if tag == "section":
            self.sections.append(a["id"])
        if tag in ("script", "iframe", "object", "embed", "img", "base",
                   "form") or any(k.startswith("on") for k in a):
            self.loads.append(tag)
        for key in ("href", "src", "action", "xlink:href"):
            if key in a and not a[key].startswith("#") and a[key] != "data:,":
                self.loads.append(a[key])
        if a.get("class") == "missing" and self.sections:
            self.missing.append(self.sections[-1])
        if tag == "table":
            self.tables.append((self.sections[-1], []))
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append("%s ends inside %s" % (tag, self.open[-3:]))
        else:
            self.open.pop()
        if tag in ("td", "th"):
            self.tables[-1][1][-1].append("".join(self.cell))
            self.cell = None

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
        if self.cell is not None:
            self.cell.append(data)


def table(page, section, headings):
    for where, rows in page.tables:
        if where == section and rows and all(h in rows[0] for h in headings):
            at = [rows[0].index(h) for h in headings]
            return [tuple(r[i] for i in at) for r in rows[1:]]
    return []


def number(text):
    return "{:,.0f}".format(float(text))


def rows_of(name):
    with open(name, newline="", encoding="utf-8", errors="surrogateescape") as f:
        return list(csv.DictReader(f))


def shown(path):
    """As the page shows a path: bytes that are no characters, and a line end, by their numbers."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8",
        "backslashreplace").replace("\n", "\\x0a")


def same(got, want):
    if got and sorted(got) == sorted(want):
        return "same"
    return "got %s, wanted %s" % (sorted(got)[:20], sorted(want)[:20])


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    page, what = Page(), sys.argv[2]
    page.feed(text)
    page.close()
    if what == "whole":
        faults = page.faults + ["open: " + t for t in page.open]
        print("; ".join(faults[:5]) or "whole")
    elif what == "sections":
        print(" ".join(page.sections))
    elif what == "missing":
        print(" ".join(dict.fromkeys(page.missing)))
    elif what == "loads":
        other = [u for u in re.findall(r"https?://[^\"' <]+", text)
                 if u != "http://www.w3.org/2000/svg"]
        print(" ".join(page.loads + other + re.findall(r"@import|url\([^)]*\)", text)))
    elif what == "says":
        print("yes" if sys.argv[3] in "".join(page.text) else "no")
    elif what == "table":
        for row in table(page, sys.argv[3], sys.argv[4:]):
            print("\t".join(row))
    elif what == "operations":
        got = table(page, "operations",
                    ["request", "calls", "from memory", "fetched", "absent or refused"])
        print(same(got,
                   [(r["operation"],) + tuple(number(r[k])
                   for k in ("total_calls", "cache_hits", "cache_misses", "negative_results"))
                         for r in rows_of(sys.argv[3])]))
    elif what == "paths":
        got = table(page, "paths", ["path", "requests", "fetched"])
        data = [r for r in rows_of(sys.argv[3]) if r["category"] == "data"]
        data.sort(key=lambda r: (-int(r["total_events"]),
                                 r["path"].encode("utf-8", "surrogateescape")))
        print(same(got, [(shown(r["path"]), number(r["total_events"]), number(r["cache_misses"]))
                         for r in data[:20]]))
    elif what == "from":
        places = ("own", "nodes", "passed", "disk", "pack", "storage")
        rows = rows_of(sys.argv[3])
        for r in rows:
            if sum(int(r["from_%s_bytes" % p]) for p in places) != \
                    int(r["read_bytes"]) + int(r["ahead_bytes"]):
                print("rank %s: the places do not add up" % r["rank"])
        got = table(page, "from", ["place", "bytes"])
        want = [any(int(r["from_%s_bytes" % p]) for r in rows) for p in places]
        print("same" if [b != "0 B" for _, b in got] == want else (got, want))
    elif what == "nodes":
        got = table(page, "tree", ["node", "parent", "requests", "storage operations"])
        print(same(got,
                   [("%s %s" % (r["rank"], r["host"]),
                     "storage" if r["parent"] == "-1" else r["parent"],
                          number(r["requests"]), number(r["origin_operations"]))
                    for r in rows_of(sys.argv[3])]))


main()
