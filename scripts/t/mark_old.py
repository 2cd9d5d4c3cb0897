# SPDX-License-Identifier: BSD-3-Clause
"""Written after the documentation of PerfFlowAspect, which is not there: a package of its name is in
its place."""
import os.path
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import perfflowaspect.aspect
from perfflowaspect import aspect

pool = ThreadPoolExecutor(2)
filename = os.path.basename(__file__)


@perfflowaspect.aspect.critical_path()
def foo(msg):
    time.sleep(0.001)
    bar()
    return 1 if msg == "hello" else 0


@aspect.critical_path(pointcut="around")
def bar():
    return None


@aspect.critical_path(pointcut="before_async", scope="outer")
def submitted(n):
    return ended(n)


@aspect.critical_path(pointcut="after_async", scope="outer")
def ended(n):
    return n


@aspect.critical_path(pointcut="around_async")
def alone(n):
    return n


@aspect.critical_path(pointcut="before")
def opened():
    return 2


@aspect.critical_path(pointcut="after")
def closed():
    return 3


def direct(n):
    aspect.async_event("before", "load", filename)
    aspect.async_event("instant", "load", filename, scope="s", id=9)
    aspect.async_event("after", "load", filename, scope=None, id=None)
    return n


def main():
    aspect.sync_event("before", "main", filename)
    assert [foo("hello"), foo("x")] == [1, 0]
    assert opened() + closed() == 5
    assert [pool.submit(f, 4).result() for f in (submitted, alone, direct)] == [4, 4, 4]
    aspect.sync_event("after", "main", filename)
    assert foo.__name__ == "foo" and foo.__qualname__ == "foo"


if __name__ == "__main__":
    main()
    sys.exit(0)
