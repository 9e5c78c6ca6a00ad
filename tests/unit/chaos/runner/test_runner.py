"""The order of a run's end: whatever was written down is judged by a log that was read after it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.chaos import collect
from holdfast.chaos.cluster.target import NotHealed
from holdfast.chaos.collect import CollectedLog
from holdfast.chaos.history.happenings import Invoked, Phase
from holdfast.chaos.history.jsonl import happening_of
from holdfast.chaos.nemesis import Kind
from holdfast.chaos.runner import runner as runner_module
from holdfast.chaos.runner.plan import Plan
from holdfast.chaos.runner.report import Report
from holdfast.chaos.runner.runner import CONDUCTOR, Runner
from holdfast.chaos.workload.anchors import Anchors
from holdfast.chaos.workload.observer import Observer
from holdfast.chaos.workload.prober import Prober
from holdfast.chaos.workload.recorder import Recorder
from holdfast.chaos.workload.tasks import Times, groups
from holdfast.chaos.workload.workers import Workers
from holdfast.client import Unavailable
from holdfast.client._rpc.caller import Caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from google.protobuf.message import Message

PATIENCE_S = 60.0


class Staging:
    """A staging cluster that is always well; nothing of it was brought back."""

    names = ("node-1", "node-2", "node-3")
    tls = None
    brought_back: dict[str, Any] = {}  # noqa: RUF012 - read only

    async def whole(self) -> None:
        """It is."""


class Bench:
    """A run against that cluster, with what its end calls, in the order in which it does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.said: list[str] = []
        self._file = folder / CONDUCTOR
        self.recorder = Recorder(self._file, 0)
        self.report = Report(7, "staging")
        plan = Plan(folder, 7, cluster=folder, rounds=2)
        target: Any = Staging()
        self.runner = Runner(
            plan, target, None, ("127.0.0.1:1",), self.recorder, self.report, self.said.append
        )
        self._patch = monkeypatch
        for part in (Workers, Prober, Observer, Anchors):
            monkeypatch.setattr(part, "stop", self.step(f"{part.__name__} ended"))
        monkeypatch.setattr(Prober, "accepted_after", self.step("accepted", 0.1))
        monkeypatch.setattr(Observer, "look", self.step("looked"))
        monkeypatch.setattr(Anchors, "ask", self.step("anchors told"))
        monkeypatch.setattr(collect, "digests_agree", self.step("rest", "they do"))
        logs = CollectedLog([], [])
        monkeypatch.setattr(collect, "read_logs", self.step("logs read", logs))
        monkeypatch.setattr(runner_module, "_REST_S", 0.0)
        monkeypatch.setattr(runner_module, "_PAUSE_S", (0.0, 0.0))
        monkeypatch.setattr(Caller, "call", self._served)

    def step(self, step: str, answer: object = None) -> Callable[..., Awaitable[object]]:
        async def done(*_: object) -> object:
            self.steps.append(step)
            return answer

        return done

    async def _served(self, request: Message, answer: type[Message], **_: object) -> Message:
        """A service that does whatever it is asked for."""
        self.steps.append(type(request).__name__)
        return answer()

    def written(self) -> list[object]:
        """What the conductor wrote down."""
        return [happening_of(line) for line in self._file.read_text().splitlines()]

    def skip(self, *phases: str) -> None:
        """Leave phases out that need a real cluster."""
        for phase in phases:
            self._patch.setattr(self.runner, phase, self.step(phase, Times()))

    def run(self, kinds: tuple[Kind, ...] = ()) -> None:
        """The run from its first word to its last."""
        self.skip("_prepare", "_work")
        asyncio.run(asyncio.wait_for(self.runner.run(kinds), PATIENCE_S))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    made.recorder.close()


def test_nothing_is_written_down_once_the_logs_are_read(bench: Bench) -> None:
    """INV-2: a change that was acknowledged after that is in none of them, and would look lost."""
    bench.skip("_safety")
    bench.run()
    written = bench.written()

    assert "RemoveMembersRequest" in bench.steps
    assert bench.steps.index("RemoveMembersRequest") > bench.steps.index("logs read")
    assert not any(isinstance(each, Invoked) for each in written)
    assert isinstance(written[-1], Phase)
    assert written[-1].name == "end"


def test_the_watches_end_before_the_logs_are_read(bench: Bench) -> None:
    """INV-10: then the logs have whatever a watch delivered."""
    bench.skip("_safety")
    bench.run()

    assert bench.steps.index("Observer ended") < bench.steps.index("logs read")


