"""Which tokens count, whose they are, and that nobody gets in by a token with a flaw."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from harness.issuer import AUDIENCE, ISSUER, Issuer, new_key, token_settings
from holdfast.server.security.token_keys import keys_in
from holdfast.server.security.tokens import KNOWN_MAX, TOKEN_MAX, TokenRefused, Tokens

NOW = 2_000_000_000.0


class Desk:
    """An issuer, and a judge of tokens who believes it, with a clock."""

    def __init__(self, *names: str, **settings: Any) -> None:  # noqa: ANN401 - fields of all kinds
        self.time, self.issuer = NOW, Issuer(*names)
        keys, _ = keys_in(self.issuer.key_set())
        self.tokens = Tokens(token_settings(**settings), keys, lambda: self.time)

    def token(self, **flaws: Any) -> str:  # noqa: ANN401 - as of an issuer
        return self.issuer.token(now=NOW, **flaws)

    def refusal(self, token: str) -> TokenRefused:
        with pytest.raises(TokenRefused) as caught:
            self.tokens.caller(token)
        return caught.value


def part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def claims(**other: Any) -> dict[str, Any]:  # noqa: ANN401 - a claim may be anything
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "indexer", "exp": NOW + 300, **other}


def test_a_good_token_names_its_caller_and_its_end() -> None:
    desk = Desk()
    caller = desk.tokens.caller(desk.token(name="indexer", lasts=300))

    assert (caller.principal, caller.ends_at) == ("jwt:indexer", NOW + 300)


def test_no_token_can_have_the_principal_of_a_certificate_or_a_node() -> None:
    """The issuer's names are not the authority's: each has its own prefix."""
    desk = Desk()
    for name in ("anonymous", "holdfast://c/node/node-1", "spiffe://org/ops", "*", "jwt:ops"):
        assert desk.tokens.caller(desk.token(name=name)).principal == f"jwt:{name}"


def test_another_claim_can_name_the_principal() -> None:
    desk = Desk(claim="email")

    assert desk.tokens.caller(desk.token(email="a@b.example")).principal == "jwt:a@b.example"


@pytest.mark.parametrize(
    ("flaws", "kind"),
    [
        ({"lasts": 0}, "expired"),
        ({"lasts": -1}, "expired"),
        ({"nbf": NOW + 1}, "early"),
        ({"iss": "https://other.example"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"aud": "another-cluster"}, "audience"),
        ({"aud": []}, "claim"),
        ({"without": "exp"}, "claim"),
        ({"without": "iss"}, "claim"),
        ({"without": "aud"}, "claim"),
        ({"without": "sub"}, "claim"),
        ({"sub": ""}, "claim"),
        ({"sub": "line\nfeed"}, "claim"),
        ({"sub": "x" * 1_021}, "claim"),
        ({"exp": "soon"}, "claim"),
        ({"exp": True}, "claim"),
        ({"exp": float("inf")}, "claim"),
        ({"nbf": "now"}, "claim"),
        ({"headers": {"kid": "unknown"}}, "key"),
        ({"headers": {"kid": None}}, "key"),
    ],
    ids=str,
)
def test_a_token_with_a_flaw_is_refused(flaws: dict[str, Any], kind: str) -> None:
    desk = Desk()

    assert desk.refusal(desk.token(**flaws)).kind == kind


def test_a_token_of_several_audiences_counts_for_each() -> None:
    desk = Desk()

    assert desk.tokens.caller(desk.token(aud=["other", AUDIENCE]))


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    desk = Desk(leeway_ms=30_000)
    late, early = desk.token(lasts=-29), desk.token(nbf=NOW + 29)
    assert desk.tokens.caller(late)
    assert desk.tokens.caller(early)

    assert desk.refusal(desk.token(lasts=-31)).kind == "expired"
    assert desk.refusal(desk.token(nbf=NOW + 31)).kind == "early"


def test_a_token_that_is_known_ends_when_it_says() -> None:
    """It was good a moment ago; what is remembered of it must not outlive it."""
    desk = Desk()
    token = desk.token(lasts=300)
    desk.tokens.caller(token)
    desk.time += 300

    assert desk.refusal(token).kind == "expired"


def test_a_token_without_a_signature_is_refused() -> None:
    """Alg `none`: the oldest hole of all."""
    desk = Desk()
    for algorithm in ("none", "None", "NONE", ""):
        head = part({"alg": algorithm, "kid": "first"})
        assert desk.refusal(f"{head}.{part(claims())}.").kind == "algorithm"


@pytest.mark.parametrize("encoding", ["PEM", "DER"])
def test_the_public_key_is_nobodys_secret(encoding: str) -> None:
    """Whoever has read the public key could sign by HMAC, if a node took it for a secret."""
    desk = Desk()
    public = desk.issuer.keys["first"].public_key()
    secret = public.public_bytes(
        getattr(serialization.Encoding, encoding), serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(claims())}"
    digest = hmac.digest(secret, signed.encode(), hashlib.sha256)
    forged = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    assert desk.refusal(forged).kind == "algorithm"


def test_an_algorithm_that_is_not_the_keys_is_refused() -> None:
    """Of a curve's key an RSA signature is none, whatever the header says."""
    desk = Desk()
    token = jwt.encode(claims(), new_key("RSA"), "RS256", headers={"kid": "first"})

    assert desk.refusal(token).kind == "algorithm"


