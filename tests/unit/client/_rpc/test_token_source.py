"""The token that calls show: where it comes from, when it is renewed, and what a refusal does."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from pathlib import Path

import pytest

from harness.poll import until_async
from holdfast.client import Tls
from holdfast.client._rpc import token_source
from holdfast.client._rpc.tls_files import check_files
from holdfast.client._rpc.token_source import PART, Shown, TokenSource, TokenUnusable, read
from holdfast.server.security import certificates


def token(ends: float | None, mark: str = "") -> str:
    said = {"mark": mark} if ends is None else {"exp": float(ends), "mark": mark}
    payload = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"head.{payload}.signature"


class Giver:
    """A function that gives tokens of 100 s, numbered; and the clock by which they end."""

    def __init__(self) -> None:
        self.time, self.given = 1_000.0, 0
        self.fails = False

    def now(self) -> float:
        return self.time

    def __call__(self) -> str:
        if self.fails:
            raise OSError("the issuer is away")
        self.given += 1
        return token(self.time + 100, str(self.given))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "holds none"), (b" \n", "holds none"), (b"two words", "holds none"),
     (b"t\xc3\xa9", "characters that no token has"), (None, "cannot be read")],
)  # fmt: skip
def test_a_file_without_a_token_is_told(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(TokenUnusable, match=words):
        read(file)


def test_a_token_ends_where_its_line_does(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c\n")

    assert read(tmp_path / "token") == "a.b.c"


def test_a_function_that_fails_or_returns_no_text_is_told() -> None:
    giver = Giver()
    giver.fails = True
    with pytest.raises(TokenUnusable, match="the issuer is away"):
        read(giver)
    for nothing in (None, "", 7, b"bytes"):
        with pytest.raises(TokenUnusable, match="returned none"):
            read(lambda: nothing)  # type: ignore[arg-type, return-value]  # noqa: B023 - called at once


def test_a_member_is_refused_at_once_if_its_token_file_is_not_there(tmp_path: Path) -> None:
    authority = certificates.make_authority("c")
    tls = certificates.issue(authority, tmp_path / "c", "c", "holdfast://client/c", [])
    with pytest.raises(ValueError, match="cannot be read"):
        check_files(Tls(tls.ca, token=tmp_path / "gone"))
    with pytest.raises(ValueError, match="not both"):
        check_files(Tls(tls.ca, tls.certificate, tls.key, token=lambda: "a.b.c"))


def test_a_call_shows_the_token_beside_the_name() -> None:
    async def run() -> None:
        giver = Giver()
        shown = Shown((("holdfast-client-id", "me"),), giver)
        assert shown.metadata == (("holdfast-client-id", "me"),)
        await shown.ready()
        assert dict(shown.metadata)["authorization"] == f"Bearer {token(1_100, '1')}"

    asyncio.run(run())


def test_a_token_is_fetched_again_once_it_has_ended_and_not_before() -> None:
    async def run() -> None:
        giver = Giver()
        source = TokenSource(giver, giver.now)
        for _ in range(3):
            await source.ready()
        assert giver.given == 1
        giver.time += 99
        await source.ready()
        assert giver.given == 1
        giver.time += 1
        await source.ready()
        assert (giver.given, source.text) == (2, token(1_200, "2"))

    asyncio.run(run())


def test_many_calls_at_once_fetch_one_token() -> None:
    async def run() -> None:
        giver = Giver()
        source = TokenSource(giver, giver.now)
        await asyncio.gather(*(source.ready() for _ in range(20)))
        assert giver.given == 1

    asyncio.run(run())


def test_a_refused_token_is_fetched_again_at_most_once_a_second() -> None:
    """Else a cluster that refuses a program's tokens would have it overrun its issuer."""

    async def run() -> None:
        giver = Giver()
        source = TokenSource(giver, giver.now)
        await source.ready()
        for _ in range(10):
            source.refused()
            await source.ready()
        assert giver.given == 1
        giver.time += 1
        await source.ready()
        assert giver.given == 2

    asyncio.run(run())


def test_a_fetch_that_fails_leaves_the_old_token_to_the_nodes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The nodes' clocks count, and no call may fail for what may be good."""

    async def run() -> None:
        giver = Giver()
        source = TokenSource(giver, giver.now)
        await source.ready()
        giver.fails, giver.time = True, giver.time + 200
        await source.ready()
        assert source.text == token(1_100, "1")

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "cannot be renewed: the function for the token failed" in caplog.text
    assert "signature" not in caplog.text


def test_without_any_token_there_is_no_call() -> None:
    async def run() -> None:
        giver = Giver()
        giver.fails = True
        with pytest.raises(TokenUnusable):
            await Shown((), giver).ready()

    asyncio.run(run())


def test_a_token_is_renewed_before_it_ends_and_streams_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream ends with the token that it was opened with."""
    monkeypatch.setattr(token_source, "LOOK_S", 0.001)

    async def run() -> None:
        giver, heard = Giver(), []
        source = TokenSource(giver, giver.now)
        await source.ready()
        source.start(lambda: heard.append(source.text))
        giver.time += 100 * PART - 1
        await asyncio.to_thread(lambda: None)
        assert giver.given == 1
        giver.time += 1
        await until_async(lambda: heard, "the new token")
        assert heard == [token(1_175, "2")]
        source.stop()

    asyncio.run(run())


def test_a_file_is_read_again_and_only_another_token_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_source, "LOOK_S", 0.001)

    async def run() -> None:
        file, heard = tmp_path / "token", list[str]()
        file.write_text("a.b.1")
        times = iter(range(1_000_000))
        source = TokenSource(file, lambda: float(next(times)))
        await source.ready()
        source.start(lambda: heard.append(source.text))
        file.write_text("a.b.1\n")
        reads = next(times)
        await until_async(lambda: next(times) > reads + 50, "a few looks")
        assert heard == []
        file.write_text("a.b.2\n")
        await until_async(lambda: heard, "the new token")
        assert heard == ["a.b.2"]
        source.stop()

    asyncio.run(run())
