# SPDX-License-Identifier: BSD-3-Clause
"""Records a program's parameters, tags, metrics and status beside what Copper measured of its run;
see copper-runs(1).

    import copper_run

    with copper_run.current() as run:
        run.params({"lr": 0.01, "batch": 32})
        for epoch in range(10):
            run.metrics({"train_loss": train(), "lr": rate()}, step=epoch)
        run.tag("sha256", digest)

Python 3.6 or later; nothing but the standard library. A process appends lines to a file of its own,
one write for each call: in $COPPER_JOB_DIR/runs if that is set, as in a command of copper run, else
in $COPPER_STORE.d; rank 0 of the job, or the next copper runs, takes them into the run store. At
the end of the with block the run has FINISHED, or FAILED with the exception. Without a with block
that is so at the end of the process, unless somebody called status(). Errors are told once on
standard error and never stop the program."""
import atexit
import errno
import fcntl
import os
import sys
import threading
import time

__all__ = ["current", "Run"]

_KEY = 255
_VALUE = 4095
_LAUNCH = ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
           "FLUX_JOB_ID", "PMIX_NAMESPACE")
_RESOURCE = (("slurm.job_id", "SLURM_JOB_ID"), ("slurm.partition", "SLURM_JOB_PARTITION"),
             ("slurm.nodelist", "SLURM_JOB_NODELIST"), ("slurm.gpus_on_node", "SLURM_GPUS_ON_NODE"),
             ("slurm.mem_per_node", "SLURM_MEM_PER_NODE"),
             ("slurm.cluster_name", "SLURM_CLUSTER_NAME"),
             ("slurm.num_nodes", "SLURM_JOB_NUM_NODES"), ("pbs.job_id", "PBS_JOBID"),
             ("pbs.job_name", "PBS_JOBNAME"), ("pbs.queue", "PBS_QUEUE"),
             ("flux.job_id", "FLUX_JOB_ID"), ("flux.uri", "FLUX_URI"))
# Errors from open that do not go away soon.
_FINAL = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST,
          errno.ELOOP)
# Within this time span, metrics need neither a check of the file nor the lock: descriptor, begin,
# end, and the second that contains it, as a number and as text.
_NEVER = (-1, 1, 0, 0, "")
_now = time.time
_getpid = os.getpid
_write = os.write


def _part(value, most):
    """A part of a line: no longer than most bytes, without half a character at its end."""
    text = str(value)
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > most:
        data = data[:most].decode("utf-8", "ignore").encode()
    if b"\\" in data or b"\t" in data or b"\n" in data or b"\r" in data:
        data = data.replace(b"\\", b"\\\\").replace(b"\t", b"\\t")
        data = data.replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return data.replace(b"\0", b"?")


def _launch():
    """Processes of one launch are one run: FNV-1a of what names it."""
    env = os.environ
    if not ("SLURM_STEP_ID" in env or "FLUX_TASK_RANK" in env or "PMIX_NAMESPACE" in env):
        return None
    value = 0xcbf29ce484222325
    for byte in b"".join(os.fsencode(env.get(name, "")) + b"\n" for name in _LAUNCH):
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return "%016x" % value