def test_nodes_tell_an_anchor_of_the_end_before_anything_is_cleaned_up(bench: Bench) -> None:
    """S3: of the log that is judged; none is asked for any more while the last ones are told."""
    bench.skip("_safety")
    bench.run()
    told = bench.steps.index("anchors told")

    assert bench.steps.index("Anchors ended") < told < bench.steps.index("logs read")


def test_what_cannot_be_cleaned_up_is_told_and_what_was_seen_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that has healed serves an operator; that it does not is no matter of its log."""

    async def refuses(*_: object, **__: object) -> object:
        raise Unavailable("nobody serves")

    monkeypatch.setattr(Caller, "call", refuses)
    bench.skip("_safety")
    bench.run()

    assert bench.steps.count("logs read") == 1
    assert any("nobody serves" in each and "cleaned up" in each for each in bench.report.wrong)


def test_each_group_is_cleaned_up_whatever_became_of_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all that failed is told."""
    served, refused = bench._served, []

    async def refuses_some(_: object, request: Message, answer: type[Message]) -> Message:
        name = type(request).__name__
        if name in {"RemoveMembersRequest", "DeleteGroupsRequest"}:
            refused.append(name)
            raise Unavailable(f"refusal {len(refused)}")
        return await served(request, answer)

    async def call(*arguments: Any, **_: object) -> Message:  # noqa: ANN401 - as Caller.call
        return await refuses_some(*arguments[:3])

    monkeypatch.setattr(Caller, "call", call)
    bench.skip("_safety")
    bench.run()

    count = len(groups("chaos", heartbeats=False))
    assert refused == ["RemoveMembersRequest"] * count + ["DeleteGroupsRequest"]
    assert "DeleteTopicsRequest" in bench.steps
    (told,) = bench.report.wrong
    assert all(f"refusal {number}" in told for number in range(1, count + 2))


def test_a_run_that_was_asked_to_end_says_what_it_left_out(bench: Bench) -> None:
    """Two faults of an hour's prove less than an hour's, and whoever reads the report must know."""

    async def inject(_context: object) -> None:
        bench.runner._asked_to_end.set()

    bench.run((Kind("only", "asks the run to end", inject),))

    assert bench.report.faults == {"only": 1}
    assert "2 rounds" in bench.report.cut_short


def test_a_run_that_came_to_its_end_was_not_cut_short(bench: Bench) -> None:
    async def inject(_context: object) -> None:
        """Nothing is broken."""

    bench.run((Kind("only", "breaks nothing", inject),))

    assert bench.report.faults == {"only": 2}
    assert bench.report.cut_short == ""


def test_nodes_that_were_brought_back_are_named_after_a_failed_run_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else stops them: they are no children of `holdfast cluster start` any more."""

    class Running:
        pid = 4711

        def poll(self) -> None:
            """It runs."""

    async def unwell(_: object) -> None:
        raise NotHealed("all nodes follow one leader")

    monkeypatch.setattr(Staging, "whole", unwell)
    monkeypatch.setattr(Staging, "brought_back", {"node-2": Running()})
    monkeypatch.setattr(collect, "read_any_log", bench.step("any", CollectedLog([], [])))
    bench.skip("_safety")
    bench.run()

    assert bench.report.wrong
    assert any("node-2" in each and "4711" in each for each in bench.said)


def test_what_a_part_of_the_run_failed_with_is_told_once_and_hides_no_report(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prober that fails fails the run; what was seen until then is judged nevertheless."""

    async def fails(*_: object) -> None:
        raise Unavailable("the prober is refused")

    monkeypatch.setattr(Prober, "stop", fails)
    monkeypatch.setattr(collect, "read_any_log", bench.step("any", CollectedLog([], [])))
    bench.skip("_safety")
    bench.run()

    assert sum("the prober is refused" in each for each in bench.report.wrong) == 1
    assert "any" in bench.steps
    assert "Observer ended" in bench.steps


def test_an_error_that_was_not_foreseen_is_told_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter([None])

    async def fails_the_second_time(*_: object) -> None:
        if next(calls, "again"):
            raise RuntimeError("a watch broke")

    monkeypatch.setattr(Observer, "stop", fails_the_second_time)
    bench.skip("_safety")
    bench.run()

    assert bench.report.wrong == ["RuntimeError: a watch broke"]


def test_ctrl_c_ends_the_judging_at_once(bench: Bench) -> None:
    """Nobody looks any more whether the run was asked to end: signals do again what they did."""
    bench.skip("_safety", "_prepare", "_work")

    async def fights() -> list[bool]:
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(bench.runner.run(()), PATIENCE_S)
        return [loop.remove_signal_handler(each) for each in (signal.SIGINT, signal.SIGTERM)]

    assert asyncio.run(fights()) == [False, False]
