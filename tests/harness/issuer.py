"""An issuer of bearer tokens as tests need one: its keys, its key set, and tokens with any flaw."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from holdfast.server.config.address import Address
from holdfast.server.config.token_settings import ALGORITHMS, TokenSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "holdfast-test"


PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def new_key(kind: str = "EC") -> PrivateKey:
    """Make a private key: `EC` (P-256) or `RSA`."""
    if kind == "RSA":
        return rsa.generate_private_key(65_537, 2_048)
    return ec.generate_private_key(ec.SECP256R1())


def described(name: str, key: PrivateKey, **more: str) -> dict[str, Any]:
    """Describe the public half of a key as an item of a key set."""
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    reader: Any = RSAAlgorithm if is_rsa else ECAlgorithm
    made: dict[str, Any] = reader.to_jwk(key.public_key(), as_dict=True)
    return {**made, "kid": name, "use": "sig", **more}


class Issuer:
    """Signs tokens; its key set has the public halves of its keys."""

    def __init__(self, *names: str) -> None:
        self.keys = {name: new_key() for name in names or ("first",)}

    def key_set(self) -> bytes:
        """The key set as the issuer publishes it."""
        return json.dumps({"keys": [described(*each) for each in self.keys.items()]}).encode()

    def token(
        self,
        name: str = "indexer",
        lasts: float = 300,
        by: str = "first",
        *,
        without: str = "",
        now: float | None = None,
        headers: Mapping[str, Any] | None = None,
        **claims: Any,  # noqa: ANN401 - a claim may be anything
    ) -> str:
        """Sign a token of this caller that lasts so many seconds; `without`: a claim left out."""
        begun = time.time() if now is None else now
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "exp": begun + lasts, **claims}
        said.pop(without, None)
        named = {"kid": by, **(headers or {})}
        shown = {key: value for key, value in named.items() if value is not None}
        signer = jwt.PyJWS()  # which signs what no honest issuer would say
        return signer.encode(json.dumps(said).encode(), self.keys[by], "ES256", headers=shown)


def token_settings(keys: Path = Path("unused"), **other: Any) -> TokenSettings:  # noqa: ANN401 - fields of all kinds
    """Settings that believe this issuer."""
    given = {
        "address": Address("127.0.0.1", 0),
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "keys": keys,
        "algorithms": ALGORITHMS,
        "claim": "sub",
        "leeway_ms": 0,
    }
    return TokenSettings(**{**given, **other})
