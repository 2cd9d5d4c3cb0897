# SPDX-License-Identifier: BSD-3-Clause
# What is in the traces of nodes, by Python's gzip and json alone:
#   node_trace.py posix FILE          number of requests of programs
#   node_trace.py bytes FILE          bytes that their reads got
#   node_trace.py names FILE          the files that they are about, one a line
#   node_trace.py form FILE           what is wrong with its form, or nothing
#   node_trace.py lost FILE           events that are not in it, by reason
#   node_trace.py has FILE NAME       number of events of this name
#   node_trace.py counter FILE NAME KEY   the last value
#   node_trace.py sum FILE NAME KEY   of the arguments of events of this name
#   node_trace.py values FILE NAME KEY    those of the arguments of events of this name
#   node_trace.py clock FILE [US]     whether there are clock lines, and how many of them are
#                                     impossible for a clock of this machine that is this many
#                                     microseconds ahead
#   node_trace.py order FILE TRACE... for the timeline FILE that the TRACEs were merged into:
#                                     whether there are pairs of flows, and how many of them
#                                     arrive before they left, or after the answer
#   node_trace.py flows FILE...       number of pairs, and what has no other half
import gzip
import json
import sys
import zlib


def text(path):
    """What can be inflated, up to the last whole line: a killed node's last member may be cut off.
    """
    data, out = open(path, "rb").read(), b""
    while data:
        d = zlib.decompressobj(31)
        out += d.decompress(data)
        if not d.eof:
            break
        data = d.unused_data
    return out[:out.rfind(b"\n") + 1].decode()


def events(path):
    return [json.loads(line) for line in text(path).splitlines() if line not in "[]"]


def form(path):
    whole = gzip.open(path, "rt").read().splitlines()
    e = events(path)
    if whole[0] != "[" or whole[-1] != "]":
        yield "no brackets"
    for i, name in ((0, "start"), (-1, "end")):
        if (e[i]["name"], e[i]["cat"]) != (name, "dftracer"):
            yield "no " + name
    names = {x["args"]["value"] for x in e if x["name"] == "FH"}
    hosts = {x["args"]["value"] for x in e if x["name"] == "HH"}
    yield from ("hash without a name" for x in e if x["args"].get("fhash", 0) not in names | {0})
    yield from ("host without a name" for x in e if x["args"].get("hhash") not in hosts | {None})
    if len([x for x in e if x["name"] == "PR"]) != 1:
        yield "no rank"


def flows(paths):
    ends = {"s": [], "f": []}
    for path in paths:
        for x in events(path):
            if x["ph"] in ends:
                ends[x["ph"]].append(x["id"])
    s, f = map(set, ends.values())
    print(len(s & f), len(s ^ f) + len(ends["s"]) - len(s) + len(ends["f"]) - len(f))


def order(path, traces):
    """A request arrives after it left and before its answer is there, within what the measurement
    of clocks allows."""
    e = json.load(open(path))["traceEvents"]
    slack = 2 * max(x["args"]["rtt"] for t in traces for x in events(t) if x["name"] == "CO") + 2000
    wires = [x for x in e if x["name"] == "wire" and x["ph"] == "X"]
    left = {x["id"]: x for x in e if x["ph"] == "s"}
    pairs = [(left[x["id"]], x) for x in e if x["ph"] == "f" and x["id"] in left]
    early = late = 0
    for s, f in pairs:
        ends = [w["ts"] + w["dur"] for w in wires if w["pid"] == s["pid"]
                and w["ts"] - 1 <= s["ts"] <= w["ts"] + w["dur"]]
        early += f["ts"] < s["ts"] - slack
        late += bool(ends) and f["ts"] > max(ends) + slack
    print(len(pairs) > 0, early, late)


def main(what, path, *more):
    if what == "flows":
        return flows([path, *more])
    if what == "order":
        return order(path, more)
    e = events(path)
    posix = [x for x in e if x.get("cat") == "POSIX"]
    if what == "posix":
        print(len(posix))
    elif what == "bytes":
        print(sum(x["args"]["ret"] for x in posix if x["name"] == "read" and x["args"]["ret"] > 0))
    elif what == "names":
        named = {x["args"]["value"]: x["args"]["name"] for x in e if x["name"] == "FH"}
        print(*sorted({named[x["args"]["fhash"]] for x in posix if "fhash" in x["args"]}), sep="\n")
    elif what == "form":
        print(*sorted(set(form(path))), sep=", ")
    elif what == "lost":
        last = {x["args"]["name"]: x["args"]["value"] for x in e if x["name"] == "LO"}
        print(*(f"{k}={v}" for k, v in sorted(last.items())))
    elif what == "has":
        print(len([x for x in e if x["name"] == more[0]]))
    elif what == "counter":
        print([x["args"][more[1]] for x in e if x["ph"] == "C" and x["name"] == more[0]][-1])
    elif what == "sum":
        print(sum(x["args"].get(more[1], 0) for x in e if x["name"] == more[0]))
    elif what == "values":
        print(*sorted({x["args"].get(more[1], 0) for x in e if x["name"] == more[0]}))
    elif what == "clock":
        ahead = int(more[0]) if more else 0
        c = [x["args"] for x in e if x["name"] == "CO"]
        print(len(c) > 0,
              len([x for x in c if x["rtt"] < 0 or abs(x["value"] - ahead) > 2 * x["rtt"] + 2000]))


main(*sys.argv[1:])
