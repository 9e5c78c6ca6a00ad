"""A Spark Connect server: whether one answers, and for how long it is waited for if it goes away.

By itself the client tries for more than ten minutes, in each call anew, and what is to be cleaned
up are calls as well. Imported only with `--remote`: it needs packages that pyspark does not bring.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.options import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANY_SETTING: Final = "spark.sql.session.timeZone"
_TRIES_MAX: Final = 5
"""Behind waits of 0.05 s, each four times the one before: 17 s in all."""
_APART_SECONDS_MIN: Final = 60.0
"""A failure so long behind the last one is another one: a call may last for hours, and sound
networks end streams that are idle."""


def check_server(address: str) -> None:
    """Raise CannotCheck if what listens at an address is no Spark Connect server."""
    client = SparkConnectClient(address)
    client.set_retry_policies([Patience()])
    try:
        client.get_configs(_ANY_SETTING)
        client.release_session()
    except (CannotCheck, SparkConnectGrpcException) as error:
        if not _is_of_another(error):
            raise
        shown = truncate(without_secrets(address))
        raise CannotCheck(
            f"no Spark Connect server answers at {shown}: is it the port of one?"
        ) from error
    finally:
        client.close()


def _is_of_another(error: CannotCheck | SparkConnectGrpcException) -> bool:
    """Return whether it tells of what is no such server, also if it is another one of gRPC."""
    return isinstance(error, CannotCheck) or error.getGrpcStatusCode().name == "UNIMPLEMENTED"


def wait_once(spark: SparkSession) -> None:
    """Let a session wait for a server that went away, for a short time, and never again."""
    spark.client.set_retry_policies([Patience()])


class Patience(DefaultPolicy):
    """Which errors are worth another try, as the client has it, but with one end for all calls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a server that answers. `clock`: seconds since any time."""
        super().__init__(max_retries=_TRIES_MAX)
        self.clock = clock
        self.is_over = False

    def to_state(self) -> RetryPolicyState:
        """Begin the tries of one call."""
        return _Tries(self)


class _Tries(RetryPolicyState):
    """The tries of one call, counted anew with each failure that is far from the one before."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience)
        self._patience = patience
        self._counted = RetryPolicyState(patience)
        self._tried_at = patience.clock()

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Return how many ms to wait. Raises CannotCheck if it has been enough."""
        now = self._patience.clock()
        if now - self._tried_at > _APART_SECONDS_MIN:
            self._counted = RetryPolicyState(self._patience)
        wait_ms = None if self._patience.is_over else self._counted.next_attempt(exception)
        if wait_ms is None:
            self._patience.is_over = True
            raise CannotCheck(
                "the Spark Connect server does not answer any more: look why it ended, and start "
                "the verification again"
            )
        self._tried_at = now + wait_ms / 1000
        return wait_ms
