#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Looks at a page in headless Chromium, which it drives over the pipe of its debugging protocol.

browser.py BROWSER PAGE                                   a line "WHAT: ok" or "WHAT: what is wrong"
                                                          for each thing that it checks
browser.py BROWSER PAGE shot PNG WIDTH HEIGHT light|dark [ID]   a picture, from that section on
"""
import base64
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# What a page must be at each width: nothing is wider than the window except what scrolls by itself,
# and every section is visible.
FITS = """(() => {
  const width = document.documentElement.scrollWidth;
  const wide = width > window.innerWidth ? ["page " + width] : [];
  const seen = r => r.width > 100 && r.height > 40;
  const hidden = [...document.querySelectorAll("section")]
    .filter(s => !seen(s.getBoundingClientRect())).map(s => s.id);
  const out = [...document.querySelectorAll("section, p, dl, figure, h1, h2, figcaption")]
    .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)
    .map(e => e.tagName + " " + e.className);
  return [...wide, ...hidden.map(i => "hidden " + i), ...out].slice(0, 5).join(", ");
})()"""

# Finds names in a drawing that are too small to be read, since it is scaled to the window.
SMALL = """(() => [...document.querySelectorAll("svg")]
  .map(s => [s.getBoundingClientRect().width / s.viewBox.baseVal.width, s])
  .filter(([scale, s]) => scale && s.querySelector("text")
    && scale * parseFloat(getComputedStyle(s.querySelector("text")).fontSize) < 7)
  .map(([scale, s]) => s.closest("section").id + " " + scale.toFixed(2)).slice(0, 5).join(", "))()"""

# The contrast of texts with their background, as in WCAG 2.1 (1.4.3).
CONTRAST = """(() => {
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = c => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = c;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => {
    const [r, g, b] = c.map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c[3] === 255) return c;
    }
    return [255, 255, 255, 255];
  };
  const bad = [];
  const texts = "h1, h2, p, th, td, dt, dd, a, summary, figcaption, code, small, svg text";
  for (const e of document.querySelectorAll(texts)) {
    const s = getComputedStyle(e), ink = rgb(e.closest("svg") ? s.fill : s.color);
    const [a, b] = [light(ink), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(e.tagName + "." + e.getAttribute("class") + " " + ratio.toFixed(2));
  }
  return [...new Set(bad)].slice(0, 5).join(", ");
})()"""

FOCUS = """(() => { const e = document.activeElement; const s = getComputedStyle(e);
  return JSON.stringify([e.tagName,
    e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent,
    s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0]); })()"""


class Browser:
    def __init__(self, program):
        self.dir = tempfile.mkdtemp()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()

        def place():
            a, b = fcntl.fcntl(theirs_in, fcntl.F_DUPFD, 20), fcntl.fcntl(theirs_out,
                fcntl.F_DUPFD, 20)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--user-data-dir=" + self.dir, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=place, pass_fds=(3, 4))
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.data, self.number, self.events, self.input = ours_out, b"", 0, [], ours_in
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]

    session = None

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            got = self.receive()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError("%s: %s" % (method, got["error"]))
                return got["result"]
            self.events.append(got)

    def receive(self):
        while b"\0" not in self.data:
            more = os.read(self.input, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.data += more
        one, self.data = self.data.split(b"\0", 1)
        return json.loads(one)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.receive())

    def run(self, script):
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(json.dumps(got["exceptionDetails"]))
        return got["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def scheme(self, name, media=""):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def key(self, key, code, text=None, shift=False):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, modifiers=8 if shift else 0, **more)

    def load(self, page):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
        self.wait("Page.loadEventFired")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.out)
        os.close(self.input)
        shutil.rmtree(self.dir, ignore_errors=True)


def say(what, wrong):
    print("%s: %s" % (what, wrong or "ok"))


def check_keyboard(b):
    order = []
    for _ in range(14):
        b.key("Tab", 9)
        order.append(json.loads(b.run(FOCUS)))
    say("the first stop of the keyboard is the way past the sections",
        "" if order[0][1] == "#main" else str(order[0]))
    want = b.run(
        '[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href")).join(" ")').split()
    got = [o[1] for o in order[1:1 + len(want)]]
    say("then the sections follow in order", "" if got == want else str(got))
    say("what has the focus is outlined", ", ".join(o[1][:30] for o in order if not o[2]))
    b.run('document.querySelector("details:not([open]) > summary").focus()')
    b.key("Enter", 13, "\r")
    say("numbers open by the keyboard",
        "" if b.run('document.activeElement.parentElement.open') else "closed")
    b.run(
        "document.activeElement.parentElement.open = false; document.activeElement.blur(); "
        "scrollTo(0, 0)")


def check(b):
    for width in (1600, 1024, 640, 360):
        b.size(width, 900)
        say("%d wide" % width, b.run(FITS))
        say("names in drawings, %d wide" % width, b.run(SMALL))
    b.size(1200, 900)
    papers = []
    for scheme in ("light", "dark"):
        b.scheme(scheme)
        papers.append(b.run("getComputedStyle(document.body).backgroundColor"))
        b.run('document.querySelectorAll("details").forEach(d => d.open = true)')
        say("texts can be read, " + scheme, b.run(CONTRAST))
        b.run('document.querySelectorAll("details").forEach(d => d.open = false)')
    say("dark is not light", "" if papers[0] != papers[1] else papers[0])
    b.scheme("light")
    check_keyboard(b)
    say("charts have names",
        b.run(
        '[...document.querySelectorAll("svg")].filter(s => !s.getAttribute("aria-label")).length '
        '|| ""'))
    say("each chart of numbers has a table", b.run(
        '[...document.querySelectorAll("figure")].filter(f => !f.querySelector("table") && '
        '!f.closest("section").querySelector("table")).length || ""'))
    b.scheme("dark", "print")
    say("on paper there are no ways to sections",
        "" if b.run('getComputedStyle(document.querySelector("nav")).display') == "none" else "nav")
    say("and the paper is white", "" if b.run("getComputedStyle(document.body).backgroundColor") ==
        "rgb(255, 255, 255)" else "it is not")
    pdf = base64.b64decode(b.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    say("it prints", "" if pdf[:5] == b"%PDF-" and len(pdf) > 10000 else "%d bytes" % len(pdf))
    b.scheme("light")
    asked = {e["params"]["request"]["url"] for e in b.events
             if e.get("method") == "Network.requestWillBeSent"}
    say("nothing else is loaded",
        " ".join(sorted(u for u in asked if not u.endswith(".html") and not u.startswith("data:"))))
    says = [e for e in b.events if e.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown")]
    say("the console is empty", json.dumps(says)[:300] if says else "")


def shot(b, png, width, height, scheme, section=None):
    b.size(int(width), int(height))
    b.scheme(scheme)
    if section:
        b.run('document.getElementById("%s").scrollIntoView()' % section)
    with open(png, "wb") as f:
        f.write(base64.b64decode(b.call("Page.captureScreenshot", format="png")["data"]))


def main():
    b = Browser(sys.argv[1])
    try:
        b.load(sys.argv[2])
        if len(sys.argv) > 3:
            shot(b, *sys.argv[4:])
        else:
            check(b)
    finally:
        b.close()


if __name__ == "__main__":
    main()
