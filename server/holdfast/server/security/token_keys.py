"""The issuer's public keys: a JSON Web Key Set (RFC 7517) in a file that is read while a node runs.

Only public keys for signatures count; what else such a set may hold is passed over and told. Asks
nobody over a network. Knows files and keys, and no token.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from holdfast.coordinator.model.text import truncate
from holdfast.server.security.certificate_watch import seen_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 256 << 10
KEYS_MAX: Final = 100
"""Keys in a set: an issuer that replaces its keys has two or three."""
RSA_BITS_MIN: Final = 2_048
_READERS: Final[Mapping[str, Any]] = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}
"""By the key's type. None is there for `oct`, a shared secret."""
_KINDS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "OKP",
}
"""By the signature's algorithm: the type of its key, or the curve where it asks for one."""


class KeysUnusable(Exception):
    """A key set cannot be used; the text says why, without the file's name."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """One public key. Two are equal if the issuer has described them in the same way."""

    name: str  # `kid`, by which a token says who has signed it
    kind: str  # `RSA`, `OKP`, or the curve
    algorithm: str  # the only one that it is for; "": all of its kind
    fingerprint: str

    def fits(self, algorithm: str) -> bool:
        """Return whether a signature of this kind can be this key's."""
        return _KINDS.get(algorithm) == self.kind and self.algorithm in {"", algorithm}


KeySet = dict[str, tuple[TokenKey, Any]]
"""Keys by name, each with what checks a signature by it."""


def keys_in(content: bytes) -> tuple[KeySet, list[str]]:
    """Read a key set; return its keys, and for each that does not count, why. Raises KeysUnusable.

    A private key, and a name that two keys have, make the whole set unusable: they are mistakes.
    """
    found: KeySet = {}
    passed_over = []
    for given in _listed(content):
        if "d" in given or "k" in given:
            raise KeysUnusable(
                "it holds a private key or a shared secret: the issuer alone may have that. Put "
                "the public keys there, and replace that key, since it was copied"
            )
        name = given.get("kid")
        if not isinstance(name, str) or not name:
            passed_over.append("a key without a name (kid), by which no token could mean it")
        elif name in found:
            raise KeysUnusable(f"two of its keys have the name {truncate(name)!r} (kid)")
        elif isinstance(read := _read(name, given), str):
            passed_over.append(f"the key {truncate(name)!r}: {read}")
        else:
            found[name] = read
    if not found:
        raise KeysUnusable("; ".join(["it holds no key for signatures", *passed_over]))
    return found, passed_over


def _listed(content: bytes) -> list[dict[str, Any]]:
    if len(content) > FILE_BYTES_MAX:
        raise KeysUnusable(f"it has more than {FILE_BYTES_MAX} bytes")
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise KeysUnusable(f"it is no JSON: {error}") from error
    keys = whole.get("keys") if isinstance(whole, dict) else None
    if not isinstance(keys, list) or not all(isinstance(each, dict) for each in keys):
        raise KeysUnusable('it is no JSON Web Key Set, which begins with {"keys": [')
    if len(keys) > KEYS_MAX:
        raise KeysUnusable(f"it has {len(keys)} keys, and {KEYS_MAX} are allowed")
    return keys


def _read(name: str, given: dict[str, Any]) -> tuple[TokenKey, Any] | str:
    """Read a key, or say why it does not count."""
    family, algorithm = str(given.get("kty")), given.get("alg", "")
    if given.get("use", "sig") != "sig":
        return "it is not for signatures"
    if family not in _READERS:
        return f"keys of the type {truncate(family)!r} are not known here"
    kind = given.get("crv") if family == "EC" else family
    if algorithm and _KINDS.get(str(algorithm)) != kind:
        return f"its algorithm {truncate(str(algorithm))!r} is none of such a key"
    try:
        key = _READERS[family].from_jwk(given)
    except (PyJWTError, ValueError, TypeError) as error:
        return f"it cannot be read ({error})"
    if family == "RSA" and key.key_size < RSA_BITS_MIN:
        return f"it has {key.key_size} bits, and fewer than {RSA_BITS_MIN} are too easy to break"
    described = json.dumps(given, sort_keys=True).encode()
    made = TokenKey(name, str(kind), str(algorithm), sha256(described).hexdigest())
    return made, key


class KeyFile:
    """The file, and the keys of it that are in force."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises KeysUnusable."""
        self._path = path
        self._before = self._judged = seen_of(path)
        self.in_force = self._keys()

    def look(self) -> bool:
        """Look at the file once; return whether other keys are in force now. Blocks.

        A change counts when it has stayed the same from one look to the next. A file that cannot
        be used changes nothing, and is told once.
        """
        seen, before = seen_of(self._path), self._before
        self._before = seen
        if seen != before or seen == self._judged:
            return False
        self._judged = seen
        try:
            new = self._keys()
        except KeysUnusable as error:
            logger.error(  # noqa: TRY400 - the sentence says it all
                "the issuer's keys have changed and cannot be used: %s. The keys from before stay "
                "in force: %s. Correct %s; it is read again when it changes",
                error, _told(self.in_force), self._path,
            )  # fmt: skip
            return False
        changed = _described(new) != _described(self.in_force)
        self.in_force = new
        if changed:
            logger.info("the issuer's keys are now %s", _told(new))
        return changed

    def _keys(self) -> KeySet:
        try:
            with self._path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise KeysUnusable(f"it cannot be read: {error.strerror}") from error
        found, passed_over = keys_in(content)
        for why in passed_over:
            logger.warning("%s: passed over %s", self._path, why)
        return found


def _described(keys: KeySet) -> set[TokenKey]:
    return {key for key, _ in keys.values()}


def _told(keys: KeySet) -> str:
    return ", ".join(repr(truncate(name)) for name in keys)
