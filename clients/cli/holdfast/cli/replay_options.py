"""What options of `holdfast replay` share: directories of nodes, and where Spark runs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


class _NodeDir(click.Path):
    """A directory that is here, or a URL as it was written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click has it
        if isinstance(value, str) and "://" in value:
            return value
        return super().convert(value, param, ctx)


_folder = _NodeDir(exists=True, file_okay=False, path_type=Path)
node_dirs = click.option(
    "--node-dir",
    "folders",
    required=True,
    multiple=True,
    type=_folder,
    metavar="DIR|URL",
    help="A node's node.data_dir, a folder of segments, or the URL to which `holdfast log publish` "
    "copied one; may be repeated.",
)


def on_spark(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say where Spark runs, as `spark`: a dict of them."""

    @click.option(
        "--master",
        metavar="URL",
        help="A Spark master: local[N], local-cluster[N,CORES,MIB], spark://HOST:PORT, yarn, "
        "k8s://…; default: local[*], or what spark-submit has chosen.",
    )
    @click.option("--remote", metavar="URL", help="A Spark Connect server: sc://HOST:PORT.")
    @click.option("--conf", metavar="K=V", multiple=True, help="A setting of Spark's; repeatable.")
    @click.option("--memory", metavar="SIZE", help="Heap of the JVM started here; default: 1200m.")
    @functools.wraps(command)
    def run(
        master: str | None,
        remote: str | None,
        conf: tuple[str, ...],
        memory: str | None,
        **options: Any,  # noqa: ANN401 - those of the command
    ) -> None:
        given = {"master": master, "remote": remote, "conf": conf, "memory": memory}
        command(**options, spark=given)

    return run
