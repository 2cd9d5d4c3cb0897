#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A mount beside a read-only bind mount of its source: the same calls in both, and every answer
compared.

bind_mount.py make DIR           the source
bind_mount.py compare BIND MNT   what differs, but for what is meant to (BY_DESIGN); ends with 0 if
                                 nothing does
bind_mount.py writable MNT       the tree mounted for writing by root: every change is refused with
                                 EROFS; then read-only again"""

import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import socket
import stat
import struct
import sys

# Expected differences, by the name of the probe, and why (copper-design(7)).
BY_DESIGN = {
    "statx dev": "a mount of its own is a device of its own",
    "statx mnt_id": "so is its number among the mounts",
    "statx btime": "the time of birth is not in FUSE's attributes as libfuse 3 has them",
    "statx mask": "so the mask does not promise it, and promises what was not asked for where the "
                  "storage would not",
    "statx attributes": "flags of the storage's inodes (chattr) are not carried",
    "statfs type": "that of FUSE",
    "dotdot of the root": "a bind mount shows the directory above the source, which is not of the "
                          "tree",
    "readlink of an absolute link": "shown as a relative one, so that it stays inside the mount "
                                    "(--keep-symlinks turns it off)",
    "following an absolute link": "stays inside the mount, which is read-only",
    "faccessat2 of writing and more": "EROFS or EACCES, both true: a mount that is read-only "
                                      "altogether says the one first",
    "openat2 of an absence in the cache": "an absence is kept as long as --enoent-ttl-ms says, "
                                          "and there",
    "a FIFO": "shown as a socket, which cannot be opened: nobody would come to its other end",
    "getxattr": "extended attributes are not carried: EOPNOTSUPP",
    "listxattr": "extended attributes are not carried: EOPNOTSUPP",
}

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.mmap.restype = ctypes.c_void_p
for f in ("opendir", "telldir"):
    getattr(LIBC, f).restype = ctypes.c_void_p if f == "opendir" else ctypes.c_long
AT_FDCWD, AT_NO_FOLLOW, AT_EMPTY_PATH, AT_EACCESS = -100, 0x100, 0x1000, 0x200
OPENAT2, FACCESSAT2, RENAMEAT2 = 437, 439, {"x86_64": 316}.get(os.uname().machine, 276)
SIZES = (0, 1, 64, 65, 1001, 65537)
DAY = 86400
DT_FIFO, DT_SOCK = 1, 12
# Seconds and nanoseconds: before 1678, 1901 and 1970, after 2038, 2262 and 2446, and far from all
# of them.
TIMES = ((-14831769600, 5), (-9223372037, 999999999), (-2147483649, 1), (-1, 750000000), (0, 0),
         (1, 999999999), (2147483648, 0),
         (9223372037, 123456789), (10413792000, 1), (15032385536, 0), (253402300800, 7),
         (-(1 << 62), 3), ((1 << 62), 999999999))
MODES = (0o000, 0o400, 0o044, 0o111, 0o755, 0o2755, 0o4755, 0o1777)


def made(path, data=b""):
    with open(path, "wb") as f:
        f.write(data)
    return path


def make(top):
    at = lambda *parts: os.path.join(top, *parts)
    pattern = b"".join(struct.pack("<Q", i) for i in range(400000))
    for d in ("d/deeper", "times", "modes", "sizes"):
        os.makedirs(at(d))
    for name, data in (("hello", b"hello\n"), ("nothing", b""), ("large", pattern), ("d/one", b"1"),
                       ("d/page", pattern[:4096])):
        made(at(name), data)
    with open(at("holes"), "wb") as f:
        for place in (65536, 1 << 20, 3 << 20):
            f.seek(place)
            f.write(pattern[:8192])
        f.truncate(5 << 20)
    with open(at("hole-only"), "wb") as f:
        f.truncate(1 << 20)
    os.link(at("hello"), at("d/hello-again"))
    for name, target in (("link", "d/one"), ("dangling", "nowhere"), ("loop", "loop"),
                         ("up", "../.."), ("to-dir", "d"),
                         ("long", "x" * 4000), ("absolute", at("hello")), ("outside", "/dev/null")):
        os.symlink(target, at(name))
    os.mkfifo(at("fifo"))
    os.mknod(at("device"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    s = socket.socket(socket.AF_UNIX)
    os.chdir(top)
    s.bind("socket")
    for name in (b"a b", b"a\nb", b"\xff\xfe", b"n" * 255, b"-", b"..."):
        made(os.path.join(os.fsencode(top), name), name)
    for mode in MODES:
        os.chmod(made(at("modes/f%o" % mode), b"m"), mode)
        os.mkdir(at("modes/d%o" % mode))
        made(at("modes/d%o/in" % mode), b"i")
        os.chmod(at("modes/d%o" % mode), mode)
    for n in SIZES:
        os.mkdir(at("sizes/%d" % n))
        for i in range(n):
            os.mknod(at("sizes/%d/f%d" % (n, i)))
    for i, (s, ns) in enumerate(TIMES):
        made(at("times/f%d" % i))
        os.utime(at("times/f%d" % i), ns=(s * 10**9 + ns, -s * 10**9 + ns))
        os.mkdir(at("times/d%d" % i))
        os.utime(at("times/d%d" % i), ns=(s * 10**9 + ns, s * 10**9 + ns))
    os.chmod(top, 0o755)


# ---- calls that Python has not

def call(name, *args):
    """Of libc, or a system call by its number; an OSError if it fails."""
    ctypes.set_errno(0)
    args = [a if not isinstance(a, int) else ctypes.c_long(a) for a in args]
    rc = (LIBC.syscall(ctypes.c_long(name), *args) if isinstance(name, int)
          else getattr(LIBC, name)(*args))
    if rc == -1 or (rc == 0 and name == "opendir"):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return rc


def call_statfs(path):
    buf = ctypes.create_string_buffer(256)
    call("statfs", os.fsencode(path), buf)
    return struct.unpack_from("<q", buf.raw)[0]


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]


LIBC.readdir.restype = ctypes.POINTER(Dirent)

STATX = struct.Struct("<IIQIIIHxxQQQQ" + "qIi" * 4 + "IIIIQII")
STATX_NAMES = ("mask blksize attributes nlink uid gid mode ino size blocks attributes_mask " +
               " ".join("%s %s_ns pad" % (t, t) for t in ("atime", "btime", "ctime", "mtime")) +
               " rdev_major rdev_minor dev_major dev_minor mnt_id dio dio").split()
STATX_BASIC, STATX_BTIME = 0x7FF, 0x800
# A field counts if the bind mount's answer says that it is valid; a field that was not requested
# may be valid or not.
STATX_BITS = {"mode": 3, "nlink": 4, "uid": 8, "gid": 16, "atime": 32, "mtime": 64, "ctime": 128,
              "ino": 256, "size": 512, "blocks": 1024,
              "btime": 2048}


def statx(dirfd, path, flags, mask):
    buf = ctypes.create_string_buffer(256)
    call("statx", dirfd, os.fsencode(path), flags, mask, buf)
    got = dict(zip(STATX_NAMES, STATX.unpack_from(buf.raw)))
    return got


def openat2(dirfd, path, flags, resolve):
    fd = call(OPENAT2, dirfd, os.fsencode(path), struct.pack("<QQQ", flags, 0, resolve), 24)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def getdents(fd, size):
    buf = ctypes.create_string_buffer(size)
    n = call("getdents64", fd, buf, size)
    at, out = 0, []
    while at < n:
        ino, off, length, kind = struct.unpack_from("<QqHB", buf.raw, at)
        out.append((buf.raw[at + 19:at + length].split(b"\0")[0], ino,
                    DT_SOCK if kind == DT_FIFO else kind))
        at += length
    return out


# ---- comparing

class Sides:
    def __init__(self, bind, mnt):
        self.roots, self.count, self.bad, self.met = (bind, mnt), 0, [], set()

    def differ(self, name, what, values):
        bits = values[0] & 0o7777 if what.endswith(" mode") else 0
        if "fifo" in what.split() and (values[1] == "ENXIO" or what.endswith(" mode") and
                                       tuple(values) == (stat.S_IFIFO | bits,
                                                         stat.S_IFSOCK | bits)):
            name = "a FIFO"
        self.met.add(name)
        if name not in BY_DESIGN:
            self.bad.append("%s %s: %s, bind mount %s" %
                            (name, what, str(values[1])[:300], str(values[0])[:300]))

    def same(self, name, what, probe):
        """probe(root) in both; an error is an answer."""
        values = []
        for root in self.roots:
            try:
                values.append(probe(root))
            except OSError as e:
                values.append(errno.errorcode[e.errno])
        self.count += 1
        if values[0] != values[1]:
            self.differ(name, what, values)
        return values


def everything(top):
    yield ""
    for where, dirs, files in os.walk(top):
        if "sizes" in dirs:
            dirs.remove("sizes")
        for n in sorted(dirs + files):
            yield os.path.relpath(os.path.join(where, n), top)


def with_fd(path, flags, use):
    fd = os.open(path, flags | os.O_NONBLOCK)
    try:
        return use(fd)
    finally:
        os.close(fd)


def compare_stat(s, paths):
    masks = [0, STATX_BASIC, 0xFFF, 0x7FFFFFFF, 0x80000000] + [1 << i for i in range(16)]
    for p in paths:
        full = lambda root: os.path.join(root, p) if p else root
        for flags, mask in [(f, STATX_BASIC | STATX_BTIME)
                            for f in (0, AT_NO_FOLLOW, 0x2000, 0x4000, 0x800, 0x8000)] + \
                [(AT_NO_FOLLOW, m) for m in (masks if p in ("", "hello", "link", "d") else [])]:
            got = [None, None]
            for i, root in enumerate(s.roots):
                try:
                    got[i] = statx(AT_FDCWD, full(root), flags, mask)
                except OSError as e:
                    got[i] = {"error": errno.errorcode[e.errno]}
            s.count += 1
            for key in set(got[0]) | set(got[1]):
                a, b = got[0].get(key), got[1].get(key)
                bits = STATX_BITS.get(key.split("_")[0], 0)
                if key == "pad" or key == "dio" or a == b or bits & ~got[0].get("mask", ~0):
                    continue
                short = key.split("_")[0] if key.startswith(("btime", "dev", "attributes")) else key
                if key == "mask" and (a is None or b is None or a & ~b & STATX_BASIC):
                    short = "basic mask"
                if key == "size" and p == "absolute" and flags & AT_NO_FOLLOW:
                    s.differ("readlink of an absolute link", p, (a, b))
                else:
                    s.differ("statx " + short, "%s flags %#x mask %#x %s" % (p, flags, mask, key),
                             (a, b))
        s.same("readlink of an absolute link" if p == "absolute" else "readlink", p,
               lambda r: os.readlink(full(r)))
        for mode, flags in itertools.product((os.F_OK, os.R_OK, os.W_OK, os.X_OK, 7),
                (0, AT_EACCESS, AT_NO_FOLLOW, AT_EMPTY_PATH, 4)):
            name = "following an absolute link" if p == "absolute" and not flags & AT_NO_FOLLOW else "faccessat2"
            if mode & os.W_OK and mode != os.W_OK:
                name = "faccessat2 of writing and more"
            s.same(name, "%s %d %#x" % (p, mode, flags),
                   lambda r: call(FACCESSAT2, AT_FDCWD, os.fsencode(full(r)), mode, flags))
        for name in ("user.x", "security.selinux", "system.posix_acl_access", "nonsense"):
            s.same("getxattr", p, lambda r: os.getxattr(full(r), name, follow_symlinks=False))
        s.same("listxattr", p, lambda r: os.listxattr(full(r), follow_symlinks=False))


def listing(root, sub, size):
    def use(fd):
        out, part = [], True
        while part:
            part = getdents(fd, size)
            out += part
        return sorted(e for e in out if e[0] != b".." or sub)
    return with_fd(os.path.join(root, sub), os.O_RDONLY | os.O_DIRECTORY, use)


def places(root, sub):
    """By telldir and seekdir: each place gives its name again, in any order, and past the end there
    is nothing."""
    d = ctypes.c_void_p(call("opendir", os.fsencode(os.path.join(root, sub))))
    at, names = [], []
    while True:
        at.append(LIBC.telldir(d))
        e = LIBC.readdir(d)
        if not e:
            break
        names.append(e.contents.name)
    wrong = []
    for i in list(range(len(names) - 1, -1, -max(1, len(names) // 50))) + [0]:
        LIBC.seekdir(d, ctypes.c_long(at[i]))
        e = LIBC.readdir(d)
        if not e or e.contents.name != names[i]:
            wrong.append(names[i])
    LIBC.seekdir(d, ctypes.c_long(at[-1]))
    if LIBC.readdir(d):
        wrong.append(b"past the end")
    LIBC.rewinddir(d)
    if LIBC.readdir(d).contents.name != names[0]:
        wrong.append(b"rewinddir")
    LIBC.closedir(d)
    return len(names), len(set(names)), wrong


def compare_dirs(s):
    for sub in ["", "d", "times", "modes", "d/deeper"] + ["sizes/%d" % n for n in SIZES]:
        for size in (32768, 512) if sub != "sizes/65537" else (32768,):
            a, b = s.same("readdir", "%s in pieces of %d" % (sub, size),
                          lambda r: listing(r, sub, size))
        for name, ino, _ in b[::max(1, len(b) // 100)]:
            s.count += 1
            there = os.lstat(os.path.join(os.fsencode(s.roots[1]), os.fsencode(sub), name)).st_ino
            if there != ino:
                s.differ("d_ino", os.path.join(sub, os.fsdecode(name)), (there, ino))
        s.same("telldir", sub, lambda r: places(r, sub))
        for size in (0, 1, 20):
            s.same("getdents", "%s into %d bytes" % (sub, size),
                   lambda r: with_fd(os.path.join(r, sub), os.O_RDONLY,
                                     lambda fd: getdents(fd, size)))
        s.same("read of a directory", sub,
               lambda r: with_fd(os.path.join(r, sub), os.O_RDONLY, lambda fd: os.read(fd, 1)))
        s.same("lseek in a directory", sub,
               lambda r: with_fd(os.path.join(r, sub), os.O_RDONLY,
                                 lambda fd: os.lseek(fd, -1, os.SEEK_SET)))
        s.same("absent", sub, lambda r: os.lstat(os.path.join(r, sub, "no-such-name")))
    s.same("dotdot of the root", "",
           lambda r: [e for e in with_fd(r, os.O_RDONLY, lambda fd: getdents(fd, 32768))
                      if e[0] == b".."])
    for name in ("hello/x", "hello/", "x" * 256, "d/" * 2100, "loop/x", "up", "d/../hello",
                 "d/./one", "link/", "to-dir/one"):
        s.same("path", name[:40],
               lambda r: statx(AT_FDCWD, os.path.join(r, name), 0, STATX_BASIC)["mode"])


def read_all(root, name):
    with open(os.path.join(root, name), "rb") as f:
        return f.read()


def seeks(fd):
    out, size = [], os.fstat(fd).st_size
    for place in sorted({0, 1, 4095, 4096, 65535, 65536, 73728, 1 << 20, 3 << 20, size // 2,
                         max(size - 1, 0), size, size + 1, 1 << 40}):
        for whence in (os.SEEK_DATA, os.SEEK_HOLE, os.SEEK_END, 5, 9):
            try:
                out.append(os.lseek(fd, place, whence))
            except OSError as e:
                out.append(e.errno)
    return out


def mapped(fd, offset, length, prot, flags):
    m = mmap.mmap(fd, length, flags, prot, offset=offset)
    data = m[:]
    m.close()
    return data


def past_the_end(fd):
    """What a process ends with that touches the page after a mapped file's last one."""
    pid = os.fork()
    if pid == 0:
        size = (os.fstat(fd).st_size + 4095) // 4096 * 4096
        p = LIBC.mmap(None, ctypes.c_size_t(size + 4096), 1, 1, fd, ctypes.c_long(0))
        ctypes.string_at(p + size, 1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] & 0x7F


