"""Where the caller of the call under way reaches the nodes: at the kind of port that it has called.

A node has one address for clients with certificates and perhaps another for those with tokens. The
runtime knows the first; a caller that came by the second must be told the second, or it would
follow the leader to a port that refuses it. Knows addresses only.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_OTHERS: ContextVar[Mapping[str, str] | None] = ContextVar("holdfast_addresses", default=None)
"""By a node's address for clients with certificates: its address for the caller of this call. None:
they are the same."""


def see(others: Mapping[str, str]) -> None:
    """Have what the call under way is told of addresses translated by this table."""
    _OTHERS.set(others)


def for_caller(address: str) -> str:
    """Return where the caller of the call under way reaches the node that has this address.

    "" if that is not known, as for no address.
    """
    others = _OTHERS.get()
    return address if others is None else others.get(address, "")
