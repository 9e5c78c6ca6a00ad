"""How a replica is opened and closed, over real files and alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import pytest

from harness.poll import WITHIN_S, until_async
from holdfast.coordinator.model.access import Revocation
from holdfast.coordinator.model.events import Cause, Part, Proposed, RevocationsChanged
from holdfast.coordinator.model.ids import Position
from holdfast.raft.api import EngineStopped, Settings
from holdfast.raft.membership import Membership
from holdfast.raft.open import LogConfig, PeerCalls
from holdfast.runtime.event_log.fetch import Fetching
from holdfast.runtime.event_log.seal import Sealing
from holdfast.runtime.replica import open as opening
from holdfast.runtime.replica.directory import DirectoryConfig, open_directory
from holdfast.runtime.replica.open import OpenReplica, ReplicaConfig, open_replica
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def alone(path: Path, disk_reserve_bytes: int | None = None) -> DirectoryConfig:
    """The directory of a new cluster's only node."""
    return DirectoryConfig(
        path, "c", "n1", has_peers=False, bootstrap=True, disk_reserve_bytes=disk_reserve_bytes
    )


async def opened_alone(path: Path) -> OpenReplica:
    log = LogConfig("c", "n1", "127.0.0.1:0", peers={}, tls=None, settings=Settings())
    return await open_replica(ReplicaConfig(log), open_directory(alone(path)))


def test_a_replica_closes_while_reads_that_hang_hold_all_threads_of_the_loop(
    tmp_path: Path,
) -> None:
    """Each step of an end is bounded, and a bound that waits for a free thread is none."""
    let_go = Event()

    async def story() -> None:
        opened = await opened_alone(tmp_path / "data")
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        hangs = loop.run_in_executor(None, let_go.wait)
        try:
            await asyncio.wait_for(opened.close(), WITHIN_S)
        finally:
            let_go.set()
            await hangs

    asyncio.run(story())


def test_the_level_can_be_told_as_soon_as_peers_can_greet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: the peer port is open before the replica is; a greeting then must not fail."""
    told: list[int] = []
    tell_level = PeerCalls.tell_level

    def tell_and_greet(calls: PeerCalls, level: Callable[[], int]) -> None:
        tell_level(calls, level)
        told.append(level())

    monkeypatch.setattr(PeerCalls, "tell_level", tell_and_greet)

    async def story() -> None:
        opened = await opened_alone(tmp_path / "data")
        await opened.close()

    asyncio.run(story())
    assert set(told) == {0}, "no cluster is known in a new directory"


def test_a_certificate_that_the_stored_state_revokes_is_refused_before_the_peer_port_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 31: a start must not let in for a moment who was out before it."""
    stolen = Revocation("ab" * 32)
    told: list[frozenset[str] | str] = []

    async def story() -> None:
        opened = await opened_alone(tmp_path / "data")
        replica = opened.replica
        await until_async(lambda: bool(replica.leading_term), "it leads")
        event = Proposed(RevocationsChanged((stolen,), ()), Cause("test", "test"))
        part = Part("", replica.leading_term, replica.state.version_of(""), (event,))
        assert (await replica.propose(part)).applied
        await opened.close()
        monkeypatch.setattr(PeerCalls, "refuse_certificates", lambda _, these: told.append(these))
        monkeypatch.setattr(opening, "open_log", binding)
        with pytest.raises(EngineStopped):
            await opened_alone(tmp_path / "data")

    def binding(*_: object) -> None:
        told.append("the port is bound")
        raise EngineStopped("the test is over")

    asyncio.run(story())
    assert told == [frozenset({stolen.fingerprint}), "the port is bound"]


def test_s25_what_is_missing_is_looked_for_when_the_nodes_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that comes may have it; and a cluster of one has asked nobody so far."""
    looks: list[bool] = []
    monkeypatch.setattr(Fetching, "look", lambda _: looks.append(True))

    async def story() -> None:
        opened = await opened_alone(tmp_path / "data")
        (tell,) = opened.log.engine.overlay.in_force.listeners[-1:]
        tell(Membership.of(("n1", "n2")))
        await until_async(lambda: bool(looks), "a look")
        await opened.close()

    asyncio.run(story())


def test_s22_a_running_node_that_installs_a_snapshot_seals_up_to_the_boundary_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S22: the record of that boundary is in the snapshot, so nobody applies it here."""
    wanted: list[Position] = []
    boundary = Position(7, 0)

    async def story() -> None:
        opened = await opened_alone(tmp_path / "data")
        replica = opened.replica
        monkeypatch.setattr(Sealing, "start", lambda _, sealed: wanted.append(sealed))
        before = replica.state
        opened.snapshots.on_installed()
        replica._machine.state = before._replace(sealed=boundary)  # the replica has it only now
        await asyncio.sleep(0)
        replica._machine.state = before
        await opened.close()

    asyncio.run(story())
    assert wanted == [boundary]


def test_a_configured_reserve_counts_when_a_directory_is_created(tmp_path: Path) -> None:
    """S20: not only for the disk guard; a small disk has less room than the usual reserve."""
    config = alone(tmp_path / "data", disk_reserve_bytes=1 << 62)
    with pytest.raises(DirectoryRefused, match=r"node\.disk_reserve_bytes") as refused:
        open_directory(config)

    assert refused.value.refusal is Refusal.NO_SPACE
