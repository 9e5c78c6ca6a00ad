"""What the clients of a run are: who is in which group, and how a worker process learns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.chaos.workload.tasks import (
    COMPUTING,
    COOPERATIVE,
    Task,
    Times,
    dealt,
    group_name,
    groups,
    heartbeat_groups,
    slots,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.chaos.workload.tasks import Slot

PREFIX = "chaos-1"


def of(kind: str) -> list[Slot]:
    return [
        slot for slot in slots(PREFIX, heartbeats=True) if slot.group == group_name(PREFIX, kind)
    ]


def test_one_group_has_cooperative_members_static_and_dynamic_and_no_other_has_any() -> None:
    """Who offers no assignor that the others have is refused (K-I1): a group is all of a kind."""
    members = [slot for slot in of(COOPERATIVE) if slot.kind != "operator"]

    assert {slot.kind for slot in members} == {"static", "dynamic"}
    assert all(slot.cooperative for slot in members)
    assert [slot for slot in slots(PREFIX, heartbeats=True) if slot.cooperative] == members


def test_every_group_with_members_has_an_operator() -> None:
    named = {slot.group for slot in slots(PREFIX, heartbeats=True)}

    assert {
        slot.group for slot in slots(PREFIX, heartbeats=True) if slot.kind == "operator"
    } == named
    assert named < set(groups(PREFIX, heartbeats=True))


def test_a_task_comes_back_from_its_file_as_it_was_written(tmp_path: Path) -> None:
    own = dealt(slots(PREFIX, heartbeats=True), 2)[0]
    task = Task(1, 7, ("127.0.0.1:1",), ("a", "b", "c"), "store", "history", own, Times())
    task.write(tmp_path / "task")

    assert Task.read(tmp_path / "task") == task


def test_groups_of_the_heartbeat_protocol_are_those_of_an_own_cluster() -> None:
    """Static, dynamic, of both protocols in one group, and converted to and fro (KIP-848, K-Q5)."""
    theirs = set(groups(PREFIX, heartbeats=False))
    spoken = {slot.group: set[str]() for slot in slots(PREFIX, heartbeats=True)}
    for slot in slots(PREFIX, heartbeats=True):
        if slot.kind != "operator":
            spoken[slot.group].add(slot.protocol)

    assert theirs.isdisjoint(heartbeat_groups(PREFIX))
    assert [spoken[group] for group in heartbeat_groups(PREFIX)] == [
        {"consumer"},
        {"consumer"},
        {"consumer", "classic"},
        {"either"},
    ]
    assert all(spoken[group] == {"classic"} for group in theirs & spoken.keys())


def test_all_members_of_one_group_compute_and_no_others() -> None:
    """KIP-848: an assignor of members counts while all of them can run it."""
    some = [slot for slot in slots(PREFIX, heartbeats=True) if slot.kind != "operator"]
    computing = {slot.group for slot in some if slot.computes}

    assert computing == {group_name(PREFIX, COMPUTING)}
    assert all(slot.computes == (slot.group in computing) for slot in some)
