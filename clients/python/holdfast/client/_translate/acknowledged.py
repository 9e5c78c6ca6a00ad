"""Acknowledged changes, as facts that can be compared with the log.

A program that records them (`on_acknowledged`) can prove later what was confirmed: whatever happens
to the cluster, each of them must be in its log. Knows the contract's messages, not how they
travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

_SUFFIX = "Request"


class Acknowledged(NamedTuple):
    """A change that was confirmed, and the position of its record: (`index`, `ordinal`).

    `kind` is the name of the call (`JoinGroup`, `CreateTopics`); `group` is "" for a call without a
    group. A join is recorded by the generation that it became part of.
    """

    request_id: str
    group: str
    kind: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    ordinal: int


def acknowledged(request: Any, response: Any) -> Acknowledged | None:  # noqa: ANN401 - any call of the contract
    """Read what an answer confirms; None: nothing was recorded, or the request has no id."""
    request_id = request.holdfast.request_id
    if not request_id or not response.holdfast.HasField("position"):
        return None
    position = response.holdfast.position
    kind = type(request).__name__.removesuffix(_SUFFIX)
    group = getattr(request, "group_id", "")
    return Acknowledged(request_id, group, kind, position.index, position.ordinal)


OnAcknowledged: TypeAlias = "Callable[[Acknowledged], None]"
"""Called in the event loop's thread with each acknowledged change, before the caller knows."""
