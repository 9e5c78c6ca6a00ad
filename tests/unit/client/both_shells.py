"""One way to speak to both shells, so that one suite of tests judges both.

`Shell.sync` is the blocking client as it is; `Shell.aio` is the asyncio client, each call of which
is run in an event loop of a thread and waited for. The fake cluster has a thread of its own.
"""

# ruff: noqa: ANN401 - a proxy has the types of what it stands for

from __future__ import annotations

import enum
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from holdfast.client import aio, sync
from holdfast.client.sync.threads import LoopThread
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unit.client.fake_cluster import FakeGroup, FakeNode

_USER, _CLUSTER = LoopThread(), LoopThread()


class Shell(enum.Enum):
    """Which client."""

    aio = "aio"
    sync = "sync"

    def member(self, *args: Any, **settings: Any) -> Any:
        return self._make("Member", *args, **settings)

    def members(self, *args: Any, **settings: Any) -> Any:
        return self._make("Members", *args, **settings)

    def connection(self, *args: Any, **settings: Any) -> Any:
        return self._make("Connection", *args, **settings)

    def wait(self, result: Any) -> Any:
        """What it comes to; in asyncio it is awaited."""
        if not inspect.isawaitable(result):
            return result

        async def wait() -> Any:
            return await result

        return _USER.run(wait())

    def _make(self, name: str, *args: Any, **settings: Any) -> Any:
        if self is Shell.sync:
            return getattr(sync, name)(*args, **settings)
        bare = [arg._it if isinstance(arg, _Blocking) else arg for arg in args]
        return _USER.make(lambda: _Blocking(getattr(aio, name)(*bare, **settings)))


class _Blocking:
    """An object for asyncio, whose methods block."""

    def __init__(self, it: Any) -> None:
        self._it = it

    def __enter__(self) -> Self:
        _USER.run(self._it.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        _USER.run(self._it.__aexit__(*error))

    def __iter__(self) -> Iterator[_Blocking]:
        return iter([_Blocking(one) for one in self._it])

    def __len__(self) -> int:
        return len(self._it)

    def __getitem__(self, number: int) -> _Blocking:
        return _Blocking(self._it[number])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._it, name)
        return self._call(value) if inspect.ismethod(value) else value

    @staticmethod
    def _call(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            result = _USER.make(lambda: method(*args, **named))
            if inspect.isawaitable(result):

                async def wait() -> Any:
                    return await result

                return _USER.run(wait())
            return _each(result) if inspect.isasyncgen(result) else result

        return call


def _each(results: Any) -> Iterator[Any]:
    while True:
        try:
            yield _USER.run(anext(results))
        except StopAsyncIteration:
            return


@contextmanager
def cluster() -> Iterator[tuple[FakeGroup, FakeNode]]:
    """A fake node that leads, served by a thread of its own."""
    running = fake_cluster()
    group, (node,) = _CLUSTER.run(running.__aenter__())
    try:
        yield group, node
    finally:
        _CLUSTER.run(running.__aexit__(None, None, None))
