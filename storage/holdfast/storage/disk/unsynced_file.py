"""A small file that is written in place without a sync, for content that may be late or lost.

Its content survives any end of the process, and a power cut as far as the kernel had written it. If
the disk refuses a write, one warning is logged and the node goes on without it. Knows bytes and a
file; readers must recognise torn bytes.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


class UnsyncedFile:
    """One file, held open by the process that writes it."""

    def __init__(self, path: Path) -> None:
        """Open or make it. Raises OSError."""
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._works = True

    def write(self, content: bytes) -> None:
        """Write at the start of the file, which is not shortened."""
        try:
            os.pwrite(self._file, content, 0)
        except OSError as error:
            if self._works:
                logger.warning("%s cannot be written (%s): see to the disk", self.path, error)
            self._works = False

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
