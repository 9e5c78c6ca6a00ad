"""The persistent map: like a dict, cheap to change, and in one order on every node."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.structures import pmap
from holdfast.coordinator.structures.pmap import PMap

COORDINATOR = Path(pmap.__file__).parents[2]

# Few keys, so that they are set, set again and removed; enough to split leaves.
KEYS = st.one_of(
    st.sampled_from([f"k{i}" for i in range(60)]),
    st.sampled_from([TopicPartition("t", i) for i in range(20)]),
    st.integers(0, 20),
)
# None removes the key.
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3)), max_size=150)


def changed(
    items: PMap[object, int], changes: list[tuple[object, int | None]]
) -> PMap[object, int]:
    for key, value in changes:
        items = items.remove(key) if value is None else items.set(key, value)
    return items


def plain(changes: list[tuple[object, int | None]]) -> dict[object, int]:
    model: dict[object, int] = {}
    for key, value in changes:
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value
    return model


@given(CHANGES)
def test_it_is_a_dict(changes: list[tuple[object, int | None]]) -> None:
    made, model = changed(PMap(), changes), plain(changes)
    assert dict(made) == model
    assert dict(made.items()) == model
    assert len(made) == len(model)
    assert bool(made) == bool(model)
    for key, _ in changes:
        assert (key in made) == (key in model)
        assert made.get(key) == model.get(key)
        assert made.get(key, -1) == model.get(key, -1)


@given(CHANGES, CHANGES)
def test_many_at_once_are_each_after_the_other(
    before: list[tuple[object, int | None]], more: list[tuple[object, int | None]]
) -> None:
    """Also in the order of keys, which nodes must share whatever way a map came about (S3)."""
    made, pairs = changed(PMap(), before), [(k, v) for k, v in more if v is not None]
    one_by_one = changed(made, list(pairs))
    at_once = made.update_all(pairs)

    assert len(at_once) == len(one_by_one)
    assert list(at_once.items()) == list(one_by_one.items())
    assert list(at_once.values()) == [value for _, value in at_once.items()]
    assert set(at_once.changed_since(made)) >= {k for k in at_once if made.get(k) != at_once[k]}
    assert dict(made) == plain(before)


@given(CHANGES, CHANGES)
def test_a_change_leaves_the_old_map_alone(
    before: list[tuple[object, int | None]], after: list[tuple[object, int | None]]
) -> None:
    old = changed(PMap(), before)
    changed(old, after)
    assert dict(old) == plain(before)


@given(CHANGES, CHANGES)
def test_changed_since_names_every_key_that_differs(
    before: list[tuple[object, int | None]], after: list[tuple[object, int | None]]
) -> None:
    """S18: what is named too much costs a write, what is not named would be lost."""
    old = changed(PMap(), before)
    new = changed(old, after)
    differing = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    assert differing <= set(new.changed_since(old)) <= {key for key, _ in after}


@given(st.dictionaries(st.text(), st.integers()), st.randoms(use_true_random=False))
def test_equal_maps_have_one_order_whatever_their_history(
    items: dict[str, int], chance: random.Random
) -> None:
    """Digests and lists of members come from this order, so it must be equal on every node."""
    detours = [(f"detour-{i}", 0) for i in range(chance.randrange(40))]
    pairs = [*items.items(), *detours]
    chance.shuffle(pairs)
    other: PMap[str, int] = PMap(pairs)
    for key, _ in detours:
        if key not in items:
            other = other.remove(key)
    assert list(other) == sorted(other, key=lambda key: (crc32(key.encode()), key))
    assert other == PMap((k, other[k]) for k in other)


def test_keys_with_the_same_crc_live_together() -> None:
    """`plumless` and `buckeroo` are the classic pair of words with one CRC-32."""
    assert crc32(b"plumless") == crc32(b"buckeroo")
    both = PMap([("plumless", 1), ("buckeroo", 2)])
    assert list(both) == ["buckeroo", "plumless"]
    assert dict(both.remove("plumless")) == {"buckeroo": 2}


def alike(doublings: int) -> list[str]:
    """Return 2 to the power of so many keys with the same CRC-32, as an attacker can make them.

    CRC-32 is linear: which letters to change together, so that it stays, is found by elimination.
    """
    length = 32 + doublings  # one more than CRC-32 has bits, for each doubling
    plain = b"b" * length
    pivots: dict[int, tuple[int, int]] = {}
    keeping = []
    for place in range(length):
        letters = 1 << place
        left = crc32(plain) ^ crc32(plain[:place] + b"c" + plain[place + 1 :])
        while left and left.bit_length() in pivots:
            other, more = pivots[left.bit_length()]
            left, letters = left ^ other, letters ^ more
        if left:
            pivots[left.bit_length()] = (left, letters)
        else:
            keeping.append(letters)
    chosen = [0]
    for letters in keeping[:doublings]:
        chosen += [each ^ letters for each in chosen]
    return ["".join("bc"[each >> place & 1] for place in range(length)) for each in chosen]


def test_many_keys_with_one_crc_are_a_dict_in_the_same_order() -> None:
    """S3: whatever way the map came about, and also when few of them are left."""
    keys = alike(8)
    assert len({*keys}) == 256
    assert len({crc32(key.encode()) for key in keys}) == 1
    made, pairs = PMap[str, int](), dict(zip(keys, range(256), strict=True))
    for key in keys:
        made = made.set(key, -1)
    made = made.update_all(pairs.items())
    assert list(made.items()) == sorted(pairs.items()) == list(PMap(pairs).items())
    assert all(made[key] == pairs[key] and key in made for key in keys)
    assert made.get(alike(9)[-1]) is None
    assert dict(made.map_values(lambda value: -value)) == {key: -pairs[key] for key in keys}
    few = made.changed(dict.fromkeys(keys[10:]))
    for key in keys[:5]:
        few = few.remove(key)
    assert list(few.items()) == sorted(list(pairs.items())[5:10])
    assert {*few.changed_since(made)} == {*keys[:5], *keys[10:]}


def parts(node: object) -> dict[int, int]:
    """Return the size of each node of a map, by its identity."""
    if isinstance(node, tuple):
        below = [parts(each) for each in node if each is not None]
        return {id(node): len(node)} | {each: size for all_ in below for each, size in all_.items()}
    return parts(node.root) if hasattr(node, "root") else {id(node): len(node)}  # type: ignore[arg-type]  # a dict


@pytest.mark.parametrize("change", ["set", "new", "remove", "many"])
def test_a_change_among_keys_with_one_crc_copies_little(change: str) -> None:
    """Request ids are chosen by callers: a table of 20,000 alike took 2 ms for each change."""
    keys = alike(12)
    old = PMap((key, 1) for key in keys[1:])
    new = {
        "set": lambda: old.set(keys[5], 2),
        "new": lambda: old.set(keys[0], 2),
        "remove": lambda: old.remove(keys[5]),
        "many": lambda: old.changed({keys[0]: 2, keys[5]: None}),
    }[change]()
    known = parts(old._root)
    copied = sum(size for each, size in parts(new._root).items() if each not in known)

    nodes = 7 + 2 * 7  # a way by CRC-32, and at most two by the second hash
    assert 0 < copied <= nodes * 32 < len(keys)
    assert {*new.changed_since(old)} <= {keys[0], keys[5]}


def test_a_missing_key_is_a_key_error_and_removing_it_changes_nothing() -> None:
    made = PMap([("a", 1)])
    with pytest.raises(KeyError):
        made["b"]
    assert made.remove("b") is made


def test_no_map_is_hashable() -> None:
    with pytest.raises(TypeError):
        hash(PMap())


SHOW = """
from holdfast.coordinator.structures.pmap import PMap
from holdfast.coordinator.model.ids import TopicPartition
print(list(PMap((f"m{i}", i) for i in range(500))))
print(list(PMap((TopicPartition("t", i), i) for i in range(500))))
"""


def test_the_order_does_not_depend_on_the_hash_seed() -> None:
    """Two processes with other PYTHONHASHSEEDs, as two nodes are."""
    orders = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(COORDINATOR)}
        run = subprocess.run(
            [sys.executable, "-c", SHOW], env=environment, capture_output=True, check=True
        )
        orders.add(run.stdout)
    assert len(orders) == 1
    assert orders.pop().count(b"'m") == 500
