"""What a snapshot holds: state and histories together, also as version 0.1.0 stored them (S18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.consumers import Consumers, owning
from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    Cause,
    GenerationStarted,
    LogEntry,
    Part,
    Proposed,
    Rejoin,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.projections.history import Move
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.replica.image import Image, image_changes, read_image
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import StateItem, encode_entry, encode_state
from holdfast.storage.codec.state_image import changes, digest_of, restore
from holdfast.storage.directory.check import walk_directory
from holdfast.storage.state.state_records import StateRecord
from holdfast.storage.state.state_store import StateStore
from holdfast.v1.state_pb2 import StateRecord as StateRecordMessage
from unit.runtime.old_directory import make_old_directory


def stored(image: Image) -> list[StateRecord]:
    changes = image_changes(Image(), image)
    return [StateRecord(c.database, c.key, c.content) for c in changes if c.content is not None]


def test_state_and_histories_come_back_together() -> None:
    consumers = Consumers()
    consumers.form(a=owning(0))
    core = consumers.calls.core
    image = Image(core.state, PMap({"": b"head", "g": b"other"}), core.histories)

    assert read_image(stored(image)) == (image, core.histories)
    assert list(image_changes(image, image)) == []


def test_s3_histories_are_told_apart_from_the_state() -> None:
    consumers = Consumers()
    consumers.form(a=owning(0))
    core = consumers.calls.core
    found, histories = read_image(stored(Image(core.state, PMap(), PMap())))

    assert (found.state, histories) == (core.state, PMap())
    assert digest_of(found.state) == digest_of(core.state)


# --- a directory of version 0.1.0 ---


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A directory as that version left it."""
    make_old_directory(tmp_path)
    return tmp_path


def opened(path: Path) -> tuple[StateStore, StateSnapshots, StateMachine]:
    store = StateStore(path / "state", map_bytes=64 << 20)
    snapshots = StateSnapshots(store, path / "state.copy")
    return store, snapshots, snapshots.load()


def reasons(machine: StateMachine) -> list[str]:
    return [told.reason for told in machine.histories["g"]]


REASONS = ["a new member joins", "a new member joins", "new disks", "members left"]


def test_an_old_directory_is_sound_and_tells_its_rebalances(old: Path) -> None:
    """S21: opened, verified, and described as it was before."""
    assert walk_directory(old).sound
    store, _, machine = opened(old)
    store.close()

    assert machine.state.groups["g"].body.members["a-1"].instance_id == "a"
    assert reasons(machine) == REASONS
    last, before = machine.histories["g"][::-1][:2]
    assert before.moves == (Move("t", 0, "a", "b"), Move("t", 1, "b", "a"))
    assert (before.generation, before.reassigned_names, before.principal) == (3, ("a", "b"), "user")
    assert [change.how for change in last.changes] == ["removed"]
    assert walk_directory(old).sound


def test_s3_a_state_has_the_same_digest_from_old_records_and_from_new_ones(old: Path) -> None:
    """Nodes file their groups anew one by one, and at different times; all must be alike."""
    store, _, machine = opened(old)
    kept = [r.content for r in store.load() if r.database in {"groups", "settings", "meta"}]
    store.close()
    anew = {c.key: c.content for c in changes(State(), machine.state) if c.content}
    found = machine.state.groups["g"]
    again = restore(anew.values())

    assert again == machine.state
    assert digest_of(again) == digest_of(machine.state)
    assert machine.digest()[:8] == digest_of(again).to_bytes(8, "big")
    assert encode_state(StateItem(("g",), found)) in anew.values()
    assert encode_state(StateItem(("g",), found)) not in kept, "a group of 0.1.0 has no body"


def test_each_snapshot_has_a_record_that_version_0_1_0_refuses(old: Path) -> None:
    """That version would not see the database of the histories, and forget them in silence.

    It reads every record, and takes version 1 only. A state without groups has a cluster's record.
    """
    store, snapshots, machine = opened(old)
    index = machine.state.applied_index + 1
    snapshots.note(machine.apply(index, 1, b""), 1)
    snapshots.take(machine, 1).result()
    versions = [
        StateRecordMessage.FromString(record.content).schema_version
        for record in store.load()
        if record.database == "meta"
    ]
    store.close()

    assert versions == [2]
    assert walk_directory(old).sound


def test_an_old_directory_is_filed_anew_by_its_next_snapshot(old: Path) -> None:
    """The rebalance that was under way goes on, too: `b` held partition 0, and now `a` does."""
    store, snapshots, machine = opened(old)
    finish(machine, snapshots)
    snapshots.take(machine, 1).result()
    store.close()
    again, _, reloaded = opened(old)
    kinds = [record.key[:1] for record in again.load() if record.database == "groups"]
    again.close()

    assert reasons(reloaded) == REASONS
    assert reloaded.histories == machine.histories
    assert reloaded.histories["g"][-1].moves == (Move("t", 0, "b", "a"),)
    assert reloaded.digest() == machine.digest()
    assert sorted(kinds) == [b"g", b"m"]


def finish(machine: StateMachine, snapshots: StateSnapshots) -> None:
    """Member `a` rejoins and is given both partitions."""
    group = machine.state.groups["g"]
    events = (
        GenerationStarted(
            4, "p", "a-1", (Rejoin("a-1", group.body.members["a-1"].request_id),), (), ()
        ),
        AssignmentStored(4, (Assigned("a-1", owning(0, 1)),)),
    )
    proposed = tuple(Proposed(event, Cause("D3", "JoinGroup")) for event in events)
    index = machine.state.applied_index + 1
    entry = LogEntry(5_000, 5_000, (Part("g", 1, group.version, proposed),))
    payload = encode_entry(entry)
    outcome = machine.apply(index, 1, payload)
    assert not outcome.skipped
    snapshots.note(outcome, len(payload))


def test_a_group_that_an_old_directory_has_is_deleted_with_its_history(old: Path) -> None:
    """S18: neither filed anew nor left behind where it was."""
    store, snapshots, machine = opened(old)
    machine.state = machine.state._replace(
        groups=machine.state.groups.remove("g"), applied_index=machine.state.applied_index + 1
    )
    machine.histories = machine.histories.remove("g")
    snapshots.take(machine, 1).result()

    assert {record.database for record in store.load()} == {"chains", "meta", "settings"}
    store.close()
