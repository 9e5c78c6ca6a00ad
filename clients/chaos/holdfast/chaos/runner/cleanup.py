"""Remove a run's groups and topics from a cluster that goes on, after the history has ended.

These calls are not judged: a client of their own makes them, which records nothing, after the logs
were read. Knows no checker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.client import Admin, GroupNotFound, HoldfastError, Rejected, TopicNotFound

if TYPE_CHECKING:
    from holdfast.client import Credentials


async def clean_up(
    endpoints: Sequence[str],
    credentials: Credentials,
    names: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Remove these groups with their remaining members, and the topics of the same names.

    Each is tried, even if others fail. Raises ExceptionGroup of HoldfastError with all failures.
    """
    failed: list[HoldfastError] = []
    async with Admin(endpoints, credentials=credentials) as admin:
        for name in names:  # released static members are still there until their sessions end
            try:
                await admin.remove_members(name, everyone=True, reason="the chaos run is over")
            except GroupNotFound:
                continue  # no member ever joined it
            except HoldfastError as error:
                failed.append(error)
        for delete in (admin.delete_groups, admin.delete_topics):
            try:
                _tell(await delete(*names), say)
            except Rejected as error:  # of a single name the refusal is raised
                _tell(dict.fromkeys(names, error), say)
            except HoldfastError as error:
                failed.append(error)
    if failed:
        raise ExceptionGroup("the cluster did not let itself be cleaned up", failed)


def _tell(refusals: Mapping[str, HoldfastError | None], say: Callable[[str], None]) -> None:
    for name, refusal in refusals.items():
        if refusal is not None and not isinstance(refusal, GroupNotFound | TopicNotFound):
            say(f"{name} is left behind: {refusal}")
