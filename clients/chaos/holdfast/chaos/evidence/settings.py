"""Which values settings have along the log. Knows no setting by name, and no default."""

from __future__ import annotations

from typing import Final

from holdfast.chaos.history.happenings import Recorded

_CHANGES: Final = {"ClusterFormed": "settings", "SettingsChanged": "changes"}
"""The records that change settings, and where in them the changes are."""


class Settings:
    """The values of the cluster and of its groups, along the cluster's own records."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], str] = {}
        """By group, "" for the cluster, and name."""

    def follow(self, record: Recorded) -> None:
        """Take in one record; most change nothing."""
        name = _CHANGES.get(record.kind)
        if name is None:
            return
        group = record.fields.get("group_id", "")
        for each in record.fields[name]:
            if each["value"] is None:
                self._values.pop((group, each["key"]), None)
            else:
                self._values[group, each["key"]] = each["value"]

    def of(self, name: str, group: str) -> str | None:
        """Return a group's own value, else the cluster's; None: the default."""
        return self._values.get((group, name), self._values.get(("", name)))
