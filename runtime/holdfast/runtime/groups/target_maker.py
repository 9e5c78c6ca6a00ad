"""Computes targets of large groups in child processes, and submits what came out (K-M20).

A decision asks for it (`effects.ComputeTarget`). A child that dies or hangs is replaced once; after
that the target is computed in the loop, since the group waits for it. A newer question of a group
ends the older one, and so does the end of the leadership or of the node.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.effects import InstallTarget
from holdfast.runtime.event_log.child import run_child
from holdfast.runtime.groups import target_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.consumer.assignors import Target
    from holdfast.coordinator.model.effects import ComputeTarget
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.runtime.ports import ComputesTargets

T = TypeVar("T")
logger = logging.getLogger(__name__)

CHILDREN_MAX: Final = 2
"""Children at once; further groups wait."""
CHILD_SECONDS: Final = 10.0
"""How long one may take: a hundred times what it needs, since others go before it."""
TRIES: Final = 2
MEMBERS_AT_ONCE: Final = 32
"""Members that are written or read in one turn of the loop: each may own some of 100 topics."""
_PROGRAM: Final = "holdfast.runtime.groups.target_program"


async def in_child(asked: ComputeTarget) -> Target:
    """Compute a target in a child process; raises OSError or ValueError if it gives none."""
    question = await _in_slices(target_program.question(asked))
    ended = await run_child(_PROGRAM, given=b"".join(question))
    if ended.code != 0:
        raise OSError(f"the child process ended with {ended.code}: {ended.complaint!r}")
    lines = ended.output.splitlines()
    return dict(await _in_slices(map(target_program.read_member, lines)))


async def _in_slices(members: Iterable[T]) -> list[T]:
    """Make a list of what is made for each member, with turns of the loop in between."""
    made: list[T] = []
    for number, each in enumerate(members, start=1):
        made.append(each)
        if number % MEMBERS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return made


class TargetMaker:
    """The targets that a leading node computes beside the work of its groups. The loop's thread."""

    def __init__(
        self, submit: Callable[[InstallTarget], None], compute: ComputesTargets = in_child
    ) -> None:
        """`submit`: has a command decided."""
        self._submit, self._compute = submit, compute
        self._tasks: dict[GroupId, asyncio.Task[None]] = {}
        self._children = asyncio.Semaphore(CHILDREN_MAX)

    def ask(self, group_id: GroupId, asked: ComputeTarget) -> None:
        """Have a target computed; what the group has asked before is not needed any more."""
        self._drop(group_id)
        self._tasks[group_id] = asyncio.ensure_future(self._run(group_id, asked))

    def clear(self) -> None:
        """End all that is under way."""
        for group_id in tuple(self._tasks):
            self._drop(group_id)

    def _drop(self, group_id: GroupId) -> None:
        task = self._tasks.pop(group_id, None)
        if task is not None:
            task.cancel()

    async def _run(self, group_id: GroupId, asked: ComputeTarget) -> None:
        try:
            async with self._children:
                found = await self._made(group_id, asked)
        except Exception:
            logger.critical(
                "alarm: no target of group %r could be computed; its members keep what they have, "
                "and it is tried again: please report this",
                group_id,
                exc_info=True,
            )
            return
        finally:
            if self._tasks.get(group_id) is asyncio.current_task():
                del self._tasks[group_id]
        targets = tuple([MemberTarget(*each) for each in found.items()])
        self._submit(InstallTarget(group_id, asked.epoch, asked.assignor, targets))

    async def _made(self, group_id: GroupId, asked: ComputeTarget) -> Target:
        for _ in range(TRIES):
            try:
                async with asyncio.timeout(CHILD_SECONDS):
                    return await self._compute(asked)
            except (TimeoutError, OSError, ValueError) as error:
                why = str(error) or f"it took longer than {CHILD_SECONDS:g} s"
                logger.warning("group %r: a child has computed no target: %s", group_id, why)
        logger.error(
            "group %r: its target is computed by the node itself, so all calls wait for it: see "
            "why no child process could, or raise group.consumer_inline_work",
            group_id,
        )
        return ASSIGNORS[asked.assignor](asked.spec, asked.sizes)
