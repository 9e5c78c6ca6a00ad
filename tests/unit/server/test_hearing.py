"""Heartbeats that change nothing: answered from memory, and only as `decide` would answer them."""

from harness.calls import Calls
from holdfast.coordinator.commands import Heartbeat
from holdfast.coordinator.decide import decide
from holdfast.coordinator.effects import Answer
from holdfast.server.hearing import Hearing


def heard(calls: Calls, hearing: Hearing, command: Heartbeat) -> tuple[object, object]:
    """What `decide` answers now, and what is remembered of it."""
    decision = decide(calls.core.state, calls.volatile, command)
    hearing.remember(command, decision)
    (answer,) = [effect for effect in decision.effects if isinstance(effect, Answer)]
    known = hearing.recall((command.generation, command.member_id, command.instance_id))
    return answer.reply, known.reply if known is not None else None


def test_a_heartbeat_from_memory_is_what_decide_would_answer() -> None:
    """F1-F4: an accepted one, an unknown member, a twin, a wrong generation; each under its key."""
    calls = Calls()
    calls.stable("i1", "i2")
    hearing = Hearing()
    for generation, member_id, instance_id in (
        (1, "i1-1", "i1"),
        (1, "i1-1", None),
        (1, "i1-1", "i2"),
        (1, "ghost", None),
        (2, "i1-1", None),
    ):
        command = Heartbeat(calls.caller(), "g", generation, member_id, instance_id)
        decided, remembered = heard(calls, hearing, command)
        assert remembered == decided


def test_a_release_is_never_answered_from_memory() -> None:
    """S12: it fences an id, so it is decided each time."""
    calls = Calls()
    calls.stable("i1")
    hearing = Hearing()
    hearing.remember(
        (command := Heartbeat(calls.caller(), "g", 1, "i1-1", "i1", release=True)),
        decide(calls.core.state, calls.volatile, command),
    )

    assert hearing.recall((1, "i1-1", "i1")) is None


def test_nothing_is_remembered_over_another_decision() -> None:
    """S9: an open join phase makes another answer of the same heartbeat."""
    calls = Calls()
    calls.stable("i1")
    hearing = Hearing()
    heard(calls, hearing, Heartbeat(calls.caller(), "g", 1, "i1-1", "i1"))
    hearing.forget()

    assert hearing.recall((1, "i1-1", "i1")) is None
