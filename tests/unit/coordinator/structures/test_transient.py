"""A map under change: what is kept is put into the map, what is dropped leaves no trace (S6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.structures.pmap import PMap
from holdfast.coordinator.structures.transient import Transient

KEYS = st.sampled_from([f"k{number}" for number in range(60)])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3)), max_size=40)
PARTS = st.lists(st.tuples(st.booleans(), CHANGES), max_size=8)


@given(CHANGES, PARTS)
def test_it_is_a_dict_whose_parts_are_kept_or_dropped(
    before: list[tuple[str, int | None]], parts: list[tuple[bool, list[tuple[str, int | None]]]]
) -> None:
    """Each part is seen while it is open; only those that were kept are in the map afterwards."""
    model = dict(each for each in before if each[1] is not None)
    base: PMap[str, int] = PMap({k: v for k, v in model.items() if v is not None})
    changing = Transient(base)
    for is_kept, changes in parts:
        shown = dict(model)
        for key, value in changes:
            changing.set(key, value)
            shown[key] = value
        assert [changing.get(key) for key in shown] == list(shown.values())
        model = shown if is_kept else model
        changing.keep() if is_kept else changing.drop()
        assert [changing.get(key) for key in model] == list(model.values())

    left = {key: value for key, value in model.items() if value is not None}
    made = changing.persistent()
    assert dict(made) == left
    assert len(made) == len(left)
    assert list(made.items()) == list(PMap(left).items()), "the order is that of any equal map (S3)"


def test_what_was_not_changed_is_the_same_map() -> None:
    """A snapshot compares maps by identity: one that did not change costs it nothing."""
    base = PMap({"a": 1})
    changing = Transient(base)
    changing.set("a", 2)
    changing.drop()

    assert changing.persistent() is base


def test_open_changes_are_not_in_the_map() -> None:
    """S6: an entry that ends within a part would else be half applied."""
    changing = Transient(PMap({"a": 1}))
    changing.set("a", 2)

    assert dict(changing.persistent()) == {"a": 1}
