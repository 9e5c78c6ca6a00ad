"""BackupService: gives a whole copy of what this node has applied, while it serves (backup.proto).

Any node serves it that has caught up: what it has applied is committed. One that was just started
knows neither the newest grants nor which were taken back, and a backup holds everything. Knows
messages and the source of copies; no files.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

import grpc

from holdfast.runtime.backup.source import (
    CANNOT_COPY,
    BackupCopy,
    BadOffset,
    CopyBusy,
    CopyGone,
    NothingToCopy,
    Piece,
)
from holdfast.runtime.errors import Crashed
from holdfast.server.access.table import need_of
from holdfast.server.rpc.callers import answered, end, named
from holdfast.server.rpc.errors import ENDED, CallFailed, exhausted, malformed
from holdfast.server.rpc.nodes import VERSION
from holdfast.v1 import backup_pb2 as b
from holdfast.v1 import extras_pb2 as x
from holdfast.v1.backup_pb2_grpc import BackupServiceServicer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.access.gate import Gate
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.server.rpc.reads import Reads

logger = logging.getLogger(__name__)
_READING: Final = need_of("BackupService.ReadBackup")


class Copies(Protocol):
    """The copies of a node: `holdfast.runtime.backup.source.BackupSource`."""

    async def begin(self, copy_id: str) -> BackupCopy:
        """Return the copy of this id, or a new one."""

    def read(self, piece: Piece) -> AsyncIterator[bytes]:
        """Yield a file's bytes in chunks."""

    async def end(self, copy_id: str) -> None:
        """Drop the copy of this id."""


class BackupService(BackupServiceServicer):
    """Serves backups of this node."""

    def __init__(
        self, replica: ReplicaLike, copies: Copies, reads: Reads, callers: Callers, gate: Gate
    ) -> None:
        self._replica, self._copies, self._reads = replica, copies, reads
        self._callers, self._gate = callers, gate

    @answered(b.BeginBackupResponse)
    async def BeginBackup(
        self, request: b.BeginBackupRequest, context: Context
    ) -> b.BeginBackupResponse:
        """Make a copy, or find it again."""
        del context
        self._reads.check_caught_up()
        try:
            copy = await self._copies.begin(request.copy_id)
        except CopyBusy as error:
            raise exhausted(str(error)) from error
        except NothingToCopy as error:
            raise _refused(str(error)) from error
        except CANNOT_COPY as error:
            logger.exception(
                "no copy could be made for a backup", extra=named("BeginBackup", request)
            )
            raise _unavailable(str(error)) from error
        return self._answer(copy)

    async def ReadBackup(  # type: ignore[override]  # writes by itself
        self, request: b.ReadBackupRequest, context: Context
    ) -> None:
        """Send a file, as long as the caller may read it: the right may be revoked meanwhile."""
        piece = Piece(request.copy_id, request.segment, request.file, request.offset)
        try:
            self._reads.check_caught_up()
            principal = self._callers.principal(context)
            async for chunk in self._copies.read(piece):
                self._gate.check(principal, "ReadBackup", _READING)
                await context.write(b.ReadBackupResponse(content=chunk))
        except CopyGone as error:
            await end(context, _refused(str(error)))
        except BadOffset as error:
            await end(context, malformed("offset", str(error)))
        except ENDED as error:
            await end(context, error)
        except CANNOT_COPY as error:
            await end(context, _unavailable(str(error)))
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("a backup failed inside", extra=named("ReadBackup", request))
            await end(context, Crashed("ReadBackup"))

    @answered(b.EndBackupResponse)
    async def EndBackup(self, request: b.EndBackupRequest, context: Context) -> b.EndBackupResponse:
        """Drop a copy."""
        del context
        await self._copies.end(request.copy_id)
        return b.EndBackupResponse()

    def _answer(self, copy: BackupCopy) -> b.BeginBackupResponse:
        state, first = copy.state, copy.first
        return b.BeginBackupResponse(
            copy_id=copy.copy_id,
            cluster_id=state.cluster_id,
            node=self._replica.node_id,
            index=state.index,
            term=state.term,
            digest=bytes.fromhex(state.digest),
            chain=bytes.fromhex(state.chain),
            log_time_ms=state.log_time_ms,
            wall_time_ms=copy.wall_time_ms,
            recovery_number=state.recovery_number,
            version=VERSION,
            state=b.BackupFile(size=state.size, sha256=bytes.fromhex(state.sha256)),
            first=x.Position(index=first.index, ordinal=first.ordinal) if first else None,
            segments=[
                b.BackupSegment(
                    name=segment.name,
                    files=[b.BackupSegmentFile(name=n, size=size) for n, size in segment.files],
                )
                for segment in copy.segments
            ],
            checkpoint=b.BackupSegmentFile(name=copy.checkpoint[0], size=copy.checkpoint[1])
            if copy.checkpoint
            else None,
            holdfast=x.ResponseExtras(
                applied_index=self._replica.state.applied_index,
                log_time_ms=self._replica.log_time_ms(),
            ),
        )


def _refused(sentence: str) -> CallFailed:
    return CallFailed(grpc.StatusCode.FAILED_PRECONDITION, sentence, "not-applied")


def _unavailable(sentence: str) -> CallFailed:
    return CallFailed(grpc.StatusCode.INTERNAL, sentence, "not-applied")
