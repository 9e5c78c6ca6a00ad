"""Heartbeats that change nothing: answered from memory, and only as `decide` would answer them."""

import pytest

from harness.calls import Calls
from holdfast.coordinator.kernel.decide import decide
from holdfast.coordinator.model.commands import Heartbeat
from holdfast.coordinator.model.effects import Answer
from holdfast.runtime.groups.heartbeat_cache import HeartbeatCache


def heard(calls: Calls, cache: HeartbeatCache, command: Heartbeat) -> tuple[object, object]:
    """What `decide` answers now, and what is remembered of it."""
    decision = decide(calls.core.state, calls.volatile, command)
    cache.remember(command, decision)
    (answer,) = [effect for effect in decision.effects if isinstance(effect, Answer)]
    known = cache.recall((command.generation, command.member_id, command.instance_id))
    return answer.reply, known.reply if known is not None else None


def test_a_heartbeat_from_memory_is_what_decide_would_answer() -> None:
    """K-F7: an accepted one, with the instance id and without; each under its key."""
    calls = Calls()
    calls.stable("i1", "i2")
    cache = HeartbeatCache()
    for instance_id in ("i1", None):
        command = Heartbeat(calls.caller(), "g", 1, "i1-1", instance_id)
        decided, remembered = heard(calls, cache, command)
        assert remembered == decided


@pytest.mark.parametrize(
    ("generation", "member_id", "instance_id"),
    [(1, "i1-1", "i2"), (1, "ghost", None), (2, "i1-1", None)],
)
def test_who_is_refused_is_not_remembered(
    generation: int, member_id: str, instance_id: str | None
) -> None:
    """K-C5, K-F1, K-F4: a twin, an unknown member, a wrong generation; anybody can make them up."""
    calls = Calls()
    calls.stable("i1", "i2")
    command = Heartbeat(calls.caller(), "g", generation, member_id, instance_id)

    assert heard(calls, HeartbeatCache(), command)[1] is None


def test_a_release_is_never_answered_from_memory() -> None:
    """S12: it fences an id, so it is decided each time."""
    calls = Calls()
    calls.stable("i1")
    cache = HeartbeatCache()
    cache.remember(
        (command := Heartbeat(calls.caller(), "g", 1, "i1-1", "i1", release=True)),
        decide(calls.core.state, calls.volatile, command),
    )

    assert cache.recall((1, "i1-1", "i1")) is None


def test_nothing_is_remembered_over_another_decision() -> None:
    """S9: an open join phase makes another answer of the same heartbeat."""
    calls = Calls()
    calls.stable("i1")
    cache = HeartbeatCache()
    heard(calls, cache, Heartbeat(calls.caller(), "g", 1, "i1-1", "i1"))
    cache.forget()

    assert cache.recall((1, "i1-1", "i1")) is None
