"""Notes of the audit: what is written, what is counted instead, and that no flood costs a call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.server.audit import trail as module
from holdfast.server.audit.trail import BURST, OTHERS, PRINCIPALS_MAX, WAITING_MAX, Trail

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.server.audit.files import AuditFiles

AT_MS = 1_700_000_000_000


@dataclass
class Disk:
    """Files in memory; while `broken` is set they take nothing."""

    broken: bool = False
    records: list[dict[str, Any]] = field(default_factory=list)

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        if self.broken:
            raise OSError(28, "No space left on device", "/data/audit")
        self.records += records


@dataclass
class World:
    """A trail on such files, with clocks that stand still."""

    disk: Disk = field(default_factory=Disk)
    now: float = 100.0

    def __post_init__(self) -> None:
        self.trail = Trail(
            cast("AuditFiles", self.disk), clock=lambda: self.now, wall=lambda: AT_MS / 1000
        )

    def deny(self, principal: str, times: int) -> None:
        for _ in range(times):
            self.trail.denied(principal, "JoinGroup", "group orders", "needs member")

    def written(self) -> list[dict[str, Any]]:
        """Flush, and return what is on the disk."""
        asyncio.run(self.trail.flush())
        return self.disk.records

    def counts(self, kind: str) -> list[tuple[str | None, int]]:
        return [
            (each.get("principal"), each.get("count", 1))
            for each in self.written()
            if each["kind"] == kind
        ]


def test_a_record_says_when_who_what_and_why() -> None:
    world = World()
    world.deny("svc", 1)
    world.trail.read("root", "ReadEvents", "")

    assert world.written() == [
        {
            "at_ms": AT_MS,
            "kind": "denied",
            "principal": "svc",
            "call": "JoinGroup",
            "on": "group orders",
            "why": "needs member",
        },
        {"at_ms": AT_MS, "kind": "read", "principal": "root", "call": "ReadEvents"},
    ]


def test_of_a_flood_the_first_are_written_and_the_rest_is_counted() -> None:
    """And nobody else's records are fewer for it."""
    world = World()
    world.deny("mallory", 10_000)
    world.deny("svc", 2)
    assert world.counts("denied") == [("mallory", 1)] * int(BURST) + [("svc", 1)] * 2
    assert world.counts("left-out") == []

    world.now += 1.0
    assert world.counts("left-out") == [("mallory", 10_000 - int(BURST))]

    world.now += 2 * BURST
    world.deny("mallory", 1)
    assert world.counts("denied")[-1] == ("mallory", 1), "after a pause it is written again"


def test_principals_without_number_share_an_account() -> None:
    world = World()
    for number in range(PRINCIPALS_MAX + 500):
        world.deny(f"p{number}", 1)

    assert len(world.counts("denied")) == PRINCIPALS_MAX + int(BURST)
    world.now += 1.0
    assert world.counts("left-out") == [(OTHERS, 500 - int(BURST))]


def test_what_a_disk_does_not_take_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    world = World(Disk(broken=True))
    for _ in range(3):
        world.deny("svc", 2)
        assert world.written() == []
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 1, "once a minute"
    assert "No space left" in said[0]
    assert "audit.bytes_max" in said[0]

    world.disk.broken = False

    (_, lost), *more = world.counts("lost")
    assert lost >= 6
    assert more == []


def test_what_waits_for_the_disk_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BURST", 1e9)
    world = World()
    world.deny("svc", WAITING_MAX + 7)

    assert len(world.written()) == WAITING_MAX
    assert world.counts("lost") == [(None, 7)]


def test_nothing_is_kept_where_none_is_wanted() -> None:
    trail = Trail(None)
    trail.denied("svc", "JoinGroup", "group g", "why")

    async def story() -> None:
        trail.start()
        await trail.stop()

    asyncio.run(story())


def test_a_stop_writes_what_waits() -> None:
    async def story() -> list[dict[str, Any]]:
        world = World()
        world.trail.start()
        world.deny("svc", 3)
        await world.trail.stop()
        return world.disk.records

    assert len(asyncio.run(story())) == 3
