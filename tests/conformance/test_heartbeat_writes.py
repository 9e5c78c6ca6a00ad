"""Rules of consumer groups about what is written, and what is not yet: the core alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.talk import Shown, Talk, Told
from harness import consumer_json, kafka_json
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.kernel.decide import decide
from holdfast.coordinator.model.commands import Caller, Command, ExpireOffsets
from holdfast.coordinator.model.effects import Decision
from holdfast.coordinator.model.volatile import Volatile

Json = Any
CALLER = Caller(10**6, principal="anonymous", client_id="x")


def begin(topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> Talk:
    return Talk(InProcess(config or {}, topics))


def lost(talk: Talk, command: Command) -> Decision:
    """Decide, and lose the entry on the way to the log: nobody adopts it."""
    core = talk.session.core  # type: ignore[attr-defined]  # begin() made it
    return decide(core.state, core.volatile.get("g", Volatile()), command, core.now_ms)


def a_beat(name: str, epoch: int, **fields: Json) -> Command:
    request = {"group_id": "g", "member_id": name, "member_epoch": epoch, **fields}
    return consumer_json.heartbeat(request, CALLER)


def test_k5_a_description_shows_only_what_is_committed() -> None:
    talk = begin({"t": 2})
    talk.join("a")
    before = talk.described()

    decided = lost(talk, a_beat("b", 0, topic_partitions=[], **talk.whole()))

    assert decided.events
    assert talk.described() == before


def test_l11_a_change_of_topics_that_was_not_written_is_found_again() -> None:
    talk = begin({"t": 1})
    talk.join("a")
    talk.admin(add_partitions="t", partitions=2)

    assert lost(talk, a_beat("a", 2)).events
    assert talk.beat("a", 2) == Told(3, "t0 t1")
    assert talk.group() == Shown("Stable", 3, 3)


def test_q8_a_classic_join_that_was_not_written_changes_nothing() -> None:
    talk = begin({"t": 2})
    talk.join("a")
    join = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "group_instance_id": "i1",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": {"topics": ["t"], "version": 1}}],
    }

    assert lost(talk, kafka_json.join(join, CALLER, "fresh")).events
    assert talk.group() == Shown("Stable", 2, 2)
    assert talk.call("x", "JoinGroup", join)["generation_id"] == 3


@pytest.mark.source("it puts a failing assignor in the place of one")
def test_m29_an_assignor_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of that heartbeat counts. A node answers UNKNOWN_SERVER_ERROR to what raises."""
    talk = begin({"t": 2})
    talk.join("a")
    with monkeypatch.context() as broken:
        broken.setattr(target, "ASSIGNORS", {"range": lambda *_: 1 / 0})
        with pytest.raises(ZeroDivisionError):
            talk.join("b")

    assert set(talk.members()) == {"a"}
    assert talk.join("b") == Told(3, "")


def test_j31_offsets_of_topics_that_nobody_wants_grow_old() -> None:
    """Those of a subscribed topic stay; in an empty group nobody subscribes to anything."""
    talk = begin({"t": 1, "u": 1}, {"offsets.retention.minutes": "1"})
    core = talk.session.core  # type: ignore[attr-defined]  # begin() made it
    talk.join("a", "t")
    talk.commit("a", 2, "t0 u0")
    for _ in range(2):
        talk.wait(40_000)
        talk.beat("a", 2)

    core.submit(ExpireOffsets("g", core.now_ms))
    assert offsets(talk) == {"t"}
    talk.leave("a")
    core.submit(ExpireOffsets("g", core.now_ms))
    assert offsets(talk) == set()


def offsets(talk: Talk) -> set[str]:
    """The topics of which the group has offsets."""
    asked = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": None}
    request = {"groups": [asked], "require_stable": False}
    (group,) = talk.call("op", "OffsetFetch", request)["groups"]
    return {topic["name"] for topic in group["topics"]}
