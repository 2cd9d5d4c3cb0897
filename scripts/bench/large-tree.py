#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""large-tree.py DIR: makes the package DIR/large, which has the sizes and depths of an installed
TensorFlow: 3,500 files and 1.1 GB, of which one library is two thirds and most files are small
sources and headers, up to nine directories deep. Importing it reads what importing TensorFlow does:
some hundred modules, and a tenth of the library in places all over it, as the dynamic linker and
page faults would. The same arguments give the same tree."""
import compileall
import os
import random
import sys

FOLDERS, DEPTH, MODULES, IMPORTED, HEADERS = 250, 9, 1000, 400, 980
LIBRARIES = [("libtensor_cc.so", 734), ("python/_wrap.so", 170), ("libtensor_framework.so", 52)] + [
    (f"python/lib/_part{i}.so", 6) for i in range(20)
]
READ_EVERY = 12 << 20  # a run of the library begins so often, and is a tenth as long


def make_folders(rng, top):
    """Their names, relative to top."""
    names = "python core ops framework kernels util lib client data distribute saved keras".split()
    all_of_them = names[:4]
    while len(all_of_them) < FOLDERS:
        parent = rng.choice(all_of_them[-60:])
        if parent.count("/") < DEPTH - 1:
            all_of_them.append(f"{parent}/{rng.choice(names)}{len(all_of_them)}")
    for folder in all_of_them:
        os.makedirs(f"{top}/{folder}")
    return all_of_them


def write_source(rng, path, imports):
    with open(path, "w", encoding="ascii") as out:
        out.write("".join(f"import {name}\n" for name in imports))
        for i in range(int(rng.lognormvariate(3, 0.8)) + 1):
            out.write(f'\ndef function_{i}(a, b={i}):\n    """Returns the sum of {i} and both."""\n')
            out.write("".join(f"    c{j} = a * {rng.randrange(10**6)} + b\n" for j in range(8)))
            out.write("    return c0 + c7\n")


def write_modules(rng, top, folders):
    names = []
    for folder in folders:
        open(f"{top}/{folder}/__init__.py", "w", encoding="ascii").close()
    for i in range(MODULES):
        below = rng.choice(folders)
        names.append(f"large.{below.replace('/', '.')}.module{i}")
        write_source(rng, f"{top}/{below}/module{i}.py", [])
    return rng.sample(names, IMPORTED)


def write_binary(rng, path, mib):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Half of it can be packed, as of a library.
    with open(path, "wb") as out:
        for _ in range(mib * 2):
            out.write(rng.randbytes(262144) + bytes(262144))


def main():
    rng = random.Random(1)
    top = f"{sys.argv[1]}/large"
    os.makedirs(top)
    folders = make_folders(rng, top)
    imports = write_modules(rng, top, folders)
    for i in range(HEADERS):
        below = f"{top}/include/{rng.choice(folders)}"
        os.makedirs(below, exist_ok=True)
        with open(f"{below}/header{i}.h", "wb") as out:
            out.write(b"/* declarations */\n" * (int(rng.lognormvariate(5, 1)) + 1))
    for name, mib in LIBRARIES:
        write_binary(rng, f"{top}/{name}", mib)
    with open(f"{top}/__init__.py", "w", encoding="ascii") as out:
        out.write("".join(f"import {name}\n" for name in imports))
        out.write(
            f"import mmap\nEVERY = {READ_EVERY}\n"
            'with open(__file__.rsplit("/", 1)[0] + "/libtensor_cc.so", "rb") as f:\n'
            "    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
            "    total = sum(m[p] for at in range(0, len(m), EVERY)\n"
            "                for p in range(at, min(at + EVERY // 10, len(m)), 4096))\n"
        )
    compileall.compile_dir(top, quiet=1, maxlevels=12)


main()
