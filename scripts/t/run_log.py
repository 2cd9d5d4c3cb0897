# SPDX-License-Identifier: BSD-3-Clause
"""A program that logs its run, for t1606: run_log.py WHAT."""
import builtins
import os
import sys
import threading
import time

import copper_run

what = sys.argv[1]
run = copper_run.current()
if what == "threads":
    def log(key):
        for i in range(500):
            run.metrics({key: i, key + "b": i}, step=i)
    threads = [threading.Thread(target=log, args=("t%d" % i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for i in range(4):
        if os.fork() == 0:
            run.metric("child", i, i)
            os._exit(0)
    for thread in threads:
        thread.join()
    for i in range(4):
        os.wait()
elif what == "beginnings":  # eight threads begin the file of a process, 50 times
    def begin(barrier, i):
        barrier.wait()
        run.metric("begin", 1, i)
    sys.setswitchinterval(1e-6)
    for i in range(50):
        if os.fork() == 0:
            barrier = threading.Barrier(8)
            threads = [threading.Thread(target=begin, args=(barrier, 8 * i + k)) for k in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(0)
        os.wait()
    run.metric("end", 1)
elif what == "imports":  # prints what is imported while it logs
    imported = []
    real_import = builtins.__import__
    builtins.__import__ = lambda name, *args: imported.append(name) or real_import(name, *args)
    run.metric("x", 1, 1)
    run.param("p", 1)
    if os.fork() == 0:
        run.metric("child", 1, 1)
        os._exit(len(imported))
    print(*imported, os.WEXITSTATUS(os.wait()[1]))
elif what == "cost":
    best = [9e9, 9e9]
    values = {"m%d" % i: i / 3 for i in range(10)}
    for _ in range(10):
        began = time.process_time()
        for i in range(2000):
            run.metrics({"train_loss": 1 / (1 + i)}, step=i)
        best[0] = min(best[0], (time.process_time() - began) / 2000)
        began = time.process_time()
        for i in range(200):
            run.metrics(values, step=i)
        best[1] = min(best[1], (time.process_time() - began) / 2000)
    print("%.2f %.2f" % (best[0] * 1e6, best[1] * 1e6))
elif what == "ranks":  # as many processes as are asked for, one after the other
    for rank in range(int(sys.argv[2])):
        if os.fork() == 0:
            run.metric("rank%d" % (rank % 10), 1, rank)
            os._exit(0)
        os.wait()
elif what == "forks":  # a child in the millisecond after a metric of its parent
    for i in range(100):
        run.metric("parent", i, i)
        if os.fork() == 0:
            run.metric("forked", i, i)
            os._exit(0)
        os.wait()
elif what == "denied":  # prints how often a file was opened
    if os.geteuid() == 0:
        os.setresuid(65534, 65534, 65534)
    opened = []
    os_open = os.open
    os.open = lambda *args: opened.append(args) or os_open(*args)
    for i in range(1000):
        run.metric("x", i, i)
    print(len(opened))
elif what == "full":  # more than the disk holds, then after there is room again
    for i in range(5000):
        run.metric("x", i, i)
    os.unlink(sys.argv[2])
    run.metric("y", 1, 0)
    print("done")
elif what == "odd":
    run.params({"nul": "a\0b", "long": "é" * 5000, "none": None, "bad": "\udcff", "": "no key"})
    run.metrics({"text": "no number", "ok": "3.5", "inf": float("inf"), "top 5 %d%": 99})
    run.metric("ok", 4)
    print("done")
elif what == "raise":
    with run:
        run.params({"lr": 0.1, "a\tb": "c\\\nd"})
        raise ValueError("as asked")
elif what == "exit":
    with run:
        run.param("lr", 1)
        sys.exit(3)
elif what == "leave":
    run.param("lr", 1)
    sys.exit(3)
elif what == "stay":
    try:
        sys.exit(3)
    except SystemExit:
        run.param("lr", 1)
else:
    run.params({"lr": 0.1})
    run.tag("a\tb", "c\\\nd")
    run.metric("loss", 0.1, 3)
    run.status("FAILED", "as asked")
