"""[traces] of a node's file: where calls that are traced are exported to, and how many are.

Only combinations are checked here; the kind of each value was checked before. Opens no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from holdfast.server.config.address import Address, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.server.config.keys import Value

PLAIN, SECURE = "http://", "https://"
FILES: Final = ("traces.ca", "traces.certificate", "traces.key")


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """A collector that speaks OTLP over gRPC, and what it gets."""

    address: Address
    secure: bool  # over TLS
    sample_ratio: float  # the part of calls that is traced, of those whose caller does not say
    ca: Path | None = None  # signs the collector's certificate; None: one of the well-known does
    certificate: Path | None = None  # this node's, for a collector that asks for one
    key: Path | None = None

    @property
    def endpoint(self) -> str:
        """The collector's URL."""
        return f"{SECURE if self.secure else PLAIN}{self.address}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the keys that are given."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path)


def trace_settings(got: Mapping[str, Value | None], base: Path) -> TraceSettings | None:
    """Return what [traces] says; None if nothing is exported. Raises ValueError with a sentence."""
    endpoint = cast("str | None", got["traces.endpoint"])
    given = [name for name in FILES if got[name]]
    if endpoint is None:
        if given:
            raise ValueError(
                f"{given[0]} is given, and traces.endpoint is missing: give the collector's URL, "
                "or take [traces] out"
            )
        return None
    address, secure = _collector(endpoint)
    _refuse_half(endpoint, given, address, secure=secure)
    paths = {name.removeprefix("traces."): base / cast("str", got[name]) for name in given}
    return TraceSettings(address, secure, cast("float", got["traces.sample_ratio"]), **paths)


def _collector(endpoint: str) -> tuple[Address, bool]:
    secure = endpoint.startswith(SECURE)
    if not secure and not endpoint.startswith(PLAIN):
        raise ValueError(
            f"traces.endpoint = {endpoint!r}: write the collector's URL, https://host:port or "
            "http://host:port"
        )
    rest = endpoint.removeprefix(SECURE if secure else PLAIN).removesuffix("/")
    try:
        return parse_address(rest), secure
    except ValueError as error:
        raise ValueError(f"traces.endpoint: {error}, and https:// before it") from error


def _refuse_half(endpoint: str, given: list[str], address: Address, *, secure: bool) -> None:
    """Raise ValueError for what would be sent in the open, and for half of a pair."""
    if not secure and given:
        raise ValueError(
            f"{given[0]} is given, and traces.endpoint = {endpoint!r} is not encrypted: write "
            "https://, or take the files of [traces] out"
        )
    if not secure and not address.loopback:
        raise ValueError(
            f"traces.endpoint = {endpoint!r} is not on the loopback interface and not encrypted: "
            "write https://, or send to a collector on this machine"
        )
    if ("traces.certificate" in given) != ("traces.key" in given):
        raise ValueError(
            "traces.certificate and traces.key belong together: give both, or neither if the "
            "collector asks for no certificate"
        )
