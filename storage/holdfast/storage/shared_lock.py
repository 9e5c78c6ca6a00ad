"""A lock that many may share or one may hold alone: the state is read by many, replaced by one."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class SharedLock:
    """Holders that share do not wait for each other; who wants it alone waits for all of them."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._sharing = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it together with others that share."""
        with self._condition:
            self._sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold it alone."""
        with self._condition:
            self._condition.wait_for(lambda: self._sharing == 0)
            yield
