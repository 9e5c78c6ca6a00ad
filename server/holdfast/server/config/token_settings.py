"""[tokens] of a node's file: the port for clients that show a bearer token and no certificate.

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

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
    "EdDSA",
)
"""Signatures that are checked with a public key. There is none with a shared secret (HS256): who
takes the public key for a secret would believe whoever has read it."""
TOKEN_PREFIX: Final = "jwt:"  # noqa: S105 - a principal's, and no secret
"""Begins the principal of every caller with a token, and of no other (`client_port`). So nobody who
chooses names at the issuer can choose that of a certificate, of a node, or `anonymous`."""
NEEDED: Final = ("tokens.issuer", "tokens.audience", "tokens.keys")


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """What makes a token good on this node."""

    address: Address
    issuer: str
    audience: str
    keys: Path  # the issuer's public keys, a JSON Web Key Set
    algorithms: tuple[str, ...]
    claim: str  # names the principal
    leeway_ms: int  # by how much the issuer's clock may differ from ours


def token_settings(
    got: Mapping[str, Value | None], base: Path, told: Address | None
) -> TokenSettings | None:
    """Return what [tokens] says; None if it is not there. Raises ValueError with a sentence.

    `told`: where clients are told that this node takes tokens; it listens there unless it is told
    otherwise.
    """
    given = [name for name in (*NEEDED, "tokens.address", "tokens.algorithms") if got[name]]
    if not given:
        return None
    if got["tls.insecure_loopback"]:
        raise ValueError(
            f"{given[0]} is given beside tls.insecure_loopback = true: whoever reads a token on "
            "its way can use it, so the port for tokens needs [tls]. Give certificates there"
        )
    if missing := [name for name in NEEDED if not got[name]]:
        raise ValueError(
            f"{given[0]} is given, and {', '.join(missing)} missing: a node that takes tokens must "
            "know whose, for whom, and by which keys (docs/operations/tokens.md)"
        )
    own = cast("str | None", got["tokens.address"])
    address = parse_address(own) if own else told
    if address is None:
        raise ValueError(
            "tokens.issuer is given, and there is no port for tokens: give this node a "
            "token_address in [cluster.peers], or tokens.address"
        )
    return TokenSettings(
        address=address,
        issuer=cast("str", got["tokens.issuer"]),
        audience=cast("str", got["tokens.audience"]),
        keys=base / cast("str", got["tokens.keys"]),
        algorithms=_algorithms(cast("tuple[str, ...] | None", got["tokens.algorithms"])),
        claim=cast("str", got["tokens.claim"]),
        leeway_ms=cast("int", got["tokens.leeway_ms"]),
    )


def _algorithms(named: tuple[str, ...] | None) -> tuple[str, ...]:
    for name in named or ():
        if name not in ALGORITHMS:
            raise ValueError(
                f"tokens.algorithms: {name!r} is none that a node checks with a public key; choose "
                f"of {', '.join(ALGORITHMS)}"
            )
    return named or ALGORITHMS
