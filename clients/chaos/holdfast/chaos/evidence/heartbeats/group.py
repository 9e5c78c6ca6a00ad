"""A group of the heartbeat protocol as the checkers read it off the log: epochs, targets, grants.

Part of the small fold in `log_view`, and as total as that: an impossible record is folded as far as
it makes sense. What each member owns is kept partition by partition, with the epoch and the entry
of its grant, from which its token is made (S13). Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from holdfast.chaos.history.happenings import Fields

Partition: TypeAlias = tuple[str, int]

CONSUMER: Final = "consumer"
"""The type of groups of the heartbeat protocol."""
RELEASED: Final = -2
"""The epoch of a static member whose process has stopped, and whose place is kept (K-N2)."""
FIRST_EPOCH: Final = 1


class Grant(NamedTuple):
    """How a member got a partition."""

    epoch: int
    """Its assignment epoch: commits of an older one are not this owner's (K-J39)."""
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    """The entry that granted it: its token."""


Grants: TypeAlias = Mapping[Partition, Grant]
_NOTHING: Final[Grants] = {}


class Standing(NamedTuple):
    """How far a member has come on the way to its target."""

    topics: tuple[str, ...] = ()
    regex: str = ""
    epoch: int = 0
    previous: int = 0
    """The epoch before: the answer that told the present one may have been lost (K-M11)."""
    owned: Grants = _NOTHING
    revoking: Grants = _NOTHING
    """What it was asked to give up, and may own still."""
    waiting: bool = False
    """Something of its target belonged to others at its last step."""
    classic: bool = False
    """It speaks the classic protocol (K-Q5)."""

    @property
    def held(self) -> Grants:
        """All that it may own."""
        return {**self.owned, **self.revoking}


class HeartbeatGroup(NamedTuple):
    """What a group has besides members, generation and state."""

    target_epoch: int = FIRST_EPOCH
    """The group epoch that the target answers."""
    standings: Mapping[str, Standing] = {}
    targets: Mapping[str, frozenset[Partition]] = {}
    assignor: str = ""
    """Of the target."""
    by_member: bool = False
    """It ran in a member, and promises nothing: what it gives to nobody is nobody's."""
    regexes: Mapping[str, tuple[str, ...]] = {}
    chosen: str = ""
    """The member that is to compute a target (KIP-848); "": none is."""
    chosen_for: int = 0
    """The newest epoch for which it was chosen."""
    choices: int = 0
    """How often somebody else was chosen, or the same one anew since it was late."""

    def wants(self, member_id: str) -> frozenset[str]:
        """Return the topics that a member wants, by name and by its regular expression."""
        standing = self.standings[member_id]
        return frozenset((*standing.topics, *self.regexes.get(standing.regex, ())))

    def computing(self) -> str:
        """Return the member that is to compute; "": none, or its process has stopped."""
        standing = self.standings.get(self.chosen)
        return "" if standing is None or standing.epoch == RELEASED else self.chosen

    def is_settled(self, member_id: str) -> bool:
        """Return whether a member owns all of its target."""
        standing = self.standings[member_id]
        arrived = standing.epoch == self.target_epoch
        return arrived and not standing.revoking and not standing.waiting

    def owners(self) -> Iterator[tuple[Partition, str]]:
        """Yield each partition with each member that may own it."""
        for member_id, standing in self.standings.items():
            for partition in standing.held:
                yield partition, member_id


def listed(topics: Iterable[Fields]) -> frozenset[Partition]:
    """Return partitions that a record lists by topic."""
    return frozenset((each["topic"], number) for each in topics for number in each["partitions"])


def fold(group: HeartbeatGroup, kind: str, fields: Fields, index: int) -> HeartbeatGroup:
    """Return what a group has after one record; removals are `without`'s matter."""
    change = _CHANGES.get(kind)
    return change(group, fields, index) if change else group


def without(group: HeartbeatGroup, gone: Iterable[str]) -> HeartbeatGroup:
    """Return the group without these members; all that they owned is free."""
    left = set(gone)
    return _in_use(
        group._replace(
            standings={name: each for name, each in group.standings.items() if name not in left},
            targets={name: each for name, each in group.targets.items() if name not in left},
        )
    )


