"""Fills the matrix: every call, by every role, on own and foreign things; and every credential.

A cell is right if the call is refused exactly where the rule says so, with its code; and if nothing
that was answered holds the name of a foreign thing that the request did not name. A leak is also an
answer that tells a foreign thing that exists from one that does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import grpc
from google.protobuf import descriptor_pool

from harness.issuer import Issuer
from holdfast.server.security import certificates
from holdfast.v1 import group_pb2
from matrix.expected import RULES, Rule
from matrix.requests import REQUESTS
from matrix.world import FOREIGN, NAMES, ROLES, Outcome, World, call, expired, principal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

SERVICES = ("GroupService", "OffsetService", "AdminService", "LogService", "BackupService")


class Cell(NamedTuple):
    """One call by one caller on one thing, and what is wrong with how it ended."""

    name: str
    role: str
    thing: str
    """`own` or `foreign`."""
    allowed: bool
    problem: str


def methods() -> Iterator[str]:
    """Yield every call of the contract, and every kind of call on a Session stream."""
    for service in SERVICES:
        for method in descriptor_pool.Default().FindServiceByName(f"holdfast.v1.{service}").methods:
            if method.name != "Session":
                yield f"{service}.{method.name}"
    for field in group_pb2.SessionCall.DESCRIPTOR.oneofs_by_name["request"].fields:
        yield f"GroupService.Session/{field.name}"


def undeclared() -> list[str]:
    """Return the calls without a rule or a request."""
    return [name for name in methods() if name not in RULES or name not in REQUESTS]


async def cells(world: World) -> AsyncIterator[Cell]:
    """Make every call of the matrix."""
    for name, rule in RULES.items():
        for role in ROLES:
            for thing in ("own", "foreign") if rule.kind in {"group", "topic"} else ("own",):
                allowed = _allowed(rule, role, thing)
                problem = await _problem(world, name, rule, role, thing)
                yield Cell(name, role, thing, allowed, problem)


def _allowed(rule: Rule, role: str, thing: str) -> bool:
    """Return what the rule says: a role includes those before it, and counts for own things."""
    if not rule.kind:
        return True
    return thing == "own" and ROLES.index(role) >= ROLES.index(rule.role)


async def _problem(world: World, name: str, rule: Rule, role: str, thing: str) -> str:
    channel = world.channel(rule.kind or "group", role)
    own, foreign, absent = NAMES[rule.kind]
    asked = own if thing == "own" else foreign
    got = await call(channel, name, REQUESTS[name](asked))
    allowed = _allowed(rule, role, thing)
    if rule.code and got.refused == allowed:
        return f"refused: {got.refused}, and the rule says {not allowed}: {got.text[:200]}"
    if rule.code and not allowed and got.codes and rule.code not in got.codes:
        return f"refused with {set(got.codes)}, not {rule.code}"
    if not rule.code and rule.kind and thing == "own" and (own in got.text) != allowed:
        return f"own things are shown: {own in got.text}, and the rule says {allowed}"
    if leak := _leak(got, asked, everything=rule.kind == "cluster" and role == "admin"):
        return leak
    if thing == "foreign" and not allowed:
        other = await call(channel, name, REQUESTS[name](absent))
        if _neutral(other, absent) != _neutral(got, foreign):
            return f"tells what exists: {got.text[:200]} / {other.text[:200]}"
    return ""


def _leak(got: Outcome, asked: str, *, everything: bool) -> str:
    told = got.text.replace(asked, "") if asked else got.text
    return f"a foreign name is told: {told[:300]}" if FOREIGN in told and not everything else ""


def _neutral(got: Outcome, name: str) -> tuple[object, ...]:
    """Return an answer without the name, and without what moves by itself."""
    lines = got.text.replace(name, "NAME").splitlines()
    moving = ("log_time_ms", "applied_index", '"index"', "age_ms")
    return (*sorted(got.codes), got.status, *(x for x in lines if not any(m in x for m in moving)))


async def credentials(world: World, folder: Path) -> AsyncIterator[Cell]:
    """Call with every credential that is none of a client, or of a client without a grant."""
    foreign = certificates.make_authority("other")
    stranger = certificates.issue(foreign, folder / "stranger", "s", "holdfast://client/admin", [])
    ca = folder / "node" / "ca.pem"
    elsewhere = world.certificate("elsewhere", "holdfast://other/client/cluster-admin")
    revoked = world.revoked(principal("cluster", "admin"))
    node = world.certificate("as-node", "holdfast://c/node/node-2")
    at_door = (grpc.StatusCode.UNAVAILABLE,)
    for label, tls, statuses in (
        ("none", None, at_door),
        ("foreign CA", stranger, at_door),
        ("expired", expired(world), at_door),
        ("a node's", node, (grpc.StatusCode.UNAUTHENTICATED,)),
        ("foreign cluster", elsewhere, ()),
        ("revoked", revoked, (grpc.StatusCode.UNAUTHENTICATED,)),
    ):
        async with world.connected(tls, ca) as channel:
            for name, rule in RULES.items():
                got = await call(channel, name, REQUESTS[name](NAMES[rule.kind][0]))
                problem = _refusal(got, rule, statuses)
                yield Cell(name, label, "own", allowed=False, problem=problem)


async def tokens(world: World) -> AsyncIterator[Cell]:
    """Call at the port for tokens, with tokens that do not count, and with one without a grant."""
    issuer, stranger = world.issuer, Issuer()
    at_door = (grpc.StatusCode.UNAUTHENTICATED,)
    for label, token, statuses in (
        ("no token", "", at_door),
        ("bad token", stranger.token("admin"), at_door),
        ("expired token", issuer.token("admin", lasts=-1), at_door),
        ("another's token", issuer.token("admin", aud="another-cluster"), at_door),
        ("good token", issuer.token(principal("cluster", "admin")), ()),
    ):
        async with world.at_token_port() as channel:
            for name, rule in RULES.items():
                got = await call(channel, name, REQUESTS[name](NAMES[rule.kind][0]), token)
                problem = _refusal(got, rule, statuses)
                yield Cell(name, label, "own", allowed=False, problem=problem)


def _refusal(got: Outcome, rule: Rule, statuses: tuple[grpc.StatusCode, ...]) -> str:
    if statuses:
        return "" if got.status in statuses else f"ended with {got.status}: {got.text[:200]}"
    if rule.code and not got.refused:
        return f"not refused: {got.text[:200]}"
    return "a name is told" if rule.kind and not rule.code and "own-" in got.text else ""
