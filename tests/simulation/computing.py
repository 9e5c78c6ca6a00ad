"""Members that run an assignor themselves (KIP-848): what the chosen one does, and does wrong.

It stands between a member's client and the wire: it says with each heartbeat which assignor the
member can run, and looks in the answers whether it should compute. Most do so at once. Some are
late, some never come, some hand in what is of the past, some hand in what is not true, and some say
that they make nothing. When the faults are over, all do what they should.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from simulation.server_side import ServerCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from google.protobuf.message import Message

    from simulation.client_side import Line
    from simulation.process import Process
    from simulation.server_side import Status

NAME: Final = "simulated"
PROMPT, LATE, NEVER, STALE, LYING = "prompt", "late", "never", "stale", "lying"
FAILING: Final = "failing"
MOODS: Final = (*(PROMPT,) * 6, LATE, NEVER, STALE, LYING, FAILING)
ANEW: Final = 0.02
"""How many heartbeats ask for another target, by a new reason."""
SOON_S: Final = (0.01, 0.4)
GIVEN_UP_S: Final = 2.0
"""After so long without an answer it begins again, if it still is to compute."""
_SERVICE: Final = "/holdfast.v1.GroupService/"


class Assigner:
    """The assignor of one member, and the calls that it makes when that is chosen."""

    def __init__(
        self,
        process: Process,
        group: str,
        instance_id: str | None,
        rebalance_s: float,
        random: Random,
        is_calm: Callable[[], bool],
    ) -> None:
        """`is_calm`: whether the faults are over."""
        self._process, self._group, self._random = process, group, random
        self._instance_id = instance_id
        self._rebalance_s, self._is_calm = rebalance_s, is_calm
        self._member_id, self._epoch, self._reason = "", 0, 0
        self._busy_until_s = -1.0

    # --- what the member says ---

    def says(self, message: Message) -> None:
        """Put the assignor into each heartbeat of a message."""
        for beat in _beats(message):
            if beat.member_epoch >= 0:
                beat.holdfast.client_assignors.CopyFrom(x.ClientAssignors(assignors=[self._said()]))

    def _said(self) -> x.ClientAssignor:
        if not self._is_calm() and self._random.random() < ANEW:
            self._reason = self._reason % 127 + 1
        mine = self._process.machine.encode()
        return x.ClientAssignor(
            name=NAME, maximum_version=2, reason=self._reason, version=1, metadata=mine
        )

    # --- what it hears ---

    def hears(self, line: Line, message: Message) -> None:
        """Look in each answer whether to compute, and what the last one who did says."""
        for answer in _answers(message):
            if answer.error_code != e.ERROR_CODE_NONE or not answer.member_id:
                continue
            self._member_id, self._epoch = answer.member_id, answer.member_epoch
            told = answer.holdfast.assigned_metadata.metadata.decode()
            mine = self._instance_id or self._member_id
            if told and not told.endswith(f" {mine}"):
                raise AssertionError(f"{mine} is told what is said to {told!r}")
            if answer.holdfast.should_compute and self._now() >= self._busy_until_s:
                self._compute(line)

    def _now(self) -> float:
        return self._process.loop.time()

    def _compute(self, line: Line) -> None:
        mood = PROMPT if self._is_calm() else self._random.choice(MOODS)
        self._busy_until_s = self._now() + GIVEN_UP_S
        if mood == NEVER:
            self._busy_until_s = self._now() + 2 * self._rebalance_s
            return
        request = g.PrepareAssignmentRequest(
            group_id=self._group, member_id=self._member_id, member_epoch=self._epoch
        )

        def prepared(raw: bytes) -> None:
            found = g.PrepareAssignmentResponse.FromString(raw)
            if found.error_code == e.ERROR_CODE_NONE:
                self._later(line, mood, found)

        self._ask(line, "PrepareAssignment", request, prepared)

    def _later(self, line: Line, mood: str, found: g.PrepareAssignmentResponse) -> None:
        after_s = self._random.uniform(*SOON_S)
        if mood == LATE:
            after_s = self._random.uniform(0.5, 1.5) * self._rebalance_s
            self._busy_until_s = self._now() + after_s + GIVEN_UP_S
        self._process.loop.call_later(after_s, self._install, line, mood, found)

    def _install(self, line: Line, mood: str, found: g.PrepareAssignmentResponse) -> None:
        if mood == FAILING:
            self._fail(line, found)
            return
        request = g.InstallAssignmentRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            group_epoch=found.group_epoch - (mood == STALE),
            members=_shared_out(found),
        )
        if mood == LYING and found.topics:
            _LIES[self._random.randrange(len(_LIES))](request, found)

        def installed(raw: bytes) -> None:
            answer = g.InstallAssignmentResponse.FromString(raw)
            self._busy_until_s = -1.0
            taken = answer.error_code == e.ERROR_CODE_NONE
            if taken and (mood == STALE or (mood == LYING and found.topics)):
                raise AssertionError(f"a {mood} member's target was taken: {request}")

        self._ask(line, "InstallAssignment", request, installed)

    def _fail(self, line: Line, found: g.PrepareAssignmentResponse) -> None:
        """Say that there is no target, sometimes as one that has got no picture."""
        epoch = self._random.choice((found.group_epoch, 0))
        request = g.InstallAssignmentRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            failure=g.AssignmentFailure(error_message="it failed", group_epoch=epoch),
        )

        def heard(_raw: bytes) -> None:
            self._busy_until_s = -1.0

        self._ask(line, "InstallAssignment", request, heard)

    def _ask(
        self, line: Line, method: str, request: Message, answered: Callable[[bytes], None]
    ) -> None:
        """Make a unary call on the member's connection; nobody waits if it is not answered."""
        call = ServerCall(
            *(line.server, f"{_SERVICE}{method}", line.peer, ()),
            *(_nothing, lambda raw: line.to_client(answered, raw), _unheard),
        )
        line.to_server(call.begin, request.SerializeToString())


