"""An open environment that many threads use and one may replace, without waiting for them (S18).

A user goes on with the environment on which it began; a replaced environment is closed when its
last user leaves. Knows nothing of what is stored.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.storage.errors import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lmdb

    from holdfast.storage.disk.environment import Databases


class _Use(NamedTuple):
    operation: str
    thread: str
    begun: float


@dataclass(slots=True)
class Opened:
    """An environment and its databases."""

    environment: lmdb.Environment
    databases: Databases
    generation: int
    users: list[_Use] = field(default_factory=list)
    replaced: bool = False
    """Whether writes to it are lost from now on."""


class SharedEnvironment:
    """The environment in use. Any thread may call any method."""

    def __init__(self, environment: lmdb.Environment, databases: Databases) -> None:
        self._changed = threading.Condition()
        self._current = Opened(environment, databases, 0)

    @property
    def generation(self) -> int:
        """The number of replacements so far."""
        return self._current.generation

    @contextmanager
    def using(self, operation: str) -> Iterator[Opened]:
        """Keep the present environment open during the body. `operation`: the use, in a word."""
        use = _Use(operation, threading.current_thread().name, time.monotonic())
        with self._changed:
            opened = self._current
            opened.users.append(use)
        try:
            yield opened
        finally:
            with self._changed:
                opened.users.remove(use)
                if opened.replaced and not opened.users:
                    opened.environment.close()
                self._changed.notify_all()

    def replace(self, environment: lmdb.Environment, databases: Databases) -> None:
        """Replace the environment for all later users. Does not wait for present ones."""
        with self._changed:
            before = self._current
            self._current = Opened(environment, databases, before.generation + 1)
            before.replaced = True
            if not before.users:
                before.environment.close()

    def close(self, within_s: float) -> list[User]:
        """Close it once its last user has left; return the users that are left after `within_s`."""
        with self._changed:
            if self._changed.wait_for(lambda: not self._current.users, within_s):
                self._current.environment.close()
            now = time.monotonic()
            return [User(u.operation, u.thread, now - u.begun) for u in self._current.users]
