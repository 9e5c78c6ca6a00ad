"""What fired is handed over in turns (S9), so that many ends hold up nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model.volatile import JOIN_PHASE, REBALANCE, SESSION, DeadlineKey
from holdfast.raft.api import NotLeader
from holdfast.runtime.time.deadline_dispatch import (
    LATE_MS_MAX,
    OTHERS_SHARE,
    PAUSE_S,
    SESSIONS_A_TURN,
    DeadlineDispatch,
)
from holdfast.runtime.time.deadline_table import Due
from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
from holdfast.v1.group_pb2 import HeartbeatRequest

if TYPE_CHECKING:
    import pytest

    from holdfast.coordinator.model.commands import DeadlineFired
    from holdfast.runtime.ports import ReplicaLike

MANY = 5 * SESSIONS_A_TURN


class Followed:
    """A replica whose probes succeed, while it leads."""

    leads = True

    async def quorum_probe(self) -> None:
        """S9 b."""
        if not self.leads:
            raise NotLeader(None)


class Bench:
    """A clock that only pauses move, what was handed over, and every pause between."""

    late_ms = 0
    """By how much every pause is longer than it should be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.handed: list[DeadlineFired] = []
        self.pauses: list[tuple[int, float]] = []
        self.replica = Followed()
        replica = cast("ReplicaLike", self.replica)
        self.dispatch = DeadlineDispatch(replica, self.submit, lambda: self.now_ms)
        self._wait = asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", self._pause)

    def submit(self, fired: DeadlineFired) -> None:
        self.handed.append(fired)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append((len(self.handed), seconds))
        self.now_ms += round(1000 * seconds) + self.late_ms
        await self._wait(0)

    async def turns(self, count: int) -> None:
        """Let the loop turn so often."""
        for _ in range(count):
            await self._wait(0)

    async def until_handed(self, count: int) -> None:
        """Let the loop turn until so many were handed over."""
        for _ in range(10 * count):
            if len(self.handed) >= count:
                return
            await self._wait(0)


def beats_of(*numbers: int) -> list[HeartbeatRequest]:
    """Heartbeats of members of the large group, as a batch holds them."""
    return [HeartbeatRequest(group_id="large", member_id=f"m-{number}") for number in numbers]


def session(number: int) -> Due:
    """The end of a session in one large group."""
    return Due("large", DeadlineKey(SESSION, f"m-{number}"), arming=1, renewals=0)


async def many_end(bench: Bench) -> None:
    """All sessions of the large group end at once, and are handed over."""
    bench.dispatch.fire([session(number) for number in range(MANY)])
    await bench.until_handed(MANY)


def test_many_ends_leave_the_loop_to_others_between_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause behind every turn; nobody is forgotten, none comes twice."""
    bench = Bench(monkeypatch)
    asyncio.run(many_end(bench))
    turns = [handed for handed, pause in bench.pauses if pause > 0]
    assert turns == [SESSIONS_A_TURN * turn for turn in range(1, len(turns) + 1)]
    assert {pause for _, pause in bench.pauses if pause > 0} == {PAUSE_S}
    assert [fired.key.member_id for fired in bench.handed] == [f"m-{n}" for n in range(MANY)]


def test_a_loop_that_has_too_much_to_do_is_left_alone_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It came back late: others waited as long, and get three times that before the next turn."""
    bench = Bench(monkeypatch)
    bench.late_ms = 40
    asyncio.run(many_end(bench))
    behind_first = [pause for handed, pause in bench.pauses if handed == SESSIONS_A_TURN]
    assert behind_first == [PAUSE_S, OTHERS_SHARE * bench.late_ms / 1000]


def test_a_process_that_stood_still_ends_sessions_soon_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S9, INV-12: an hour's suspension must not become three hours of pause."""
    bench = Bench(monkeypatch)
    bench.late_ms = 3_600_000
    asyncio.run(many_end(bench))
    assert len(bench.handed) == MANY
    assert max(pause for _, pause in bench.pauses) <= OTHERS_SHARE * LATE_MS_MAX / 1000


def test_no_group_waits_for_all_ends_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dead member of a small group fires behind thousands; its partitions wait for its turn."""
    bench = Bench(monkeypatch)
    lonely = Due("small", DeadlineKey(SESSION, "lonely"), arming=1, renewals=0)

    async def story() -> None:
        bench.dispatch.fire([session(number) for number in range(MANY)])
        await bench.until_handed(1)
        bench.dispatch.fire([lonely])
        assert bench.dispatch.holds("small", lonely.key)
        await bench.until_handed(MANY + 1)

    asyncio.run(story())
    place = [fired.group_id for fired in bench.handed].index("small")
    assert place <= 3 * SESSIONS_A_TURN
    assert not bench.dispatch.holds("small", lonely.key)


def test_what_fires_meanwhile_waits_for_its_own_probe_and_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ends that fire a millisecond apart share the pauses: none has turns of its own."""
    bench = Bench(monkeypatch)

    async def story() -> None:
        for number in range(MANY):
            bench.dispatch.fire([session(number)])
            await bench.until_handed(1)
        await bench.until_handed(MANY)

    asyncio.run(story())
    assert len(bench.handed) == MANY
    assert len([pause for _, pause in bench.pauses if pause > 0]) < MANY


