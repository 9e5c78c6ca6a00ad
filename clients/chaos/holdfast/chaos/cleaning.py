"""Takes a run's groups and topics out of a cluster that goes on, once the history has ended.

These calls are housekeeping and no part of what is judged: they are made by a client of their own,
which writes nothing down, after the logs were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.client import Admin
from holdfast.client.errors import GroupNotFound, TopicNotFound

if TYPE_CHECKING:
    from holdfast.client.channel import Credentials


async def clean_up(
    endpoints: Sequence[str],
    credentials: Credentials,
    names: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Remove these groups, with whoever is left in them, and the topics of the same names.

    Raises HoldfastError if the cluster does not answer.
    """
    async with Admin(endpoints, credentials=credentials) as admin:
        for name in names:  # released static members are still there until their sessions end
            await admin.remove_members(name, everyone=True, reason="the chaos run is over")
        left = [*(await admin.delete_groups(*names)).items()]
        left += [*(await admin.delete_topics(*names)).items()]
    for name, refusal in left:
        if refusal is not None and not isinstance(refusal, GroupNotFound | TopicNotFound):
            say(f"{name} is left behind: {refusal}")
