"""The report of `holdfast replay verify` as plain data, for `--json`.

Knows the fields of replay's values, not their classes: Spark comes with an extra of its own.
"""

from __future__ import annotations

from typing import Any


def reported(found: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Report, unknown here
    """Convert a report to plain data; the digest in hexadecimal, as `replay verify` writes it."""
    return {
        "passed": found.passed,
        "records": found.records,
        "last": _place_of(found.last),
        "checkpoint": _place_of(found.cut),
        "not_read_again": found.trusted and _trusted(found.trusted),
        "checkpoint_kept": _place_of(found.kept),
        "digest": None if found.digest is None else f"{found.digest:016x}",
        "checks": [
            {"name": each.name, "covered": each.covered, "passed": each.passed}
            for each in found.checks
        ],
        "findings": [_finding(each) for each in found.findings],
        "notes": list(found.notes),
        "unfinished": found.unfinished or None,
    }


def _place_of(place: Any) -> dict[str, int] | None:  # noqa: ANN401 - a Position, or None
    return place and {"index": place.index, "ordinal": place.ordinal}


def _trusted(found: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Trusted, unknown here
    """Convert what an earlier run has verified, and this one has not read, to plain data."""
    return {
        "files": found.files,
        "records": found.records,
        "last": _place_of(found.last),
        "verified_ms": found.verified_ms,
        "oldest_read_ms": found.read_ms,
    }


def _finding(found: Any) -> dict[str, Any]:  # noqa: ANN401 - replay's Finding, unknown here
    """Convert a finding to plain data; what is at fault in no single place is null."""
    return {
        "kind": found.kind,
        "node": found.node or None,
        "file": found.file or None,
        "group": found.group or None,
        "position": _place_of(found.position),
        "sentence": found.text,
    }
