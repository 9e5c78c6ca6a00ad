"""Which keys of an issuer's set count, and what a file does that changes while a node runs."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm

from harness.issuer import Issuer, described, new_key
from holdfast.server.security.token_keys import KeyFile, KeysUnusable, keys_in

if TYPE_CHECKING:
    from pathlib import Path


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def test_a_key_is_only_for_signatures_of_its_kind() -> None:
    """A key that any algorithm may use lets a caller choose the weakest one."""
    rsa_key, curve = described("r", new_key("RSA")), described("e", new_key())
    bound = described("b", new_key("RSA"), alg="RS512")
    found, passed_over = keys_in(key_set(rsa_key, curve, bound))

    fits = {
        name: {
            each for each in ("RS256", "RS512", "PS256", "ES256", "ES384", "HS256", "none")
            if key.fits(each)
        }
        for name, (key, _) in found.items()
    }  # fmt: skip
    assert fits == {"r": {"RS256", "RS512", "PS256"}, "e": {"ES256"}, "b": {"RS512"}}
    assert passed_over == []


def test_what_is_no_key_for_signatures_is_passed_over_and_told() -> None:
    """Issuers publish keys of other uses in the same set (RFC 7517)."""
    good, nameless = described("good", new_key()), described("x", new_key())
    del nameless["kid"]
    encrypts = described("enc", new_key(), use="enc")
    newer = {"kty": "AKP", "kid": "newer"}
    weak = described("weak", rsa.generate_private_key(65_537, 1_024))  # noqa: S505 - on purpose
    torn = {**described("torn", new_key()), "x": "!"}
    wrong = described("wrong", new_key(), alg="RS256")
    found, passed_over = keys_in(key_set(good, nameless, encrypts, newer, weak, torn, wrong))

    assert list(found) == ["good"]
    told = "\n".join(passed_over)
    for words in ("without a name", "'enc'", "'AKP'", "1024 bits", "'torn'", "'RS256'"):
        assert words in told
    assert len(passed_over) == 6


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no json", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no JSON Web Key Set"),
        (b'{"keys": [1]}', "no JSON Web Key Set"),
        (b'{"keys": []}', "no key for signatures"),
        (b" " * (257 << 10), "bytes"),
        (key_set({"kty": "oct", "kid": "s", "k": "c2VjcmV0"}), "shared secret"),
        (key_set(*({"kty": "EC"} for _ in range(101))), "101 keys"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_set_that_cannot_be_used_is_told_why(content: bytes, words: str) -> None:
    with pytest.raises(KeysUnusable, match=words):
        keys_in(content)


def test_a_private_key_makes_the_whole_set_unusable() -> None:
    """It was copied to where it must not be: an operator must hear of it, and not only once."""
    private = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)

    with pytest.raises(KeysUnusable, match="private key"):
        keys_in(key_set(described("good", new_key()), {**private, "kid": "p"}))


def test_two_keys_of_one_name_make_the_set_unusable() -> None:
    with pytest.raises(KeysUnusable, match="'same'"):
        keys_in(key_set(described("same", new_key()), described("same", new_key())))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeysUnusable, match="cannot be read"):
        KeyFile(tmp_path / "gone.json")


def test_new_keys_count_once_they_have_rested(tmp_path: Path) -> None:
    path, issuer = tmp_path / "keys.json", Issuer("old")
    path.write_bytes(issuer.key_set())
    file = KeyFile(path)
    assert not file.look()

    issuer.keys["new"] = new_key()
    path.write_bytes(issuer.key_set())
    assert not file.look(), "it may still be written to"
    assert file.look()
    assert set(file.in_force) == {"old", "new"}
    assert not file.look()


def test_a_broken_file_keeps_the_keys_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(Issuer("old").key_set())
    file = KeyFile(path)
    path.write_bytes(b'{"keys": [')

    with caplog.at_level(logging.ERROR):
        assert [file.look() for _ in range(5)] == [False] * 5

    assert set(file.in_force) == {"old"}
    assert caplog.text.count("stay in force: 'old'") == 1


def test_a_file_that_says_the_same_again_changes_nothing(tmp_path: Path) -> None:
    path, issuer = tmp_path / "keys.json", Issuer("old")
    path.write_bytes(issuer.key_set())
    file = KeyFile(path)
    path.write_bytes(issuer.key_set() + b"\n")

    assert [file.look() for _ in range(3)] == [False] * 3
