#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What side-by-side.sh measured, as a picture (SVG) or as README's table (Markdown), on standard
output:

    scripts/bench/run.sh --json build/side-by-side.json side-by-side
    scripts/bench/side-by-side-picture.py [--table] build/side-by-side.json
"""
import json
import math
import re
import statistics
import sys

NODES = (1, 2, 4, 8)
WAYS = (  # as side-by-side.sh calls it, the name shown, and what it costs besides time
    ("direct", "direct", "each node asks for everything"),
    ("cp", "`cp -r`", "copies what nobody reads; needs the space; old after a change"),
    ("tar", "`tar \\| tar`", "the same"),
    ("rsync", "`rsync -a`", "the same; brings only changes next time"),
    ("image", "squashfs image, copied", "a new image after each change, then copied again"),
    ("image-there", "squashfs image, in place",
     "a new image after each change; each node reads it"),
    ("sbcast", "squashfs image by `sbcast`", "a new image after each change; only under Slurm"),
    ("bindfs", "`bindfs`", "only the price of FUSE"),
    ("passthrough", "`passthrough_ll`", "only the price of FUSE"),
    ("copper", "**Copper**", "a node's memory; more operations than one direct start"),
    ("manifest", "**Copper**, after an earlier job",
     "the same; a pack of what that job read, on a local disk here"),
)
LEFT, TOP, RIGHT, STEP, GAP = 250, 78, 30, 9, 10
WIDTH = 860


def load(path):
    """(way, nodes, what) -> median"""
    values = {}
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    for row in rows:
        found = re.fullmatch(r"([a-z-]+), (\d+) nodes: (.*) / direct", row["what"])
        if row["bench"] == "side-by-side" and found:
            way, nodes, what = found.groups()
            values[way, int(nodes), what] = statistics.median(row["copper"])
    return values


def counts_of(values, way):
    return [n for n in NODES if (way, n, "first start") in values]


def seconds(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table_row(values, way, name, costs):
    counts = counts_of(values, way)
    if not counts:
        return None
    most = counts[-1]
    firsts = [seconds(values.get((way, n, "first start"))) for n in NODES]
    ops, size = values[way, most, "storage operations"], values[way, most, "storage bytes"] / 1e6
    return [name, *firsts, seconds(values[way, most, "second start"]), f"{ops:.0f}",
            f"{size:.0f}", costs]


def table(values):
    print(
        "| seconds to the last import | 1 node | 2 | 4 | 8 | second start | operations | MB | "
        "what it costs besides |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = {way: table_row(values, way, name, costs) for way, name, costs in WAYS}
    if rows["bindfs"] and rows["passthrough"]:  # two prices of the same: one line
        pairs = zip(rows["bindfs"], rows.pop("passthrough"))
        rows["bindfs"] = [a if a == b else f"{a}, {b}" for a, b in pairs]
    for row in rows.values():
        if row:
            print("| " + " | ".join(row) + " |")


STYLE = """
.back { fill: #ffffff } .text { fill: #24292f } .dim { fill: #57606a } .grid { stroke: #d8dee4 }
.other { stroke: #6e7781; fill: #6e7781 } .ours { stroke: #0969da; fill: #0969da }
.hollow { fill: #ffffff }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .text { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #30363d }
.other { stroke: #8b949e; fill: #8b949e } .ours { stroke: #58a6ff; fill: #58a6ff }
.hollow { fill: #0d1117 }
}
text { font: 13px sans-serif } .title { font-size: 16px; font-weight: bold }
.small { font-size: 11px }
"""


def text(x, y, words, classes, anchor="start"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{words}</text>'


class Scale:
    """Seconds to places, by their logarithm."""

    def __init__(self, values):
        times = [v for (_, _, what), v in values.items() if what in ("first start", "second start")]
        self.ticks = [t * 10**e for e in range(-3, 4) for t in (1, 2, 5)]
        self.least = max(t for t in self.ticks if t <= min(times))
        self.most = min(t for t in self.ticks if t >= max(times))

    def place(self, value):
        share = math.log(value / self.least) / math.log(self.most / self.least)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def shown(self):
        return [t for t in self.ticks if self.least <= t <= self.most]


def draw_way(values, scale, way, name, y):
    """One line for each number of nodes, from the second start to the first."""
    kind = "ours" if way in ("copper", "manifest") else "other"
    plain = name.replace("`", "").replace("*", "").replace("\\", "")
    counts = counts_of(values, way)
    yield text(LEFT - 34, y + (len(counts) - 1) * STEP / 2 + 5, plain, "text", "end")
    for i, n in enumerate(counts):
        at = y + i * STEP
        first, second = (scale.place(values[way, n, f"{which} start"])
                         for which in ("first", "second"))
        yield text(LEFT - 10, at + 4, str(n), "dim small", "end")
        yield f'<line x1="{second:.1f}" x2="{first:.1f}" y1="{at}" y2="{at}" class="{kind}" stroke-width="1.5"/>'
        yield f'<circle cx="{second:.1f}" cy="{at}" r="3" class="{kind} hollow"/>'
        yield f'<circle cx="{first:.1f}" cy="{at}" r="3.5" class="{kind}"/>'


def picture(values):
    scale = Scale(values)
    heights = [(way, name, STEP * len(counts_of(values, way))) for way, name, _ in WAYS]
    heights = [(way, name, height + GAP) for way, name, height in heights if height]
    bottom = TOP + sum(height for _, _, height in heights)
    title = "Seconds until the last of 1, 2, 4, 8 nodes has imported numpy"
    legend = "Filled: first start, with its staging. Hollow: second start. One line for each number of nodes; the scale is logarithmic."
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 12}" role="img" '
        f'aria-label="{title}">',
        f"<style>{STYLE}</style>",
        '<rect width="100%" height="100%" class="back"/>',
        text(20, 26, title, "text title"),
        text(20, 46, legend, "dim small"),
    ]
    for tick in scale.shown():
        x = scale.place(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}" class="grid"/>')
        out.append(text(x, TOP - 13, f"{tick:g} s", "dim small", "middle"))
    y = TOP + 4
    for way, name, height in heights:
        out.extend(draw_way(values, scale, way, name, y))
        y += height
    print("\n".join(out + ["</svg>"]))


def main():
    arguments = sys.argv[1:]
    show = picture
    if arguments[:1] == ["--table"]:
        show = table
        arguments.pop(0)
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__.strip())
    show(load(arguments[0]))


main()
