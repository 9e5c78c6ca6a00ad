"""`holdfast settings`: the rules that live in the log, for the cluster or for one group (S23)."""

from __future__ import annotations

import click

from holdfast.server.cli.connect import Cluster
from holdfast.server.cli.options import as_json, asks_cluster, refuse, refuse_any, show_json, table
from holdfast.v1 import admin_pb2 as a

_group = click.option("--group", "group_id", default=None, help="Of this group, not the cluster.")


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
    response = cluster.call("DescribeSettings", request)
    refuse(response, "settings")
    if as_json:
        show_json(response)
        return
    table(
        ("SETTING", "VALUE", "UNIT", "FROM", "DEFAULT", "KAFKA'S NAME"),
        (
            (s.name, s.value, s.unit or "-", s.source, s.default_value, s.kafka_name or "-")
            for s in response.settings
        ),
    )


@settings.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@_group
@asks_cluster
def set_settings(cluster: Cluster, changes: tuple[str, ...], group_id: str | None) -> None:
    """Change settings, all or none; `NAME=` goes back to what is inherited."""
    request = a.AlterSettingsRequest(
        settings=[_change(text) for text in changes], group_id=group_id
    )
    response = cluster.change("AlterSettings", request)
    refuse_any((s.name, s.error_code, s.error_message) for s in response.settings)
    refuse(response, "settings")
    click.echo(f"changed {len(changes)} setting{'' if len(changes) == 1 else 's'}")


def _change(text: str) -> a.SettingToAlter:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text}: write NAME=VALUE, or NAME= to go back")
    return a.SettingToAlter(name=name, value=value or None)
