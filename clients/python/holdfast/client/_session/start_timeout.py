"""How long a member waits for the first answer of a leading node (`start_timeout_ms`).

Without a limit a wrong address would be tried for ever. The time counts until a leading node has
answered any call. It stands still while a join waits at a node, for a node that does not lead
refuses at once, and while nothing ran here. No clock, no IO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client.errors import OutcomeUnknown, Unavailable

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.client.errors import HoldfastError

FAILURES_TOLD: Final = 3
"""Different failures that an error names: nodes fail differently, and one may be the cause."""


class StartTimeout:
    """The time that is left to a member that has not been answered yet."""

    def __init__(self, timeout_ms: int | None) -> None:
        self._timeout_ms = timeout_ms
        self._until_ms: int | None = None
        self._waiting: set[int] = set()
        self._since_ms = 0
        self._failures: list[str] = []
        self._doubtful = False

    def begin(self, now_ms: int) -> None:
        """Let the time begin: the member starts."""
        if self._timeout_ms is not None:
            self._until_ms = now_ms + self._timeout_ms

    def cancel(self) -> None:
        """Wait as long as it takes from now on: a leading node has answered."""
        self._until_ms = None

    def pause_for(self, call: int, now_ms: int) -> None:
        """Let the time stand still: a join has gone out to a node, which may keep it waiting."""
        if not self._waiting:
            self._since_ms = now_ms
        self._waiting.add(call)

    def resume_after(self, call: int, now_ms: int) -> None:
        """Let time go on after the last call that has ended, or does not matter any more."""
        if call in self._waiting:
            self._waiting.remove(call)
            if not self._waiting and self._until_ms is not None:
                self._until_ms += now_ms - self._since_ms

    def pause_only_for(self, calls: Collection[int], now_ms: int) -> None:
        """Of the joins only these still wait: the others have been given up."""
        for call in self._waiting - set(calls):
            self.resume_after(call, now_ms)

    def failed(self, error: HoldfastError, *, changes: bool) -> None:
        """Note a failure; `changes`: of a join, which may have been taken all the same (S5)."""
        text = str(error).removesuffix(".")
        others = [failure for failure in self._failures if failure != text]
        self._failures = [*others, text][-FAILURES_TOLD:]
        self._doubtful |= changes and isinstance(error, OutcomeUnknown)

    def extend(self, late_ms: int) -> None:
        """For so long nothing ran here, so nobody could have answered."""
        if self._until_ms is not None and not self._waiting:
            self._until_ms += late_ms

    @property
    def ends_at_ms(self) -> int | None:
        """When the time will be up; None: it does not run."""
        return None if self._waiting else self._until_ms

    def expired(self, now_ms: int) -> HoldfastError | None:
        """Return what the member ends with, if its time is up."""
        ends_at_ms = self.ends_at_ms
        if ends_at_ms is None or now_ms < ends_at_ms:
            return None
        text = (
            f"No leading node has answered a call within {self._timeout_ms} ms "
            f"(start_timeout_ms). {self._told()}."
        )
        return OutcomeUnknown(text) if self._doubtful else Unavailable(text)

    def _told(self) -> str:
        if not self._failures:
            return "None has failed yet, either"
        plural = "s" if len(self._failures) > 1 else ""
        return f"The last failure{plural}: {'; '.join(self._failures)}"
