"""The bearer token that calls show: from a file or a function, and fetched again before it ends.

A new token counts for new calls and streams, so whoever has a stream is told of one. A token is
never logged. Knows no channel and no call.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

_LOGGER = logging.getLogger("holdfast.client")
LOOK_S: Final = 5.0
"""How often a file is read, and how often it is asked whether a function is to be called."""
PART: Final = 0.75
"""Part of a token's time after which a function is called for the next one."""
UNDATED_S: Final = 60.0
"""How often a function is called whose tokens do not say when they end."""
FAILED_S: Final = 1.0
"""Pause after a fetch that has failed, or that was asked for because a node refuses the token."""


class TokenUnusable(Exception):
    """There is no token; the text says why."""


class TokenSource:
    """The newest token of one program."""

    def __init__(
        self,
        given: str | PathLike[str] | Callable[[], str],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`given`: a file that holds a token, or a function that returns one; it may block."""
        self._given, self._now = given, now
        self._text = ""
        self._next = 0.0
        """When to fetch again."""
        self._ends = 0.0
        self._fetching: asyncio.Task[bool] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        """The token; "" while there is none."""
        return self._text

    def refused(self) -> None:
        """Have it fetched again before the next call: a node refuses it."""
        self._ends = 0.0
        self._next = min(self._next, self._now() + FAILED_S)

    async def ready(self) -> None:
        """Fetch a token if there is none, or the one that is there has ended.

        Raises TokenUnusable if there is still none; one that has ended is left to the nodes, whose
        clocks count.
        """
        if self._text and (self._now() < self._ends or self._now() < self._next):
            return
        try:
            await self._fetched()
        except TokenUnusable as error:
            if not self._text:
                raise
            _LOGGER.warning("The token cannot be renewed: %s.", error)

    def start(self, on_new: Callable[[], None]) -> None:
        """Begin to renew it, if that has not begun: `on_new` is called when there is another."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._renew_for_ever(on_new))

    def stop(self) -> None:
        """Renew it no more."""
        if self._task is not None:
            self._task.cancel()

    async def _renew_for_ever(self, on_new: Callable[[], None]) -> None:
        told = self._text
        while True:
            await asyncio.sleep(LOOK_S)
            if self._now() >= self._next:
                try:
                    await self._fetched()
                except TokenUnusable as error:
                    _LOGGER.warning("The token cannot be renewed: %s.", error)
            if self._text != told:
                told = self._text
                _LOGGER.info("New calls and streams show a new token.")
                on_new()

    async def _fetched(self) -> None:
        """Fetch a token; several that ask at once share one attempt. Raises TokenUnusable."""
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch())
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> bool:
        """Fetch a token; return whether it is another one."""
        self._next = self._now() + FAILED_S
        text = await asyncio.to_thread(read, self._given)
        new = text != self._text
        now, ends = self._now(), _end_of(text)
        self._text, self._ends = text, now + UNDATED_S if ends is None else ends
        if isinstance(self._given, str | Path) or hasattr(self._given, "__fspath__"):
            self._next = now + LOOK_S
        else:
            self._next = max(now + (self._ends - now) * PART, now + FAILED_S)
        return new


class Shown:
    """What every call of a program shows of its caller: its name for itself, and its token."""

    def __init__(
        self,
        named: tuple[tuple[str, str], ...] = (),
        token: str | PathLike[str] | Callable[[], str] | None = None,
    ) -> None:
        self._named = named
        self._source = None if token is None else TokenSource(token)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call."""
        if self._source is None or not self._source.text:
            return self._named
        return (*self._named, ("authorization", f"Bearer {self._source.text}"))

    async def ready(self) -> None:
        """See that there is a token, if calls are to show one; raises TokenUnusable."""
        if self._source is not None:
            await self._source.ready()

    def refused(self) -> bool:
        """Return whether another try may show another token; then that is fetched before it."""
        if self._source is not None:
            self._source.refused()
        return self._source is not None

    def start(self, on_new: Callable[[], None]) -> None:
        """Begin to renew the token; `on_new` is called when there is another."""
        if self._source is not None:
            self._source.start(on_new)

    def stop(self) -> None:
        """Renew it no more."""
        if self._source is not None:
            self._source.stop()


def read(given: str | PathLike[str] | Callable[[], str]) -> str:
    """Read the file, or call the function; blocks. Raises TokenUnusable."""
    if callable(given):
        try:
            text: object = given()
        except Exception as error:
            raise TokenUnusable(f"the function for the token failed: {error!r}") from error
        what = "the function for the token returned"
    else:
        try:
            text = Path(given).read_text("ascii")
        except OSError as error:
            raise TokenUnusable(f"token {str(given)!r} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TokenUnusable(f"token {str(given)!r} has characters that no token has") from error
        what = f"token {str(given)!r} holds"
    stripped = text.strip() if isinstance(text, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise TokenUnusable(f"{what} none, which is one word in ASCII")
    return stripped


def _end_of(token: str) -> float | None:
    """Return when a token says that it ends, in seconds since 1970; None if it does not tell."""
    try:
        payload = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(said["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
