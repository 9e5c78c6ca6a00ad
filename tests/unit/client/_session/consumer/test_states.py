"""The table of states: what must hold of it whatever the session does."""

from __future__ import annotations

from holdfast.client._session.consumer.states import (
    BEATING,
    IN_GROUP,
    TABLE,
    VIEW,
    GroupState,
    Input,
    State,
)


def sources(to: State) -> set[State]:
    return {state for (state, _), target in TABLE.items() if target is to}


def test_every_state_but_the_first_is_entered_and_every_state_is_left() -> None:
    assert {state for state, _ in TABLE} == set(State)
    assert set(TABLE.values()) == set(State)


def test_every_input_moves_something() -> None:
    assert {what for _, what in TABLE} == set(Input)


def test_states_are_entered_from_where_kafkas_client_enters_them() -> None:
    """KIP-848, Kafka's MemberState, with RECONCILING as its two halves."""
    reconciling = {State.REVOKING, State.ASSIGNING}
    assert sources(State.ASSIGNING) | sources(State.REVOKING) == {
        State.STABLE,
        State.JOINING,
        State.ACKNOWLEDGING,
        *reconciling,
    }
    assert sources(State.ACKNOWLEDGING) == reconciling
    assert sources(State.STABLE) == {State.JOINING, State.ACKNOWLEDGING}
    assert sources(State.FENCED) == {State.JOINING, *IN_GROUP}
    assert sources(State.LEAVING) >= {State.PREPARE_LEAVING}
    assert sources(State.STALE) == {State.LEAVING}
    assert sources(State.JOINING) == {
        *(State.UNSUBSCRIBED, State.FENCED, State.STALE),
        State.FATAL,  # bettered: there another subscription leads out
    }


def test_a_fence_while_it_leaves_ends_in_unsubscribed() -> None:
    assert TABLE[State.PREPARE_LEAVING, Input.FENCED] is State.UNSUBSCRIBED


def test_nothing_beats_that_is_in_no_group_or_has_said_goodbye() -> None:
    """T-13: above all, a fenced member is silent until the user has heard it."""
    silent = {State.UNSUBSCRIBED, State.FENCED, State.STALE, State.FATAL, State.LEAVING}
    assert set(State) - BEATING == silent


def test_the_five_steps_of_a_rebalance_are_a_view_of_all_states() -> None:
    assert set(VIEW) == set(State)
    assert set(VIEW.values()) == set(GroupState)
