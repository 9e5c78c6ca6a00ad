"""A group of the heartbeat protocol as keys and values, for comparison with `sql.consumer_state`.

Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.coordinator.consumer.state import ConsumerBody, ConsumerGroup, Holding, Member
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.replay.read.log_rows import Entry


def entries_of(group: ConsumerGroup) -> Iterator[Entry]:
    """Yield what the group holds, without its offsets."""
    body = group.body
    yield Entry("generation", "", str(group.generation))
    yield Entry("assignment epoch", "", str(body.assignment_epoch))
    for member in body.members.values():
        yield from _of_member(member)
    for instance_id, member_id in body.instances.items():
        yield Entry("instance", instance_id, member_id)
    for target in body.targets.values():
        said = f"{target.version}|{target.metadata.hex()}"
        yield Entry("target", target.member_id, f"{_listed(target.partitions)}|{said}")
    for found in body.regexes.values():
        yield Entry("regex", found.regex, ",".join(found.topics))
    yield from _of_choices(body)


def _of_choices(body: ConsumerBody) -> Iterator[Entry]:
    """Tell who is to compute the target, who was late, and whose assignor made the last one."""
    if body.asked is not None:
        member_id, epoch, assignor, overtaken = body.asked
        past = "overtaken" if overtaken else ""
        yield Entry("asked", "", f"{member_id}:{epoch}:{assignor}:{past}")
    if body.late:
        yield Entry("late", "", ",".join(body.late))
    if body.client_assignor:
        yield Entry("client assignor", "", body.client_assignor)


def _of_member(member: Member) -> Iterator[Entry]:
    member_id, profile = member.member_id, member.profile
    yield Entry("member", member_id, member.instance_id or "")
    if member.classic is not None:
        yield Entry("protocol", member_id, "classic")
    yield Entry("subscription", member_id, f"{','.join(profile.topics)}|{profile.regex}")
    waits = "waiting" if member.waiting else ""
    yield Entry("progress", member_id, f"{member.epoch}:{member.previous_epoch}:{waits}")
    yield from _held(member_id, member.owned, "")
    yield from _held(member_id, member.revoking, "revoking")


def _held(member_id: str, held: Iterable[Holding], how: str) -> Iterator[Entry]:
    """Tell the owner of each partition, with the epoch and the entry of its grant."""
    for topic, partitions, epochs, granted in held:
        for partition, epoch, index in zip(partitions, epochs, granted, strict=True):
            yield Entry("owned", f"{topic}/{partition}", f"{member_id}:{epoch}:{index}:{how}")


def _listed(partitions: Iterable[TopicPartitions]) -> str:
    return ";".join(f"{each.topic}:{','.join(map(str, each.partitions))}" for each in partitions)
