"""The storage outside that members write to; it checks fencing tokens (S13).

It holds the highest token of each (group, topic, partition), never one for the whole store, and
refuses a lower one. It lives in the process that judges and is reached over a Unix socket, so that
a worker frozen in the middle of a write blocks no other. Knows nothing of Holdfast.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple, Self

from holdfast.chaos.clock import boot_us
from holdfast.chaos.history.happenings import Wrote
from holdfast.chaos.workload.recorder import Recorder


class Write(NamedTuple):
    """What a member asks the store: to write to one partition under its token."""

    who: str
    group: str
    topic: str
    partition: int
    token: int


class Tokens:
    """The comparison: each partition's highest token ever shown, and its number of writes."""

    def __init__(self) -> None:
        self._highest: dict[tuple[str, str, int], int] = {}
        self._writes: dict[tuple[str, str, int], int] = {}

    def write(self, asked: Write) -> int:
        """Accept a write; return its number in its partition, from 1; 0: its token is too old."""
        place = (asked.group, asked.topic, asked.partition)
        if asked.token < self._highest.get(place, 0):
            return 0
        self._highest[place] = asked.token
        self._writes[place] = self._writes.get(place, 0) + 1
        return self._writes[place]


class Store:
    """Serves writes on a socket, and records each with its decision."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        self._path, self._recorder = path, recorder
        self._tokens = Tokens()
        self._server: asyncio.Server | None = None
        self._served: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._served):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._served.add(writer)
        try:
            while line := await reader.readline():
                number = self._decide(Write(**json.loads(line)))
                writer.write(b"%d\n" % number)
                await writer.drain()
        except ConnectionError:
            pass  # the worker was killed; what it wrote before is decided and written down
        finally:
            self._served.discard(writer)
            writer.close()

    def _decide(self, asked: Write) -> int:
        number = self._tokens.write(asked)
        self._recorder.note(Wrote(boot_us(), *asked, accepted=bool(number)))
        return number


class StoreClient:
    """A worker's one connection to the store; requests are answered in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def write(self, asked: Write) -> int:
        """Write as `Tokens.write` does. Raises ConnectionError when the store is gone."""
        async with self._turn:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(str(self._path))
            reader, writer = self._streams
            writer.write(json.dumps(asked._asdict()).encode() + b"\n")
            await writer.drain()
            answer: Any = await reader.readline()
            if not answer:
                raise ConnectionResetError(f"the store at {self._path} has ended")
            return int(answer)

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
