"""The replicated state as records that change one by one, and the digest over them (S3, S18).

Because a state is an immutable value that shares what did not change with the one it came from,
"what changed since the last snapshot" is found by comparing the two, in time proportional to the
change: no list of changed records is needed. Knows the shape of the state and its bytes; no
files, no LMDB, no Raft.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Any, Final, NamedTuple

from holdfast.coordinator.groups.group_type import Beside
from holdfast.coordinator.kernel.group_types import TYPES, type_of
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import MemberId, TopicPartition
from holdfast.coordinator.model.state import (
    Group,
    Offset,
    RequestKey,
    RequestRecord,
    Settings,
    State,
)
from holdfast.coordinator.projections.history import Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import (
    CodecError,
    StateItem,
    StateValue,
    decode_state,
    encode_state,
)

GROUPS: Final = "groups"
TOPICS: Final = "topics"
SETTINGS: Final = "settings"
REQUESTS: Final = "requests"
META: Final = "meta"

_LENGTH: Final = struct.Struct(">H")
DIGEST_SPAN: Final = 1 << 64
_KINDS: Final[dict[type, str]] = {
    State: "c",
    Group: "g",
    Offset: "o",
    TopicSize: "t",
    PMap: "s",
    RequestRecord: "r",
    Acl: "a",
    Revocation: "x",
}
"""Prefixes of keys: records of members and offsets must not meet in one database.

A value of any other class is a member, of the class that a type of groups names: "m".

"b" was a rebalance's in version 0.1.0, and is none of these (`history_image`).
"""


_OFFSET: Final = _KINDS[Offset].encode()
_MEMBER: Final = "m"
_BESIDE: Final = {each.kind: each for kind in TYPES.values() for each in kind.beside}
"""What types store beside their members, by its class."""


class Change(NamedTuple):
    """One state record to write or remove."""

    database: str
    key: bytes
    content: bytes | None
    """None: remove the record."""


class _Item(NamedTuple):
    """A record's place, and its value before and after; None: there is no record."""

    database: str
    key: tuple[str, ...]
    before: StateValue | None
    after: StateValue | None