def converted(
    fields: Fields, members: Iterable[str], granted: Mapping[str, int], released: Iterable[str]
) -> HeartbeatGroup:
    """Make a group of a classic one: all own the target, at one epoch, under the tokens they had.

    `granted`: the entry of each member's newest grant.
    """
    epoch, stopped, known = fields["generation"], set(released), set(members)
    standings = {
        each["member_id"]: Standing(
            topics=tuple(each["topics"]),
            epoch=RELEASED if each["member_id"] in stopped else epoch,
            previous=epoch,
            owned=dict.fromkeys(
                listed(each["partitions"]),
                Grant(
                    0 if each["member_id"] in stopped else epoch,
                    granted.get(each["member_id"], 0),
                ),
            ),
            classic=True,
        )
        for each in fields["members"]
        if each["member_id"] in known
    }
    targets = {each["member_id"]: listed(each["partitions"]) for each in fields["members"]}
    return HeartbeatGroup(epoch, standings, targets)


# --- events ---


def _in_use(group: HeartbeatGroup) -> HeartbeatGroup:
    """Forget what expressions match that no member has: whoever has one next, waits for it."""
    used = {standing.regex for standing in group.standings.values()}
    return group._replace(regexes={name: of for name, of in group.regexes.items() if name in used})


def _put(group: HeartbeatGroup, member_id: str, standing: Standing) -> HeartbeatGroup:
    return group._replace(standings={**group.standings, member_id: standing})


def _subscribed(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    was = group.standings.get(fields["member_id"], Standing())
    now = was._replace(
        topics=tuple(fields["topics"]),
        regex=fields["regex"],
        classic=fields["classic"] is not None,
    )
    if now.classic and not was.classic:
        now = _told_one_token(now, index)
    return _in_use(_put(group, fields["member_id"], now))


def _told_one_token(standing: Standing, index: int) -> Standing:
    """Grant all of it anew: a member of the classic protocol has one token for all it owns."""
    owned = {name: grant._replace(index=index) for name, grant in standing.owned.items()}
    return standing._replace(owned=owned)


def _released(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    """Keep what a process that has stopped still owned; what it was asked for is free (K-N23)."""
    del index
    was = group.standings.get(fields["member_id"])
    if was is None:
        return group
    owned = {name: grant._replace(epoch=0) for name, grant in was.owned.items()}
    stopped = was._replace(
        epoch=RELEASED, previous=was.epoch, owned=owned, revoking=_NOTHING, waiting=False
    )
    return _put(group, fields["member_id"], stopped)


def _replaced(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    """Give an instance to another process: new tokens, unless the old one has said it stopped."""
    old, new = fields["old_member_id"], fields["new_member_id"]
    was = group.standings.get(old, Standing())
    now = was._replace(
        epoch=0, previous=0, revoking=_NOTHING, waiting=False, classic=bool(fields["protocols"])
    )
    if was.epoch != RELEASED or now.classic:
        now = _told_one_token(now, index)
    standings = {name: each for name, each in group.standings.items() if name != old}
    targets = {new if name == old else name: each for name, each in group.targets.items()}
    return group._replace(standings={**standings, new: now}, targets=targets)


def _target(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    del index
    new = {each["member_id"]: listed(each["partitions"]) for each in fields["targets"]}
    targets = {**group.targets, **new}
    return group._replace(
        target_epoch=fields["epoch"],
        targets=targets,
        assignor=fields["assignor"],
        by_member=bool(fields["installed_by"]),
        chosen="",
    )


def _requested(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    del index
    chosen = fields["member_id"]
    other = chosen != group.computing() or bool(fields["late"])
    return group._replace(chosen=chosen, chosen_for=fields["epoch"], choices=group.choices + other)


def _resolved(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    del index
    return group._replace(regexes={**group.regexes, fields["regex"]: tuple(fields["topics"])})


def _advanced(group: HeartbeatGroup, fields: Fields, index: int) -> HeartbeatGroup:
    was = group.standings.get(fields["member_id"])
    if was is None:
        return group
    asked, freed, granted = (listed(fields[of]) for of in ("asked_back", "freed", "granted"))
    owned = {name: grant for name, grant in was.owned.items() if name not in asked | freed}
    owned |= dict.fromkeys(granted, Grant(fields["epoch"], index))
    revoking = {name: grant for name, grant in was.revoking.items() if name not in freed}
    revoking |= {name: was.owned[name] for name in asked if name in was.owned}
    now = was._replace(
        epoch=fields["epoch"],
        previous=was.epoch,
        owned=owned,
        revoking=revoking,
        waiting=fields["waiting"],
    )
    if granted and now.classic:
        now = _told_one_token(now, index)
    return _put(group, fields["member_id"], now)


_CHANGES: Final[Mapping[str, Callable[[HeartbeatGroup, Fields, int], HeartbeatGroup]]] = {
    "MemberSubscribed": _subscribed,
    "InstanceReleased": _released,
    "StaticMemberReplaced": _replaced,
    "AssignmentRequested": _requested,
    "TargetStored": _target,
    "RegexResolved": _resolved,
    "MemberAdvanced": _advanced,
}
