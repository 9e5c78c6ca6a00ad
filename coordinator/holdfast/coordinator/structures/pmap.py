"""A persistent map: every change gives a new map that shares all else with the old one.

Why our own: the state of a group of 10,000 must change in time independent of its size, a batch
must be decided on a scratch state that can be thrown away, and a snapshot must go on being encoded
while the state moves on. A trie over CRC-32 of the key gives all three. CRC-32 and not `hash()`:
iteration order must be equal on every node, whatever PYTHONHASHSEED says, and whatever the order
in which equal maps came about. Many keys with one CRC-32 are told apart by a second hash, which no
order depends on. Knows nothing of groups.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import lru_cache
from hashlib import blake2b
from itertools import compress, islice
from operator import is_, is_not, itemgetter
from typing import Any, Final, Generic, TypeVar, cast, overload
from zlib import crc32

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1
_LEAF_MAX = 32
_CODE_SHIFT = 3
_SHIFT_TOP = 30
"""A code is CRC-32 with three zero bits after it, so that seven slots of five bits use all of it:
no step of a look-up is a special case."""
_CODES_KEPT = 1 << 14
_UNUSED_BITS = 64 - 7 * _BITS
_MISSING = object()
_NO_LEAF: dict[Any, Any] = {}

# A node is a leaf (dict: key -> value) or a branch (tuple of _WIDTH nodes or None).
# The leaf of many keys that have one CRC-32 is a _Crowd.
_Node = Any
_Leaf = Any
# The branches down to a leaf, each with the slot that leads on.
_Way = Sequence[tuple[tuple[_Node, ...], int]]


@lru_cache(maxsize=_CODES_KEPT)
def _hash(key: object) -> int:
    """Hash a key, equally on every node and in every process; tuples by their printed parts.

    Hashes of the keys last used are kept: each change looks the same few keys up many times.
    """
    if type(key) is str:
        return crc32(key.encode()) << _CODE_SHIFT
    if isinstance(key, tuple):
        return crc32("\0".join(map(str, key)).encode()) << _CODE_SHIFT
    return crc32(str(key).encode()) << _CODE_SHIFT


@lru_cache(maxsize=_CODES_KEPT)
def _second_hash(key: object) -> int:
    """Hash a key for a crowd. Keys that are not equal are hashed as different texts."""
    parts = map(str, key if isinstance(key, tuple) else (key,))
    text = "".join([f"{len(part)}:{part}" for part in parts])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> _UNUSED_BITS


def _fit(leaf: _Leaf, shift: int, hashed: Callable[[Any], int] = _hash) -> _Node:
    """Return the leaf, or the branch or crowd that replaces it if it has grown too large."""
    if len(leaf) <= _LEAF_MAX:
        return leaf
    if shift < 0:
        return _crowd(leaf) if hashed is _hash and type(leaf) is dict else leaf
    slots: list[_Node] = [None] * _WIDTH
    for key, value in leaf.items():
        at = (hashed(key) >> shift) & _MASK
        if slots[at] is None:
            slots[at] = {}
        slots[at][key] = value
    return tuple([slot and _fit(slot, shift - _BITS, hashed) for slot in slots])


def _set(node: _Node, shift: int, code: int, key: object, value: object) -> tuple[_Node, int]:
    """Return the node with a key bound, whose code this is, and by how many keys it has grown."""
    if type(node) is tuple:
        slots, at = list(node), (code >> shift) & _MASK
        slots[at], grown = _set(slots[at], shift - _BITS, code, key, value)
        return tuple(slots), grown
    leaf = node.copy() if node else {}
    known = len(leaf)
    leaf[key] = value
    grown = len(leaf) - known
    return (_fit(leaf, shift) if grown else leaf), grown


def _way(root: _Node, key: object) -> tuple[_Way, _Leaf]:
    """Return the branches on the way to a key's leaf, and the leaf, or an empty one."""
    node, shift = root, _SHIFT_TOP
    if type(node) is not tuple:
        return (), node or _NO_LEAF
    code, way = _hash(key), []
    while type(node) is tuple:
        at = (code >> shift) & _MASK
        way.append((node, at))
        node = node[at]
        shift -= _BITS
    return way, node or _NO_LEAF


def _put(way: _Way, node: _Node) -> _Node:
    """Return the root with another node at the end of the way; drop a branch that is empty."""
    for branch, at in reversed(way):
        slots = list(branch)
        slots[at] = node
        node = tuple(slots) if node is not None or any(slot is not None for slot in slots) else None
    return node


