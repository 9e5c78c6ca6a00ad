"""The table of served requests under change: kept changes are stored, dropped ones leave no trace.

What is answered from the table, and how it forgets, `test_requests` says of the whole core.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.request_table import FORGOTTEN_AT_ONCE_MAX, RequestTable
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import Cause, Record, RequestRecorded
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap

FEW = settings.of_cluster(State())._replace(dedupe_requests_max=5)
IDS = st.integers(0, 15).map(str)
PARTS = st.lists(st.tuples(st.lists(IDS, max_size=12), st.booleans()), max_size=6)
"""The ids of the requests of a part, and whether it is kept."""


def add(table: RequestTable, request_id: str, index: int) -> None:
    event = RequestRecorded(request_id, b"digest", b"answer")
    place = Position(index, 0)
    table.add(event, Record(place, "g", 1, index, 0, Cause("", ""), "p", request_id, event), FEW)


@given(PARTS)
def test_the_table_is_that_of_the_kept_parts_alone(parts: list[tuple[list[str], bool]]) -> None:
    """S6: a part that failed recorded nothing and pushed nothing out (S15)."""
    both, kept_only = RequestTable(State()), RequestTable(State())
    for index, (request_ids, kept) in enumerate(parts, 1):
        for request_id in request_ids:
            add(both, request_id, index)
            if kept:
                add(kept_only, request_id, index)
        both.keep() if kept else both.drop()
        kept_only.keep()
    assert both.put_into(State()) == kept_only.put_into(State())


@given(st.lists(IDS, max_size=40))
def test_a_table_that_goes_on_from_a_state_is_the_table_that_went_on(
    request_ids: list[str],
) -> None:
    """Where an entry ends must not matter to what is known of requests (S3)."""
    whole, state = RequestTable(State()), State()
    for index, request_id in enumerate(request_ids, 1):
        add(whole, request_id, index)
        whole.keep()
        again = RequestTable(state)
        add(again, request_id, index)
        again.keep()
        state = again.put_into(state)
    assert state == whole.put_into(State())


@given(st.lists(IDS, min_size=1, max_size=40))
def test_numbers_and_keys_say_the_same(request_ids: list[str]) -> None:
    """A request that is in one of the two maps only would never be forgotten."""
    table = RequestTable(State())
    for index, request_id in enumerate(request_ids, 1):
        add(table, request_id, index)
    table.keep()
    state = table.put_into(State())

    assert {made.number: key for key, made in state.requests.items()} == state.requests_by_number
    assert len(state.requests) <= FEW.dedupe_requests_max + FORGOTTEN_AT_ONCE_MAX
    numbers = sorted(state.requests_by_number)
    assert numbers == list(range(state.requests_next - len(numbers), state.requests_next))


def test_s15_a_table_with_a_hole_is_found() -> None:
    """Nothing can be forgotten in order any more: better one part fails than all are wrong."""
    table = RequestTable(State())
    for index in range(1, 4):
        add(table, str(index), index)
    table.keep()
    state = table.put_into(State())
    torn = RequestTable(state._replace(requests_by_number=PMap()))
    with pytest.raises(InvariantBroken, match=r"request 0 is missing"):
        add(torn, "9", 9)
