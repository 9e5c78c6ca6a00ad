"""A group whose members can run an assignor themselves, and the calls of the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import Caller, ConsumerGroupHeartbeat, InstallAssignment
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.coordinator.model.replies import DoneReply
from unit.coordinator.consumer.talk import GROUP, Talk, parts

if TYPE_CHECKING:
    from holdfast.coordinator.model.described import PreparedAssignment
    from holdfast.coordinator.model.rejections import Rejection

NAME: Final = "own"


def assignor(name: str = NAME, **said: Any) -> ClientAssignor:  # noqa: ANN401 - a field of it
    """An assignor that knows version 0 alone, and says nothing, but for what is given."""
    fields = {"minimum_version": 0, "maximum_version": 0, "reason": 0, "version": 0}
    return ClientAssignor(name, **{"metadata": b"", **fields, **said})


class Computing(Talk):
    """Members that can run an assignor, and what the chosen one says."""

    def comes(self, member_id: str, **said: Any) -> ConsumerGroupHeartbeat:  # noqa: ANN401 - a field of the command
        """The command of a join by a member that can run the assignor."""
        fields = {"client_assignors": (assignor(),), **said}
        return self.joins(member_id, "t", **fields)

    def prepares(self, member_id: str, epoch: int | None = None) -> PreparedAssignment | Rejection:
        known = self.member(member_id).epoch if epoch is None else epoch
        return queries.prepare_assignment(self.core.state, GROUP, member_id, known, "")

    def installs(
        self,
        member_id: str,
        *,
        epoch: int | None = None,
        at: int | None = None,
        caller: Caller | None = None,
        **owned: str,
    ) -> Rejection | None:
        """Hand a target in, `t0 t1` for each member; `at`: for another group epoch than now's."""
        targets = tuple(MemberTarget(who, parts(*some.split())) for who, some in owned.items())
        return self.hands_in(member_id, targets, epoch=epoch, at=at, caller=caller)

    def hands_in(
        self,
        member_id: str,
        targets: tuple[MemberTarget, ...],
        *,
        epoch: int | None = None,
        at: int | None = None,
        caller: Caller | None = None,
    ) -> Rejection | None:
        known = self.member(member_id).epoch if epoch is None else epoch
        group_epoch = self.group.generation if at is None else at
        caller = caller or self.caller()
        self.send(InstallAssignment(caller, GROUP, member_id, known, group_epoch, targets))
        reply = self.core.answers[caller.call]
        assert isinstance(reply, DoneReply)
        return reply.error

    def fails(
        self,
        member_id: str,
        problem: str = "it raised",
        *,
        epoch: int | None = None,
        at: int = 0,
        caller: Caller | None = None,
    ) -> Rejection | None:
        """Say that there is no target; `at`: the group epoch of the picture, 0: it got none."""
        known = self.member(member_id).epoch if epoch is None else epoch
        caller = caller or self.caller()
        self.send(InstallAssignment(caller, GROUP, member_id, known, at, (), problem))
        reply = self.core.answers[caller.call]
        assert isinstance(reply, DoneReply)
        return reply.error

    @property
    def chosen(self) -> str:
        """Who is to compute; "": nobody."""
        asked = self.group.body.asked
        return "" if asked is None else asked.member_id

    def beats(self, member_id: str, **said: Any) -> bool:  # noqa: ANN401 - as above
        """Send a heartbeat; return whether the answer asks for a target."""
        epoch = self.member(member_id).epoch
        return self.told(self.says(member_id, epoch, **said)).should_compute
