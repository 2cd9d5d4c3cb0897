#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a process was given by whoever started it, a line for each thing: process.py show. And what
becomes of one at a terminal or by a signal: process.py end HOW COMMAND..., where HOW is kill, core,
stop or interrupt."""

import ctypes
import fcntl
import os
import pty
import resource
import signal
import sys
import termios
import time

# The shell's own, and those by which copper run says which job and run a command belongs to.
OF_THE_RUN = ("_", "COPPER_JOB_DIR", "COPPER_RUN_ID", "COPPER_STORE", "TRACEPARENT")
libc = ctypes.CDLL(None, use_errno=True)


def status(*names):
    with open("/proc/self/status") as f:
        return [line.rstrip() for line in f if line.split(":")[0] in names]


def prctl(what):
    value = ctypes.c_int(-1)
    libc.prctl(what, ctypes.byref(value))
    return value.value


def descriptors():
    own = os.open("/proc/self/fd", os.O_RDONLY)
    for fd in sorted(map(int, os.listdir(own))):
        try:
            if fd != own:
                yield fd, os.readlink(f"/proc/self/fd/{fd}"), fcntl.fcntl(fd,
                    fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)
        except OSError:
            pass


def show():
    mask = os.umask(0)
    os.umask(mask)
    print("arguments", sys.argv)
    print("environment", sorted(item for item in os.environ.items() if item[0] not in OF_THE_RUN))
    print("directory", os.getcwd(), os.stat(".").st_ino != 0)
    print("who", os.getresuid(), os.getresgid(), sorted(os.getgroups()))
    print("process", os.getppid(), os.getpgrp() == os.getpid(), os.getsid(0))
    print("umask", oct(mask))
    for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
        print(name, resource.getrlimit(getattr(resource, name)))
    print("nice", os.nice(0), "policy", os.sched_getscheduler(0), "affinity",
          sorted(os.sched_getaffinity(0)))
    print("ioprio", libc.syscall(252, 1, 0) if os.uname().machine == "x86_64" else "")
    print("death signal", prctl(2), "dumpable", libc.prctl(3), "securebits", libc.prctl(27),
          "slack", libc.prctl(30))
    print("personality", libc.personality(0xffffffff))
    for name in ("cgroup", "oom_score_adj", "coredump_filter"):
        with open(f"/proc/self/{name}") as f:
            print(name, f.read().split())
    for name in ("net", "ipc", "pid", "uts", "cgroup", "time"):
        print("namespace", os.readlink(f"/proc/self/ns/{name}"))
    for line in status("SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd",
                       "CapAmb", "NoNewPrivs", "Seccomp", "Threads"):
        print(line)
    for line in descriptors():
        print("descriptor", *line)


def lead(results, command):
    """A shell at its terminal: one job in the foreground, of which each change is told."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(name, signal.SIG_DFL)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    os.write(results, b"%d\n" % pid)
    stopped = True
    while stopped:
        _, state = os.waitpid(pid, os.WUNTRACED)
        os.write(results, b"%d\n" % state)
        stopped = os.WIFSTOPPED(state)
    os._exit(0)


def end(how, command):
    """Runs the command at a terminal of its own and prints how it ended."""
    heard, results = os.pipe()
    leader, terminal = pty.fork()
    if leader == 0:
        lead(results, command)
    os.close(results)
    words = os.fdopen(heard)
    pid = int(words.readline())
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    control = termios.tcgetattr(terminal)[6]
    if how == "kill":
        os.kill(pid, signal.SIGKILL)
    elif how == "core":
        os.kill(pid, signal.SIGQUIT)
    elif how == "interrupt":
        os.write(terminal, control[termios.VINTR])
    elif how == "stop":
        os.write(terminal, control[termios.VSUSP])
        print("stopped by", os.WSTOPSIG(int(words.readline())))
        os.killpg(pid, signal.SIGCONT)
        time.sleep(0.05)
        os.killpg(pid, signal.SIGTERM)
    state = int(words.readline())
    print(said.decode().split(), "signal", state & 0x7f, "exit", state >> 8, "core",
          bool(state & 0x80))


if sys.argv[1] == "show":
    show()
else:
    end(sys.argv[2], sys.argv[3:])
