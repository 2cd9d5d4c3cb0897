#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What programs rely on the kernel for, each a word of its own: contract.py WORD ARGUMENT...
Ends with 0 if it holds, else says what does not."""

import ctypes
import errno
import fcntl
import mmap
import os
import sys


def fails(code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except OSError as e:
        assert e.errno == code, f"{call.__name__}{args}: {errno.errorcode[e.errno]}, wanted {errno.errorcode[code]}"
        return
    raise AssertionError(f"{call.__name__}{args} succeeds")


def isatty(path):
    with open(path, "rb") as f:
        assert not os.isatty(f.fileno())


def unknown_ioctl(path):
    for flags in (os.O_RDONLY,):
        fd = os.open(path, flags)
        fails(errno.ENOTTY, fcntl.ioctl, fd, 0x5401, b"\0" * 64)
        fails(errno.ENOTTY, fcntl.ioctl, fd, 0xC0DE1234, b"\0" * 64)


def erofs(directory, name):
    path = os.path.join(directory, name)
    new = os.path.join(directory, "new-name")
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        fails(errno.EROFS, os.open, path, flags)
    fails(errno.EROFS, os.open, new, os.O_WRONLY | os.O_CREAT)
    fails(errno.EROFS, os.open, directory, os.O_WRONLY | os.O_TMPFILE)
    fails(errno.EROFS, os.mkdir, new)
    fails(errno.EROFS, os.mkfifo, new)
    fails(errno.EROFS, os.symlink, "to", new)
    fails(errno.EROFS, os.link, path, new)
    fails(errno.EROFS, os.unlink, path)
    fails(errno.EROFS, os.rmdir, os.path.join(directory, "empty"))
    fails(errno.EROFS, os.rename, path, new)
    fails(errno.EROFS, os.chmod, path, 0o777)
    fails(errno.EROFS, os.chown, path, 1, 1)
    fails(errno.EROFS, os.lchown, path, 1, 1)
    fails(errno.EROFS, os.truncate, path, 0)
    fails(errno.EROFS, os.utime, path)
    fails(errno.EROFS, os.setxattr, path, "user.name", b"value")
    fails(errno.EROFS, os.removexattr, path, "user.name")
    assert not os.access(path, os.W_OK)
    assert os.access(path, os.R_OK)


def holes(path):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    at, found = 0, []
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO, e
            break
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        assert at > begin, f"SEEK_HOLE goes from {begin} to {at}"
        found.append((begin, at))
        assert len(found) < 1000
    fails(errno.ENXIO, os.lseek, fd, size, os.SEEK_DATA)
    fails(errno.ENXIO, os.lseek, fd, size + 1, os.SEEK_HOLE)
    return found


def same_holes(*paths):
    """Pairs of source and copy."""
    for source, copy in zip(paths[::2], paths[1::2]):
        assert holes(source) == holes(copy), f"{copy}: {holes(copy)}, wanted {holes(source)}"


def shared_map(source, copy):
    with open(source, "rb") as a, open(copy, "rb") as b:
        shared = mmap.mmap(b.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
        private = mmap.mmap(b.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        text = a.read()
        assert shared[:] == text
        private[0:4] = b"mine"
        assert shared[:] == text


def flock_excludes(path):
    one, two = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fails(errno.EWOULDBLOCK, fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
    pid = os.fork()
    if pid == 0:
        try:
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0, "another process shares an exclusive lock"
    fcntl.flock(one, fcntl.LOCK_UN)
    fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)


def posix_locks(path):
    """A file that can't be written takes read locks only; a writer's lock is refused for its
    descriptor, not for the mount."""
    fd = os.open(path, os.O_RDONLY)
    fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 0)
    fails(errno.EBADF, fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
    pid = os.fork()
    if pid == 0:
        fcntl.lockf(os.open(path, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 5)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    fcntl.lockf(fd, fcntl.LOCK_UN, 10, 0)


def statfs(source, copy):
    a, b = os.statvfs(source), os.statvfs(copy)
    assert a.f_blocks * a.f_frsize == b.f_blocks * b.f_frsize, (a, b)
    assert b.f_namemax >= 255 and b.f_flag & os.ST_RDONLY


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]


def telldir(path):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir.restype = ctypes.POINTER(Dirent)
    libc.telldir.restype = ctypes.c_long
    for f in (libc.readdir, libc.telldir, libc.rewinddir):
        f.argtypes = [ctypes.c_void_p]
    libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
    d = libc.opendir(os.fsencode(path))
    assert d, os.strerror(ctypes.get_errno())
    places, names = [], []
    while True:
        places.append(libc.telldir(d))
        e = libc.readdir(d)
        if not e:
            break
        names.append(e.contents.name)
    assert len(names) == len(set(names)), "a name twice"
    assert sorted(names) == sorted([b".", b".."] + os.listdir(os.fsencode(path)))
    for i in list(range(0, len(names), 7)) + [len(names) - 1, 0, len(names) // 2]:
        libc.seekdir(d, places[i])
        got = libc.readdir(d).contents.name
        assert got == names[i], f"after seekdir: {got}, wanted {names[i]}"
    libc.seekdir(d, places[-1])
    assert not libc.readdir(d), "an entry past the end"
    libc.rewinddir(d)
    assert libc.readdir(d).contents.name == names[0]


def no_atime(path):
    before = os.stat(path).st_atime_ns
    open(path, "rb").read()
    assert os.stat(path).st_atime_ns == before


def main():
    words = {f.__name__: f
             for f in (isatty, unknown_ioctl, erofs, same_holes, shared_map, flock_excludes,
                                     posix_locks, statfs, telldir, no_atime)}
    words[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
