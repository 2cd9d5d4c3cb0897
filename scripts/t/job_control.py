# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that copies lines below COMMAND, in an interactive shell on a terminal of its own:
stops it, continues it, and interrupts it."""
import os
import pty
import select
import signal
import sys
import time

pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests run in the background, which ignores it
    os.execvp("bash", ["bash", "--norc", "-i"])
limit = 60 * int(os.environ.get("COP_SLOWER", "1"))
seen = ""


def wait_for(words):
    """Reads until all words have been seen, in this order."""
    global seen
    end = time.monotonic() + limit
    for word in words:
        while word not in seen:
            if not select.select([terminal], [], [], max(end - time.monotonic(), 0))[0]:
                sys.exit("no %r in %r" % (word, seen))
            seen += os.read(terminal, 4096).decode()
        seen = seen.split(word, 1)[1]


def type_in(text):
    os.write(terminal, text.encode())


type_in("set -b; PS1='ready> '\n")
wait_for(["ready> ", "ready> "])
type_in(" ".join(sys.argv[1:]) + " sh -c 'echo up; exec cat'\n")
wait_for(["up", "up"])  # what was typed, and what the command writes; the same below
type_in("one\n")
wait_for(["one", "one"])
type_in("\x1a")
wait_for(["Stopped", "ready> "])
type_in("fg\n")
wait_for(["exec cat"])
type_in("two\n")
wait_for(["two", "two"])
type_in("\x03")
wait_for(["ready> "])
type_in("echo status $?\n")
wait_for(["status 130"])
type_in("exit\n")
os.waitpid(pid, 0)