def key_bytes(kind: str, key: tuple[str, ...]) -> bytes:
    """Encode a record's key: its kind, then each part after its length, so that none collide."""
    parts = [part.encode() for part in key]
    return kind.encode() + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def group_of(key: bytes) -> str:
    """Return the group that a record in GROUPS belongs to, by the record's key."""
    begin = 1 + _LENGTH.size
    (size,) = _LENGTH.unpack_from(key, 1)
    return key[begin : begin + size].decode()


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key of the record of an offset in GROUPS. Raises struct.error for long names."""
    return key_bytes(_KINDS[Offset], (group_id, topic, str(partition)))


def is_offset(key: bytes) -> bool:
    """Return whether a record in GROUPS is of an offset, by its key."""
    return key.startswith(_OFFSET)


def changes(before: State, after: State) -> Iterator[Change]:
    """Yield the changes that turn a store of `before` into one of `after`.

    Each change belongs to one record; their order has no meaning. Takes time in proportion to what
    differs if `after` came from `before`.
    """
    for item in _items(before, after):
        key = key_bytes(_kind(item), item.key)
        yield Change(item.database, key, _content(item.key, item.after))


def group_contents(group: Group[Any]) -> Iterator[bytes]:
    """Yield the records of a group, as `changes` writes them into GROUPS."""
    for item in _group_items(group.group_id, None, group):
        yield encode_state(StateItem(item.key, item.after))  # type: ignore[arg-type]  # all are new


def restore(contents: Iterable[bytes]) -> State:
    """Restore the state from all the records that `changes(State(), state)` writes, in any order.

    Rebalances among them, which version 0.1.0 filed with their group, are skipped. Raises
    `CodecError` for a record that is none, or that belongs to a group without a record.
    """
    builder = _Builder()
    for content in contents:
        builder.add(decode_state(content))
    return builder.build()


class Digest:
    """A sum over all records of a state, updated by what changed.

    Equal states have equal digests, however they came about; nodes compare them at equal indexes
    (S3). It finds accidents; a rewritten past is found by the hash chains.
    """

    def __init__(self, state: State | None = None, value: int = 0) -> None:
        """Begin with the empty state, or with one whose digest is known."""
        self._state = state or State()
        self._value = value if state is not None else weight(_content((), self._state))
        self._left: Iterator[_Item] = iter(())

    @property
    def value(self) -> int:
        """The digest of the state that was last given, once `step` has said so."""
        return self._value

    def advance(self, state: State) -> int:
        """Return the digest of `state`, which came from the state that was given last."""
        self.begin(state)
        self.finish()
        return self._value

    def begin(self, state: State) -> None:
        """Begin to compute the digest of `state`, as `advance` does; `step` goes on with it."""
        self.finish()
        self._left = _items(self._state, state)
        self._state = state

    def step(self, records: int) -> bool:
        """Take in so many of the records that differ, at most; return whether none are left."""
        return self._take(islice(self._left, records)) < records

    def finish(self) -> None:
        """Take in all that `step` has left."""
        self._take(self._left)

    def _take(self, items: Iterable[_Item]) -> int:
        total, taken = self._value, 0
        for item in items:
            total += weight(_content(item.key, item.after))
            total -= weight(_content(item.key, item.before))
            taken += 1
        self._value = total % DIGEST_SPAN
        return taken


def digest_of(state: State) -> int:
    """Compute the digest of a state from scratch."""
    return Digest().advance(state)


def weight(content: bytes | None) -> int:
    """Return what one record adds to the digest; modulo DIGEST_SPAN the sum of all is the digest.

    Whoever has the records but not the state, as a replay, sums them up by it.
    """
    return int.from_bytes(sha256(content).digest()[:8], "big") if content is not None else 0


def _content(key: tuple[str, ...], value: StateValue | None) -> bytes | None:
    return None if value is None else encode_state(StateItem(key, value))


def _kind(item: _Item) -> str:
    value = item.after if item.after is not None else item.before
    beside = _BESIDE.get(type(value))
    return _KINDS.get(type(value), _MEMBER) if beside is None else beside.letter


# --- which records differ ---


def _items(before: State, after: State) -> Iterator[_Item]:
    if before is after:
        return
    yield _Item(META, (), before, after)
    for group_id in after.groups.changed_since(before.groups):
        old, new = before.groups.get(group_id), after.groups.get(group_id)
        yield from _group_items(group_id, old, new)
    for name in after.topics.changed_since(before.topics):
        yield _Item(TOPICS, (name,), before.topics.get(name), after.topics.get(name))
    for key in after.requests.changed_since(before.requests):
        yield _Item(REQUESTS, tuple(key), before.requests.get(key), after.requests.get(key))
    yield from _settings_items(before.settings, after.settings)
    for acl in after.acls.changed_since(before.acls):
        yield _Item(SETTINGS, tuple(acl), before.acls.get(acl), after.acls.get(acl))
    for revoked in after.revocations.changed_since(before.revocations):
        was, now = before.revocations.get(revoked), after.revocations.get(revoked)
        yield _Item(SETTINGS, (revoked,), was, now)


def _group_items(group_id: str, old: Group[Any] | None, new: Group[Any] | None) -> Iterator[_Item]:
    yield _Item(GROUPS, (group_id,), old, new)
    were, are = _members(old), _members(new)
    for member_id in are.changed_since(were):
        yield _Item(GROUPS, (group_id, member_id), were.get(member_id), are.get(member_id))
    yield from _beside_items(group_id, old, new)
    had, has = old.offsets if old else PMap(), new.offsets if new else PMap()
    for place in has.changed_since(had):
        key = (group_id, place.topic, str(place.partition))
        yield _Item(GROUPS, key, had.get(place), has.get(place))


def _beside_items(group_id: str, old: Group[Any] | None, new: Group[Any] | None) -> Iterator[_Item]:
    """Yield what differs of that which types store beside their members."""
    kinds = {each: None for group in (old, new) if group for each in type_of(group).beside}
    for kind in kinds:
        was, now = _beside(kind, old), _beside(kind, new)
        for key in now.changed_since(was):
            yield _Item(GROUPS, (group_id, key), was.get(key), now.get(key))


def _beside(kind: Beside, group: Group[Any] | None) -> PMap[str, Any]:
    return PMap() if group is None or kind not in type_of(group).beside else kind.of(group)


def _members(group: Group[Any] | None) -> PMap[MemberId, Any]:
    return PMap() if group is None else type_of(group).members(group)


def _settings_items(old: Settings, new: Settings) -> Iterator[_Item]:
    # No settings are no record: else whoever was there before the first would count one more.
    cluster_was, cluster_is = old.cluster or None, new.cluster or None
    if cluster_was is not cluster_is:
        yield _Item(SETTINGS, ("",), cluster_was, cluster_is)
    for group_id in new.groups.changed_since(old.groups):
        was, now = old.groups.get(group_id), new.groups.get(group_id)
        yield _Item(SETTINGS, (group_id,), was, now)


def _key_of(rule: Acl | Revocation) -> tuple[str, ...]:
    """Return the key of a record about who may do what."""
    return tuple(rule) if isinstance(rule, Acl) else (rule.fingerprint,)


# --- from records to a state ---


class _Builder:
    """Collects items in any order and builds the state of them."""

    def __init__(self) -> None:
        self._cluster = State()
        self._groups: dict[str, Group[Any]] = {}
        self._members: defaultdict[str, list[Any]] = defaultdict(list)
        self._offsets: defaultdict[str, list[tuple[TopicPartition, Offset]]] = defaultdict(list)
        self._topics: list[tuple[str, TopicSize]] = []
        self._requests: list[tuple[RequestKey, RequestRecord]] = []
        self._settings: dict[str, PMap[str, str]] = {}
        self._access: list[Acl | Revocation] = []

    def add(self, item: StateItem) -> None:
        match item:
            case StateItem(key=(), value=State() as cluster):
                self._cluster = cluster
            case StateItem(key=(group_id,), value=Group() as group):
                self._groups[group_id] = group
            case StateItem(key=(group_id, topic, number), value=Offset() as offset):
                self._offsets[group_id].append((TopicPartition(topic, int(number)), offset))
            case StateItem(key=(_, _), value=Rebalance()):
                pass
            case StateItem(key=(name,), value=TopicSize() as topic_size):
                self._topics.append((name, topic_size))
            case StateItem(key=(group_id,), value=PMap() as scope):
                self._settings[group_id] = scope
            case StateItem(key=(principal, group_id, request_id), value=RequestRecord() as record):
                self._requests.append((RequestKey(principal, group_id, request_id), record))
            case StateItem(key=key, value=(Acl() | Revocation()) as rule) if key == _key_of(rule):
                self._access.append(rule)
            case StateItem(key=(group_id, _), value=member) if type(member) not in _KINDS:
                self._members[group_id].append(member)
            case _:
                raise CodecError(f"key {item.key!r} does not fit its value", "state record")

    def build(self) -> State:
        orphans = (self._members.keys() | self._offsets.keys()) - self._groups.keys()
        if orphans:
            raise CodecError(
                f"records of groups that are not there: {sorted(orphans)[:3]}", "state"
            )
        cluster_settings = self._settings.pop("", PMap())
        return self._cluster._replace(
            groups=PMap((group_id, self._group(group_id)) for group_id in self._groups),
            topics=PMap(self._topics),
            requests=PMap(self._requests),
            requests_by_number=PMap((record.number, key) for key, record in self._requests),
            settings=Settings(cluster_settings, PMap(self._settings)),
            acls=PMap((each, each) for each in self._access if isinstance(each, Acl)),
            revocations=PMap(
                (each.fingerprint, each) for each in self._access if isinstance(each, Revocation)
            ),
        )

    def _group(self, group_id: str) -> Group[Any]:
        group = self._groups[group_id]
        kind, members = type_of(group), self._members[group_id]
        if not all(isinstance(member, kind.records) for member in members):
            raise CodecError(f"members of another type than group {group_id!r}", "state")
        restored = group._replace(
            body=kind.restore(group.body, members),
            offsets=PMap(self._offsets[group_id]),
        )
        return restored._replace(state=kind.derived(restored)) if kind.derived else restored
