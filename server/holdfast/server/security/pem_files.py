"""Write PEM files so that a reader, and a power cut, find the old content or the new one.

Knows files, and nothing of what they hold.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.storage.disk.files import rename_durably

if TYPE_CHECKING:
    from pathlib import Path


def write_pem(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Write or replace a file; a secret one can be read by its owner only, from the first byte on.

    A file that is replaced keeps its owner and, unless it is secret, its mode: a certificate that
    root renews stays readable to the user that the node runs as. Raises OSError.
    """
    before = path.stat() if path.exists() else None
    mode = 0o600 if secret else 0o644 if before is None else before.st_mode & 0o777
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        if before is not None and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        rename_durably(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
