"""Regular expressions of topics: what a node looks up for the core, in its simplest form (RE2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Iterable


def problem(regex: str) -> str:
    """Return why RE2 does not take it; "" if it does (K-P1)."""
    try:
        _compiled(regex)
    except re2.error as refusal:
        return str(refusal) or "RE2 does not take it"
    return ""


def matched(regex: str, topics: Iterable[str]) -> tuple[str, ...]:
    """Return the topics that match whole, sorted."""
    compiled = _compiled(regex)
    return tuple(sorted(topic for topic in topics if compiled.fullmatch(topic.encode())))


def _compiled(regex: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(regex.encode(), options)
