# SPDX-License-Identifier: BSD-3-Clause
"""Marks a program's critical path, as with PerfFlowAspect; see copper-mark(1).

    import copper_mark as aspect

    @aspect.critical_path()
    def solve():
        with aspect.region("step"):
            aspect.counter("residual", 0.1)

Code written for perfflowaspect.aspect runs with this module in its place. PERFFLOW_OPTIONS is
honoured. Python 3.7 or later; nothing but the standard library. Where marks are off, decorated
functions are the functions themselves.

A process creates its file with its first event: in log-dir if that option is given, else in
$COPPER_JOB_DIR/trace, else in the working directory. The file is valid JSON at any time. An event
is written at once, unless something was written less than a millisecond ago (or, where the last two
writes took longer, 100 times what the quicker took, at most a second): a crash, os._exit and
os.exec* lose at most those, flush() before them loses none. Errors are told once on standard error
and never stop the program."""
import atexit
import errno
import functools
import itertools
import json
import os
import resource
import sys
import threading
import time
from time import time_ns as _now

__all__ = ["critical_path", "sync_event", "async_event", "region", "counter", "flush", "enabled"]

_MS = 1000000
_S = 1000 * _MS
_MANY = 512  # events that wait
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO,
            errno.EAGAIN, errno.EFBIG, errno.ESTALE)


def _say(text):
    try:
        os.write(2, ("copper-mark: %s\n" % text).encode(errors="backslashreplace"))
    except OSError:
        pass


# ---- options

def _either(key, value, no, yes, otherwise):
    word = value.lower()
    if word in (no, yes):
        return word == yes
    _say("PERFFLOW_OPTIONS: not a value of %s: %s; ignored" % (key, value))
    return otherwise


def _options():
    o = {"name": "generic", "log-filename-include": "hostname,pid", "log-dir": "",
         "log-enable": "True", "cpu-mem-usage": "False", "log-event": "Verbose",
         "log-format": "Array"}
    for word in os.environ.get("PERFFLOW_OPTIONS", "").split(":"):
        key, equals, value = word.partition("=")
        key = "cpu-mem-usage" if key == "cpu_mem_usage" else key
        if word and not equals:
            _say("PERFFLOW_OPTIONS: not KEY=VALUE: %s; ignored" % word)
        elif word and key not in o:
            _say("PERFFLOW_OPTIONS: no option is called %s; ignored" % key)
        elif word:
            o[key] = value
    return o


def _instance():
    """What names this job, as PerfFlowAspect has it."""
    import hashlib
    env = os.environ
    name = env.get("FLUX_JOB_ID")
    if name is None:
        job, step = env.get("SLURM_JOB_ID"), env.get("SLURM_STEP_ID")
        if job is None:
            job, step = env.get("LSB_JOBID"), env.get("LS_JOBPID")
        text = "1"
        if job is not None and step is not None:
            text = job + "." + step
        elif "FLUX_URI" in env:
            scheme, mark, rest = env["FLUX_URI"].partition("://")
            text = os.path.dirname("/" + rest.partition("/")[2] if mark else scheme)
        name = hashlib.sha1(os.fsencode(text)).hexdigest()[:8]
    above = env.get("PERFFLOW_INSTANCE_PATH")
    return name if above is None else above + "." + name


def _name(o, object_format):
    parts = ["perfflow", "object" if object_format else "array"]
    for word in o["log-filename-include"].split(","):
        if word == "name":
            parts.append(o["name"])
        elif word == "hostname":
            parts.append(os.uname()[1])
        elif word == "pid":
            parts.append("\1")
        elif word == "instance-path":
            parts.append("{%s}" % _instance())
        elif word:
            _say("PERFFLOW_OPTIONS: log-filename-include knows no %s; ignored" % word)
    return ".".join(part[:200] for part in parts).replace("/", "-")[:220]


