"""`holdfast audit`: who was refused, and what administrators read, from a node's own files.

It runs on the node's machine and asks no cluster, so it tells of a node that is down as well.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.options import as_json, table
from holdfast.cli.render.times import instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_AGE: Final = re.compile(r"(\d{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _since(_context: click.Context, _option: click.Parameter, given: str | None) -> int:
    """Convert a time, or an age such as 2h, to milliseconds since 1970."""
    if given is None:
        return 0
    if age := _AGE.fullmatch(given):
        return int((time.time() - int(age[1]) * _SECONDS[age[2]]) * 1000)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise click.BadParameter(
            f"{given!r} is neither a time, as 2026-01-31 or 2026-01-31T08:15:00Z, nor an age, as "
            "90s, 15m, 2h or 7d"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@click.command()
@click.option(
    "--node-dir",
    "directory",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Its node.data_dir.",
)
@click.option("--principal", help="Only what this one did.")
@click.option("--since", callback=_since, metavar="WHEN", help="From a time on (UTC), or for 2h.")
@as_json
def audit(directory: Path, principal: str | None, since: int, *, as_json: bool) -> None:
    """Show who was refused, and what administrators read, on a node's machine.

    Changes are not here but on the log: `holdfast log tail`. Each node has its own; most is on the
    one that led.
    """
    from holdfast.server.audit.files import is_of_a_node, read  # noqa: PLC0415 - needs the [server] extra

    if not is_of_a_node(directory):
        _refuse(directory)
    try:
        found = list(_chosen(read(directory), principal, since))
    except OSError as error:
        fail(
            f"cannot read the audit in {error.filename or directory}: {error.strerror}. Run this "
            "as the node's own user"
        )
    if as_json:
        print_json(found)
        return
    table(("AT", "WHAT", "PRINCIPAL", "CALL", "ON", "WHY"), map(_row, found))


def _refuse(directory: Path) -> NoReturn:
    """End the command for a directory in which no node keeps anything.

    The folder above it is often given, and nothing found there would be taken for nobody refused.
    """
    inside = directory / "data"
    there = f", as {inside}" if inside.is_dir() else ""
    fail(f"{directory} is no data directory of a node. Give its node.data_dir{there}")


def _chosen(
    records: Iterable[dict[str, Any]], principal: str | None, since: int
) -> Iterable[dict[str, Any]]:
    for record in records:
        if record.get("at_ms", 0) >= since and principal in {None, record.get("principal")}:
            yield record


def _row(record: dict[str, Any]) -> Sequence[object]:
    """Make a line of a record; counts of what was not written stand where the call would."""
    call = record.get("call") or f"{record.get('count', 0)} records"
    rest = (record.get(name) or "-" for name in ("on", "why"))
    at = instant(int(record.get("at_ms", 0)))
    return (at, record.get("kind", "-"), record.get("principal") or "-", call, *rest)
