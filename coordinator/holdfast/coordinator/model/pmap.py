"""A persistent map: every change gives a new map that shares all else with the old one.

Why our own: the state of a group of 10,000 must change in time independent of its size, a batch
must be decided on a scratch state that can be thrown away, and a snapshot must go on being encoded
while the state moves on. A trie over CRC-32 of the key gives all three. CRC-32 and not `hash()`:
iteration order must be equal on every node, whatever PYTHONHASHSEED says, and whatever the order
in which equal maps came about. Knows nothing of groups.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast, overload
from zlib import crc32

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_LEAF_MAX = 16
_SHIFT_TOP = 32 - _BITS
_CODES_KEPT = 1 << 16
_FEW = 3
_MISSING = object()

# A node is a leaf (dict: key -> value) or a branch (tuple of _WIDTH nodes or None).
_Node = Any


@lru_cache(maxsize=_CODES_KEPT)
def _hash(key: object) -> int:
    """Hash a key, equally on every node and in every process; tuples by their printed parts.

    Hashes of the keys last used are kept: each change looks the same few keys up many times.
    """
    if type(key) is str:
        return crc32(key.encode())
    if isinstance(key, tuple):
        return crc32("\0".join(map(str, key)).encode())
    return crc32(str(key).encode())


def _slot(code: int, shift: int) -> int:
    return (code >> shift) & (_WIDTH - 1) if shift >= 0 else code & ((1 << (_BITS + shift)) - 1)


def _fit(leaf: dict[Any, Any], shift: int) -> _Node:
    """Return the leaf, or the branch that replaces it if it has grown too large."""
    if len(leaf) <= _LEAF_MAX or shift <= -_BITS:
        return leaf
    slots: list[_Node] = [None] * _WIDTH
    for key, value in leaf.items():
        at = _slot(_hash(key), shift)
        if slots[at] is None:
            slots[at] = {}
        slots[at][key] = value
    return tuple([slot and _fit(slot, shift - _BITS) for slot in slots])


def _set_many(node: _Node, shift: int, items: list[tuple[int, Any, Any]]) -> _Node:
    """Return the node with all items (code, key, value) set; copy each node on their ways once."""
    if type(node) is not tuple:
        return _fit({**(node or {}), **{key: value for _, key, value in items}}, shift)
    parted: dict[int, list[tuple[int, Any, Any]]] = {}
    for item in items:
        parted.setdefault(_slot(item[0], shift), []).append(item)
    slots = list(node)
    for at, some in parted.items():
        slots[at] = _set_many(node[at], shift - _BITS, some)
    return tuple(slots)


def _put(way: list[tuple[tuple[_Node, ...], int]], node: _Node) -> _Node:
    """Return the root with another node at the end of the way; drop a branch that is empty."""
    for branch, at in reversed(way):
        slots = list(branch)
        slots[at] = node
        node = tuple(slots) if node is not None or any(slot is not None for slot in slots) else None
    return node


def _walk(node: _Node) -> Iterator[tuple[Any, Any]]:
    """Yield pairs in order of (CRC-32, key): equal for equal maps, whatever their history."""
    if type(node) is tuple:
        for child in node:
            if child is not None:
                yield from _walk(child)
    elif node is not None:
        for _, key in sorted([(_hash(key), key) for key in node]):
            yield key, node[key]


def _leaf_items(node: _Node) -> dict[Any, Any]:
    return node if isinstance(node, dict) else dict(_walk(node))


def _diff(old: _Node, new: _Node) -> list[Any]:
    """Return the keys bound differently; subtrees that are the same object are not entered.

    Without recursion and generators: a leader asks for each entry what it has changed.
    """
    found: list[Any] = []
    pairs = [] if old is new else [(old, new)]
    while pairs:
        before, after = pairs.pop()
        if type(before) is tuple and type(after) is tuple:
            pairs += [pair for pair in zip(before, after, strict=True) if pair[0] is not pair[1]]
            continue
        was, now = _leaf_items(before), _leaf_items(after)
        found += [key for key, value in now.items() if was.get(key, _MISSING) is not value]
        found += [key for key in was if key not in now]
    return found


class PMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping with `set`, `remove` and `update` that return new maps.

    Iteration order is by (CRC-32 of the key, key): deterministic, but without meaning. Keys are
    strings, integers, or tuples of them.
    """

    __slots__ = ("_root", "_size")

    _root: _Node
    _size: int

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Build from a mapping or from pairs; later pairs win."""
        leaf = dict(items)
        self._root, self._size = _fit(leaf, _SHIFT_TOP) if leaf else None, len(leaf)

    @classmethod
    def _of(cls, root: _Node, size: int) -> PMap[K, V]:
        made = cls.__new__(cls)
        made._root, made._size = root, size  # noqa: SLF001 - made here, of this class
        return made

    def set(self, key: K, value: V) -> PMap[K, V]:
        """Return this map with `key` bound to `value`."""
        way, leaf, shift = self._way(key)
        if leaf is None:
            return self._of(_put(way, {key: value}), self._size + 1)
        grown = {**leaf, key: value}
        size = self._size + len(grown) - len(leaf)
        return self._of(_put(way, _fit(grown, shift)), size)

    def remove(self, key: K) -> PMap[K, V]:
        """Return this map without `key`; the same map if it was not there."""
        way, leaf, _ = self._way(key)
        if leaf is None or key not in leaf:
            return self
        left = {**leaf}
        del left[key]
        return self._of(_put(way, left or None), self._size - 1)

    def _way(self, key: K) -> tuple[list[tuple[Any, int]], dict[K, V] | None, int]:
        """Return the branches on the way to a key's leaf, the leaf, and its shift."""
        node, shift = self._root, _SHIFT_TOP
        if type(node) is not tuple:
            return [], node, shift
        code, way = _hash(key), []
        while type(node) is tuple:
            at = (code >> shift) & (_WIDTH - 1) if shift >= 0 else _slot(code, shift)
            way.append((node, at))
            node = node[at]
            shift -= _BITS
        return way, node, shift

    def update_all(self, items: Iterable[tuple[K, V]]) -> PMap[K, V]:
        """Return this map with every pair set, in order."""
        pairs = dict(items)
        if len(pairs) <= _FEW:
            made = self
            for key, value in pairs.items():
                made = made.set(key, value)
            return made
        coded = [(_hash(key), key, value) for key, value in pairs.items()]
        size = self._size + sum(key not in (self._leaf(key) or ()) for _, key, _ in coded)
        return self._of(_set_many(self._root, _SHIFT_TOP, coded), size)

    def map_values(self, change: Callable[[V], V]) -> PMap[K, V]:
        """Return this map with each value replaced by `change(value)`."""
        return PMap((key, change(value)) for key, value in self.items())

    def changed_since(self, old: PMap[K, V]) -> Iterator[K]:
        """Return keys bound, unbound or bound to another object since `old`, in no order.

        Takes time in proportion to the change, not to the map, if this map came from `old`.
        """
        return iter(_diff(old._root, self._root))

    def _leaf(self, key: object) -> dict[K, V] | None:
        """Return the leaf where a key would be.

        Every look-up passes here, so it makes few calls.
        """
        node, shift = self._root, _SHIFT_TOP
        if type(node) is tuple:
            code = _hash(key)
            while type(node) is tuple:
                node = node[(code >> shift) & (_WIDTH - 1) if shift >= 0 else _slot(code, shift)]
                shift -= _BITS
        return node  # type: ignore[no-any-return]  # a node that is no branch

    def __getitem__(self, key: K) -> V:
        """Raise KeyError if the key is not there."""
        leaf = self._leaf(key)
        if leaf is None:
            raise KeyError(key)
        return leaf[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: object = None) -> object:
        """Return the value, or `default` if the key is not there."""
        leaf = self._leaf(key)
        return default if leaf is None else leaf.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Return whether the key is bound."""
        leaf = self._leaf(key)
        return leaf is not None and key in leaf

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._size

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, in deterministic order."""
        return (key for key, _ in _walk(self._root))

    def items(self) -> ItemsView[K, V]:
        """Return the pairs, in deterministic order."""
        return cast("ItemsView[K, V]", _Items(self))

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of their keys."""
        return cast("ValuesView[V]", _Values(self))

    def __eq__(self, other: object) -> bool:
        """Compare the content; the other may be a plain mapping, too."""
        if not isinstance(other, Mapping) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Mapping) else False
        return all(key in other and other[key] == value for key, value in self.items())

    def __hash__(self) -> int:
        """Refuse: values may not be hashable."""
        raise TypeError("a PMap is not hashable")

    def __repr__(self) -> str:
        """Format as a dict, for failure messages."""
        return f"PMap({dict(self.items())!r})"


class _Items(ItemsView[Any, Any]):
    """Walks the trie once instead of looking each key up."""

    _mapping: PMap[Any, Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return _walk(self._mapping._root)  # noqa: SLF001 - a view of the same module


class _Values(ValuesView[Any]):
    """As `_Items`."""

    _mapping: PMap[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in _walk(self._mapping._root))  # noqa: SLF001 - as above