def _change(
    node: _Node,
    shift: int,
    items: list[tuple[int, Any, Any]],
    hashed: Callable[[Any], int] = _hash,
) -> tuple[_Node, int]:
    """Make many changes (code, key, value; None removes) at once; copy each node on the ways once.

    Returns the node, None if nothing is left in it, and by how many keys it has grown.
    """
    if type(node) is not tuple:
        leaf = node.copy() if node else {}
        for _, key, value in items:
            if value is None:
                leaf.pop(key, None)
            else:
                leaf[key] = value
        return (_fit(leaf, shift, hashed) if leaf else None), len(leaf) - len(node or ())
    parted: dict[int, list[tuple[int, Any, Any]]] = {}
    for item in items:
        parted.setdefault((item[0] >> shift) & _MASK, []).append(item)
    slots, grown = list(node), 0
    for at, some in parted.items():
        slots[at], more = _change(node[at], shift - _BITS, some, hashed)
        grown += more
    return (tuple(slots) if any(slot is not None for slot in slots) else None), grown


def _map(node: _Node, change: Callable[[Any], Any]) -> _Node:
    """Return the node with each value replaced; keys stay where they are."""
    if type(node) is tuple:
        return tuple([slot and _map(slot, change) for slot in node])
    if type(node) is _Crowd:
        return _Crowd(_map(node.root, change), node.size)
    return {key: change(value) for key, value in node.items()}


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
    return node if isinstance(node, dict) else dict(_pairs(node))


