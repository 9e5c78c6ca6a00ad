"""What happens to a group next: its clients settle, commit, come and go, and are hit by faults.

Each deed is a batch of commands, as a group's clients, its operator, or a deadline bring them. No
rules are here: what comes of a deed is decided by the coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.commands import (
    DeadlineFired,
    DeleteGroup,
    DeleteOffsets,
    LeaveGroup,
    TriggerRebalance,
)
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.replay.generate.classic_clients import SESSION_MS, ClassicClients
from holdfast.replay.generate.heartbeat_clients import HeartbeatClients
from holdfast.replay.generate.plan import BOUNCES, DELETIONS, EXPIRIES, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.replay.generate.cast import Cast
    from holdfast.replay.generate.commits import Commits
    from holdfast.replay.generate.living import Clients, Living
    from holdfast.replay.generate.world import World

_RETURNS: Final = 0.5
"""How likely a released member's instance returns when its group is heard of."""
_WEIGHTS: Final = {
    "repeatable": 15,
    "come": 10,
    "leave": 4,
    "trigger": 1,
    "release": 12,
    "crash": 6,
    "expire": 5,
    "delete_offsets": 4,
    "close": 3,
}
"""How often each deed is chosen, against the others."""
_FAULT_OF: Final = {
    "release": BOUNCES,
    "crash": BOUNCES,
    "expire": EXPIRIES,
    "delete_offsets": DELETIONS,
    "close": DELETIONS,
}


class Deeds:
    """Chooses for all groups."""

    def __init__(self, world: World, commits: Commits, plan: Plan) -> None:
        self._world, self._commits = world, commits
        unwanted = [name for name, fault in _FAULT_OF.items() if not plan.has(fault)]
        self._names = [name for name in _WEIGHTS if name not in unwanted]
        self._weights = [_WEIGHTS[name] for name in self._names]
        self._closing: set[GroupId] = set()
        self._deeds: dict[str, Callable[[_Scene], list[Command]]] = {
            "repeatable": self._repeatable_commit,
            "come": self._come,
            "leave": self._leave,
            "trigger": self._trigger,
            "release": self._release,
            "crash": self._crash,
            "expire": self._expire,
            "delete_offsets": self._delete_offsets,
            "close": self._close,
        }

    def next_of(self, cast: Cast, *, only_commit: bool) -> list[Command]:
        """Return the next commands of a group: whatever is due, else a commit or anything else."""
        scene = _Scene(self._world, cast)
        if cast.group_id in self._closing:
            return self._close(scene)
        todo = scene.clients.unsettled()
        away = [each for each in scene.living if each.away]
        if away and (todo or not scene.present or self._world.chance.random() < _RETURNS):
            # A fenced member id can settle nothing: its instance returns first.
            return [scene.clients.return_of(str(each.instance_id)) for each in away]
        if todo:
            return todo
        if not scene.living:
            return scene.clients.joins(scene.missing)
        deed = [] if only_commit else self._any(scene)
        return deed or self._commit(scene)

    def _any(self, scene: _Scene) -> list[Command]:
        (name,) = self._world.chance.choices(self._names, self._weights)
        return self._deeds[name](scene)

    def _commit(self, scene: _Scene) -> list[Command]:
        member = self._world.chance.choice(scene.present)
        return [self._commits.command(scene.cast, member)]

    def _repeatable_commit(self, scene: _Scene) -> list[Command]:
        member = self._world.chance.choice(scene.present)
        return [self._commits.command(scene.cast, member, repeatable=True)]

    def _come(self, scene: _Scene) -> list[Command]:
        return scene.clients.joins(scene.missing[:1])

    def _leave(self, scene: _Scene) -> list[Command]:
        """Let a dynamic member leave; a static one has no reason to."""
        leaving = [each for each in scene.present if each.instance_id is None]
        return [scene.clients.leave(leaving[0])] if leaving else []

    def _trigger(self, scene: _Scene) -> list[Command]:
        """Let an operator rebalance a classic group; the other protocol has no need of it."""
        if not scene.cast.classic:
            return []
        return [TriggerRebalance(self._world.operator(), scene.cast.group_id, "by hand")]

    def _release(self, scene: _Scene) -> list[Command]:
        static = scene.static
        return [scene.clients.release(self._world.chance.choice(static))] if static else []

    def _crash(self, scene: _Scene) -> list[Command]:
        """Kill a static member's process, and start another one at once."""
        if not scene.static:
            return []
        return [scene.clients.return_of(str(self._world.chance.choice(scene.static).instance_id))]

    def _expire(self, scene: _Scene) -> list[Command]:
        """Hear nothing of a member for as long as it may be silent (K-F9)."""
        leader, cast = self._world.leader, scene.cast
        held = leader.volatile(cast.group_id)
        member_id = self._world.chance.choice(scene.living).member_id
        key = DeadlineKey(SESSION, member_id)
        arming = held.armed.get(key)
        if arming is None:
            return []
        leader.now_ms += SESSION_MS
        renewals = held.renewals.get(member_id, 0)
        return [DeadlineFired(cast.group_id, key, arming, renewals)]

    def _delete_offsets(self, scene: _Scene) -> list[Command]:
        """Let an operator delete offsets of a topic without subscribers in the group (K-J22)."""
        group = self._world.leader.group(scene.cast.group_id)
        offsets = () if group is None else group.offsets
        aside = sorted(each for each in offsets if each.topic == self._world.side_topic)
        if not aside:
            return []
        return [DeleteOffsets(self._world.operator(), scene.cast.group_id, tuple(aside))]

    def _close(self, scene: _Scene) -> list[Command]:
        """Let an operator remove all members, then delete the group; it comes back some day."""
        group_id = scene.cast.group_id
        self._closing.add(group_id)
        if scene.living:
            operator = self._world.operator()
            return [
                LeaveGroup(
                    operator, group_id, (), operator=True, everyone=True, reason="closed down"
                )
            ]
        todo = scene.clients.unsettled()
        if todo:
            return todo
        self._closing.discard(group_id)
        if self._world.leader.group(group_id) is None:
            return []
        return [DeleteGroup(self._world.operator(), group_id)]


class _Scene:
    """A group's clients, as they are at one moment."""

    def __init__(self, world: World, cast: Cast) -> None:
        self.cast = cast
        self.clients: Clients = (
            ClassicClients(world, cast) if cast.classic else HeartbeatClients(world, cast)
        )
        self.living: tuple[Living, ...] = self.clients.living
        self.present = [each for each in self.living if not each.away]
        self.static = [each for each in self.present if each.instance_id is not None]
        self.missing = cast.missing([each.instance_id for each in self.living])
