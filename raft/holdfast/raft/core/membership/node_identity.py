"""The identity of this node's disk: incarnation, stage, promise; durable before it is shown.

Rules S19 and S10 b.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from holdfast.raft.api import EngineStopped, Stage
from holdfast.raft.core.context import Switch
from holdfast.storage.journal.journal import Identity

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context


class NodeIdentity:
    """The identity in the journal, and the silence that a start owes to it."""

    def __init__(self, ctx: Context, *, bootstrap: bool, has_state: bool) -> None:
        """Refuse a foreign directory, give a new disk its incarnation, store the promise."""
        self._ctx = ctx
        stored = ctx.log.identity
        self.is_fresh = stored is None
        """Whether this disk was nobody's before this start."""
        if stored is not None:
            _refuse_foreign(ctx, stored)
        promised = stored.promise_ms / 1000 if stored and _has_promised(ctx, stored) else 0.0
        if promised and not ctx.on(Switch.S10_PROMISE):
            promised = ctx.settings.election_min
        silent = promised if ctx.on(Switch.S10_SILENCE) else 0.0
        self.silent_until = ctx.now() + silent
        identity = stored or self._new_identity(bootstrap=bootstrap, has_state=has_state)
        least = round(ctx.settings.election_min * 1000)
        self._store(replace(identity, promise_ms=max(identity.promise_ms, least)))

    def _new_identity(self, *, bootstrap: bool, has_state: bool) -> Identity:
        """Return an empty disk's identity: it forms a cluster if told to bootstrap, else rebuilds.

        Empty is not new (S19).
        """
        ctx = self._ctx
        fresh = ctx.log.is_empty and not has_state and bootstrap
        if not fresh and not ctx.state.peers:
            raise EngineStopped(
                "the directory holds no log, and a cluster of one has no peer to rebuild it from: "
                "restore a backup, or start with --bootstrap to begin a new, empty cluster"
            )
        stage: Stage = "forming" if fresh else "rebuilding"
        if not ctx.on(Switch.S19_REBUILD) or (fresh and not ctx.on(Switch.S19_FORM)):
            stage = "member"
        return Identity(ctx.cluster_id, ctx.node_id, self._new_incarnation(), stage)

    def _new_incarnation(self) -> str:
        return f"{self._ctx.random.getrandbits(64):016x}"

    def _store(self, identity: Identity) -> None:
        self._identity = identity
        if identity != self._ctx.log.identity:
            self._ctx.log.set_identity(identity)

    @property
    def stage(self) -> Stage:
        """How far this disk is from being a voter."""
        return cast("Stage", self._identity.stage)

    @property
    def is_member(self) -> bool:
        """Whether this node may vote and stand."""
        return self._identity.stage == "member"

    @property
    def incarnation(self) -> str:
        """The name of this disk."""
        return self._identity.incarnation

    @property
    def formed(self) -> dict[str, str]:
        """The disks that took part in the bootstrap: node id to incarnation.

        Of a rebuilt disk, if known: in that of the cluster that it was rebuilt in.
        """
        return dict(self._identity.formed)

    @property
    def promise_ms(self) -> int:
        """For how many ms after hearing its leader this node votes for no other; acks say it."""
        return round(self._ctx.settings.election_min * 1000)

    @property
    def is_silent(self) -> bool:
        """Whether the promise of an earlier start may still run (S10 b)."""
        return self._ctx.now() < self.silent_until

    def enter(self, stage: Stage, formed: dict[str, str] | None = None) -> None:
        """Change the stage, durably."""
        known = self._identity.formed if formed is None else tuple(sorted(formed.items()))
        self._store(replace(self._identity, stage=stage, formed=known))

    def renew(self) -> None:
        """Become a new disk without a vote: what it acknowledged holds no more (S19, S21)."""
        incarnation = self._new_incarnation()
        self._store(replace(self._identity, incarnation=incarnation, stage="rebuilding"))

    def lower_promise(self) -> None:
        """Replace an earlier, longer promise once its silence is over (S10 b)."""
        if self._identity.promise_ms > self.promise_ms and not self.is_silent:
            self._store(replace(self._identity, promise_ms=self.promise_ms))


def _has_promised(ctx: Context, stored: Identity) -> bool:
    """Return whether an earlier start may have told another node for how long it gives no vote.

    A node that has always been alone has led itself: that leader ended with its process.
    """
    return bool(ctx.state.peers) or any(node != ctx.node_id for node, _ in stored.formed)


def _refuse_foreign(ctx: Context, stored: Identity) -> None:
    """Refuse a directory of another node or cluster, which would vote twice."""
    for what, here, there in (
        ("cluster", ctx.cluster_id, stored.cluster_id),
        ("node", ctx.node_id, stored.node_id),
    ):
        if here != there:
            raise EngineStopped(
                f"the directory belongs to {what} {there!r}, this node is configured as {what} "
                f"{here!r}: point the node at its own directory"
            )
