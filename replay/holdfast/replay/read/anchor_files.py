"""Anchors: what a node told of its log at one index, kept where nobody rewrites it.

A file of anchors holds what `holdfast log anchor --json` prints, a line each, or what `holdfast
cluster status --json` prints. Knows the form of an anchor, no log and no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.replay.findings import Finding, WrongUse

FORMAT: Final = 1
"""The form that this version reads; a later one has another number."""

KIND: Final = "anchor"
"""Of findings: the log does not lead to what was told of it."""

_CHAIN_DIGITS: Final = 64
_DIGEST_DIGITS: Final = 16


class Anchor(NamedTuple):
    """What a node told of its log and its state after entry `index`."""

    cluster_id: str
    node: str
    index: int  # type: ignore[assignment]  # `tuple.index` is not missed
    log_time_ms: int
    """Log time of its state (S8)."""
    chain: bytes
    """The head of the chain over all records (S3)."""
    digest: int
    """Of its state, by the rules of `codec.state_image`."""
    recovery_number: int = 0
    """Of its state (S13); 0: the cluster was never restored."""
    source: str = ""
    """Where it was read, for people."""
    own: bool = False
    """Whether it is the state on the node's own disk, and no file that was given."""

    def __str__(self) -> str:
        """Format it for people."""
        if self.own:
            return f"the state on the disk of node {self.node}, at index {self.index},"
        where = f" ({self.source})" if self.source else ""
        since = f" of recovery {self.recovery_number}" if self.recovery_number else ""
        return f"the anchor of node {self.node} at index {self.index}{since}{where}"


class Told(NamedTuple):
    """What a log is compared with, and what was found, or could not be, when that was read."""

    anchors: Sequence[Anchor] = ()
    findings: Sequence[Finding] = ()
    notes: Sequence[str] = ()


NOTHING_TOLD: Final = Told()


def read_anchors(given: Iterable[Path | Anchor]) -> list[Anchor]:
    """Return the anchors, those of files too. Raises FileNotFoundError; WrongUse for others."""
    found: list[Anchor] = []
    for each in given:
        found += [each] if isinstance(each, Anchor) else _in_file(each)
    return found


def refuse_others(anchors: Sequence[Anchor], clusters: Iterable[str]) -> None:
    """Raise WrongUse if an anchor is of another cluster than the log is."""
    known = sorted(set(clusters))
    for anchor in anchors:
        if known and anchor.cluster_id not in known:
            raise WrongUse(
                f"{anchor} is of the cluster {anchor.cluster_id!r}, and these segments are of "
                f"{known[0]!r}: give anchors of this cluster"
            )


def _in_file(path: Path) -> list[Anchor]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of anchors {path}")
    try:
        values = _values(path.read_text(encoding="utf-8"))
        told = [inner for value in values for inner in _anchors_in(value)]
        found = [_anchor(each, f"{path}, number {n}") for n, each in enumerate(told, 1)]
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path} is no file of anchors: {error}. {_MAKE}") from error
    if not found:
        raise WrongUse(f"{path} holds no anchor. {_MAKE}")
    return found


_MAKE: Final = "Make one with `holdfast log anchor --json`"


def _values(text: str) -> list[Any]:
    """Read one JSON value, or one in each line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _anchors_in(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - whatever a file holds
    """Yield the anchors in what a command printed; a node that was silent told none."""
    match value:
        case list():
            for each in value:
                yield from _anchors_in(each)
        case {"answer": answer, "name": name}:
            if answer is not None and not (isinstance(answer, dict) and "anchor" in answer):
                raise ValueError(f"node {name} told no anchor; an older version cannot")
            if answer is not None:
                yield from _anchors_in(answer["anchor"])
        case dict():
            yield value
        case _:
            raise ValueError(f"{str(value)[:40]!r} is no anchor")


def _anchor(told: dict[str, Any], source: str) -> Anchor:
    form = _number(told, "format")
    if form != FORMAT:
        raise ValueError(
            f"an anchor has the format {form}, and this version of Holdfast reads {FORMAT}: "
            "use a newer one"
        )
    return Anchor(
        _text(told, "cluster_id"),
        _text(told, "node"),
        _number(told, "index"),
        _number(told, "log_time_ms"),
        _hex(told, "chain", _CHAIN_DIGITS),
        int.from_bytes(_hex(told, "digest", _DIGEST_DIGITS), "big"),
        _number(told, "recovery_number"),
        source,
    )


def _number(told: dict[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} must be a whole number, and is {_shown(value)}")
    return value


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a name, and is {_shown(value)}")
    return value


def _hex(told: dict[str, Any], name: str, digits: int) -> bytes:
    value = told.get(name)
    try:
        if isinstance(value, str) and len(value) == digits:
            return bytes.fromhex(value)
    except ValueError:
        pass
    raise ValueError(f"{name} must be {digits} hexadecimal digits, and is {_shown(value)}")


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]