class _File:
    """The file of this process."""

    def __init__(self, o):
        self.object = _either("log-format", o["log-format"], "array", "object", False)
        self.name = _name(o, self.object)
        job = os.environ.get("COPPER_JOB_DIR")
        self.in_job = not o["log-dir"] and bool(job)
        where = os.path.join(job, "trace") if self.in_job else o["log-dir"] or "."
        try:
            where = os.path.abspath(where)
        except OSError:  # the working directory is gone
            pass
        self.dir = where
        self.reset()

    def reset(self):
        self.fd = None
        self.inode = None
        self.end = 0
        self.path = self._path(0)

    def forget(self):
        if self.fd is not None:
            os.close(self.fd)
        self.reset()

    def _path(self, n):
        """The n-th name to try: there may be a file of another process of this number."""
        pid = os.getpid()
        if "\1" in self.name:
            base = self.name.replace("\1", str(pid)) + ("-%d" % (n + 1) if n else "")
        else:
            base = self.name + ("-%d" % pid if n else "") + ("-%d" % n if n > 1 else "")
        return os.path.join(self.dir, base + ".pfw")

    def _create(self):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for n in range(1000):
            self.path = self._path(n)
            try:
                try:
                    return os.open(self.path, flags, 0o666)
                except FileNotFoundError:
                    os.makedirs(self.dir, 0o700 if self.in_job else 0o777, exist_ok=True)
                    return os.open(self.path, flags, 0o666)
            except FileExistsError:
                pass
        raise FileExistsError(errno.EEXIST, "too many files of this name are there")

    def _is_ours(self):
        try:
            st = os.fstat(self.fd)
        except OSError:
            return False
        return (st.st_dev, st.st_ino) == self.inode

    def _open(self):
        """The program may have closed the descriptor, and opened another file in its place."""
        if self.fd is not None and self._is_ours():
            return
        self.fd = None
        if self.end:
            self.fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            if not self._is_ours():
                os.close(self.fd)
                self.fd = None
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            return
        fd = self._create()
        if fd < 3:
            import fcntl
            fd, low = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3), fd
            os.close(low)
        st = os.fstat(fd)
        self.fd, self.inode = fd, (st.st_dev, st.st_ino)

    def append(self, texts):
        """The closing is part of each write; the next one replaces it."""
        closing = b"\n]}\n" if self.object else b"\n]\n"
        opening = b"[\n"
        if self.object:
            opening = b'{"displayTimeUnit":"us","otherData":{},"traceEvents":[\n'
        data = (b",\n" if self.end else opening) + ",\n".join(texts).encode()
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if most != resource.RLIM_INFINITY and self.end + len(data) + len(closing) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        self._open()
        n = os.pwrite(self.fd, data + closing, self.end)
        if n == len(data) + len(closing):
            self.end += len(data)
            return
        if self.end:
            os.pwrite(self.fd, closing, self.end)
        os.ftruncate(self.fd, self.end + len(closing) if self.end else 0)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        if self.fd is not None and self._is_ours():
            if not self.end:
                os.unlink(self.path)
            os.close(self.fd)
        self.fd = None


# ---- events

_chosen = _options()
enabled = _either("log-enable", _chosen["log-enable"], "false", "true", True)
_compact = _either("log-event", _chosen["log-event"], "verbose", "compact", False)
_usage = _either("cpu-mem-usage", _chosen["cpu-mem-usage"], "false", "true", False)
_file = _File(_chosen)
_pending = []  # texts of events
_missing = 0
_told = False
_failing = False
_wrote_ns = _due_ns = _took_ns = 0
_pid = os.getpid()
_lock = threading.Lock()
_local = threading.local()
_ids = itertools.count(1)


def _failed(e):
    """Without memory, descriptors or space it may do better later; without permission not."""
    global _told, _failing, enabled
    again = bool(_file.end) or e.errno in _PASSING
    enabled = enabled and again
    _failing = True
    if not _told:
        _told = True
        _say("cannot write %s: %s; the program goes on, %s" % (
            _file.path, e.strerror or e,
            "events beyond its buffers are left out" if again else "without marks"))


def _write_out(now, final):
    global _missing, _failing, _wrote_ns, _due_ns, _took_ns
    if _failing and not final and _wrote_ns <= now < _due_ns:
        _missing += len(_pending[_MANY:])
        del _pending[_MANY:]
        return
    texts = _pending[:]
    if not texts:
        return
    try:
        if _missing:
            texts.append(_text(_head("events left out", "copper-mark"), now,
                               ',"ph":"C","args":{"events":%d}}' % _missing))
        _file.append(texts)
        del _pending[:len(texts) - bool(_missing)]
        _missing = 0
        _failing = False
    except OSError as e:
        _failed(e)
    took_ns = _now() - now
    _wrote_ns = now
    _due_ns = now + (_S if _failing else min(max(100 * min(took_ns, _took_ns), _MS), _S))
    _took_ns = took_ns


