#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The judge of run stores: Python's own sqlite3, which shares no code with copper.

    runs_judge.py STORE SQL             the rows, their columns separated by '|'
    runs_judge.py --hold STORE          locks the store until standard input ends; says 'held' first
    runs_judge.py --no-locks COMMAND... executes it; the kernel refuses locks to it, as a network
    without a lock service does
    runs_judge.py --series STORE KEY    how many points of the newest run, whether their steps and
                                        times ascend, the largest step
"""
import ctypes
import fcntl
import os
import platform
import sqlite3
import struct
import sys


def rows(store, sql):
    db = sqlite3.connect(store, timeout=60)
    try:
        with db:
            for row in db.execute(sql):
                print("|".join("" if v is None else str(v) for v in row))
    finally:
        db.close()


def hold(store):
    db = sqlite3.connect(store, timeout=60, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    sys.stdin.read()
    db.execute("ROLLBACK")


def no_locks(command):
    number = {"x86_64": 72, "aarch64": 25}[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    enolck, allow = 0x00050000 | 37, 0x7FFF0000
    code = b"".join(struct.pack("HBBI", *i) for i in (
        (load, 0, 0, 0), (equal, 0, 3, number), (load, 0, 0, 24), (equal, 0, 1, fcntl.F_SETLK),
        (give, 0, 0, enolck), (give, 0, 0, allow)))
    text = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
    os.execvp(command[0], command)


def series(store, key):
    db = sqlite3.connect(store, timeout=60)
    run = db.execute("SELECT id FROM run ORDER BY start DESC LIMIT 1").fetchone()[0]
    points = db.execute("SELECT step, time FROM metric WHERE run = ? AND key = ? ORDER BY step",
                        (run, key)).fetchall()
    times = [t for _, t in points]
    print(len(points), times == sorted(times), points[-1][0] if points else None)


if sys.argv[1] == "--hold":
    hold(sys.argv[2])
elif sys.argv[1] == "--no-locks":
    no_locks(sys.argv[2:])
elif sys.argv[1] == "--series":
    series(sys.argv[2], sys.argv[3])
else:
    rows(sys.argv[1], sys.argv[2])
