"""What the HTTP port shows: health as lines for people and as a status for machines.

Knows no sockets and no aiohttp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holdfast.server.http.readiness import Check, Readiness

    Query = Mapping[str, str]

OK: Final = 200
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page shows at this moment."""

    status: int
    content: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Make the answer that says why there is nothing to show."""
    return Answer(status, f"{sentence}\n".encode(), headers=headers or {})


class Page(NamedTuple):
    """One path."""

    make: Callable[[Query], Awaitable[Answer]]
    for_all: bool = False
    """Whether callers without a certificate may see it."""
    refusal: Callable[[str], str] = lambda _principal: ""
    """Says why a principal may not see it; "" if it may. Not asked of what is for all."""


def health_pages(readiness: Readiness) -> dict[str, Page]:
    """Return the pages that probes ask for; they tell nothing that clients keep in the cluster."""

    async def livez(query: Query) -> Answer:
        return _shown(readiness.lives(), query)

    async def readyz(query: Query) -> Answer:
        return _shown(readiness.is_ready(), query)

    return {"/livez": Page(livez, for_all=True), "/readyz": Page(readyz, for_all=True)}


def _shown(checks: Sequence[Check], query: Query) -> Answer:
    """Show the checks that failed, or `ok`; with `?verbose` all of them, a line each."""
    failed = [check for check in checks if check.problem]
    lines = [_line(check) for check in (checks if "verbose" in query else failed)]
    body = "\n".join(lines or ["ok"]) + "\n"
    return Answer(UNAVAILABLE if failed else OK, body.encode())


def _line(check: Check) -> str:
    return f"[-] {check.name}: {check.problem}" if check.problem else f"[+] {check.name}: ok"
