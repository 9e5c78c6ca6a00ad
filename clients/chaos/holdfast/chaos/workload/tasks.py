"""What the clients do: which groups and topics there are, who is in them, and for how long.

Plain data that travels to the worker processes as JSON. Five groups: static members, dynamic ones,
both, both with a cooperative assignor, and offsets that are committed without any membership. A
cluster of the run's own has four more: one of the heartbeat protocol, one whose members also
compute, one with members of both protocols, and one whose members choose at each start, so that it
is converted to and fro. On
others' clusters these have no place: how short a session may be there is their operators' matter.
Knows no process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

STATIC: Final = "static"
DYNAMIC: Final = "dynamic"
MIXED: Final = "mixed"
COOPERATIVE: Final = "cooperative"
"""Its members keep over a rebalance what does not move (KIP-429)."""
HEARTBEATS: Final = "heartbeats"
"""Its members speak the heartbeat protocol (KIP-848)."""
COMPUTING: Final = "computing"
"""Its members speak that protocol, and compute the targets of the group themselves."""
BOTH: Final = "both"
"""Its static members speak the heartbeat protocol, the dynamic ones the classic one."""
CONVERTING: Final = "converting"
"""Each process there speaks either protocol, by chance."""
OFFSETS: Final = "offsets"
Protocol: TypeAlias = Literal["classic", "consumer", "either"]
PARTITIONS: Final = 8
PREFIX: Final = "chaos-"
"""Of the names of every run's groups and topics."""
_SIZES: Final = {STATIC: (4, 0), DYNAMIC: (0, 3), MIXED: (2, 2), COOPERATIVE: (2, 2)}
"""Members of each group: so many static ones, so many dynamic ones."""
_HEARTBEAT_SIZES: Final = {
    HEARTBEATS: (2, 2),
    COMPUTING: (2, 1),
    BOTH: (2, 2),
    CONVERTING: (2, 1),
}
"""The same, of the groups of the heartbeat protocol."""


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
    protocol: Protocol = "classic"
    """Which protocol its members speak."""
    computes: bool = False
    """Whether its members run an assignor of their own."""


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


def _sizes(*, heartbeats: bool) -> dict[str, tuple[int, int]]:
    return {**_SIZES, **(_HEARTBEAT_SIZES if heartbeats else {})}


def groups(prefix: str, *, heartbeats: bool) -> tuple[str, ...]:
    """Return every group of the run, with those of the heartbeat protocol if it has any."""
    kinds = _sizes(heartbeats=heartbeats)
    return tuple(group_name(prefix, kind) for kind in (*kinds, OFFSETS))


def heartbeat_groups(prefix: str) -> tuple[str, ...]:
    """Return the groups in which members speak the heartbeat protocol."""
    return tuple(group_name(prefix, kind) for kind in _HEARTBEAT_SIZES)


def slots(prefix: str, *, heartbeats: bool) -> list[Slot]:
    """Return all slots; each group with members has an operator, too."""
    found = []
    for kind, (static, dynamic) in _sizes(heartbeats=heartbeats).items():
        group = group_name(prefix, kind)
        of_static, of_dynamic = _PROTOCOLS.get(kind, ("classic", "classic"))
        static_ones = [f"{kind}-s{n}" for n in range(static)]
        dynamic_ones = [f"{kind}-d{n}" for n in range(dynamic)]
        more = (kind == COOPERATIVE, of_static, kind == COMPUTING)
        found += [Slot(n, group, group, "static", *more) for n in static_ones]
        more = (kind == COOPERATIVE, of_dynamic, kind == COMPUTING)
        found += [Slot(n, group, group, "dynamic", *more) for n in dynamic_ones]
        found.append(Slot(f"{kind}-operator", group, group, "operator"))
    return found


_PROTOCOLS: Final[dict[str, tuple[Protocol, Protocol]]] = {
    HEARTBEATS: ("consumer", "consumer"),
    COMPUTING: ("consumer", "consumer"),
    BOTH: ("consumer", "classic"),
    CONVERTING: ("either", "either"),
}
"""What static members speak, and what dynamic ones do."""


def dealt(all_slots: list[Slot], processes: int) -> list[tuple[Slot, ...]]:
    """Deal slots to processes like cards, so that each group is on all of them."""
    return [tuple(all_slots[number::processes]) for number in range(processes)]