def piped(fd, splice):
    r, w = os.pipe()
    fcntl.fcntl(w, 1031, 1 << 20)
    n = os.splice(fd, w, 100000, offset_src=5) if splice else os.sendfile(w, fd, 5, 100000)
    data = b""
    while len(data) < n:
        data += os.read(r, n)
    os.close(r), os.close(w)
    return data


def copied(fd, to):
    out = os.open(to, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        return os.copy_file_range(fd, out, 1000, 5), os.pread(out, 1000, 0)
    finally:
        os.close(out)


def compare_files(s, scratch):
    offsets = sorted({max(0, b + d)
                      for b in (0, 511, 4096, 65536, 131072, 1 << 20, 2 << 20, 3199999, 3200000,
                                5 << 20, 1 << 40) for d in (-1, 0, 1)})
    for name in ("hello", "nothing", "large", "holes", "hole-only", "d/page", "link",
                 "d/hello-again", "device", "fifo", "socket", "d"):
        on = lambda use, flags=os.O_RDONLY: lambda r: with_fd(os.path.join(r, name), flags, use)
        for off in offsets + [(1 << 63) - 1, -1]:
            for size in (0, 1, 4097, 200000):
                s.same("pread", "%s %d at %d" % (name, size, off),
                       on(lambda fd: os.pread(fd, size, off)))
            bufs = lambda: [bytearray(1), bytearray(0), bytearray(5000), bytearray(131072)]

            def vector(fd):
                b = bufs()
                return os.preadv(fd, b, off), b
            s.same("preadv", "%s at %d" % (name, off), on(vector))
        s.same("read", name, on(lambda fd: b"".join(iter(lambda: os.read(fd, 70001), b""))))
        if name != "d":
            s.same("lseek", name, on(seeks))
        for off, length in ((0, 1), (0, 4096), (4096, 8192), (1 << 20, 100000)):
            for prot, flags in ((mmap.PROT_READ, mmap.MAP_SHARED),
                                (mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE),
                                (mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED)):
                def use(fd):
                    try:
                        return mapped(fd, off, length, prot, flags)
                    except ValueError:
                        return "past the end"
                s.same("mmap", "%s %d+%d" % (name, off, length), on(use))
        if name in ("hello", "large", "nothing"):
            s.same("mmap past the end", name, on(past_the_end))
        for advice in range(7):
            s.same("fadvise", "%s %d" % (name, advice),
                   on(lambda fd: os.posix_fadvise(fd, 0, 100000, advice)))
        s.same("readahead", name, on(lambda fd: call("readahead", fd, 0, 1 << 20)))
        s.same("sendfile", name, on(lambda fd: piped(fd, False)))
        s.same("splice", name, on(lambda fd: piped(fd, True)))
        s.same("copy_file_range", name, on(lambda fd: copied(fd, scratch)))
        s.same("fsync", name, on(os.fsync))
        s.same("fdatasync", name, on(os.fdatasync))
        s.same("FIONREAD", name,
               on(lambda fd: struct.unpack("i", fcntl.ioctl(fd, 0x541B, b"\0" * 4))))
        s.same("isatty", name, on(lambda fd: os.isatty(fd)))
        s.same("O_PATH read", name, on(lambda fd: os.read(fd, 1), os.O_PATH))
        s.same("O_PATH fstat", name, on(lambda fd: os.fstat(fd).st_ino, os.O_PATH))
        s.same("O_PATH open again", name,
               on(lambda fd: with_fd("/proc/self/fd/%d" % fd, os.O_RDONLY,
                                     lambda f: os.fstat(f).st_ino), os.O_PATH))
        s.same("O_PATH link", name, on(lambda fd: os.fstat(fd).st_ino, os.O_PATH | os.O_NOFOLLOW))
        for flag in ("DIRECTORY", "NOFOLLOW", "DIRECT", "NOATIME", "SYNC", "DSYNC", "APPEND",
                     "CLOEXEC", "ASYNC", "EXCL", "NOCTTY"):
            s.same("open", "%s O_%s" % (name, flag),
                   on(lambda fd: fcntl.fcntl(fd, fcntl.F_GETFL), getattr(os, "O_" + flag)))


def compare_openat2(s):
    for name in ("hello", "link", "absolute", "up", "outside", "d/../hello", "../x", "/", "loop",
                 "to-dir/one", "d/one", "dangling", "nope"):
        for resolve in (0, 1, 2, 4, 8, 16, 32, 8 | 4, 16 | 1, 8 | 16, 64):
            if name in ("absolute", "outside", "up", "/") and not resolve & (4 | 8):
                continue
            what = "following an absolute link" if name == "absolute" else "openat2"
            if resolve == 32 and name in ("dangling", "nope"):
                what = "openat2 of an absence in the cache"
            s.same(what, "%s %d" % (name, resolve),
                   lambda r: with_fd(r, os.O_PATH,
                                     lambda fd: openat2(fd, name, os.O_RDONLY, resolve)))


LOCK = struct.Struct("hhlli4x")


def lock(fd, op, kind, start, length):
    got = fcntl.fcntl(fd, op, LOCK.pack(kind, 0, start, length, 0))
    return LOCK.unpack(got)[:4] if op in (fcntl.F_GETLK, 36) else 0


def locks(root):
    path, out = os.path.join(root, "large"), []

    def tried(fn, *args):
        try:
            out.append(fn(*args))
        except OSError as e:
            out.append(errno.errorcode[e.errno])
    one, two = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        tried(fcntl.flock, one, kind | fcntl.LOCK_NB)
        tried(fcntl.flock, two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        tried(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tried(fcntl.flock, two, fcntl.LOCK_UN)
        tried(fcntl.flock, one, fcntl.LOCK_UN)
    for get, put in ((fcntl.F_GETLK, fcntl.F_SETLK), (36, 37)):
        for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK):
            tried(lock, one, put, kind, 10, 20)
            tried(lock, two, get, fcntl.F_WRLCK, 0, 0)
            tried(lock, two, put, fcntl.F_RDLCK, 15, 5)
            tried(lock, two, put, fcntl.F_UNLCK, 0, 0)
    os.close(one), os.close(two)
    return out


# ---- changes

def changes(top):
    """Every way to change something: its name and a call."""
    at = lambda *p: os.path.join(top, *p)
    hello, new, d, empty = at("hello"), at("new"), at("d"), at("d/deeper")
    for flags in ("O_WRONLY", "O_RDWR", "O_WRONLY|O_TRUNC", "O_RDONLY|O_TRUNC", "O_WRONLY|O_APPEND",
                  "O_RDWR|O_CREAT", "O_RDWR|O_CREAT|O_EXCL"):
        bits = 0
        for f in flags.split("|"):
            bits |= getattr(os, f)
        yield "open " + flags, lambda bits=bits: os.close(os.open(hello, bits))
    yield "creat", lambda: os.open(new, os.O_WRONLY | os.O_CREAT, 0o644)
    yield "O_TMPFILE", lambda: os.open(d, os.O_RDWR | os.O_TMPFILE)
    yield "truncate", lambda: os.truncate(hello, 1)
    yield "ftruncate", lambda: with_fd(hello, os.O_RDONLY, lambda fd: os.ftruncate(fd, 1))
    yield "fallocate", lambda: with_fd(hello, os.O_RDONLY, lambda fd: os.posix_fallocate(fd, 0, 1))
    yield "chmod", lambda: os.chmod(hello, 0o600)
    yield "fchmod", lambda: with_fd(hello, os.O_RDONLY, lambda fd: os.fchmod(fd, 0o600))
    yield "chown", lambda: os.chown(hello, 1, 1)
    yield "lchown", lambda: os.lchown(at("link"), 1, 1)
    yield "fchown", lambda: with_fd(hello, os.O_RDONLY, lambda fd: os.fchown(fd, 1, 1))
    yield "utimens", lambda: os.utime(hello, ns=(1, 1))
    yield "utimens of a link", lambda: os.utime(at("link"), ns=(1, 1), follow_symlinks=False)
    yield "futimens", lambda: with_fd(hello, os.O_RDONLY, lambda fd: os.utime(fd, ns=(1, 1)))
    yield "link", lambda: os.link(hello, new)
    yield "symlink", lambda: os.symlink("hello", new)
    yield "rename", lambda: os.rename(hello, new)
    yield "rename over", lambda: os.rename(hello, at("nothing"))
    for flags in (1, 2):
        target = os.fsencode(new if flags == 1 else at("nothing"))
        yield "renameat2 %d" % flags, lambda flags=flags, target=target: call(
            RENAMEAT2, AT_FDCWD, os.fsencode(hello), AT_FDCWD, target, flags)
    yield "unlink", lambda: os.unlink(hello)
    yield "rmdir", lambda: os.rmdir(empty)
    yield "mkdir", lambda: os.mkdir(new)
    yield "mkfifo", lambda: os.mkfifo(new)
    yield "mknod", lambda: os.mknod(new, stat.S_IFREG | 0o644)
    yield "setxattr", lambda: os.setxattr(hello, "user.x", b"1")
    yield "lsetxattr", lambda: os.setxattr(at("link"), "trusted.x", b"1", follow_symlinks=False)
    yield "removexattr", lambda: os.removexattr(hello, "user.x")
    # Changes that must fail for another reason come first.
    yield "mkdir of what is there", lambda: os.mkdir(d)
    yield "unlink of what is not", lambda: os.unlink(new)
    yield "rmdir of a file", lambda: os.rmdir(hello)
    yield "unlink of a directory", lambda: os.unlink(d)
    yield "rmdir of one that is not empty", lambda: os.rmdir(d)
    yield "exclusive creat of what is there", lambda: os.open(hello,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    yield "link of what is not", lambda: os.link(new, at("new2"))


def compare_changes(s):
    for (name, a), (_, b) in zip(changes(s.roots[0]), changes(s.roots[1])):
        s.same("change", name, lambda r: (a if r == s.roots[0] else b)())


def as_nobody(s, paths):
    """What an ordinary user may, in a process of its own."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        s.count, s.bad = 0, []
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
        for p in paths:
            full = lambda root: os.path.join(root, p)
            s.same("open by nobody", p,
                   lambda root: with_fd(full(root), os.O_RDONLY, lambda fd: os.fstat(fd).st_ino))
            s.same("O_NOATIME by nobody", p,
                   lambda root: with_fd(full(root), os.O_RDONLY | os.O_NOATIME, os.fstat) and 0)
            s.same("chdir by nobody", p, lambda root: os.chdir(full(root)))
            s.same("readdir by nobody", p, lambda root: sorted(os.listdir(full(root))))
            s.same("chmod by nobody", p, lambda root: os.chmod(full(root), 0o777))
            for mode, flags in itertools.product((0, 1, 2, 4, 7), (0, AT_EACCESS)):
                s.same("faccessat2 of writing and more" if mode &
                       os.W_OK else "faccessat2 by nobody", p,
                       lambda root: call(FACCESSAT2, AT_FDCWD, os.fsencode(full(root)),
                                         mode, flags))
        os.write(w, ("%d\n" % s.count + "\n".join(s.bad)[:60000]).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        count, *bad = f.read().split("\n")
    os.waitpid(pid, 0)
    s.count += int(count)
    s.bad += [b for b in bad if b]


def compare(bind, mnt):
    s = Sides(bind, mnt)
    paths = list(everything(bind))
    s.same("paths", "", lambda r: sorted(everything(r)))
    compare_stat(s, paths)
    compare_dirs(s)
    compare_files(s, mnt + ".copy")
    compare_openat2(s)
    s.same("locks", "", locks)
    compare_changes(s)
    as_nobody(s,
              [p for p in paths if p.startswith("modes")
               or p in ("hello", "d", "link", "fifo", "device")])
    s.same("statfs", "", lambda r: [getattr(os.statvfs(r), "f_" + k)
                                    for k in ("bsize", "frsize", "blocks", "files", "namemax")] +
           [os.statvfs(r).f_flag & (os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)])
    kinds = [call_statfs(r) for r in s.roots]
    if kinds[0] != kinds[1]:
        s.differ("statfs type", "", kinds)
    print("%d comparisons; differences by design: %s" %
          (s.count, ", ".join(sorted(s.met & set(BY_DESIGN)))))
    for _, same in itertools.groupby(s.bad, lambda b: b.split()[:2]):
        same = list(same)
        print("\n".join(same[:3]) +
              ("\n... and %d like this" % (len(same) - 3) if len(same) > 3 else ""))
    return 1 if s.bad else 0


def writable(mnt):
    """An open for writing is not asked of the node (the kernel opens by itself), so it is the write
    that is refused."""
    flags = 2 | 4 | 32  # MS_NOSUID, MS_NODEV, MS_REMOUNT
    call("mount", None, os.fsencode(mnt), None, flags, None)
    bad = []
    before = read_all(mnt, "hello"), os.listdir(mnt)
    try:
        for name, change in changes(mnt):
            try:
                change()
                got = 0
            except OSError as e:
                got = e.errno
            if got == errno.EROFS or (got == 0 and name.startswith("open ") and "TRUNC" not in name
                                      and "EXCL" not in name):
                continue
            if got not in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR,
                           errno.EISDIR) and not (name in ("ftruncate", "fallocate")):
                bad.append("%s: %s" % (name, errno.errorcode.get(got, got)))
        fd = os.open(os.path.join(mnt, "hello"), os.O_RDWR)
        for name, change in (("write", lambda: os.pwrite(fd, b"HELLO", 0)),
                             ("ftruncate", lambda: os.ftruncate(fd, 1)),
                             ("fallocate", lambda: call("fallocate", fd, 0, 0, 4096)),
                             ("copy_file_range",
                              lambda: os.copy_file_range(
                                  os.open(os.path.join(mnt, "large"), os.O_RDONLY), fd, 3))):
            try:
                change()
                bad.append(name + " succeeds")
            except OSError as e:
                if e.errno != errno.EROFS:
                    bad.append("%s: %s" % (name, errno.errorcode[e.errno]))
        m = mmap.mmap(fd, 6, mmap.MAP_SHARED)
        m[0:5] = b"WRONG"
        try:
            m.flush()
            bad.append("msync succeeds")
        except OSError:
            pass
        m.close()
        os.close(fd)
    finally:
        call("mount", None, os.fsencode(mnt), None, flags | 1, None)
    if (read_all(mnt, "hello"), os.listdir(mnt)) != before:
        bad.append("something changed: %s" % read_all(mnt, "hello"))
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit({"make": make, "compare": compare, "writable": writable}[sys.argv[1]](*sys.argv[2:]))
