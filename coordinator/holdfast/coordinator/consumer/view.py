"""What others ask of a group of the heartbeat protocol, and how it is shown (K-K5, K-K6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import answers, holdings
from holdfast.coordinator.consumer.client_side import choice, negotiation, picture
from holdfast.coordinator.consumer.state import CONSUMER, ConsumerGroup, Holding, Member
from holdfast.coordinator.consumer.targets import target, topics_digest
from holdfast.coordinator.model.described import (
    DescribedBody,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    Identity,
)
from holdfast.coordinator.model.ids import MemberId, Principal, TopicName, TopicPartitions
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.subscriptions import Subscribed


def subscribed(group: ConsumerGroup) -> Subscribed:
    """Return the topics that members name, or that their regular expressions match (K-J24)."""
    return Subscribed(topics_digest.subscribed(group.body))


def names(group: ConsumerGroup, topics: Container[TopicName]) -> frozenset[TopicName]:
    """Return those of `topics` that a member names; one that only an expression matches may go."""
    return frozenset([each for each in group.body.topic_users if each in topics])


def describe(_group: ConsumerGroup) -> DescribedBody:
    """Describe the protocol: it has no leader, and no data of its own."""
    return DescribedBody(CONSUMER)


def describe_whole(state: State, group: ConsumerGroup) -> DescribedConsumerGroup:
    """Describe a group with its epochs and all members, the oldest first."""
    body = group.body
    known = settings.of(state, group.group_id).consumer.assignors
    members = sorted(body.members.values(), key=seniority)
    shared = negotiation.name_of(body)
    passed_over = shared if shared and not picture.fits(body, state.topics, shared) else ""
    return DescribedConsumerGroup(
        error=None,
        group_id=group.group_id,
        state=group.state,
        group_epoch=group.generation,
        assignment_epoch=body.assignment_epoch,
        assignor=target.preferred(body, known) if passed_over or not shared else shared,
        members=tuple([_member(state, group, each) for each in members]),
        passed_over=passed_over,
        left_out=tuple(_left_out(state, group)),
    )


def _left_out(state: State, group: ConsumerGroup) -> Iterator[TopicPartitions]:
    """Yield what the newest target gives to nobody, by topic; only a member's leaves anything out.

    Of most targets it is enough to count, which looks at no partition.
    """
    body = group.body
    if not body.client_assignor or body.assignment_epoch != group.generation:
        return
    given = [each for target in body.targets.values() for each in target.partitions]
    missing = Counter(topics_digest.sizes(body, state.topics))
    for topic, numbers in given:
        missing[topic] -= len(numbers)
    taken: dict[TopicName, set[int]] = {name: set() for name in sorted(+missing)}
    for topic, numbers in given:
        if topic in taken:
            taken[topic].update(numbers)
    for topic, known in taken.items():
        everything = range(state.topics[topic].num_partitions)
        yield TopicPartitions(topic, tuple([each for each in everything if each not in known]))


def _member(state: State, group: ConsumerGroup, member: Member) -> DescribedConsumerMember:
    meant = group.body.targets.get(member.member_id)
    profile = member.profile
    return DescribedConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=profile.rack_id,
        member_epoch=member.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        topics=profile.topics,
        regex=profile.regex,
        assignment=_shown(state, holdings.joined(member.owned, member.revoking)),
        target=() if meant is None else _shown(state, meant.partitions),
        state=member.state,
        revoking=holdings.listed(member.revoking),
        owned=answers.owned(state, member),
        principal=member.principal,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        server_assignor=profile.server_assignor,
        classic=member.classic is not None,
        should_compute=choice.should_compute(group, member.member_id),
        client_assignors=profile.client_assignors,
    )


def _shown(state: State, held: Iterable[Holding | TopicPartitions]) -> tuple[TopicPartitions, ...]:
    """Return the partitions of those topics that still exist: as a reader sees them."""
    here = [each for each in held if each.topic in state.topics]
    return tuple([TopicPartitions(each.topic, each.partitions) for each in here])


def regex_users(group: ConsumerGroup) -> Iterator[tuple[str, Principal]]:
    """Yield the regular expression of each member that has one, and whose member it is (K-P9)."""
    for member in group.body.members.values():
        if member.profile.regex:
            yield member.profile.regex, member.principal


def rests(group: ConsumerGroup, member_id: MemberId) -> bool:
    """Return whether nothing is asked of a member, nor awaited by it, nor due by time.

    Expressions are looked up again by time, at a heartbeat (K-P8).
    """
    body = group.body
    in_force = body.assignment_epoch == group.generation
    return in_force and not body.regex_users and member_id in body.settled


def seniority(member: Member) -> int:
    """Return the key by which members are sorted: the oldest first."""
    return member.joined_seq


def identify(member: Member) -> Identity:
    """Return the ids by which a member is known."""
    return Identity(member.member_id, member.instance_id, member.profile.client_id)


def meant(group: ConsumerGroup, member_id: MemberId) -> tuple[TopicPartitions, ...]:
    """Return what a member is to own by the target."""
    found = group.body.targets.get(member_id)
    return () if found is None else found.partitions


def held(_member: Member) -> bytes:
    """Return nothing: what a member owns is told partition by partition, not in bytes."""
    return b""