def test_an_algorithm_that_the_settings_leave_out_is_refused() -> None:
    desk = Desk(algorithms=("RS256",))

    assert desk.refusal(desk.token()).kind == "algorithm"


def test_another_key_of_the_same_name_signs_nothing() -> None:
    desk, stranger = Desk(), Issuer()

    assert desk.refusal(stranger.token(now=NOW)).kind == "signature"


def test_a_claim_that_was_changed_after_the_signature_is_refused() -> None:
    desk = Desk()
    head, _, signature = desk.token(name="indexer").split(".")
    forged = f"{head}.{part(claims(sub='ops'))}.{signature}"

    assert desk.refusal(forged).kind == "signature"


@pytest.mark.parametrize(
    "garbage",
    ["", "x", "a.b", "a.b.c", "....", "\x00", "é" * 10, "[" * 7_000, "a.b.c.d.e"],
    ids=lambda text: repr(text[:10]),
)
def test_garbage_is_refused_and_breaks_nothing(garbage: str) -> None:
    assert Desk().refusal(garbage).kind == "garbage"


def test_a_header_that_nests_without_end_is_refused() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 5_000).decode().rstrip("=")

    assert Desk().refusal(f"{deep}.e30.e30").kind == "garbage"


def test_a_huge_token_is_refused_before_it_is_read() -> None:
    assert Desk().refusal("x" * (TOKEN_MAX + 1)).kind == "long"


def test_a_key_that_is_withdrawn_takes_its_tokens_with_it() -> None:
    """Also those that are known: a stolen key is answered by taking it away."""
    desk = Desk("first", "second")
    old, new = desk.token(by="first"), desk.token(by="second")
    withdrawn = desk.tokens.caller(old)
    kept = desk.tokens.caller(new)
    del desk.issuer.keys["first"]
    keys, _ = keys_in(desk.issuer.key_set())
    desk.tokens.replace_keys(keys)

    assert desk.refusal(old).kind == "key"
    assert desk.tokens.caller(new) == kept
    assert (desk.tokens.trusts(withdrawn), desk.tokens.trusts(kept)) == (False, True)


def test_a_key_that_is_replaced_under_its_name_takes_its_tokens_with_it() -> None:
    desk = Desk()
    old = desk.token()
    caller = desk.tokens.caller(old)
    desk.issuer.keys["first"] = new_key()
    keys, _ = keys_in(desk.issuer.key_set())
    desk.tokens.replace_keys(keys)

    assert not desk.tokens.trusts(caller)
    assert desk.refusal(old).kind == "signature"


def test_the_signature_of_a_token_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than the call itself; and a token is known by all of its text alone."""
    desk, checked = Desk(), []
    decode = jwt.decode

    def counting(token: str, *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - as jwt.decode
        checked.append(token)
        return decode(token, *rest, **more)

    monkeypatch.setattr(jwt, "decode", counting)
    one, other = desk.token(name="one"), desk.token(name="other")
    named = [desk.tokens.caller(each).principal for each in (one, other, one, other, one)]

    assert named == ["jwt:one", "jwt:other", "jwt:one", "jwt:other", "jwt:one"]
    assert checked == [one, other]


def test_only_so_many_tokens_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KNOWN_MAX > 0
    monkeypatch.setattr("holdfast.server.security.tokens.KNOWN_MAX", 3)
    desk = Desk()
    for number in range(10):
        desk.tokens.caller(desk.token(name=str(number)))

    assert len(desk.tokens._known) == 3


def test_no_refusal_holds_a_part_of_the_token() -> None:
    """Sentences go to logs, where a token could be used by whoever reads them."""
    desk = Desk()
    token = desk.token(aud="another-cluster", name="a-secret-name")
    told = desk.refusal(token).sentence

    assert not any(piece in told for piece in (*token.split("."), "a-secret-name"))
