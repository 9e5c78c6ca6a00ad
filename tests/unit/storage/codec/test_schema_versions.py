"""S3: bytes are of the oldest schema version that holds them, so older nodes read all they can."""

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupDeleted,
    LevelRaised,
    LogEntry,
    Part,
    Proposed,
)
from holdfast.coordinator.model.state import Offset, State
from holdfast.storage.codec.event_codec import (
    CodecError,
    StateItem,
    decode_entry,
    encode_entry,
    encode_state,
)
from holdfast.storage.codec.schema_versions import SCHEMA_VERSION, of_entry, of_event, of_state
from holdfast.storage.codec.state_image import digest_of
from holdfast.v1 import events_pb2, state_pb2


def part(*events: Event) -> Part:
    return Part("", 1, 0, tuple(Proposed(each, Cause("", "")) for each in events))


def test_an_entry_is_of_the_newest_version_of_its_events() -> None:
    assert of_entry([part(GroupDeleted()), part()]) == 1
    assert of_entry([part(GroupDeleted()), part(LevelRaised(2), GroupDeleted())]) == 3
    payload = encode_entry(LogEntry(1, 2, (part(LevelRaised(2)),)))
    assert events_pb2.LogEntry.FromString(payload).schema_version == 3


def test_a_record_is_of_the_version_of_its_event_alone() -> None:
    """Whatever else its entry held: a node that reads it again makes the same bytes of it."""
    assert (of_event(GroupDeleted()), of_event(LevelRaised(2))) == (1, 3)


def test_the_raise_to_an_unknown_level_is_not_read() -> None:
    """A node that cannot run at that level stops there, before it applies what it cannot know."""
    payload = encode_entry(LogEntry(1, 2, (part(LevelRaised(SCHEMA_VERSION)),)))
    with pytest.raises(CodecError, match="if a newer node wrote it, upgrade this one"):
        decode_entry(payload)


def test_only_the_clusters_own_record_tells_the_level() -> None:
    """It alone keeps an older version out; the others are as they were, and so is their digest."""
    assert (of_state(State()), of_state(State(raised_to=2))) == (2, 3)
    assert of_state(Offset(1, 1, "", 1)) == 2
    stored = encode_state(StateItem((), State(raised_to=2)))
    assert state_pb2.StateRecord.FromString(stored).schema_version == 3


def test_the_digest_tells_the_level() -> None:
    """S3: a node that missed a raise differs from its peers."""
    assert digest_of(State()) != digest_of(State(raised_to=2))
