"""Events, records and state as bytes: nothing is lost, nothing crashes, old bytes stay readable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from google.protobuf.descriptor import Descriptor
from hypothesis import example, given
from hypothesis import strategies as st

from golden.schema import schema_lines
from golden.values_v1 import STATE as STATE_V1
from golden.values_v1 import entry, record
from golden.write import EVENTS, STATE
from holdfast.coordinator.classic.state import ClassicBody, Member
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupDeleted,
    LogEntry,
    MemberExpired,
    Part,
    Proposed,
    Record,
    SegmentSealed,
    SettingChange,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.state import Group, Offset, RequestRecord, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    CodecError,
    StateItem,
    append_chain,
    chain_hash,
    decode_entry,
    decode_record,
    decode_state,
    encode_entry,
    encode_record,
    encode_state,
    read_entry,
    split_chain,
)
from holdfast.storage.codec.schema_versions import SCHEMA_VERSION
from holdfast.storage.codec.shapes import Shape, message_of
from holdfast.v1 import events_pb2, state_pb2
from unit.storage.codec.values import parts_of, values_of

GOLDEN = Path(__file__).parents[3] / "golden"
KINDS = get_args(Event)
CAUSE = Cause("F9", "Expire")
CALM = MemberExpired("m", "sync")


def golden(name: str, version: int) -> list[tuple[str, bytes]]:
    """The class names and bytes of one golden file."""
    lines = (GOLDEN / f"{name}-v{version}.txt").read_text(encoding="utf-8").splitlines()
    return [(kind, bytes.fromhex(data)) for kind, _, data in (x.partition(" ") for x in lines)]


def entry_of(*events: Event) -> LogEntry:
    proposed = tuple(Proposed(event, CAUSE, "p", "r") for event in events)
    return LogEntry(1, 2, (Part("g", 3, 4, proposed),))


# Totality: every class, every value.


def bodies() -> dict[str, Descriptor]:
    """The messages that the oneof of `Event` has, by their type's name, not their field's."""
    fields = events_pb2.Event.DESCRIPTOR.oneofs_by_name["body"].fields
    return {message.name: message for message in map(message_of, fields)}


def event_message(kind: type[Any]) -> Descriptor:
    return bodies()[kind.__name__]


def any_event() -> st.SearchStrategy[Event]:
    return st.one_of([values_of(kind, event_message(kind)) for kind in KINDS])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_class_round_trips(kind: type[Any]) -> None:
    @given(values_of(kind, event_message(kind)))
    def check(event: Event) -> None:
        given_entry = entry_of(event)
        assert decode_entry(encode_entry(given_entry)) == given_entry
        assert type(decode_entry(encode_entry(given_entry)).parts[0].events[0].event) is kind

    check()


def test_the_contract_has_no_event_that_the_core_lacks() -> None:
    assert set(bodies()) == {kind.__name__ for kind in KINDS}


@given(
    values_of(
        LogEntry,
        events_pb2.LogEntry.DESCRIPTOR,
        Proposed=st.builds(
            Proposed, any_event(), st.builds(Cause, st.text(), st.text()), st.text(), st.text()
        ),
    )
)
def test_entries_of_many_groups_round_trip(given_entry: LogEntry) -> None:
    """Group commit: parts and events keep their order."""
    payload = encode_entry(given_entry)
    assert decode_entry(payload) == given_entry
    whole = events_pb2.LogEntry.FromString(payload)
    assert whole.SerializeToString(deterministic=True) == payload, "joined as the library would"


@given(any_event(), st.integers(0, 2**64 - 1), st.text())
def test_an_event_has_the_same_bytes_in_its_entry_and_in_its_record(
    event: Event, index: int, text: str
) -> None:
    """S3: chains are over records, which take their event's bytes over from the entry."""
    proposed = Proposed(event, Cause(text, "c"), "p", text)
    made = LogEntry(1, 2, (Part("g", 3, 4, (proposed,)),))
    given_back, ((content,),) = read_entry(encode_entry(made))
    kept = Record(Position(index, 0), text, 7, -1, 9, *proposed[1:], event)
    payload = encode_record(kept, content)

    assert given_back == made
    assert payload == encode_record(kept)
    message = events_pb2.EventRecord.FromString(payload)
    assert message.SerializeToString(deterministic=True) == payload


