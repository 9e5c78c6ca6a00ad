"""Which nodes a cluster has: a value, its text on the log, and what a change makes of it (S25).

An entry of the log holds the whole membership, not a difference, so that it can be understood
without what was before it. Pure: here are the rules that the membership alone can judge. Who is
connected, caught up or leads is `changes`' business; which membership is in force, `in_force`'s.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

ENTRY_KIND: Final = b"\x11"
"""The first byte of an entry of the log that holds a membership; its text follows."""
NODES_MAX: Final = 32
"""Voters and learners. More nodes make every commit slower, and none of them safer."""
REMOVED_MAX: Final = 1_024
"""Names of removed nodes: they stand in every entry of membership."""
_ADDRESS_MAX: Final = 300
"""Characters of an address."""


class MembershipUnreadable(ValueError):
    """A text is no membership of any version."""


class ChangeRefused(Exception):
    """The change was not proposed; the message says why, and what to do."""


class HandsOver(ChangeRefused):
    """The node to be removed leads: the leadership goes to `heir`, who is to be asked next."""

    def __init__(self, node: str, heir: str) -> None:
        """`node`: the node that was to be removed."""
        super().__init__(
            f"node {node!r} leads, and hands the leadership over to {heir!r} before it is removed. "
            "Ask the next leader"
        )
        self.heir = heir


class ClusterNode(NamedTuple):
    """A node, and where it is reached, as host:port.

    An address is empty if the log does not say it: then each node's file does.
    """

    name: str
    peer_address: str = ""
    client_address: str = ""


class AddLearner(NamedTuple):
    """Have a new node get the log, or a learner be looked for elsewhere. It counts for nothing."""

    node: ClusterNode


class Promote(NamedTuple):
    """Make a learner a voter."""

    name: str


class Remove(NamedTuple):
    """Let a node go for good."""

    name: str


Change = AddLearner | Promote | Remove


@dataclass(frozen=True, slots=True)
class Membership:
    """The nodes of a cluster, each tuple in the order of names."""

    voters: tuple[ClusterNode, ...]
    learners: tuple[ClusterNode, ...] = ()
    removed: tuple[str, ...] = ()
    """The names that are never given again."""
    founders: tuple[tuple[str, str], ...] = ()
    """The disks that formed the cluster: node and incarnation. Empty: whoever wrote it could not
    tell (ADR 43)."""

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Membership:
        """Make the membership that a node begins with: all are voters."""
        return cls(tuple(ClusterNode(name) for name in sorted(names)))

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """All that get the log."""
        return (*self.voters, *self.learners)

    @property
    def voter_names(self) -> tuple[str, ...]:
        """Who counts."""
        return tuple(node.name for node in self.voters)

    @property
    def names(self) -> tuple[str, ...]:
        """Who gets the log, in order."""
        return tuple(sorted(node.name for node in self.nodes))

    def encode(self) -> str:
        """Write it down; one membership has one text."""
        body: dict[str, object] = {
            "voters": [list(node) for node in self.voters],
            "learners": [list(node) for node in self.learners],
            "removed": list(self.removed),
        }
        if self.founders:
            body["founders"] = [list(disk) for disk in self.founders]
        return json.dumps(body, separators=(",", ":"), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Membership:
        """Read what `encode` wrote. Raises MembershipUnreadable."""
        try:
            body: Any = json.loads(text)
            voters = tuple(ClusterNode(*map(_text, node)) for node in body.pop("voters"))
            learners = tuple(ClusterNode(*map(_text, node)) for node in body.pop("learners"))
            removed = tuple(map(_text, body.pop("removed")))
            founders = tuple((_text(node), _text(disk)) for node, disk in body.pop("founders", ()))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise MembershipUnreadable(f"{text[:200]!r} is no membership: {error!r}") from error
        read = cls(voters, learners, removed, founders)
        if read.encode() != text or not voters:
            raise MembershipUnreadable(f"{text[:200]!r} is no membership that this version writes")
        return read


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {value!r}")
    return value


def after(now: Membership, change: Change) -> Membership:
    """Return the membership after a change. Raises ChangeRefused."""
    match change:
        case AddLearner(node):
            return _with_learner(now, node)
        case Promote(name):
            return _with_voter(now, name)
        case Remove(name):
            return _without(now, name)


def _with_learner(now: Membership, new: ClusterNode) -> Membership:
    _refuse_unusable(new)
    if new.name in now.removed:
        raise ChangeRefused(
            f"node {new.name!r} was removed from this cluster, and its name is never used again: "
            "an old disk or process of it must not be taken for the new one. Give the node another "
            "name"
        )
    others = tuple(node for node in now.nodes if node.name != new.name)
    _refuse_present(now, new)
    for node in others:
        for theirs in {node.peer_address, node.client_address} - {""}:
            if theirs in new[1:]:
                raise ChangeRefused(
                    f"{theirs} is the address of node {node.name!r}. Give node {new.name!r} an "
                    "address of its own"
                )
    if len(others) >= NODES_MAX:
        raise ChangeRefused(f"the cluster has {NODES_MAX} nodes, and may not have more. Remove one")
    learners = tuple(node for node in now.learners if node.name != new.name)
    return replace(now, learners=_sorted((*learners, new)))


def _refuse_present(now: Membership, new: ClusterNode) -> None:
    """Refuse a node that there is, but for a learner with other addresses: its are corrected."""
    known = _find(now.nodes, new.name)
    if known is not None and (known == new or new.name in now.voter_names):
        kind = "a voter" if new.name in now.voter_names else "a learner"
        raise ChangeRefused(
            f"the cluster has a node {new.name!r}, {kind} that other nodes reach at "
            f"{known.peer_address or '(its file says it)'} and clients at "
            f"{known.client_address or '(its file says it)'}. Give the new one its own name"
        )


def _refuse_unusable(new: ClusterNode) -> None:
    if not new.name or not new.peer_address or not new.client_address:
        raise ChangeRefused(
            f"a new node needs a name, an address for peers and one for clients; {tuple(new)!r} "
            "lacks one of them"
        )
    if new.peer_address == new.client_address:
        raise ChangeRefused(
            f"{new.peer_address} cannot be the address of node {new.name!r} for peers and for "
            "clients: each has a port of its own"
        )
    if max(map(len, new)) > _ADDRESS_MAX:
        raise ChangeRefused(f"a name or an address has more than {_ADDRESS_MAX} characters")


def _with_voter(now: Membership, name: str) -> Membership:
    if name in now.voter_names:
        raise ChangeRefused(f"node {name!r} is a voter already: there is nothing to do")
    chosen = _find(now.learners, name)
    if chosen is None:
        raise ChangeRefused(f"there is no learner {name!r}: {_known(now)}. Add the node first")
    learners = tuple(node for node in now.learners if node != chosen)
    return replace(now, voters=_sorted((*now.voters, chosen)), learners=learners)


def _without(now: Membership, name: str) -> Membership:
    if name in now.removed:
        raise ChangeRefused(f"node {name!r} was removed already: there is nothing to do")
    if _find(now.nodes, name) is None:
        raise ChangeRefused(f"there is no node {name!r}: {_known(now)}")
    if now.voter_names == (name,):
        raise ChangeRefused(
            f"node {name!r} is the only voter: without it nobody holds the cluster's data. Promote "
            "another node first"
        )
    if len(now.removed) >= REMOVED_MAX:
        raise ChangeRefused(
            f"{REMOVED_MAX} nodes were removed from this cluster, and no more names can be kept. "
            "Replace the disk of a node instead: then it keeps its name"
        )
    return replace(
        now,
        voters=tuple(node for node in now.voters if node.name != name),
        learners=tuple(node for node in now.learners if node.name != name),
        removed=tuple(sorted((*now.removed, name))),
    )


def _find(nodes: tuple[ClusterNode, ...], name: str) -> ClusterNode | None:
    return next((node for node in nodes if node.name == name), None)


def _sorted(nodes: tuple[ClusterNode, ...]) -> tuple[ClusterNode, ...]:
    return tuple(sorted(nodes))


def _known(now: Membership) -> str:
    """Say whom the cluster has, for a sentence."""
    learners = ", ".join(node.name for node in now.learners) or "none"
    return f"the voters are {', '.join(now.voter_names)}, the learners {learners}"
