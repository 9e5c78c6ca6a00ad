"""A persistent map: every change gives a new map that shares all else with the old one.

Why our own: the state of a group of 10,000 must change in time independent of its size, a batch
must be decided on a scratch state that can be thrown away, and a snapshot must go on being encoded
while the state moves on. A trie over CRC-32 of the key gives all three. CRC-32 and not `hash()`:
iteration order must be equal on every node, whatever PYTHONHASHSEED says, and whatever the order
in which equal maps came about. Knows nothing of groups.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast, overload
from zlib import crc32

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_LEAF_MAX = 16
_SHIFT_TOP = 32 - _BITS

# A node is a leaf (dict: key -> value) or a branch (tuple of _WIDTH nodes or None).
_Node = Any


def _hash(key: object) -> int:
    """Equal on every node and in every process; tuples are hashed by their printed parts."""
    if type(key) is str:
        return crc32(key.encode())
    if isinstance(key, tuple):
        return crc32("\0".join(map(str, key)).encode())
    return crc32(str(key).encode())


def _slot(code: int, shift: int) -> int:
    return (code >> shift) & (_WIDTH - 1) if shift >= 0 else code & ((1 << (_BITS + shift)) - 1)


def _split(leaf: dict[Any, Any], shift: int) -> _Node:
    slots: list[_Node] = [None] * _WIDTH
    for key, value in leaf.items():
        at = _slot(_hash(key), shift)
        if slots[at] is None:
            slots[at] = {}
        slots[at][key] = value
    return tuple(slots)


def _set(node: _Node, shift: int, code: int, key: object, value: object) -> _Node:
    if node is None:
        return {key: value}
    if isinstance(node, dict):
        leaf = {**node, key: value}
        return _split(leaf, shift) if len(leaf) > _LEAF_MAX and shift > -_BITS else leaf
    at = _slot(code, shift)
    child = _set(node[at], shift - _BITS, code, key, value)
    return (*node[:at], child, *node[at + 1 :])


def _drop(node: _Node, shift: int, code: int, key: object) -> _Node:
    if isinstance(node, dict):
        leaf = {k: v for k, v in node.items() if k != key}
        return leaf or None
    at = _slot(code, shift)
    slots = (*node[:at], _drop(node[at], shift - _BITS, code, key), *node[at + 1 :])
    return slots if any(slot is not None for slot in slots) else None


def _walk(node: _Node) -> Iterator[tuple[Any, Any]]:
    """In order of (CRC-32, key): the same for equal maps, whatever their history."""
    if node is None:
        return
    if isinstance(node, dict):
        yield from sorted(node.items(), key=lambda item: (_hash(item[0]), item[0]))
        return
    for child in node:
        yield from _walk(child)


def _leaf_items(node: _Node) -> dict[Any, Any]:
    return node if isinstance(node, dict) else dict(_walk(node))


def _diff(old: _Node, new: _Node) -> Iterator[Any]:
    """Keys bound differently; subtrees that are the same object are not entered."""
    if old is new:
        return
    if isinstance(old, tuple) and isinstance(new, tuple):
        for before, after in zip(old, new, strict=True):
            yield from _diff(before, after)
        return
    before, after = _leaf_items(old), _leaf_items(new)
    for key in {**before, **after}:
        if key not in before or key not in after or before[key] is not after[key]:
            yield key


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
        root, size = None, 0
        pairs = items.items() if isinstance(items, Mapping) else items
        for key, value in dict(pairs).items():
            root = _set(root, _SHIFT_TOP, _hash(key), key, value)
            size += 1
        self._root, self._size = root, size

    @classmethod
    def _of(cls, root: _Node, size: int) -> PMap[K, V]:
        made = cls.__new__(cls)
        made._root, made._size = root, size  # noqa: SLF001 - made here, of this class
        return made

    def set(self, key: K, value: V) -> PMap[K, V]:
        """This map with `key` bound to `value`."""
        code = _hash(key)
        leaf = self._leaf(code)
        size = self._size + (leaf is None or key not in leaf)
        return self._of(_set(self._root, _SHIFT_TOP, code, key, value), size)

    def remove(self, key: K) -> PMap[K, V]:
        """This map without `key`; the same map if it was not there."""
        code = _hash(key)
        leaf = self._leaf(code)
        if leaf is None or key not in leaf:
            return self
        return self._of(_drop(self._root, _SHIFT_TOP, code, key), self._size - 1)

    def update_all(self, items: Iterable[tuple[K, V]]) -> PMap[K, V]:
        """This map with every pair set, in order."""
        made = self
        for key, value in items:
            made = made.set(key, value)
        return made

    def map_values(self, change: Callable[[V], V]) -> PMap[K, V]:
        """This map with each value replaced by `change(value)`."""
        return PMap((key, change(value)) for key, value in self.items())

    def changed_since(self, old: PMap[K, V]) -> Iterator[K]:
        """Keys that were bound, unbound or bound to another object since `old`, in no order.

        Costs time in proportion to the change, not to the map, if this map came from `old`.
        """
        return _diff(old._root, self._root)

    def _leaf(self, code: int) -> dict[K, V] | None:
        """The leaf where a key with this hash would be. Every look-up passes here: no calls."""
        node, shift = self._root, _SHIFT_TOP
        while type(node) is tuple:
            node = node[(code >> shift) & (_WIDTH - 1) if shift >= 0 else _slot(code, shift)]
            shift -= _BITS
        return cast("dict[K, V] | None", node)

    def __getitem__(self, key: K) -> V:
        """Raise KeyError if the key is not there."""
        leaf = self._leaf(_hash(key))
        if leaf is None:
            raise KeyError(key)
        return leaf[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: object = None) -> object:
        """The value, or `default` if the key is not there."""
        leaf = self._leaf(_hash(key))
        return default if leaf is None else leaf.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Whether the key is bound."""
        leaf = self._leaf(_hash(key))
        return leaf is not None and key in leaf

    def __len__(self) -> int:
        """The number of keys."""
        return self._size

    def __iter__(self) -> Iterator[K]:
        """The keys, in deterministic order."""
        return (key for key, _ in _walk(self._root))

    def items(self) -> ItemsView[K, V]:
        """Pairs, in deterministic order."""
        return cast("ItemsView[K, V]", _Items(self))

    def __eq__(self, other: object) -> bool:
        """Equal content; a plain mapping may be compared too."""
        if not isinstance(other, Mapping) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Mapping) else False
        return all(key in other and other[key] == value for key, value in self.items())

    def __hash__(self) -> int:
        """Not hashable: values may not be."""
        raise TypeError("a PMap is not hashable")

    def __repr__(self) -> str:
        """As a dict, for failure messages."""
        return f"PMap({dict(self.items())!r})"


class _Items(ItemsView[Any, Any]):
    """Walks the trie once instead of looking each key up."""

    _mapping: PMap[Any, Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return _walk(self._mapping._root)  # noqa: SLF001 - a view of the same module
