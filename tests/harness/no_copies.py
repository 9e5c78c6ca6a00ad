"""The copies of a node without a disk: there is nothing to back up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.runtime.backup.source import BackupCopy, CopyGone, NothingToCopy, Piece

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class NoCopies:
    """Refuses every backup."""

    async def begin(self, copy_id: str) -> BackupCopy:
        raise NothingToCopy(f"there is no disk here, and no copy {copy_id!r}")

    async def read(self, piece: Piece) -> AsyncIterator[bytes]:
        raise CopyGone(f"there is no copy {piece.copy_id!r} here")
        yield b""

    async def end(self, copy_id: str) -> None:
        del copy_id
