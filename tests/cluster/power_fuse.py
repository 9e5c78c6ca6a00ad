"""The answers of a file system with a power supply to the kernel.

A write, a new name, a rename count as on the disk once the file, or the folder, was synced (POSIX
promises no more). This is the kernel's own protocol (linux/fuse.h, 7.31), so no library is needed.
Knows nothing of Holdfast, of mounts and of processes (power_disk).
"""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Final

from cluster.power_files import File, Folder

ROOT: Final = 1
FOR_EVER: Final = 1 << 30
WRITE_MAX: Final = 1 << 17
_KEEP_CACHE: Final = 1 << 1
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_SIZE_IS_SET: Final = 1 << 3
_IN = struct.Struct("<IIQQIIIHH")
FSYNC: Final = 20
_SILENT: Final = {2, 36, 42}
"""FORGET, INTERRUPT and BATCH_FORGET get no answer."""


class PowerFs:
    """The answers to the kernel, one method an operation, named as linux/fuse.h has them."""

    def __init__(self, root: Folder, backing: Path) -> None:
        self.root, self._backing = root, backing
        self._nodes: dict[int, File | Folder] = {ROOT: root}
        self._ids: dict[int, int] = {id(root): ROOT}
        self._operations = {
            1: self.lookup, 3: self.getattr, 4: self.setattr, 9: self.mkdir, 10: self.unlink,
            11: self.unlink, 12: self.rename, 14: self.open, 15: self.read, 16: self.write,
            17: self.statfs, 18: self.ok, 20: self.fsync, 25: self.ok, 26: self.init,
            27: self.open, 28: self.readdir, 29: self.ok, 30: self.fsync, 35: self.create,
            38: self.ok, 45: self.rename2,
        }  # fmt: skip

    def answer(self, request: bytes) -> bytes:
        """The bytes for the kernel; none if it wants none."""
        _, operation, unique, node, *_ = _IN.unpack_from(request)
        if operation in _SILENT:
            return b""
        code, body = 0, b""
        try:
            body = self._operations.get(operation, _unknown)(node, request[_IN.size :])
        except OSError as error:
            code = -(error.errno or errno.EIO)
        return struct.pack("<IiQ", 16 + len(body), code, unique) + body

    # --- the connection ---

    def init(self, _: int, body: bytes) -> bytes:
        major, _minor, ahead, flags = struct.unpack_from("<IIII", body)
        wanted = flags & (_BIG_WRITES | _MAX_PAGES)
        return struct.pack(
            "<IIIIHHIIHH32x", major, 31, ahead, wanted, 16, 12, WRITE_MAX, 1, WRITE_MAX // 4096, 0
        )  # fmt: skip

    def ok(self, _: int, __: bytes) -> bytes:
        return b""

    def statfs(self, _: int, __: bytes) -> bytes:
        disk = os.statvfs(self._backing)
        counts = (disk.f_blocks, disk.f_bfree, disk.f_bavail, disk.f_files, disk.f_ffree)
        return struct.pack("<5Q4I24x", *counts, disk.f_bsize, 255, disk.f_frsize, 0)

    # --- names ---

    def lookup(self, node: int, body: bytes) -> bytes:
        found = self._folder(node).names.get(_name(body))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "lookup")
        return self._entry(found)

    def mkdir(self, node: int, body: bytes) -> bytes:
        return self._entry(self._folder(node).add(_name(body[8:]), Folder()))

    def create(self, node: int, body: bytes) -> bytes:
        return self._entry(self._folder(node).add(_name(body[16:]), File())) + self.open(0, b"")

    def unlink(self, node: int, body: bytes) -> bytes:
        names = self._folder(node).names
        gone = names[_name(body)]
        if isinstance(gone, Folder) and gone.names:
            raise OSError(errno.ENOTEMPTY, "rmdir")
        del names[_name(body)]
        return b""

    def rename(self, node: int, body: bytes) -> bytes:
        return self._move(node, struct.unpack_from("<Q", body)[0], body[8:])

    def rename2(self, node: int, body: bytes) -> bytes:
        target, flags = struct.unpack_from("<QI", body)
        if flags:
            raise OSError(errno.EINVAL, "rename flags")
        return self._move(node, target, body[16:])

    def _move(self, node: int, target: int, names: bytes) -> bytes:
        old, new = names.split(b"\0")[:2]
        moved = self._folder(node).names.pop(os.fsdecode(old))
        self._folder(target).names[os.fsdecode(new)] = moved
        return b""

    def readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        listed = bytearray()
        for at, name in enumerate([".", "..", *self._folder(node).names]):
            raw = os.fsencode(name)
            line = struct.pack("<QQII", FOR_EVER, at + 1, len(raw), 0) + raw
            line += bytes(-len(line) % 8)
            if at >= offset and len(listed) + len(line) <= size:
                listed += line
            elif at >= offset:
                break
        return bytes(listed)

    # --- contents ---

    def getattr(self, node: int, _: bytes) -> bytes:
        return struct.pack("<QII", FOR_EVER, 0, 0) + self._attributes(self._nodes[node])

    def setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & _SIZE_IS_SET:
            self._file(node).resize(size)
        return self.getattr(node, b"")

    def open(self, _: int, __: bytes) -> bytes:
        return struct.pack("<QII", 0, _KEEP_CACHE, 0)

    def read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self._file(node).live[offset : offset + size])

    def write(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        self._file(node).write(offset, body[40 : 40 + size])
        return struct.pack("<II", size, 0)

    def fsync(self, node: int, _: bytes) -> bytes:
        self._nodes[node].sync()
        return b""

    # --- nodes ---

    def _folder(self, node: int) -> Folder:
        found = self._nodes[node]
        if not isinstance(found, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return found

    def _file(self, node: int) -> File:
        found = self._nodes[node]
        if not isinstance(found, File):
            raise IsADirectoryError(errno.EISDIR, "a folder")
        return found

    def _entry(self, item: File | Folder) -> bytes:
        node = self._ids.setdefault(id(item), len(self._nodes) + 1)
        self._nodes[node] = item  # kept for ever: an id is never used again
        return struct.pack("<QQQQII", node, 0, FOR_EVER, FOR_EVER, 0, 0) + self._attributes(item)

    def _attributes(self, item: File | Folder) -> bytes:
        node = self._ids[id(item)]
        mode, size = (0o40750, 4096) if isinstance(item, Folder) else (0o100640, len(item.live))
        owner = (os.getuid(), os.getgid())
        return struct.pack(
            "<6Q10I", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, 1, *owner, 0, 4096, 0
        )  # fmt: skip


def operation_of(request: bytes) -> int:
    """What the kernel asks for, as linux/fuse.h numbers it."""
    operation: int = _IN.unpack_from(request)[1]
    return operation


def _unknown(_: int, __: bytes) -> bytes:
    raise OSError(errno.ENOSYS, "no such operation here")


def _name(body: bytes) -> str:
    return os.fsdecode(body.split(b"\0", 1)[0])
