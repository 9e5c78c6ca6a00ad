"""The few ways in which a defect is laid over the product."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.pysyncobj import engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


def replaced(owner: object, name: str, by: object) -> AbstractContextManager[object]:
    """Put something else in the place of an attribute that is there."""
    return mock.patch.object(owner, name, by)


def entered(table: dict[type, Any], key: type, by: object) -> AbstractContextManager[object]:
    """Put another function into a table in which the product looks up what to do by class."""
    return mock.patch.dict(table, {key: by})


@contextmanager
def without(*rules: Switch) -> Iterator[None]:
    """Every engine that is made meanwhile does without these deviations."""
    made: Any = engine.Engine.__init__

    def make(self: engine.Engine, **arguments: Any) -> None:  # noqa: ANN401 - whatever it takes
        kept = frozenset(arguments.pop("switches", ALL)) - {*rules}
        made(self, switches=kept, **arguments)

    with replaced(engine.Engine, "__init__", make):
        yield
