"""A process that is one disk with a power supply: what was not synced can be lost when it is cut.

    python -m cluster.power_disk BACKING MOUNT

Holds the files of BACKING in memory and shows them at MOUNT. Standard input: `cut SYNCS` answers
`cut` and nothing more to the kernel, from the moment when the so many-th sync from now is asked
for, or at once if that is 0; then `keep WAY SEED` ends the mount and writes to BACKING what the
disk kept (ways: power_files); the answer is one line. Needs /dev/fuse and the right to mount.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from cluster.power_files import kept, loaded
from cluster.power_fuse import FSYNC, WRITE_MAX, PowerFs, operation_of

_NOSUID_NODEV, _DETACH = 2 | 4, 2
_NO_SYNC_S: Final = 2.0
"""A node that asks for no sync so long is cut all the same."""

libc = ctypes.CDLL(None, use_errno=True)


def mount(descriptor: int, target: Path) -> None:
    """Raises OSError."""
    options = f"fd={descriptor},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    names = (b"holdfast-power", os.fsencode(target), b"fuse")
    if libc.mount(*names, ctypes.c_ulong(_NOSUID_NODEV), options.encode()):
        raise OSError(ctypes.get_errno(), "mount", str(target))


def unmount(target: Path) -> bool:
    """Take the mount away, also one whose process is dead. Tells whether there was one."""
    return bool(libc.umount2(os.fsencode(target), _DETACH) == 0)


def serve(fs: PowerFs, descriptor: int) -> list[str]:
    """Until the power is cut; what to keep, or nothing if whoever commands it is gone."""
    while sys.stdin not in select.select([descriptor, sys.stdin], [], [])[0]:
        _reply(fs, descriptor, _next(descriptor))
    words = sys.stdin.readline().split()
    if not words:
        return []
    _serve_until_sync(fs, descriptor, int(words[1]))
    print("cut", flush=True)
    return sys.stdin.readline().split()[1:]


def _serve_until_sync(fs: PowerFs, descriptor: int, count: int) -> None:
    """The last of so many syncs of a file is asked for and never answered."""
    end = time.monotonic() + _NO_SYNC_S
    while count and select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
        request = _next(descriptor)
        count -= bool(request) and operation_of(request) == FSYNC
        if count:
            _reply(fs, descriptor, request)


def _next(descriptor: int) -> bytes:
    """What the kernel asks; nothing if whoever wanted it was killed meanwhile."""
    try:
        return os.read(descriptor, WRITE_MAX + 8192)
    except (BlockingIOError, FileNotFoundError):
        return b""


def _reply(fs: PowerFs, descriptor: int, request: bytes) -> None:
    answer = fs.answer(request) if request else b""
    if answer:
        with suppress(FileNotFoundError):  # the same
            os.write(descriptor, answer)


def main(backing: str, target: str) -> None:
    """Mount, say so, serve, and leave on BACKING what the disk kept."""
    for asked in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked, signal.SIG_IGN)  # the end of the input is the end: then it unmounts
    root = loaded(Path(backing))
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    mount(descriptor, Path(target))
    print("mounted", flush=True)
    try:
        keep = serve(PowerFs(root, Path(backing)), descriptor)
    finally:
        os.close(descriptor)
        unmount(Path(target))
    if keep:
        way, seed = keep
        print(kept(root, Path(backing), way, Random(seed)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
