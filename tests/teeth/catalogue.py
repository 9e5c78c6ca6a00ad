"""The catalogue of seeded defects: what each takes away, which rule that is, and who must notice.

A defect is a small patch that is laid over the product at run time, for one run. The modules in
`defects/` make them, a layer each; here is only what a defect is, and where it is found.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

LAYERS: Final = (
    *("engine", "nodes", "peers", "journal", "history", "core", "consumer"),
    *("conversion", "targets", "client_side", "order", "server", "pushes", "client"),
)
RULE: Final = re.compile(r"[SID]\d+(?: [a-f])?|FAULT-\d+")
"""A safety rule, an invariant, a defect of the stock engine that the overlay closes, or a fault."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulator's judges must see it: one of `by`, in one of so many seeds of a weather.

    `by`: invariants, `alarm` for what the product itself says loudest, `level` for a node that met
    what its version could not read, or `segments` for one that has sealed others (S22). What
    anything else says of it (a crash in the patch, a cluster that does not heal) does not count.
    """

    by: tuple[str, ...]
    weather: str = "storm"
    seeds: int = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """An assertion of this test must fail: some rules show best in their own scenario."""

    test: str


Judge: TypeAlias = Simulated | Scenario


@dataclass(frozen=True, slots=True)
class Defect:
    """One seeded defect. `harm`: its docstring, which tells what is taken away and what follows."""

    name: str
    layer: str
    rule: str
    harm: str
    judge: Judge
    patch: Callable[[], AbstractContextManager[object]]

    @property
    def title(self) -> str:
        """The first sentence of what is taken away."""
        return self.harm.partition("\n")[0]


_FOUND: Final[dict[str, Defect]] = {}


def seeded(rule: str, judge: Judge) -> Callable[[Callable[[], Iterator[None]]], Defect]:
    """Enter a patch (a generator that yields once) into the catalogue."""

    def enter(patch: Callable[[], Iterator[None]]) -> Defect:
        layer = patch.__module__.rpartition(".")[2]
        name, harm = patch.__name__, (patch.__doc__ or "").strip()
        if name in _FOUND:
            raise ValueError(f"there are two defects with the name {name}")
        made = Defect(name, layer, rule, harm, judge, contextmanager(patch))
        _FOUND[name] = made
        return made

    return enter


def catalogue() -> dict[str, Defect]:
    """All defects by name, in the order of the layers."""
    for layer in LAYERS:
        import_module(f"teeth.defects.{layer}")
    return dict(sorted(_FOUND.items(), key=lambda item: LAYERS.index(item[1].layer)))