class Run:
    """The run of this process; current() has it."""

    def __init__(self):
        self.id = ""
        self._told = self._torn = self._ended = False
        self._fd = None
        self._dir = self._path = None
        self._pid = 0
        self._ready = _NEVER
        self._locks = {}  # by process: in a child of fork another thread's lock is held for ever
        self._keys = {}  # the beginnings of their lines
        self._steps = {}  # the next step of metrics that are logged without one
        job, store = os.environ.get("COPPER_JOB_DIR"), os.environ.get("COPPER_STORE")
        self._in_job = bool(job)
        if job:
            self._dir = os.path.join(job, "runs")
        elif store:
            self._dir = os.path.abspath(store) + ".d"
        else:
            self._say("no job of Copper, and no $COPPER_STORE: nothing is recorded of this run")
            return
        self.id = self._name()
        atexit.register(self._at_end)
        self._watch_exit()
        if hasattr(os, "register_at_fork"):  # before Python 3.7 a child needs a millisecond
            os.register_at_fork(after_in_child=self._begin_again)

    def _name(self):
        given = os.environ.get("COPPER_RUN_ID", "")
        if len(given) == 16 and not given.strip("0123456789abcdef"):
            return given
        if self._in_job:
            return "-"
        name = _launch() or "%016x" % int.from_bytes(os.urandom(8), "big")
        os.environ["COPPER_RUN_ID"] = name  # programs that this one starts are part of its run
        return name

    def _say(self, text):
        if self._told:
            return
        self._told = True
        try:
            os.write(2, ("copper-run: %s\n" % text).encode("utf-8", "backslashreplace"))
        except OSError:
            pass

    @staticmethod
    def _program():
        name = os.path.basename(sys.argv[0] if sys.argv else "")
        return name if name and not name.startswith("-") else "python"

    # ---- the file

    def _head(self):
        host = os.uname()[1][:64]
        lines = ["copper-log\t1\t%s\t%.6f\t%s\n" % (self.id, _now(), host)]
        if not self._in_job:
            name = os.environ.get("SLURM_JOB_NAME") or self._program()
            pairs = [("host.name", host)]
            pairs += [(key, os.environ[name]) for key, name in _RESOURCE if os.environ.get(name)]
            lines.append("name\t%s\n" % _part(name, 200).decode())
            lines += ["resource\t%s\t%s\n" % (key, _part(value, 250).decode())
                      for key, value in pairs]
        return "".join(lines).encode()

    def _create(self):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        start = "%s-%s-%d" % (self.id if self.id != "-" else "job", os.uname()[1][:64], self._pid)
        for n in range(1000):
            self._path = os.path.join(self._dir, start + ("-%d" % (n + 1) if n else "") + ".log")
            try:
                try:
                    return os.open(self._path, flags, 0o666)
                except FileNotFoundError:
                    try:
                        os.mkdir(self._dir)
                    except FileExistsError:
                        pass
                    return os.open(self._path, flags, 0o666)
            except FileExistsError:
                pass
        raise FileExistsError(errno.EEXIST, "too many files of this name are there")

    def _is_ours(self):
        try:
            st = os.fstat(self._fd)
        except OSError:
            return False
        return (st.st_dev, st.st_ino) == self._inode and st.st_nlink > 0

    def _open(self):
        """The program may have closed the descriptor, and much later opened another file under its
        number; a child of fork needs a file of its own."""
        if self._fd is not None and self._is_ours():
            if self._pid == _getpid():
                return
            os.close(self._fd)
        self._pid = _getpid()
        self._fd = None
        try:
            fd = self._create()
        except OSError as e:
            if e.errno in _FINAL:
                self._dir = None
            raise
        if fd < 200:
            try:
                high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
            except OSError:
                high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(fd)
            fd = high
        st = os.fstat(fd)
        self._fd, self._inode, self._torn = fd, (st.st_dev, st.st_ino), False
        try:
            self._append(self._head())
        except OSError:
            os.close(fd)
            self._fd = None
            try:
                os.unlink(self._path)
            except OSError:
                pass
            raise

    def _cut(self):
        self._torn = True
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _append(self, data):
        if _write(self._fd, data) < len(data):
            self._cut()

    def _begin_again(self):
        self._ready = _NEVER

    def _lock(self):
        pid = _getpid()
        return self._locks.get(pid) or self._locks.setdefault(pid, threading.RLock())

    def _put(self, data, now, cut=False):
        """cut: only a part of it could be written."""
        with self._lock():  # again, if the handler of a signal logs
            self._ready = _NEVER
            if self._dir is None:
                return
            try:
                if cut:
                    self._cut()
                self._open()
                if self._torn:
                    # More fields than a line can have, so that readers reject the truncated line.
                    self._append(b"\t\t\t\t\t\n")
                    self._torn = False
                self._append(data)
                # Checking costs as much as a write, so check only once per millisecond.
                second = int(now)
                self._ready = (self._fd, now, min(now + 0.001, second + 1), second, "%d." % second)
            except OSError as e:
                self._say("cannot write %s: %s" % (self._path or self._dir, e.strerror or e))
            except Exception as e:  # whatever it is, it is not the program's
                self._say("cannot record: %r" % e)

    # ---- for programs

    def _key(self, key):
        if not str(key):
            raise ValueError("it has no name")
        text = self._keys[key] = "metric\t%s\t" % _part(key, _KEY).decode()
        return text

    def metric(self, key, value, step=None):
        """A value of a metric at a step; without a step, at the one after its last."""
        self.metrics({key: value}, step)

    def metrics(self, values, step=None):
        """Values of several metrics at a step. Of two values of a step, the later one counts."""
        now = _now()
        fd, begin, end, second, text = self._ready
        if not begin <= now < end:
            fd, second = None, int(now)
            text = "%d." % second
        text += "%06d\t" % ((now - second) * 1e6)
        lines = ""
        keys = self._keys
        for key, value in values.items():
            at = step
            try:
                if at is None:
                    at = self._steps.get(key, 0)
                    self._steps[key] = at + 1
                lines += "%s%d\t%s%r\n" % (
                    keys.get(key) or self._key(key), at if at > 0 else 0, text, float(value))
            except Exception as e:  # not a number, perhaps
                self._say("metric %s is left out: %s" % (key, e))
        if not lines:
            return
        data = lines.encode()
        cut = False
        if fd is not None:
            try:
                # With O_APPEND, concurrent writes by several threads do not overwrite each other.
                cut = _write(fd, data) != len(data)
                if not cut:
                    return
            except OSError:
                pass
        self._put(data, now, cut)

    def _pairs(self, word, pairs):
        lines = []
        for key, value in pairs.items():
            try:
                if not str(key):
                    raise ValueError("it has no name")
                lines.append(b"%s\t%s\t%s\n" % (word, _part(key, _KEY), _part(value, _VALUE)))
            except Exception as e:
                self._say("%s %s is left out: %s" % (word.decode(), key, e))
        if lines:
            self._put(b"".join(lines), _now())

    def params(self, pairs):
        """Parameters: what was chosen before the run."""
        self._pairs(b"param", pairs)

    def param(self, key, value):
        self.params({key: value})

    def tags(self, pairs):
        """Tags: what is known about the run; "name" and "group" are those of the run."""
        self._pairs(b"tag", pairs)

    def tag(self, key, value):
        self.tags({key: value})

    def status(self, word, reason=""):
        """How the run ends: FINISHED, or FAILED and why."""
        self._ended = True
        now = _now()
        self._put(b"status\t%s\t%.6f\t%s\n" % (_part(word, _KEY), now, _part(reason, _VALUE)), now)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, _):
        if kind is None or (kind is SystemExit and value.code in (None, 0)):
            self.status("FINISHED")
        elif kind is SystemExit:
            self.status("FAILED", "exit %s" % value.code)
        else:
            self.status("FAILED", "%s: %s" % (kind.__name__, value) if str(value) else kind.__name__)
        return False

    def _watch_exit(self):
        """Python tells nobody the status that a program gave sys.exit()."""
        leave = sys.exit

        def leaving(*status):
            self._leaving = (status[0] if status else None, self._size())
            leave(*status)
        self._leaving = (None, 0)
        sys.exit = leaving

    def _size(self):
        try:
            return os.fstat(self._fd).st_size
        except (OSError, TypeError):
            return -1

    def _at_end(self):
        if self._ended or not self._pid or self._pid != _getpid() or self._in_job:
            return
        kind = getattr(sys, "last_type", None)
        code, size = self._leaving
        if kind is not None:
            self.status("FAILED", "%s: %s" % (kind.__name__, getattr(sys, "last_value", "")))
        elif code not in (None, 0) and size == self._size():
            self.status("FAILED", "exit %s" % code)
        else:
            # If the program has recorded more since, it caught the exception of sys.exit().
            self.status("FINISHED")


_current = None


def current():
    """The run of this process and of the others of its launch."""
    global _current
    if _current is None:
        _current = Run()
    return _current