def _pairs(node: _Node) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of a node in no order that means anything."""
    if type(node) is tuple:
        for child in node:
            yield from _pairs(child)
    elif node is not None:
        yield from node.items()


class _Crowd:
    """A leaf of more keys with one CRC-32 than a dict, copied at each change, should have.

    Whoever chooses the ids can give any number of them the same CRC-32, and a salt would not help,
    as it is linear. So these keys are in a trie by another hash. It has the methods of a dict that
    leaves are read and changed by; a copy shares the trie.
    """

    __slots__ = ("root", "size")

    def __init__(self, root: _Node, size: int) -> None:
        self.root = root
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return map(itemgetter(0), _pairs(self.root))

    def items(self) -> Iterator[tuple[Any, Any]]:
        return _pairs(self.root)

    def copy(self) -> _Crowd:
        return _Crowd(self.root, self.size)

    def _leaf(self, key: object) -> dict[Any, Any]:
        node, code, shift = self.root, _second_hash(key), _SHIFT_TOP
        while type(node) is tuple:
            node = node[(code >> shift) & _MASK]
            shift -= _BITS
        return node or _NO_LEAF

    def __contains__(self, key: object) -> bool:
        return key in self._leaf(key)

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - what the map holds
        return self._leaf(key)[key]

    def get(self, key: object, default: object = None) -> Any:  # noqa: ANN401 - as above
        return self._leaf(key).get(key, default)

    def __setitem__(self, key: object, value: object) -> None:
        changes = [(_second_hash(key), key, value)]
        self.root, grown = _change(self.root, _SHIFT_TOP, changes, _second_hash)
        self.size += grown

    def __delitem__(self, key: object) -> None:
        self[key] = None

    def pop(self, key: object, _default: None) -> None:
        self[key] = None


def _crowd(leaf: dict[Any, Any]) -> _Crowd:
    return _Crowd(_fit(leaf, _SHIFT_TOP, _second_hash), len(leaf))


def _diff(old: _Node, new: _Node) -> list[Any]:
    """Return the keys bound differently; subtrees that are the same object are not entered.

    Without recursion and generators: a leader asks for each entry what it has changed.
    """
    found: list[Any] = []
    pairs = [] if old is new else [(old, new)]
    while pairs:
        before, after = pairs.pop()
        if type(before) is tuple and type(after) is tuple:
            pairs += compress(zip(before, after, strict=True), map(is_not, before, after))
            continue
        if type(before) is _Crowd and type(after) is _Crowd:
            pairs.append((before.root, after.root))
            continue
        found += _differing(_leaf_items(before), _leaf_items(after))
    return found


def _differing(was: dict[Any, Any], now: dict[Any, Any]) -> list[Any]:
    """Return the keys that two leaves bind differently.

    Nearly always the second is a copy of the first, with a value changed or a key added: then
    nothing is looked up, since keys are in the same places, and new ones after them.
    """
    if len(was) <= len(now) and all(map(is_, was, now)):
        changed = list(compress(now, map(is_not, was.values(), now.values())))
        return changed + list(islice(now, len(was), None))
    changed = [key for key, value in now.items() if was.get(key, _MISSING) is not value]
    return changed + [key for key in was if key not in now]


class PMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping with `set`, `remove` and `update` that return new maps.

    Iteration order is by (CRC-32 of the key, key): deterministic, but without meaning. Keys are
    strings, integers, or tuples of them. No value is None.
    """

    __slots__ = ("_root", "_size")

    _root: _Node
    _size: int

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Build from a mapping or from pairs; later pairs win."""
        leaf = dict(items)
        self._root = _fit(leaf, _SHIFT_TOP) if leaf else None
        self._size = len(leaf)

    def set(self, key: K, value: V) -> PMap[K, V]:
        """Return this map with `key` bound to `value`."""
        root, grown = _set(self._root, _SHIFT_TOP, _hash(key), key, value)
        return _made(root, self._size + grown)

    def remove(self, key: K) -> PMap[K, V]:
        """Return this map without `key`; the same map if it was not there."""
        way, leaf = _way(self._root, key)
        if key not in leaf:
            return self
        left = leaf.copy()
        del left[key]
        return _made(_put(way, left or None), self._size - 1)

    def changed(self, changes: Mapping[K, V | None]) -> PMap[K, V]:
        """Return this map with every change made: None removes a key, if it is there."""
        if len(changes) == 1:
            ((key, value),) = changes.items()
            return self.remove(key) if value is None else self.set(key, value)
        if not changes:
            return self
        coded = [(_hash(key), key, value) for key, value in changes.items()]
        root, grown = _change(self._root, _SHIFT_TOP, coded)
        return _made(root, self._size + grown)

    def update_all(self, items: Iterable[tuple[K, V]]) -> PMap[K, V]:
        """Return this map with every pair set, in order."""
        return self.changed(dict(items))

    def map_values(self, change: Callable[[V], V]) -> PMap[K, V]:
        """Return this map with each value replaced by `change(value)`."""
        return _made(self._root and _map(self._root, change), self._size)

    def changed_since(self, old: PMap[K, V]) -> Iterator[K]:
        """Return keys bound, unbound or bound to another object since `old`, in no order.

        Takes time in proportion to the change, not to the map, if this map came from `old`.
        """
        return iter(_diff(old._root, self._root))

    def _leaf(self, key: object) -> _Leaf:
        """Return the leaf where a key would be; an empty one if there is none.

        Every look-up passes here, so it makes few calls.
        """
        node = self._root
        if type(node) is tuple:
            code, shift = _hash(key), _SHIFT_TOP
            while type(node) is tuple:
                node = node[(code >> shift) & _MASK]
                shift -= _BITS
        return node or _NO_LEAF

    def __getitem__(self, key: K) -> V:
        """Raise KeyError if the key is not there."""
        value: V = self._leaf(key)[key]
        return value

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: object = None) -> object:
        """Return the value, or `default` if the key is not there.

        What `_leaf` does, once more: nothing is called as often.
        """
        node = self._root
        if type(node) is tuple:
            code, shift = _hash(key), _SHIFT_TOP
            while type(node) is tuple:
                node = node[(code >> shift) & _MASK]
                shift -= _BITS
        return node.get(key, default) if node else default

    def __contains__(self, key: object) -> bool:
        """Return whether the key is bound."""
        return key in self._leaf(key)

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._size

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, in deterministic order."""
        return map(itemgetter(0), _walk(self._root))

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


_blank: Final[Any] = PMap.__new__


def _made(root: _Node, size: int) -> PMap[Any, Any]:
    """Return a map without calling its `__init__`: a function, since every change passes here."""
    made: PMap[Any, Any] = _blank(PMap)
    made._root = root  # noqa: SLF001 - a map of the same module
    made._size = size  # noqa: SLF001 - as above
    return made


class _Items(ItemsView[Any, Any]):
    """Walks the trie once instead of looking each key up."""

    _mapping: PMap[Any, Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return _walk(self._mapping._root)  # noqa: SLF001 - a view of the same module


class _Values(ValuesView[Any]):
    """As `_Items`."""

    _mapping: PMap[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return map(itemgetter(1), _walk(self._mapping._root))  # noqa: SLF001 - as above
