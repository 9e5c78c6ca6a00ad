"""`holdfast settings`: the rules that live in the log, for the cluster or for one group (S23)."""

from __future__ import annotations

import click

from holdfast.cli.connect import Cluster
from holdfast.cli.names import group_name
from holdfast.cli.options import (
    as_json,
    asks_cluster,
    refuse,
    refuse_any,
    show_json,
    table,
)
from holdfast.cli.render.speaking import say
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.text import truncate
from holdfast.v1 import admin_pb2 as a

_group = click.option(
    "--group", "group_id", default=None, callback=group_name, help="Of this group, not the cluster."
)


@click.group()
def settings() -> None:
    """Show and change settings."""


@settings.command("list")
@click.argument("names", nargs=-1)
@_group
@as_json
@asks_cluster
def list_settings(
    cluster: Cluster, names: tuple[str, ...], group_id: str | None, *, as_json: bool
) -> None:
    """Show settings in force."""
    request = a.DescribeSettingsRequest(names=names, group_id=group_id)
    response = cluster.call(request, a.DescribeSettingsResponse)
    refuse(response, "settings")
    if as_json:
        show_json(response)
        return
    table(
        ("SETTING", "VALUE", "UNIT", "FROM", "DEFAULT", "BOUNDS", "KAFKA'S NAME"),
        map(_line, response.settings),
    )
    _note_absent(cluster, group_id)


def _line(s: a.DescribedSetting) -> tuple[object, ...]:
    """Format a setting; its bounds are this program's, "-" if it does not know the setting."""
    known = REGISTRY.get(s.name)
    bounds = f"{known.least} to {known.most}" if known else "-"
    unit, kafka_name = s.unit or "-", s.kafka_name or "-"
    return (s.name, s.value, unit, s.source, s.default_value, bounds, kafka_name)


@settings.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@_group
@as_json
@asks_cluster
def set_settings(
    cluster: Cluster, changes: tuple[str, ...], group_id: str | None, *, as_json: bool
) -> None:
    """Change settings, all or none; `NAME=` goes back to what is inherited."""
    request = a.AlterSettingsRequest(
        settings=[_change(text) for text in changes], group_id=group_id
    )
    response = cluster.change(request, a.AlterSettingsResponse)
    if as_json:
        show_json(response)
    refuse_any((s.name, s.error_code, s.error_message) for s in response.settings)
    refuse(response, "settings")
    if not as_json:
        say(f"changed {len(changes)} setting{'' if len(changes) == 1 else 's'}")
    _note_absent(cluster, group_id)


def _note_absent(cluster: Cluster, group_id: str | None) -> None:
    """Note that a group does not exist yet: its settings are kept for it, or it is a typo."""
    if group_id and not cluster.knows_group(group_id):
        say(
            f"holdfast: there is no group {group_id!r} yet; these are the settings that it will "
            "have. Check the name with `holdfast group list`",
            err=True,
        )


def _change(text: str) -> a.SettingToAlter:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{truncate(text)}: write NAME=VALUE, or NAME= to go back")
    return a.SettingToAlter(name=name, value=value or None)
