"""What every command that asks a cluster has in common: which one, and `--json`."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from holdfast.server.cli.connect import Cluster, code_name, fail, find_target
from holdfast.server.cli.plain import plain
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

P = ParamSpec("P")


def asks_cluster(command: Callable[Concatenate[Cluster, P], None]) -> Callable[..., None]:
    """Give a command the options that name a cluster, and the cluster itself."""

    @click.option(
        "--cluster",
        envvar="HOLDFAST_CLUSTER",
        metavar="DIR",
        help="cluster.json or its directory; default: here.",
    )
    @click.option(
        "--address",
        "addresses",
        multiple=True,
        metavar="HOST:PORT",
        help="A node; may be repeated.",
    )
    @click.option(
        "--tls",
        metavar="DIR",
        help="With --address: directory of ca.pem, certificate.pem, key.pem.",
    )
    @functools.wraps(command)
    def run(
        cluster: str | None,
        addresses: tuple[str, ...],
        tls: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        command(Cluster(find_target(cluster, addresses, tls)), *args, **kwargs)

    return run


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def show_json(message: Message) -> None:
    """Print a response as it came, with the contract's field names."""
    click.echo(json.dumps(plain(message), indent=2, ensure_ascii=False))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns as wide as their widest cell."""
    lines = [tuple(head), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def refuse(response: Any, subject: str) -> None:  # noqa: ANN401 - any response
    """End the command if the whole call was refused."""
    if response.error_code != e.ERROR_CODE_NONE:
        why = response.holdfast.message or code_name(response.error_code)
        fail(f"{subject}: {why}")


def refuse_any(results: Iterable[tuple[str, int, str]]) -> None:
    """End the command if some of several names were refused; all that were are told."""
    bad = [(name, code, text) for name, code, text in results if code != e.ERROR_CODE_NONE]
    if bad:
        fail("; ".join(f"{name}: {text or code_name(code)}" for name, code, text in bad))
