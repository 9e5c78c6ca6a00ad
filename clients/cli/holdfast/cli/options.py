"""The options of all commands that ask a cluster: which cluster, and `--json`."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

import click
from click.core import ParameterSource

from holdfast.cli.connect import Cluster, code_name
from holdfast.cli.ending import fail, print_json
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say
from holdfast.cli.target import NotRunning, check_addresses, find_target
from holdfast.coordinator.model.text import CUT_TO, readable, truncate
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from holdfast.cli.target import Target

P = ParamSpec("P")
CELL_MAX: Final = 80
"""Characters up to which a cell widens its column; usual member ids are shorter."""
DAY_SECONDS: Final = 86_400
INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
"""The largest numbers that the contract's fields hold."""


def asks_cluster(command: Callable[Concatenate[Cluster, P], None]) -> Callable[..., None]:
    """Give a command the options that name a cluster, and the cluster itself."""

    @finds_cluster
    @functools.wraps(command)
    def run(find: Callable[[], Target], /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            target = find()
        except NotRunning as error:
            fail(str(error))
        with Cluster(target) as found:
            command(found, *args, **kwargs)

    return run


def finds_cluster(
    command: Callable[Concatenate[Callable[[], Target], P], None],
) -> Callable[..., None]:
    """Give a command the options that name a cluster, and a function that finds it (NotRunning)."""

    @click.option(
        "--cluster",
        envvar="HOLDFAST_CLUSTER",
        metavar="DIR",
        help="cluster.json or its directory; default: HOLDFAST_CLUSTER, else here.",
    )
    @click.option(
        "--address",
        "addresses",
        multiple=True,
        metavar="HOST:PORT",
        help="A node; several with commas, or repeated. Instead of --cluster; default: "
        "HOLDFAST_ADDRESS, which beats HOLDFAST_CLUSTER.",
    )
    @click.option(
        "--tls",
        metavar="DIR",
        help="Directory of ca.pem, certificate.pem, key.pem; default: what cluster.json names, "
        "with addresses HOLDFAST_TLS, else none.",
    )
    @click.option(
        "--token-file",
        metavar="FILE",
        help="A bearer token, in place of a certificate, for addresses of ports for tokens; "
        "default: with addresses HOLDFAST_TOKEN_FILE, else none.",
    )
    @functools.wraps(command)
    def run(
        cluster: str | None,
        addresses: tuple[str, ...],
        tls: str | None,
        token_file: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        _check_text(kwargs.values())
        _refuse_two_clusters(addresses)
        addresses = _typed_addresses(addresses) or _exported_addresses()
        if addresses and not tls:
            tls = os.environ.get("HOLDFAST_TLS") or None
        if addresses and not token_file:
            token_file = os.environ.get("HOLDFAST_TOKEN_FILE") or None
        _refuse_lone_token(token_file, addresses, tls)
        command(lambda: find_target(cluster, addresses, tls, token_file), *args, **kwargs)

    return run


def _typed_addresses(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of all options; an option that has none stays, to be refused."""
    return tuple(each for option in options for each in _parts(option) or (option,))


def _exported_addresses() -> tuple[str, ...]:
    """Return the addresses in HOLDFAST_ADDRESS; none if --cluster was typed, which has priority."""
    source = click.get_current_context().get_parameter_source("cluster")
    if source is ParameterSource.COMMANDLINE:
        return ()
    addresses = _parts(os.environ.get("HOLDFAST_ADDRESS", ""))
    check_addresses("HOLDFAST_ADDRESS", addresses)
    return addresses


def _parts(addresses: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in addresses.split(","))))


def _refuse_two_clusters(addresses: tuple[str, ...]) -> None:
    """Refuse both --cluster and --address; a typed option overrides the environment."""
    source = click.get_current_context().get_parameter_source("cluster")
    if addresses and source is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--cluster and --address both say which cluster is meant. Give one of them"
        )


def _refuse_lone_token(token_file: str | None, addresses: tuple[str, ...], tls: str | None) -> None:
    """Refuse a token without the ports that it is for, or for a connection that anybody reads."""
    if token_file and not addresses:
        raise click.UsageError(
            "--token-file is for nodes' ports for tokens, which cluster.json does not name: give "
            "one with --address HOST:PORT"
        )
    if token_file and not tls:
        raise click.UsageError(
            "--token-file needs TLS, or anybody on the way could use the token: give --tls DIR, a "
            "directory with ca.pem"
        )


def _check_text(values: Iterable[object]) -> None:
    """Refuse text that is not UTF-8: a terminal can send any bytes."""
    for value in values:
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and text != _encodable(text):
                raise click.UsageError(
                    f"{truncate(text)!r} is not UTF-8, so it can name nothing here"
                )


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def timeout(
    default: float, meaning: str, most: float = DAY_SECONDS
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option `--timeout` of a command that waits, as its parameter `seconds`."""
    return click.option(
        "--timeout",
        "seconds",
        type=click.FloatRange(0, most),
        default=default,
        show_default=True,
        help=meaning,
    )


def show_json(message: Message) -> None:
    """Print a response as it came, with the contract's field names."""
    print_json(plain(message))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns as wide as their widest cell; a very long cell shifts its own row only."""
    lines = [tuple(head), *(tuple(readable(str(cell)) for cell in row) for row in rows)]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        say("  ".join(cells).rstrip())


def _width(cell: str) -> int:
    return len(cell) if len(cell) <= CELL_MAX else 0


def refuse(response: Any, subject: str, name: str = "") -> None:  # noqa: ANN401 - any response
    """End the command if the whole call was refused. `name` is a part of `subject`."""
    if response.error_code != e.ERROR_CODE_NONE:
        why = response.holdfast.message.removeprefix("group_id: ") or code_name(response.error_code)
        fail(about(name, why, f"{subject} {name}".rstrip()))


def refuse_any(results: Iterable[tuple[str, int, str]]) -> None:
    """End the command if some of several names were refused; report each of them."""
    bad = [(name, code, text) for name, code, text in results if code != e.ERROR_CODE_NONE]
    if bad:
        fail("; ".join(about(name, text or code_name(code)) for name, code, text in bad))


def about(name: str, sentence: str, subject: str | None = None) -> str:
    """Put the subject before a sentence, unless the sentence names it."""
    begins = repr(name[:CUT_TO])[:-1] if len(name) > CUT_TO else repr(name)
    return sentence if begins in sentence else f"{truncate(subject or name)}: {sentence}"


def require_group(cluster: Cluster, group_id: str) -> None:
    """End the command if there is no such group; the service's answer does not tell (K-G1).

    Each protocol's groups are unknown to the other's call (K-K3, K-K6).
    """
    response = cluster.call(a.DescribeGroupsRequest(groups=[group_id]), a.DescribeGroupsResponse)
    found = response.groups[0]
    unknown = e.ERROR_CODE_GROUP_ID_NOT_FOUND
    if found.error_code != unknown:
        return
    asked = a.ConsumerGroupDescribeRequest(group_ids=[group_id])
    other = cluster.call(asked, a.ConsumerGroupDescribeResponse)
    if other.groups[0].error_code == unknown:
        fail(found.error_message or f"there is no group {group_id!r}")