def test_another_groups_deadline_goes_past_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members wait for it: thousands of strangers must not come first."""
    bench = Bench(monkeypatch)
    key = DeadlineKey(JOIN_PHASE)

    async def story() -> None:
        bench.dispatch.fire([session(number) for number in range(MANY)])
        await bench.until_handed(1)
        bench.dispatch.fire([Due("small", key, arming=1, renewals=0)])
        await bench.until_handed(MANY + 1)

    asyncio.run(story())
    places = [number for number, fired in enumerate(bench.handed) if fired.key == key]
    assert len(places) == 1
    assert places[0] < MANY


def test_nothing_is_handed_over_once_the_lead_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a node that leads again begins anew, at once."""
    bench = Bench(monkeypatch)

    async def story() -> None:
        bench.dispatch.fire([session(number) for number in range(MANY)])
        await bench.until_handed(1)
        bench.dispatch.clear()
        handed = len(bench.handed)
        bench.dispatch.fire([session(MANY)])
        await bench.until_handed(handed + 1)
        assert [fired.key.member_id for fired in bench.handed[handed:]] == [f"m-{MANY}"]
        bench.replica.leads = False
        bench.dispatch.fire([session(MANY + 1)])
        await bench.until_handed(handed + 2)
        assert len(bench.handed) == handed + 1

    asyncio.run(story())


def test_s9_a_batch_that_has_arrived_is_heard_to_its_end_before_a_session_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is heard in slices; what comes after that is not waited for, or none would ever end."""
    bench, arrived = Bench(monkeypatch), ArrivedHeartbeats()
    bench.dispatch = DeadlineDispatch(
        cast("ReplicaLike", bench.replica), bench.submit, lambda: bench.now_ms, arrived.heard
    )

    async def story() -> None:
        with contextlib.ExitStack() as later:
            with arrived.counted(beats_of(0)):
                bench.dispatch.fire([session(0)])
                await bench.turns(10)
                assert not bench.handed
                later.enter_context(arrived.counted(beats_of(0)))
            await bench.until_handed(1)
            assert len(bench.handed) == 1

    asyncio.run(story())


def test_s9_batches_of_strangers_hold_up_no_session_s_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one caller with large batches without end keeps every dead member of the cluster."""
    bench, arrived = Bench(monkeypatch), ArrivedHeartbeats()
    bench.dispatch = DeadlineDispatch(
        cast("ReplicaLike", bench.replica), bench.submit, lambda: bench.now_ms, arrived.heard
    )

    async def story() -> None:
        with arrived.counted(beats_of(1, 2)), arrived.counted([HeartbeatRequest(group_id="x")]):
            bench.dispatch.fire([session(0)])
            await bench.until_handed(1)
            assert [fired.key.member_id for fired in bench.handed] == ["m-0"]

    asyncio.run(story())


def test_s9_no_batch_holds_up_the_deadline_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A join phase waits for joins, which no batch of heartbeats brings."""
    bench, arrived = Bench(monkeypatch), ArrivedHeartbeats()
    bench.dispatch = DeadlineDispatch(
        cast("ReplicaLike", bench.replica), bench.submit, lambda: bench.now_ms, arrived.heard
    )

    async def story() -> None:
        with arrived.counted(beats_of(0)):
            bench.dispatch.fire([Due("large", DeadlineKey(JOIN_PHASE), arming=1, renewals=0)])
            await bench.until_handed(1)
            assert len(bench.handed) == 1

    asyncio.run(story())


def test_s9_a_batch_that_has_arrived_is_heard_before_a_member_is_given_up_that_was_to_revoke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-M25: a heartbeat of it may say that it has given up what it was to."""
    bench, arrived = Bench(monkeypatch), ArrivedHeartbeats()
    bench.dispatch = DeadlineDispatch(
        cast("ReplicaLike", bench.replica), bench.submit, lambda: bench.now_ms, arrived.heard
    )

    async def story() -> None:
        with arrived.counted(beats_of(0)):
            phase = Due("large", DeadlineKey(JOIN_PHASE), arming=1, renewals=0)
            bench.dispatch.fire([Due("large", DeadlineKey(REBALANCE, "m-0"), 1, 0), phase])
            await bench.until_handed(1)
            await bench.turns(10)
            assert [fired.key.kind for fired in bench.handed] == [JOIN_PHASE]
        await bench.until_handed(2)
        assert bench.handed[-1].key == DeadlineKey(REBALANCE, "m-0")

    asyncio.run(story())
