# SPDX-License-Identifier: BSD-3-Clause
"""Runs COMMAND as on Linux before 6.15: a filter of seccomp(2) refuses PIDFD_GET_INFO with ENOTTY,
as the kernel does there, to COMMAND and all processes that it starts."""
import ctypes
import os
import platform
import struct
import sys

PIDFD_GET_INFO = 0xC048FF0B
ARCH, IOCTL = {
    "x86_64": (0xC000003E, 16),
    "aarch64": (0xC00000B7, 29),
}[platform.machine()]
ENOTTY = 25
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2

program = [
    (LOAD, 0, 0, 4),  # struct seccomp_data: nr at 0, arch at 4, args from 16 on
    (EQUAL, 0, 5, ARCH),
    (LOAD, 0, 0, 0),
    (EQUAL, 0, 3, IOCTL),
    (LOAD, 0, 0, 24),
    (EQUAL, 0, 1, PIDFD_GET_INFO),
    (RETURN, 0, 0, ERRNO | ENOTTY),
    (RETURN, 0, 0, ALLOW),
]
code = b"".join(struct.pack("=HBBI", *row) for row in program)
instructions = ctypes.create_string_buffer(code, len(code))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("at", ctypes.c_void_p)]


filter = Program(len(program), ctypes.addressof(instructions))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if os.geteuid() != 0 and prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
if prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(filter), 0, 0):
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
