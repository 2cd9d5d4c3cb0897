#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Looks at a page of copper trace timeline in headless Chromium, as browser.py does at a report.

timeline_page.py BROWSER PAGE WORD         lines "WHAT: VALUE": what the page says, and what keys do;
                                           WORD is searched for
timeline_page.py BROWSER PAGE shot PNG WIDTH HEIGHT light|dark [KEY...]   a picture after these keys"""
import base64
import hashlib
import json
import sys
import time

from browser import Browser

NAMED = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38}


def press(b, key):
    if len(key) > 1 and key not in NAMED:
        b.call("Input.insertText", text=key)
    elif key == "Enter":
        b.key("Enter", 13, "\r")
    else:
        b.key(key, NAMED.get(key, ord(key[0].upper())), key if len(key) == 1 else None)


def settle(b):
    """Two frames, and what was waited for meanwhile."""
    time.sleep(0.3)
    b.call("Runtime.evaluate", awaitPromise=True, expression="new Promise(done => "
           "requestAnimationFrame(() => requestAnimationFrame(done)))")


def ready(b, page):
    b.load(page)
    for _ in range(600):
        got = b.run("document.documentElement.dataset.ready")
        if got:
            return got
        time.sleep(0.1)
    return "never"


def text(b, at):
    return b.run("document.getElementById('%s').innerText" % at).replace("\n", " ")


def picture(b):
    data = b.run("document.getElementById('view').toDataURL()")
    return hashlib.sha256(data.encode()).hexdigest()


def look(b, page, word):
    print("ready: " + ready(b, page))
    print("facts: " + text(b, "facts"))
    print("omitted: " + (text(b, "left") if b.run("!document.getElementById('left').hidden") else "-"))
    print("colours: %s" % (b.run("""(() => { const c = document.getElementById('view');
        const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
        for (let i = 0; i < p.length; i += 4) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]);
        return seen.size; })()""") > 8))
    seen = [picture(b)]
    for key in ("w", "d", "s", "0"):
        press(b, key)
        settle(b)
        seen.append(picture(b))
    print("zoom, move, zoom out and all are seen: %s, %s" % (len(set(seen[:4])), seen[0] == seen[4]))
    press(b, "/")
    press(b, word)
    settle(b)
    print("found: " + text(b, "found"))
    press(b, "Enter")
    settle(b)
    print("first: " + text(b, "found"))
    print("details: " + text(b, "details"))
    press(b, "Escape")
    settle(b)
    print("nothing is selected: " + text(b, "details"))
    press(b, "?")
    print("help is open: %s" % b.run("document.getElementById('help').open"))
    asked = {e["params"]["request"]["url"] for e in b.events
             if e.get("method") == "Network.requestWillBeSent"}
    print("loaded: %d" % len([u for u in asked if not u.startswith(("data:", "blob:"))]))
    says = [e for e in b.events if e.get("method") in
            ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown",
             "Page.javascriptDialogOpening")]
    print("console: " + (json.dumps(says)[:400] if says else "-"))
    print("elements of traces: %d" % b.run("document.querySelectorAll('[data-trace], img, iframe').length"))


def main():
    b = Browser(sys.argv[1])
    try:
        b.size(1400, 900)
        if sys.argv[3] != "shot":
            look(b, sys.argv[2], sys.argv[3])
            return
        b.size(int(sys.argv[5]), int(sys.argv[6]))
        b.scheme(sys.argv[7])
        ready(b, sys.argv[2])
        for key in sys.argv[8:]:
            press(b, key)
            settle(b)
        settle(b)
        shot = b.call("Page.captureScreenshot", format="png")
        with open(sys.argv[4], "wb") as out:
            out.write(base64.b64decode(shot["data"]))
    finally:
        b.close()


if __name__ == "__main__":
    main()
