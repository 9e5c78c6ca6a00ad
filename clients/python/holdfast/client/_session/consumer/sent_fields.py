"""What the group knows of a member's fields: those of the heartbeats that it has accepted.

A heartbeat leaves out what has not changed since the last accepted one. A join says everything; so
does the first heartbeat after one that was refused, or that has no answer (T-16): whether the
group has heard that one, nobody knows. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client._session.consumer.requests import Fields


class SentFields:
    """The memory of what was accepted."""

    def __init__(self) -> None:
        self._known: dict[str, object] = {}
        self._owned_version: int | None = None

    def changed(self, present: Fields, owned_version: int) -> dict[str, object]:
        """Return what is to be said now, by name.

        What is owned is said again when its version has moved, be it to the same partitions: so a
        partition that went and came back is acknowledged, too.
        """
        fields = {
            name: value
            for name, value in present._asdict().items()
            if value is not None and self._known.get(name) != value
        }
        if owned_version != self._owned_version:
            fields["owned"] = present.owned
        return fields

    def accepted(self, fields: Mapping[str, object], owned_version: int) -> None:
        """Remember what a heartbeat said that was answered NONE."""
        self._known |= fields
        self._owned_version = owned_version

    def forget(self) -> None:
        """Say everything with the next heartbeat."""
        self._known.clear()
        self._owned_version = None
