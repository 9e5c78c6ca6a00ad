"""The lines of the logger `holdfast.client` about one member: each event once.

INFO: joining, generation, what it owns. WARNING: partitions lost, and why; topics that do not
exist; a leave that nobody confirmed. ERROR: what stopped it for good, or until it is given another
subscription; a client assignor that has failed. Knows no call.
"""

from __future__ import annotations

import logging
from shlex import quote
from typing import TYPE_CHECKING, Final

from holdfast.client._session.fatal_error import describe_member
from holdfast.client._session.session_io import (
    Assigned,
    AssignorFailed,
    Lost,
    Missing,
    Note,
    Refused,
    Revoke,
)
from holdfast.client.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client._session.health import Health
    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.session_io import Output, TopicPartition

_LOGGER = logging.getLogger("holdfast.client")
NAMED_MAX: Final = 20
"""Partitions that are named in a line; of the others only the number is logged."""
_SPOKEN_OF_AT_THE_END: Final = frozenset({"fenced", "stopped"})
"""Reasons with which the member ends: the line about the end names them."""


class MemberLog:
    """Lines of one member."""

    def __init__(self, session: MemberSession) -> None:
        self._session = session
        self._said_end = False

    def write(self, output: Output) -> None:
        """Log an output of the session, if it concerns people."""
        match output:
            case Note(words):
                _LOGGER.info("%s %s.", self._who(), words)
            case Assigned(partitions, grant):
                _LOGGER.info(
                    "%s owns%s %s, under token %d.",
                    self._who(),
                    " now also" if len(self._session.held) > len(partitions) else "",
                    named(partitions) or "nothing",
                    grant.fencing_token,
                )
            case Refused(error):
                _LOGGER.error("%s. It is in no group until `subscribe` is called.", error)
            case Revoke(partitions) if partitions:
                _LOGGER.info("%s lets go of %s.", self._who(), named(partitions))
            case Lost(partitions, reason) if reason.kind not in _SPOKEN_OF_AT_THE_END:
                _LOGGER.warning("%s has lost %s: %s.", self._who(), named(partitions), reason)
            case AssignorFailed(error):
                self._assignor_failed(error)
            case Missing(topics):
                self._missing(topics)

    def ended(self, health: Health, *, leave_unconfirmed: bool) -> None:
        """Log once that the member has ended, or ends when the program has been told."""
        if self._said_end:
            return
        self._said_end = True
        error = health.error
        if leave_unconfirmed:
            _LOGGER.warning("A member has stopped as asked, and nobody confirmed it. %s", health)
        elif error is not None:
            said = isinstance(error, HoldfastError)  # else where it was raised counts, too
            traceback = None if said else error
            _LOGGER.error("A member has stopped for good. %s", health, exc_info=traceback)
            if (unconfirmed := self._session.unconfirmed) is not None:
                _LOGGER.warning("%s", unconfirmed)

    def failed_again(self, error: Exception) -> None:
        """Log an error that occurred while the member ends for another reason."""
        _LOGGER.error("%s ends already; this failed, too.", self._who(), exc_info=error)

    def _who(self) -> str:
        settings = self._session.settings
        about = describe_member(
            self._session.identity.member_id, settings.instance_id, settings.group
        )
        return about.replace("Member '' ", "Member ", 1)  # before the group has given it an id

    def _assignor_failed(self, error: HoldfastError) -> None:
        _LOGGER.error(
            "%s is to compute the target of the group, and has none: %s The members keep what they "
            "have. Now the service asks another member, or after a pause this one again. "
            "(A node that is older asks another one after the rebalance timeout of %d ms.)",
            self._who(),
            f"{str(error).removesuffix('.')}.",
            self._session.settings.rebalance_timeout_ms,
            exc_info=error.__cause__,
        )

    def _missing(self, topics: Iterable[str]) -> None:
        settings = self._session.settings
        for topic in topics:
            _LOGGER.warning(
                "Topic %r, which group %r asks for, does not exist, so nobody gets a partition of "
                "it. Create it with `holdfast topic create %s --partitions COUNT`; it is taken up "
                "within %d ms.",
                topic,
                settings.group,
                quote(topic),
                settings.topics_refresh_ms,
            )


def named(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions in a line, the first of them by name."""
    names = [f"{topic}/{number}" for topic, number in partitions]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