def _write(now, final=False):
    # Do not wait: this thread may hold the lock, in code that a signal handler interrupted.
    if _pid != os.getpid():
        _forked()
    if not _lock.acquire(timeout=1) if final else not _lock.acquire(False):
        return
    try:
        _write_out(now, final)
    finally:
        _lock.release()


def flush():
    """Writes what was marked until now: before os._exit and os.exec*."""
    _write(_now(), True)


@functools.lru_cache(maxsize=1024)
def _kept(text):
    return json.dumps(str(text)[:255])


def _string(text):
    try:
        return _kept(text)
    except TypeError:  # not hashable
        return json.dumps(str(text)[:255])


def _head(name, category):
    return '{"name":%s,"cat":%s' % (_string(name), _string(category))


def _text(head, ns, tail):
    try:
        who = _local.who
    except AttributeError:
        tid = threading.get_native_id() if hasattr(threading, "get_native_id") else _pid
        who = _local.who = ',"pid":%d,"tid":%d,"ts":' % (_pid, tid)
    return "%s%s%d.%03d%s" % (head, who, ns // 1000, ns % 1000, tail)


def _mark(head, ns, tail):
    if not enabled:
        return
    _pending.append(_text(head, ns, tail))
    # A clock that went back also makes a write due.
    if not _wrote_ns <= ns < _due_ns or len(_pending) >= _MANY:
        _write(ns)


def _async_tail(phase, id, scope):
    tail = ',"ph":"%s","id":%s' % (phase, id if type(id) is int else _string(id))
    return tail + (',"scope":%s}' % _string(scope) if scope else "}")


# ---- a process ends, or has a child

def _finish():
    global _wrote_ns, _due_ns
    flush()
    with_missing = _missing + len(_pending)
    if with_missing and enabled:
        _say("%d events are missing in %s" % (with_missing, _file.path))
    _file.close()
    _wrote_ns = _due_ns = 0


def _forked():
    global _lock, _local, _pid, _missing, _told, _failing, _wrote_ns, _due_ns
    _lock = threading.Lock()
    _local = threading.local()
    _pid = os.getpid()
    _missing = _wrote_ns = _due_ns = 0
    _told = _failing = False
    del _pending[:]
    _file.forget()
    _tell_multiprocessing()


class _Hook:
    """multiprocessing keeps what is to be done in a child by weak references."""


_hook = _Hook()


def _at_end_of_child(_=None):
    sys.modules["multiprocessing.util"].Finalize(_hook, flush, exitpriority=0)


def _tell_multiprocessing():
    """Its children end with os._exit, after its own finalizers."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and hasattr(util, "register_after_fork"):
        util.register_after_fork(_hook, _at_end_of_child)
        _at_end_of_child()


if enabled:
    atexit.register(_finish)
    os.register_at_fork(after_in_child=_forked)
    _tell_multiprocessing()


# ---- for programs

def _count(head, begin_ns, end_ns, cpu_ns):
    """The counters of a region stand at its begin, and zeros at its end."""
    cpu = 100.0 * cpu_ns / (end_ns - begin_ns) if end_ns > begin_ns else 0
    tail = ',"ph":"C","args":{"cpu_usage":%r,"memory_usage":%d}}'
    _mark(head, begin_ns, tail % (cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    _mark(head, end_ns, tail % (0.0, 0))


def _begin(head):
    cpu_ns = time.process_time_ns() if _usage else 0
    ns = _now()
    if not _compact:
        _mark(head, ns, ',"ph":"B"}')
    return ns, cpu_ns


def _end(head, began):
    ns = _now()
    if _usage:
        _count(head, began[0], ns, time.process_time_ns() - began[1])
    if _compact:
        us, rest = divmod(max(ns - began[0], 0), 1000)
        _mark(head, began[0], ',"ph":"X","dur":%d.%03d}' % (us, rest))
    else:
        _mark(head, ns, ',"ph":"E"}')


class region:
    """with region(NAME): marks what it holds."""

    __slots__ = ("_head", "_began")

    def __init__(self, name, category="__main__"):
        self._head = _head(name, category) if enabled else None

    def __enter__(self):
        self._began = _begin(self._head) if self._head else None
        return self

    def __exit__(self, *_):
        if self._began:
            _end(self._head, self._began)
        return False


def _around(func, head):
    def wrapper(*args, **kwargs):
        began = _begin(head)
        try:
            return func(*args, **kwargs)
        finally:
            _end(head, began)
    return wrapper


def _sync(func, head, begin, end):
    def wrapper(*args, **kwargs):
        if begin:
            _mark(head, _now(), ',"ph":"B"}')
        try:
            return func(*args, **kwargs)
        finally:
            if end:
                _mark(head, _now(), ',"ph":"E"}')
    return wrapper


def _thread():
    return threading.get_native_id() if hasattr(threading, "get_native_id") else _pid


def _async(func, head, begin, end, scope):
    def wrapper(*args, **kwargs):
        id = _thread()
        if begin:
            _mark(head, _now(), _async_tail("b", id, scope))
        try:
            return func(*args, **kwargs)
        finally:
            if end:
                _mark(head, _now(), _async_tail("e", id, scope))
    return wrapper


def _coroutine(func, head, begin, end, scope):
    """Coroutines of a thread do not nest: each call has an id of its own."""
    async def wrapper(*args, **kwargs):
        id = next(_ids)
        if begin:
            _mark(head, _now(), _async_tail("b", id, scope))
        try:
            return await func(*args, **kwargs)
        finally:
            if end:
                _mark(head, _now(), _async_tail("e", id, scope))
    return wrapper


_POINTCUTS = ("around", "before", "after", "around_async", "before_async", "after_async")
_CO_COROUTINE = 0x80


def critical_path(pointcut="around", scope=""):
    """Decorates a function. An exception ends its region, too."""
    if callable(pointcut):  # @critical_path without parentheses
        return critical_path()(pointcut)
    if pointcut not in _POINTCUTS:
        _say("unknown pointcut %r: the function is not marked; there are %s" % (
            pointcut, ", ".join(_POINTCUTS)))

    def decorate(func):
        if not enabled or pointcut not in _POINTCUTS:
            return func
        where = pointcut.partition("_")[0]
        head = _head(getattr(func, "__qualname__", repr(func)), getattr(func, "__module__", ""))
        begin, end = where != "after", where != "before"
        if getattr(getattr(func, "__code__", None), "co_flags", 0) & _CO_COROUTINE:
            wrapper = _coroutine(func, head, begin, end, scope)
        elif pointcut == "around":
            wrapper = _around(func, head)
        elif pointcut == where:
            wrapper = _sync(func, head, begin, end)
        else:
            wrapper = _async(func, head, begin, end, scope)
        return functools.wraps(func)(wrapper)

    return decorate


def _phase(phases, pointcut):
    try:
        return phases[pointcut]
    except KeyError:
        raise ValueError("Invalid pointcut: %s" % pointcut) from None


def sync_event(pointcut, name, category):
    """pointcut is "before" or "after"."""
    phase = _phase({"before": "B", "after": "E"}, pointcut)
    _mark(_head(name, category), _now(), ',"ph":"%s"}' % phase)


def async_event(pointcut, name, category, scope=None, id=None):
    """pointcut is "before", "instant" or "after"."""
    phase = _phase({"before": "b", "instant": "n", "after": "e"}, pointcut)
    _mark(_head(name, category), _now(), _async_tail(phase, id or 123, scope))


def counter(name, value, category="__main__"):
    """A value that changes over time; one that is not finite becomes null. Whole numbers of 64 bits
    are exact."""
    if isinstance(value, int) and -1 << 63 <= value < 1 << 64:
        text = "%d" % value
    else:
        value = float(value)
        text = repr(value) if value - value == 0 else "null"
    _mark(_head(name, category), _now(), ',"ph":"C","args":{"value":%s}}' % text)


if not enabled:
    def _nothing(*_args, **_named):
        """Marks are off."""

    sync_event = async_event = counter = flush = _nothing  # noqa: F811
