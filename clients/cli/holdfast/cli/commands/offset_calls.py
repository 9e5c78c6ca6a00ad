"""Shared by the commands about offsets: places, reading, committing, and the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import click

from holdfast.cli.connect import Cluster, code_name
from holdfast.cli.ending import fail, print_json
from holdfast.cli.options import (
    INT32_MAX,
    INT64_MAX,
    about,
    refuse_any,
    show_json,
    table,
)
from holdfast.cli.render.speaking import say
from holdfast.client import Offset
from holdfast.client._translate.offset_messages import (
    delete_requests,
    named,
    outside_commit_requests,
)
from holdfast.coordinator.model.text import truncate
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

AnswerT = TypeVar("AnswerT", o.OffsetCommitResponse, o.OffsetDeleteResponse)


class Place(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"


def fetch(
    cluster: Cluster, group_id: str
) -> tuple[o.OffsetFetchResponse, dict[Place, o.OffsetFetchResponsePartition]]:
    """Fetch all offsets that a group has committed: the answer, and a map by place in order."""
    request = o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=group_id)])
    response = cluster.call(request, o.OffsetFetchResponse)
    group = response.groups[0]
    if group.error_code != e.ERROR_CODE_NONE:
        name = code_name(group.error_code)
        fail(about(group_id, response.holdfast.message or name, f"group {group_id}"))
    found = {
        Place(topic.name, partition.partition_index): partition
        for topic in group.topics
        for partition in topic.partitions
    }
    return response, dict(sorted(found.items()))


def select(
    found: Mapping[Place, o.OffsetFetchResponsePartition], topics: tuple[str, ...]
) -> dict[Place, o.OffsetFetchResponsePartition]:
    """Select the named partitions of those the group has; all of them if none is named."""
    named = [_named(text) for text in topics]
    return {
        place: partition
        for place, partition in found.items()
        if not topics or any(_fits(place, *one) for one in named)
    }


def lacking(found: Iterable[Place], topics: tuple[str, ...]) -> list[str]:
    """Return the named partitions and topics that the group does not have: probably typos."""
    places = frozenset(found)
    known = {place.topic for place in places}
    return [
        str(place) if place.partition >= 0 else place.topic
        for topic, numbers in map(_named, topics)
        for place in (Place(topic, number) for number in sorted(numbers) or (-1,))
        if (place not in places if numbers else topic not in known)
    ]


def _fits(place: Place, topic: str, numbers: frozenset[int]) -> bool:
    return place.topic == topic and (not numbers or place.partition in numbers)


def _named(text: str) -> tuple[str, frozenset[int]]:
    """Parse `TOPIC` (no numbers: all) or `TOPIC:N,N`; a topic's name has no colon."""
    topic, _, numbers = text.partition(":")
    try:
        return topic, frozenset(int(n) for n in numbers.split(",") if numbers)
    except ValueError:
        raise click.UsageError(f"{truncate(text)}: write TOPIC or TOPIC:0,1,2") from None


def parse_change(text: str) -> tuple[Place, int]:
    """Parse `TOPIC:PARTITION=OFFSET`; ends the command as wrong usage for anything else."""
    where, _, offset = text.rpartition("=")
    topic, _, number = where.rpartition(":")
    try:
        place, value = Place(topic, int(number)), int(offset)
    except ValueError:
        raise click.UsageError(f"{truncate(text)}: write TOPIC:PARTITION=OFFSET") from None
    if not topic or place.partition < 0 or value < 0:
        raise click.UsageError(
            f"{truncate(text)}: write TOPIC:PARTITION=OFFSET, with numbers from 0"
        )
    if place.partition > INT32_MAX or value > INT64_MAX:
        raise click.UsageError(
            f"{truncate(text)}: a partition's number is at most {INT32_MAX}, an offset at most "
            f"{INT64_MAX}"
        )
    return place, value


