# SPDX-License-Identifier: BSD-3-Clause
"""mark_new.py WHAT [ARGUMENT]...: programs with marks, for t0861-mark-python.sh."""
import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time

import copper_mark


@copper_mark.critical_path()
def step(n=0):
    return n


@copper_mark.critical_path
def broken():
    raise KeyError("x")


def basics():
    with copper_mark.region("loop", "m"):
        copper_mark.counter("residual", 0.25)
        copper_mark.counter("infinite", float("inf"))
        copper_mark.counter("bytes", (1 << 53) + 1)
        step()
    try:
        broken()
    except KeyError:
        pass
    copper_mark.sync_event("before", 'q"b\\n\n\u00e4\udcff', None)
    copper_mark.sync_event("after", 'q"b\\n\n\u00e4\udcff', None)


@copper_mark.critical_path()
async def waits(n):
    await asyncio.sleep(0.001)
    return n


def coroutines():
    async def both():
        return await asyncio.gather(waits(1), waits(2))
    assert asyncio.run(both()) == [1, 2]


def threads():
    def work():
        for _ in range(1000):
            step()
    all_ = [threading.Thread(target=work) for _ in range(8)]
    for t in all_:
        t.start()
    for t in all_:
        t.join()


def processes(how):
    step()
    with multiprocessing.get_context(how).Pool(3, maxtasksperchild=2) as pool:
        assert sum(pool.map(step, range(6), chunksize=1)) == 15
        pool.close()
        pool.join()


def fork(how):
    for _ in range(20):
        step()
    pid = os.fork()
    if pid == 0:
        step()
        if how == "flush":
            copper_mark.flush()
            os._exit(0)
        sys.exit(0)
    os.waitpid(pid, 0)


def crash(n):
    for _ in range(int(n)):
        step()
    time.sleep(0.02)
    step()
    os.kill(os.getpid(), signal.SIGKILL)


def closes(own):
    step()
    os.closerange(3, 64)
    with open(own, "w") as f:
        f.write("mine\n")
        f.flush()
        time.sleep(0.005)
        step()


def limit(most):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
    for _ in range(2000):
        step()


def alarms(n):
    signal.signal(signal.SIGALRM, lambda *_: step())
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for _ in range(int(n)):
        with copper_mark.region("loop"):
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)


def mpi():
    library = ctypes.CDLL("libmpich.so.12")
    library.MPI_Init(None, None)
    with copper_mark.region("barrier"):
        library.MPI_Barrier(0x44000000)  # MPI_COMM_WORLD in MPICH's ABI
    library.MPI_Finalize()


def unknown():
    assert copper_mark.critical_path(pointcut="beside")(len) is len
    try:
        copper_mark.sync_event("beside", "a", "b")
    except ValueError:
        return
    assert not copper_mark.enabled


def off():
    assert not copper_mark.enabled and not hasattr(step, "__wrapped__")
    basics()
    copper_mark.flush()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
