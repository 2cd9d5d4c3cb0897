#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A package of 32 modules that is replaced as programs do it, and programs that import it.

  t05_upgrade.py make DIR VERSION             writes the package DIR anew: __init__, 31 modules and
                                              one that only this version has
  t05_upgrade.py replace WAY DIR NEW          puts the package NEW in the place of DIR as pip,
                                              conda, rsync or mv do
  t05_upgrade.py import SITE PACKAGE          imports all modules; prints the versions seen, or what
                                              failed
  t05_upgrade.py start SITE PACKAGE GO        imports half of them; waits for the file GO; imports
                                              the others, and prints that
"""

import errno
import importlib
import os
import shutil
import sys
import time

COMMON = [f"m{i:02}" for i in range(31)]


def make(top, version):
    os.makedirs(top)
    names = COMMON + [f"only_{version}"]
    text = f"version = {version!r}\n" + f"# {'.' * 3000}\n"
    with open(f"{top}/__init__.py", "w", encoding="ascii") as f:
        f.write(text + f"names = {names}\n")
    for name in names:
        with open(f"{top}/{name}.py", "w", encoding="ascii") as f:
            f.write(text)


# ---- how a package is replaced


def pip(top, new):
    """The old files go to a directory beside it, one by one; then the new ones are copied to their
    places."""
    aside = os.path.join(os.path.dirname(top), "~" + os.path.basename(top)[1:])
    os.mkdir(aside)
    for name in os.listdir(top):
        os.rename(f"{top}/{name}", f"{aside}/{name}")
    for name in os.listdir(new):
        shutil.copy2(f"{new}/{name}", f"{top}/{name}")
    shutil.rmtree(aside)


def conda(top, new):
    """The old files are deleted; the new ones are links to those of the package cache."""
    for name in os.listdir(top):
        os.unlink(f"{top}/{name}")
    for name in os.listdir(new):
        os.link(f"{new}/{name}", f"{top}/{name}")


def rsync(top, new):
    """Each new file is written beside the old one and renamed over it; what is not there any more
    is deleted."""
    for name in sorted(os.listdir(new)):
        shutil.copy2(f"{new}/{name}", f"{top}/.{name}.tmp")
        os.rename(f"{top}/.{name}.tmp", f"{top}/{name}")
    for name in set(os.listdir(top)) - set(os.listdir(new)):
        os.unlink(f"{top}/{name}")


def mv(top, new):
    os.rename(top, top + ".old")
    os.rename(new, top)


# ---- programs that import it


def take(package, names):
    return [importlib.import_module(f"{package}.{name}").version for name in names]


def imported(site, package, between=lambda: None):
    sys.path.insert(0, site)
    try:
        top = importlib.import_module(package)
        half = len(top.names) // 2
        seen = [top.version] + take(package, top.names[:half])
        between()
        seen += take(package, top.names[half:])
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    except ImportError as e:
        return f"{type(e).__name__}: {e}"
    return " ".join(sorted(set(seen))) if len(seen) == 33 else f"only {len(seen)} modules"


def start(site, package, go):
    def wait():
        print("half", flush=True)
        while not os.path.exists(go):
            time.sleep(0.02)

    print(imported(site, package, wait), flush=True)


if __name__ == "__main__":
    {
        "make": make,
        "replace": lambda way, top,
     new: {"pip": pip, "conda": conda, "rsync": rsync, "mv": mv}[way](top, new),
        "import": lambda site, package: print(imported(site, package)),
        "start": start,
    }[sys.argv[1]](*sys.argv[2:])