def commit_all(
    cluster: Cluster,
    group_id: str,
    found: Mapping[Place, o.OffsetFetchResponsePartition],
    wanted: Mapping[Place, int],
    metadata: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Commit from outside the group; with `dry_run` show what that would do."""
    if dry_run:
        _refuse_members(cluster, group_id)
        unknown = _unknown(cluster, wanted)
        before = {place: p.committed_offset for place, p in found.items()}
        plan = [(p, before.get(p), wanted[p]) for p in sorted(wanted) if p not in unknown]
        show_plan(plan, as_json=as_json, refused=unknown)
        code = e.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        refuse_any((str(place), code, _why(code)) for place in unknown)
        return

    requests = list(
        outside_commit_requests(group_id, {p: Offset(wanted[p], metadata) for p in wanted})
    )
    response = change_all(cluster, requests, o.OffsetCommitResponse)
    if as_json:
        show_json(response)
    _explain_members(group_id, response)
    conclude(response, "committed", as_json=as_json)


def delete_all(cluster: Cluster, group_id: str, places: Iterable[Place]) -> o.OffsetDeleteResponse:
    """Delete any number of offsets."""
    return change_all(cluster, list(delete_requests(group_id, places)), o.OffsetDeleteResponse)


def change_all(
    cluster: Cluster,
    requests: Sequence[o.OffsetCommitRequest | o.OffsetDeleteRequest],
    answer: type[AnswerT],
) -> AnswerT:
    """Make the calls one after the other, and merge their answers.

    Each call is all or nothing, so if one fails the sentence tells how many were done before.
    """
    whole = answer()
    done, count = 0, sum(len(list(named(request))) for request in requests)
    for request in requests:
        whole.MergeFrom(cluster.change(request, answer))
        *_, last = places = [Place(*each) for each in named(request)]
        done += len(places)
        if len(requests) > 1:
            say(f"answered up to {last}: {done} of {count}", err=True)
    return whole


def _refuse_members(cluster: Cluster, group_id: str) -> None:
    """End the command in a dry run, too, if only the group's members may commit."""
    if _has_members(cluster, group_id):
        fail(_only_members(group_id))


def warn_of_members(cluster: Cluster, group_id: str, *, as_json: bool) -> None:
    """Warn in a dry run that some offsets may have to stay; on stderr if a program reads."""
    if _has_members(cluster, group_id):
        say(
            f"group {group_id} has members: offsets of topics that one of them subscribes to will "
            "be refused",
            err=as_json,
        )


def _has_members(cluster: Cluster, group_id: str) -> bool:
    response = cluster.call(a.DescribeGroupsRequest(groups=[group_id]), a.DescribeGroupsResponse)
    return bool(response.groups[0].members)


def _unknown(cluster: Cluster, wanted: Iterable[Place]) -> list[Place]:
    """Find the partitions that do not exist, which a dry run reports, too."""
    names = sorted({place.topic for place in wanted})
    response = cluster.pages(a.ListTopicsRequest(names=names), a.ListTopicsResponse)
    counts = {topic.name: topic.num_partitions for topic in response.topics}
    return [place for place in sorted(wanted) if place.partition >= counts.get(place.topic, 0)]


def _explain_members(group_id: str, response: o.OffsetCommitResponse) -> None:
    codes = {p.error_code for topic in response.topics for p in topic.partitions}
    if codes == {e.ERROR_CODE_UNKNOWN_MEMBER_ID}:
        fail(_only_members(group_id))


def _only_members(group_id: str) -> str:
    return (
        f"group {group_id} has members, so only they may commit. Stop them (see `holdfast group "
        "describe`), wait until the group is Empty, then repeat"
    )


def show_plan(
    rows: Iterable[tuple[Place, int | None, int | None]],
    *,
    as_json: bool,
    refused: Iterable[Place] = (),
) -> None:
    """Show what a command would do: offsets before (None: none) and after (None: deleted)."""
    if as_json:
        planned = [
            {**place._asdict(), "offset": before, "new_offset": after}
            for place, before, after in rows
        ]
        no = [place._asdict() for place in refused]
        print_json({"dry_run": True, "offsets": planned, "unknown": no})
        return
    table(
        ("TOPIC", "PARTITION", "OFFSET", "NEW OFFSET"),
        (
            (*place, "-" if before is None else before, "deleted" if after is None else after)
            for place, before, after in rows
        ),
    )
    say("nothing was changed (--dry-run)")


_SENTENCES: Final = {
    e.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition; see `holdfast topic "
    "list`",
    e.ERROR_CODE_OFFSET_METADATA_TOO_LARGE: "the metadata has more characters than "
    "offset.metadata_max_bytes allows; shorten it, or see `holdfast settings list "
    "offset.metadata_max_bytes`",
    e.ERROR_CODE_INVALID_COMMIT_OFFSET_SIZE: "the commit does not fit into one entry of the log; "
    "commit fewer partitions at once",
    e.ERROR_CODE_GROUP_SUBSCRIBED_TO_TOPIC: "a member subscribes to the topic; stop it first",
    e.ERROR_CODE_REBALANCE_IN_PROGRESS: "a rebalance is under way; repeat after it",
}
"""Sentences for the code of a partition: the contract has no text beside it."""


def _why(code: int) -> str:
    sentence = _SENTENCES.get(code)  # type: ignore[call-overload]  # a plain number will do
    return f"{code_name(code)}: {sentence}" if sentence else code_name(code)


def conclude(
    response: o.OffsetCommitResponse | o.OffsetDeleteResponse, verb: str, *, as_json: bool
) -> None:
    """Print how many were done; end the command if some were refused."""
    results = [
        (
            str(Place(topic.name, partition.partition_index)),
            partition.error_code,
            _why(partition.error_code),
        )
        for topic in response.topics
        for partition in topic.partitions
    ]
    done = sum(code == e.ERROR_CODE_NONE for _, code, _ in results)
    if not as_json:
        say(f"{verb} {done} offset{'' if done == 1 else 's'}")
    refuse_any(results)
