"""Witness files: every change that was acknowledged to a client, one line of JSON each.

`holdfast.replay.verify.acknowledged` reads them: what they say must be in the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client import Acknowledged


def write_witness(file: Path) -> Callable[[Acknowledged], None]:
    """Append each acknowledged change to a file, as `holdfast.replay.verify.acknowledged` reads it.

    A sync's request id is not on the log: its position is what it is known by.
    """
    lines = file.open("a")

    def write(change: Acknowledged) -> None:
        line = change._asdict()
        if change.kind == "SyncGroup":
            line["request_id"] = ""
        lines.write(json.dumps(line) + "\n")
        lines.flush()

    return write
