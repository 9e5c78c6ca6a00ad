"""Who may do what: grants as values, and how those of a principal are matched to a name.

A grant gives a role on a kind of things. Roles are ordered: each includes all before it. An
administrator of the cluster may do everything. There are no denials, so the order of grants means
nothing. Which role a call needs is the server's table. Beside them stand the certificates that are
revoked: each is known by its fingerprint, the SHA-256 of its bytes. Knows no state and no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import Principal

READER: Final = "reader"
MEMBER: Final = "member"
OPERATOR: Final = "operator"
ADMIN: Final = "admin"
ROLES: Final = (READER, MEMBER, OPERATOR, ADMIN)
"""From the least to the most: each includes all before it."""
RANKS: Final = {role: rank for rank, role in enumerate(ROLES, 1)}
NOTHING: Final = 0
"""The rank of a principal without any role."""

GROUP: Final = "group"
TOPIC: Final = "topic"
CLUSTER: Final = "cluster"
KINDS: Final = (GROUP, TOPIC, CLUSTER)

OPEN: Final = "open"
"""Everybody with a certificate may do everything; grants can be prepared."""
DRY_RUN: Final = "dry-run"
"""As `open`, but what `deny` would refuse is logged."""
DENY: Final = "deny"
"""What no grant allows is refused."""
MODES: Final = (OPEN, DRY_RUN, DENY)

EVERYONE: Final = "*"
"""In place of a principal: all of them. At the end of a name: all names that begin so."""
PRINCIPAL_LENGTH_MAX: Final = 1_024
NAME_LENGTH_MAX: Final = 1_024
ACLS_MAX: Final = 5_000
"""Grants that a cluster may have. One with a prefix covers any number of names."""

Fingerprint: TypeAlias = str
"""64 digits, in lower case and without colons."""
REVOCATIONS_MAX: Final = 2_000
"""Revocations that a cluster may have; those of certificates that have expired make room."""
REASON_LENGTH_MAX: Final = 200
KEPT_AFTER_EXPIRY_MS: Final = 7 * 24 * 3_600_000
"""How long a revocation is kept after its certificate has expired: clocks of nodes differ."""
_FINGERPRINT: Final = re.compile("[0-9a-f]{64}")


class Acl(NamedTuple):
    """One grant: this principal has this role on these things."""

    principal: Principal
    """`*`: every principal."""
    role: str
    kind: str
    name: str
    """A name, or a prefix followed by `*`; "" for the cluster, of which there is one."""


def administrator(principal: Principal) -> Acl:
    """Return the grant that makes a principal an administrator, who may do everything."""
    return Acl(principal, ADMIN, CLUSTER, "")


def sentence(acl: Acl) -> str:
    """Say what a grant says, in a line."""
    thing = f"{acl.kind} {acl.name!r}" if acl.name else f"the {acl.kind}"
    return f"that {acl.principal!r} is {acl.role} on {thing}"


def problem_of(acl: Acl) -> str | None:
    """Say in a sentence what is wrong with a grant; None if nothing is."""
    if acl.role not in ROLES:
        return f"role {acl.role!r} is none; choose one of {', '.join(ROLES)}"
    if acl.kind not in KINDS:
        return f"kind {acl.kind!r} is none; choose one of {', '.join(KINDS)}"
    if _unusable(acl.principal, PRINCIPAL_LENGTH_MAX):
        return (
            f"a principal has 1 to {PRINCIPAL_LENGTH_MAX} characters that can be printed, or is *"
        )
    if acl.kind == CLUSTER:
        return "a grant on the cluster has no name" if acl.name else None
    if _unusable(acl.name, NAME_LENGTH_MAX):
        return (
            f"a {acl.kind}'s name has 1 to {NAME_LENGTH_MAX} characters that can be printed; * "
            "stands for all names, and abc* for those that begin with abc"
        )
    return None


def _unusable(text: str, most: int) -> bool:
    return not text or _unprintable(text, most)


def _unprintable(text: str, most: int) -> bool:
    return len(text) > most or not text.isprintable()


def covers(acl: Acl, principal: Principal, kind: str, name: str) -> bool:
    """Return whether a grant says something of this principal and this thing."""
    if acl.principal not in {principal, EVERYONE}:
        return False
    if acl.kind == CLUSTER:
        return kind == CLUSTER or acl.role == ADMIN
    if acl.kind != kind:
        return False
    if acl.name.endswith(EVERYONE):
        return name.startswith(acl.name[:-1])
    return acl.name == name


def rank(acls: Iterable[Acl], principal: Principal, kind: str, name: str = "") -> int:
    """Return the highest rank that the grants give a principal on a thing."""
    return max(
        (RANKS[acl.role] for acl in acls if covers(acl, principal, kind, name)), default=NOTHING
    )


class Revocation(NamedTuple):
    """One revoked certificate."""

    fingerprint: Fingerprint
    principal: Principal = ""
    """Whom the certificate names, for people; "" if that was not known."""
    expires_ms: int = 0
    """Wall time of its expiry; 0: not known, so the revocation is kept until it is lifted."""
    reason: str = ""
    """For people."""
    revoked_ms: int = 0
    """Log time at which it was revoked."""


def is_fingerprint(text: str) -> bool:
    """Return whether a text can be a fingerprint."""
    return _FINGERPRINT.fullmatch(text) is not None


def revocation_problem(revocation: Revocation) -> str | None:
    """Say in a sentence what is wrong with a revocation; None if nothing is."""
    if not is_fingerprint(revocation.fingerprint):
        return "a fingerprint is the SHA-256 of a certificate: 64 digits 0-9 and a-f, no colons"
    if _unprintable(revocation.principal, PRINCIPAL_LENGTH_MAX):
        return f"a principal has at most {PRINCIPAL_LENGTH_MAX} characters that can be printed"
    if _unprintable(revocation.reason, REASON_LENGTH_MAX):
        return f"a reason has at most {REASON_LENGTH_MAX} characters that can be printed"
    return "a time of expiry is not negative" if revocation.expires_ms < 0 else None