@given(any_event(), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.text())
def test_records_round_trip_with_and_without_chain(
    event: Event, index: int, ordinal: int, text: str
) -> None:
    """A record has its place, group, times, cause, principal and request id (S3, S8)."""
    cause = Cause(text, "c")
    kept = Record(Position(index, ordinal), text, 7, -1, 2**63 - 1, cause, "p", text, event)
    payload = encode_record(kept)
    stored = append_chain(payload, chain_hash(CHAIN_START, payload))
    assert decode_record(payload) == kept
    assert decode_record(stored) == kept


STATE_KINDS: list[tuple[str, type[Any]]] = [
    ("cluster", State),
    ("member", Member),
    ("offset", Offset),
    ("request", RequestRecord),
]


@pytest.mark.parametrize(("body", "kind"), STATE_KINDS)
def test_every_state_record_round_trips(body: str, kind: type[Any]) -> None:
    message = message_of(state_pb2.StateRecord.DESCRIPTOR.fields_by_name[body])

    @given(st.lists(st.text()).map(tuple), parts_of(kind, message))
    def check(key: tuple[str, ...], fields: dict[str, object]) -> None:
        item = StateItem(key, kind(**fields))
        stored = encode_state(item)
        assert decode_state(stored) == item
        whole = state_pb2.StateRecord.FromString(stored)
        assert whole.SerializeToString(deterministic=True) == stored, "as the library would (S3)"

    check()


GROUP = message_of(state_pb2.StateRecord.DESCRIPTOR.fields_by_name["group"])


@given(
    st.text(), parts_of(Group, GROUP), parts_of(ClassicBody, state_pb2.ClassicGroupState.DESCRIPTOR)
)
def test_every_classic_group_round_trips(
    key: str, head: dict[str, Any], body: dict[str, Any]
) -> None:
    """A group is a head and a body of its type."""
    known = {**head, "group_type": "classic", "body": ClassicBody(**body)}
    item = StateItem((key,), Group(**known))
    assert decode_state(encode_state(item)) == item


@given(st.dictionaries(st.text(), st.text()))
def test_settings_round_trip_and_do_not_depend_on_their_history(values: dict[str, str]) -> None:
    """S23, and the digest of S3: equal settings give equal bytes however they came about."""
    forth, back = PMap(values), PMap(reversed(list(values.items())))
    item = StateItem(("g",), forth)
    assert decode_state(encode_state(item)) == item
    assert encode_state(item) == encode_state(StateItem(("g",), back))


def test_maps_of_groups_and_clusters_are_left_to_their_own_records() -> None:
    """A change in a group of 10,000 dirties its own record, not the group's."""
    offsets: PMap[TopicPartition, Offset] = PMap({TopicPartition("t", 0): Offset(1, -1, "", 0)})
    empty = new_group("g")
    full = empty._replace(body=ClassicBody(instances=PMap({"i": "m"})), offsets=offsets)
    assert encode_state(StateItem(("g",), full)) == encode_state(StateItem(("g",), empty))


# What was written is read for ever.


@pytest.mark.parametrize(("version", "event"), [(v, e) for v in EVENTS for e in EVENTS[v]])
def test_golden_events_are_read_and_written_to_the_byte(version: int, event: Event) -> None:
    """S3: each is of the oldest version that holds it, whatever the newest one is."""
    name = type(event).__name__
    entries, records = dict(golden("entry", version)), dict(golden("record", version))
    assert decode_entry(entries[name]) == entry(event)
    assert encode_entry(entry(event)) == entries[name]
    assert decode_record(records[name]) == record(event)
    assert encode_record(record(event)) == records[name]


@pytest.mark.parametrize("version", STATE)
def test_golden_state_is_read_and_written_to_the_byte(version: int) -> None:
    """S3: nodes of unlike versions write the same bytes at a level, and compare digests of them."""
    kept = [data for _, data in golden("state", version)]
    assert [decode_state(data) for data in kept] == list(STATE[version])
    assert [encode_state(item) for item in STATE[version]] == kept