def _shared_out(found: g.PrepareAssignmentResponse) -> list[g.InstallAssignmentRequestMember]:
    """Give each partition to who is to own it until now, else to who has the fewest."""
    sizes = {topic.name: topic.num_partitions for topic in found.topics}
    names = list(sizes)
    lists = [{names[place] for place in each.topics} for each in found.topic_lists]
    wants = {each.member_id: lists[each.topic_list] for each in found.members}
    had = {
        (topic.topic, number): each.member_id
        for each in found.members
        for topic in each.topic_partitions
        for number in topic.partitions
    }
    most = -(-sum(sizes.values()) // max(1, len(wants)))
    given: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in wants}
    for place in [(topic, number) for topic, size in sizes.items() for number in range(size)]:
        takers = [each for each, topics in wants.items() if place[0] in topics]
        keeper = had.get(place)
        if keeper not in takers or len(given[keeper]) >= most:
            keeper = min(takers, key=lambda each: len(given[each]))
        given[keeper].append(place)
    called = {each.member_id: each.instance_id or each.member_id for each in found.members}
    return [_member(each, places, called[each]) for each, places in given.items()]


def _member(
    member_id: str, places: list[tuple[str, int]], name: str
) -> g.InstallAssignmentRequestMember:
    by_topic: dict[str, list[int]] = {}
    for topic, number in places:
        by_topic.setdefault(topic, []).append(number)
    return g.InstallAssignmentRequestMember(
        member_id=member_id,
        topic_partitions=[
            g.ConsumerGroupTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in by_topic.items()
        ],
        version=2,
        metadata=f"to {name}".encode(),
    )


# --- lies ---


def _a_stranger(request: g.InstallAssignmentRequest, found: g.PrepareAssignmentResponse) -> None:
    place = g.ConsumerGroupTopicPartitions(topic=found.topics[0].name, partitions=[0])
    request.members[0].member_id = "nobody-knows-it"
    request.members.add(member_id="nor-this-one", topic_partitions=[place])


def _a_partition_twice(
    request: g.InstallAssignmentRequest, found: g.PrepareAssignmentResponse
) -> None:
    for member in request.members:
        del member.topic_partitions[:]
        member.topic_partitions.add(topic=found.topics[0].name, partitions=[0])
    request.members[0].topic_partitions.add(topic=found.topics[0].name, partitions=[0])


def _a_strange_topic(
    request: g.InstallAssignmentRequest, found: g.PrepareAssignmentResponse
) -> None:
    del found
    request.members[0].topic_partitions.add(topic="no-such-topic", partitions=[0])


def _a_partition_that_is_not_there(
    request: g.InstallAssignmentRequest, found: g.PrepareAssignmentResponse
) -> None:
    topic = found.topics[0]
    request.members[0].topic_partitions.add(topic=topic.name, partitions=[topic.num_partitions])


_LIES: Final[tuple[Callable[..., None], ...]] = (
    *(_a_stranger, _a_partition_twice, _a_strange_topic, _a_partition_that_is_not_there),
)


# --- heartbeats and answers in messages ---


def _beats(message: Any) -> Iterator[g.ConsumerGroupHeartbeatRequest]:  # noqa: ANN401 - any request
    if isinstance(message, g.ConsumerGroupHeartbeatRequest):
        yield message
    elif isinstance(message, g.HeartbeatBatch):
        yield from message.consumer_requests
    elif isinstance(message, g.SessionRequest):
        for call in message.calls:
            if call.HasField("consumer_heartbeat"):
                yield call.consumer_heartbeat


def _answers(message: Any) -> Iterator[g.ConsumerGroupHeartbeatResponse]:  # noqa: ANN401 - any
    if isinstance(message, g.ConsumerGroupHeartbeatResponse):
        yield message
    elif isinstance(message, g.HeartbeatBatchResponse):
        yield from message.consumer_responses
    elif isinstance(message, g.SessionResponse):
        for answer in message.answers:
            if answer.HasField("consumer_heartbeat"):
                yield answer.consumer_heartbeat


def _nothing() -> None:
    """Nobody waits for its beginning."""


def _unheard(_status: Status) -> None:
    """An answer that does not come is waited for until it is given up."""
