"""What the clients do: which groups and topics there are, who is in them, and for how long.

Plain data that travels to the worker processes as JSON. Five groups: static members, dynamic ones,
both, both with a cooperative assignor, and offsets that are committed without any membership. Knows
no process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

STATIC: Final = "static"
DYNAMIC: Final = "dynamic"
MIXED: Final = "mixed"
COOPERATIVE: Final = "cooperative"
"""Its members keep over a rebalance what does not move (KIP-429)."""
OFFSETS: Final = "offsets"
PARTITIONS: Final = 8
PREFIX: Final = "chaos-"
"""Of the names of every run's groups and topics."""
_SIZES: Final = {STATIC: (4, 0), DYNAMIC: (0, 3), MIXED: (2, 2), COOPERATIVE: (2, 2)}
"""Members of each group: so many static ones, so many dynamic ones."""


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds that every member asks for, and how long one stays before it comes or goes."""

    session: int = 4_000
    rebalance: int = 6_000
    heartbeat: int = 500
    stay_least: int = 4_000
    stay_most: int = 20_000
    write: int = 300


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a group, for one member after another."""

    name: str
    """Its instance id, if static."""
    group: str
    topic: str
    kind: Literal["static", "dynamic", "operator"]
    cooperative: bool = False
    """Whether its members have the cooperative assignor; else the client's defaults, which are
    eager. All members of a group have the same."""


@dataclass(frozen=True, slots=True)
class Task:
    """All that one worker process needs to know."""

    number: int
    seed: int
    endpoints: tuple[str, ...]
    tls: tuple[str, str, str] | None
    """Three paths; None: no TLS."""
    store: str
    history: str
    slots: tuple[Slot, ...]
    times: Times

    def write(self, path: Path) -> None:
        """Write the task into a file, for the process."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Task:
        """Read a task from its file."""
        raw: dict[str, Any] = json.loads(path.read_text())
        raw["slots"] = tuple(Slot(**slot) for slot in raw["slots"])
        raw["times"] = Times(**raw["times"])
        raw["endpoints"] = tuple(raw["endpoints"])
        raw["tls"] = tuple(raw["tls"]) if raw["tls"] else None
        return cls(**raw)


def group_name(prefix: str, kind: str) -> str:
    """Name the group of a kind in the run with this prefix; its topic has the same name."""
    return f"{prefix}-{kind}"


def groups(prefix: str) -> tuple[str, ...]:
    """Return every group of the run."""
    return tuple(group_name(prefix, kind) for kind in (*_SIZES, OFFSETS))


def slots(prefix: str) -> list[Slot]:
    """Return all slots; each group with members has an operator, too."""
    found = []
    for kind, (static, dynamic) in _SIZES.items():
        group, keeps = group_name(prefix, kind), kind == COOPERATIVE
        found += [Slot(f"{kind}-s{n}", group, group, "static", keeps) for n in range(static)]
        found += [Slot(f"{kind}-d{n}", group, group, "dynamic", keeps) for n in range(dynamic)]
        found.append(Slot(f"{kind}-operator", group, group, "operator"))
    return found


def dealt(all_slots: list[Slot], processes: int) -> list[tuple[Slot, ...]]:
    """Deal slots to processes like cards, so that each group is on all of them."""
    return [tuple(all_slots[number::processes]) for number in range(processes)]