def test_golden_state_of_version_1_is_read() -> None:
    """Its groups have no body: they are classic, and its fields are among the head's."""
    assert [decode_state(data) for _, data in golden("state", 1)] == list(STATE_V1)


def test_a_body_of_another_type_is_refused() -> None:
    """Its type would take it for its own."""
    for group_type in ("", "probe"):
        group = state_pb2.GroupState(group_type=group_type, classic=state_pb2.ClassicGroupState())
        stored = state_pb2.StateRecord(schema_version=2, group=group).SerializeToString()
        with pytest.raises(CodecError, match="which this version does not know"):
            decode_state(stored)


def test_golden_files_have_one_of_each_event() -> None:
    twice = ["GroupCreated", "InstanceReleased"]  # with a type, or a number, it is of level 2
    names = sorted([*twice, *(kind.__name__ for kind in KINDS)])
    assert sorted(name for v in EVENTS for name, _ in golden("entry", v)) == names
    assert sorted(name for v in EVENTS for name, _ in golden("record", v)) == names


def test_the_stored_schema_changes_only_with_its_version() -> None:
    """A field that is added without a new version would be dropped in silence by an older node."""
    kept = (GOLDEN / f"schema-v{SCHEMA_VERSION}.txt").read_text(encoding="utf-8").splitlines()
    assert schema_lines() == kept, "give it a level (model.levels), then see golden/write.py"


def test_a_newer_schema_only_adds() -> None:
    for version in range(1, SCHEMA_VERSION):
        older = (GOLDEN / f"schema-v{version}.txt").read_text(encoding="utf-8").splitlines()
        assert set(older) <= set(schema_lines())


def test_an_entry_is_the_protobuf_that_the_schema_describes() -> None:
    """Bytes put together by hand from protobuf's wire format, so that Spark may read them too."""
    body = b"\x0a\x01m" + b"\x12\x04sync"  # member_id = 1, deadline = 2
    event = b"\x0a\x02F9" + b"\x12\x06Expire" + b"\x1a\x01p" + b"\x22\x01r"
    event += b"\xda\x01" + bytes([len(body)]) + body  # member_expired = 27
    part = b"\x0a\x01g" + b"\x10\x03" + b"\x18\x04" + b"\x22" + bytes([len(event)]) + event
    whole = b"\x08\x01" + b"\x10\x01" + b"\x18\x02" + b"\x22" + bytes([len(part)]) + part
    assert encode_entry(entry_of(CALM)) == whole


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_bytes_do_not_depend_on_the_hash_seed(seed: str) -> None:
    """Nodes differ in PYTHONHASHSEED, and must not differ in digests (S3)."""
    code = (
        "from holdfast.storage.codec.event_codec import *;"
        "from holdfast.coordinator.structures.pmap import PMap;"
        "print(encode_state(StateItem(('',), PMap({f'k{i}': 'v' for i in range(99)}))).hex())"
    )
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    settings = PMap({f"k{i}": "v" for i in range(99)})
    assert bytes.fromhex(done.stdout) == encode_state(StateItem(("",), settings))


# The chain (S3).


def test_a_chain_hash_is_over_the_hash_before_and_the_payload() -> None:
    """SHA-256 of 32 zero bytes and `abc`, from another implementation (sha256sum)."""
    expected = "365aa7d8f7f9402c4b9434502b4cc89ddb09fe50d7cd95b493b834c62d5a5370"
    assert chain_hash(CHAIN_START, b"abc").hex() == expected


def test_a_stored_record_is_one_message_and_can_be_split_again() -> None:
    payload = encode_record(record(CALM))
    chain = chain_hash(CHAIN_START, payload)
    stored = append_chain(payload, chain)
    assert events_pb2.EventRecord.FromString(stored).chain == chain
    assert split_chain(stored) == (payload, chain)


@pytest.mark.parametrize("stored", [b"", b"\x7a\x20", bytes(34), b"\x7a\x21" + bytes(32)])
def test_bytes_without_a_chain_hash_are_refused(stored: bytes) -> None:
    with pytest.raises(CodecError, match="no chain hash at the end"):
        split_chain(stored)


