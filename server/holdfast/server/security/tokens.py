"""Bearer tokens: whether one is good now, and whose it is.

A token is a JWT (RFC 7519) that the issuer of [tokens] has signed, for this cluster, for now. Its
signature is checked once; then the token is known by its hash until it ends. No token and no part
of one is ever written to a log or told to a caller. Knows no call and no file.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jwt
from jwt import exceptions as j

from holdfast.coordinator.model.text import truncate
from holdfast.server.config.token_settings import TOKEN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.config.token_settings import TokenSettings
    from holdfast.server.security.token_keys import KeySet, TokenKey

TOKEN_MAX: Final = 7_168
"""Characters of a token: gRPC takes 8 KiB of metadata in a call, and some is for other things."""
KNOWN_MAX: Final = 4_096
"""Tokens that are known by their hash; of more, the one not used for longest is dropped."""
NAME_MAX: Final = 1_020
"""Characters of the claim that names the principal, which is longer by the prefix."""
_FIX: Final = "Fetch a new one from the issuer"


class TokenRefused(Exception):
    """A token does not count; the text says why and what to do. `kind` names the reason."""

    def __init__(self, kind: str, sentence: str) -> None:
        """`kind`: one word of few, to count refusals by."""
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


class TokenCaller(NamedTuple):
    """Who has shown a good token."""

    principal: str
    ends_at: float
    """When the token counts no more, in seconds since 1970; the leeway is in it."""
    key: TokenKey
    """The key by which the issuer has signed it."""


class Tokens:
    """Judges tokens by the settings and by the keys in force."""

    def __init__(
        self, settings: TokenSettings, keys: KeySet, now: Callable[[], float] = time.time
    ) -> None:
        """`now`: seconds since 1970, as the issuer writes them."""
        self._settings, self._keys, self.now = settings, keys, now
        self._leeway = settings.leeway_ms / 1000
        self._known: OrderedDict[bytes, TokenCaller] = OrderedDict()

    def replace_keys(self, keys: KeySet) -> None:
        """Put others in force; a token that was signed by a key that has gone counts no more."""
        self._keys = keys
        gone = [digest for digest, caller in self._known.items() if not self.trusts(caller)]
        for digest in gone:
            del self._known[digest]

    def trusts(self, caller: TokenCaller) -> bool:
        """Return whether the key that has signed a caller's token is still in force."""
        key, _ = self._keys.get(caller.key.name, (None, None))
        return key == caller.key

    def caller(self, token: str) -> TokenCaller:
        """Return whose token it is; raises TokenRefused if it does not count now."""
        if len(token) > TOKEN_MAX:
            raise TokenRefused(
                "long", f"the token has {len(token)} characters, and {TOKEN_MAX} are allowed"
            )
        digest = sha256(token.encode(errors="replace")).digest()
        caller = self._known.get(digest)
        if caller is None:
            caller = self._judged(token)
            self._known[digest] = caller
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(digest)
        if caller.ends_at <= self.now():
            raise expired(caller.ends_at - self._leeway)
        return caller

    def _judged(self, token: str) -> TokenCaller:
        """Check all of a token."""
        key, algorithm, checks = self._key_of(token)
        claims = self._claims(token, checks, algorithm)
        ends, begins = _moment(claims, "exp"), _moment(claims, "nbf", 0)
        if begins - self._leeway > self.now():
            raise TokenRefused(
                "early",
                f"the token counts from {_written(begins)} on, and this node's clock says "
                f"{_written(self.now())}. Set the clocks of both, or wait",
            )
        return TokenCaller(TOKEN_PREFIX + self._name(claims), ends + self._leeway, key)

    def _key_of(self, token: str) -> tuple[TokenKey, str, Any]:
        """Find the key that a token says it was signed by, before anything of it is believed."""
        try:
            header = jwt.get_unverified_header(token)
        except (j.PyJWTError, ValueError, RecursionError) as error:
            raise TokenRefused(
                "garbage",
                "what stands after `Bearer` is no JWT, which is three parts with dots between "
                f"them. {_FIX}",
            ) from error
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise TokenRefused(
                "algorithm",
                f"the token is signed by {truncate(str(algorithm))!r}, and this node takes "
                f"{', '.join(self._settings.algorithms)} (tokens.algorithms)",
            )
        key, checks = self._keys.get(name, (None, None)) if isinstance(name, str) else (None, None)
        if key is None:
            raise TokenRefused(
                "key",
                f"the token says that the key {truncate(str(name))!r} has signed it, and the "
                f"issuer's keys at this node are {', '.join(map(repr, self._keys))}. Fetch a new "
                "token; if the issuer has new keys, bring them to tokens.keys",
            )
        if not key.fits(algorithm):
            raise TokenRefused(
                "algorithm",
                f"the token is signed by {algorithm!r}, and the key {truncate(key.name)!r} is not "
                "for that",
            )
        return key, algorithm, checks

    def _claims(self, token: str, checks: Any, algorithm: str) -> dict[str, Any]:  # noqa: ANN401 - a key of any kind
        """Check signature, issuer and audience; return what the token says.

        When it begins and ends is for our own clock, and no other moment in it matters.
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                checks,
                algorithms=[algorithm],
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "require": ["exp", "iss", "aud"],
                },
            )
        except j.MissingRequiredClaimError as error:
            raise TokenRefused("claim", f"the token has no {error.claim}. {_FIX}") from error
        except j.InvalidIssuerError as error:
            raise TokenRefused(
                "issuer",
                f"the token is of another issuer than {self._settings.issuer!r} (tokens.issuer)",
            ) from error
        except j.InvalidAudienceError as error:
            raise TokenRefused(
                "audience",
                f"the token is for others: this cluster is {self._settings.audience!r} "
                "(tokens.audience). Ask the issuer for one for this cluster",
            ) from error
        except (j.PyJWTError, ValueError, RecursionError) as error:
            raise TokenRefused(
                "signature", f"the token's signature or content is not as it was signed. {_FIX}"
            ) from error
        return claims

    def _name(self, claims: dict[str, Any]) -> str:
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or not name.isprintable():
            raise TokenRefused(
                "claim",
                f"the token's {self._settings.claim} (tokens.claim) is no name of 1 to {NAME_MAX} "
                "characters that can be printed",
            )
        return name


def expired(at: float) -> TokenRefused:
    """Make the refusal of a token that has ended."""
    return TokenRefused("expired", f"the token has expired at {_written(at)}. {_FIX}")


def _moment(claims: dict[str, Any], name: str, default: float | None = None) -> float:
    """Return a moment in a token, in seconds since 1970."""
    moment = claims.get(name, default)
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not 0 <= moment < 1e11:  # noqa: PLR2004 - the year 5138
        raise TokenRefused("claim", f"the token's {name} is no moment (seconds since 1970). {_FIX}")
    return moment


def _written(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
