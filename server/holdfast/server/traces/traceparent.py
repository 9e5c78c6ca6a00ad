"""The caller's place in a trace: `traceparent`, as W3C's Trace Context writes it.

Pure. What cannot be read is as if it were not there: a trace is no reason to refuse a call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY: Final = "traceparent"
"""The key of a call's metadata."""
_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 1
_INVALID_VERSION: Final = "ff"
_FIRST_VERSION: Final = "00"


class Parent(NamedTuple):
    """The span of the caller."""

    trace_id: int
    span_id: int
    sampled: bool
    """Whether the caller's side of the trace is kept."""


def parsed(text: str) -> Parent | None:
    """Read a `traceparent`; None: it is none, or of a form that the standard has ruled out."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (more and version == _FIRST_VERSION):
        return None
    parent = Parent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return parent if parent.trace_id and parent.span_id else None


def parent_in(metadata: Iterable[tuple[str, Any]] | None) -> Parent | None:
    """Return what a call's metadata say; None: nothing that can be read."""
    for key, value in metadata or ():
        if key == KEY and isinstance(value, str):
            return parsed(value)
    return None