def test_a_chain_hash_of_another_length_is_refused() -> None:
    with pytest.raises(CodecError, match="32 bytes, not 31"):
        append_chain(b"", bytes(31))


# Bad bytes and bad values.


def outcome(data: bytes) -> list[object]:
    """What the decoders make of bytes; any exception but CodecError passes through and fails."""
    results: list[object] = []
    for decode in (decode_entry, decode_record, decode_state, split_chain):
        try:
            results.append(decode(data))
        except CodecError as error:
            results.append(error)
    return results


@given(st.binary(max_size=200))
@example(b"")
@example(b"\x08\x01\x22\x02\x08")
def test_garbage_is_a_value_or_a_codec_error(data: bytes) -> None:
    assert len(outcome(data)) == 4


@pytest.mark.parametrize(
    ("name", "version"),
    [*[(n, v) for n in ("entry", "record") for v in EVENTS], *[("state", v) for v in (1, *STATE)]],
)
def test_cut_and_flipped_bytes_are_a_value_or_a_codec_error(name: str, version: int) -> None:
    for _, data in golden(name, version):
        for at in range(len(data)):
            outcome(data[:at])
            outcome(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
            outcome(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, 2**32 - 1])
def test_bytes_of_another_schema_version_are_refused(version: int) -> None:
    """An entry read in part would make this node differ from its peers."""
    messages = (
        (decode_entry, events_pb2.LogEntry(schema_version=version)),
        (decode_record, events_pb2.EventRecord(schema_version=version)),
        (decode_state, state_pb2.StateRecord(schema_version=version)),
    )
    for decode, message in messages:
        with pytest.raises(CodecError, match=f"schema version {version},.*upgrade this one"):
            decode(message.SerializeToString())


def test_an_event_of_an_unknown_kind_is_refused() -> None:
    """K-L15 bettered: Kafka skips such a record; here two versions would part in silence."""
    unknown = b"\x0a\x02F9" + b"\xa2\x1f\x00"  # field 500, empty message
    part = b"\x22" + bytes([len(unknown)]) + unknown
    data = b"\x08\x01" + b"\x22" + bytes([len(part)]) + part
    with pytest.raises(CodecError, match="log entry: an event of a kind that this version does"):
        decode_entry(data)


def test_a_state_record_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CodecError, match="state record: holds nothing that this version knows"):
        decode_state(b"\x08\x01")


@pytest.mark.parametrize(
    "event",
    [
        SegmentSealed(Position(-1, 0)),
        SegmentSealed(Position(2**64, 0)),
        SegmentSealed(Position(0, 2**32)),
        MemberExpired("\ud800", "sync"),
        MemberExpired(7, "sync"),  # type: ignore[arg-type]  # what a bug could pass
    ],
    ids=["negative", "index", "ordinal", "surrogate", "type"],
)
def test_a_value_that_the_schema_cannot_hold_is_refused(event: Event) -> None:
    with pytest.raises(CodecError, match="a field does not fit the schema"):
        encode_entry(entry_of(event))
    with pytest.raises(CodecError, match="a field does not fit the schema"):
        encode_record(record(event))


def test_what_is_no_event_or_no_state_is_refused() -> None:
    with pytest.raises(CodecError, match="SettingChange is no event"):
        encode_entry(entry_of(SettingChange("a", None)))  # type: ignore[arg-type]  # a bug
    with pytest.raises(CodecError, match="Cause is no part of the state"):
        encode_state(StateItem((), CAUSE))


def test_a_field_that_its_message_lacks_is_found_when_the_shape_is_made() -> None:
    """Else a field added to an event and forgotten in the .proto would be lost in silence."""

    class GroupEmptied(NamedTuple):
        generation: int
        forgotten: int

    descriptor = events_pb2.GroupEmptied.DESCRIPTOR
    with pytest.raises(TypeError, match=r"differ in \['forgotten'\]: add the field"):
        Shape(GroupEmptied, descriptor)
    with pytest.raises(TypeError, match=r"differ in \['generation'\]: add the field"):
        Shape(GroupDeleted, descriptor)
