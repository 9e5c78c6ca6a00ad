"""The file of what clients were acknowledged: a line of JSON for each change (docs/replay.md).

A change is told by its request id, by its place on the log, or by both. A join is acknowledged when
it is answered, maybe by a later entry, and is told by its request id alone. Knows records, replies
and a text file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TextIO

from holdfast.coordinator.model.events import RequestRecorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.commands import JoinGroup
    from holdfast.coordinator.model.ids import CallId
    from holdfast.replay.generate.leader import Written

_JOIN: Final = "JoinGroup"


class Witness:
    """Writes the lines, in the order in which clients were answered."""

    def __init__(self, file: TextIO | None) -> None:
        """`file`: takes the lines; None: nobody wants them."""
        self._file = file
        self._joins: dict[CallId, tuple[str, str]] = {}

    def asked(self, join: JoinGroup) -> None:
        """Remember a join until it is answered."""
        self._joins[join.caller.call] = (join.group_id, join.caller.request_id)

    def answered(self, call: CallId, *, accepted: bool) -> None:
        """Write that a join was accepted; of other calls the records tell."""
        known = self._joins.pop(call, None)
        if accepted and known is not None and self._file is not None:
            group_id, request_id = known
            line = {"request_id": request_id, "group": group_id, "kind": _JOIN}
            self._file.write(json.dumps(line) + "\n")

    def failed_over(self) -> None:
        """Forget joins that wait: their clients were told that this node leads no more."""
        self._joins.clear()

    def committed(self, written: Iterable[Written]) -> None:
        """Write what an entry holds that a caller asked for: it is answered with the entry."""
        if self._file is None:
            return
        lines = []
        for record, _ in written:
            told = record.cause.command
            if not record.principal or told == _JOIN or isinstance(record.event, RequestRecorded):
                continue
            index, ordinal = record.position
            request = f'"request_id": "{record.request_id}", ' if record.request_id else ""
            lines.append(
                f'{{{request}"group": "{record.group_id}", "kind": "{told}", '
                f'"index": {index}, "ordinal": {ordinal}}}\n'
            )
        self._file.writelines(lines)
