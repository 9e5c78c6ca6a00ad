"""What nodes show of themselves, with moments that no checker is misled by."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from holdfast.chaos.cluster.target import Target
from holdfast.chaos.history.happenings import Role
from holdfast.chaos.history.jsonl import happening_of
from holdfast.chaos.workload import observer
from holdfast.chaos.workload.observer import Observer
from holdfast.chaos.workload.recorder import Recorder
from holdfast.v1.admin_pb2 import DescribeClusterResponse


class Dead:
    """A cluster of which nothing runs."""

    names = ("a", "b")

    def alive(self, name: str) -> bool:
        del name
        return False


def test_who_leads_now_may_have_begun_since_it_was_last_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: a new leader's deadlines count from its beginning; told late, they would look early.

    On a busy machine an answer may be seconds old when it is read: it is as old as its question.
    """
    moments = iter(range(100, 1_000, 100))
    monkeypatch.setattr(observer, "boot_us", lambda: next(moments))
    recorder = Recorder(tmp_path / "history", 0)
    watching = Observer(cast("Target", Dead()), recorder)
    watching.note("a", DescribeClusterResponse(leader="b", term=1), 50)
    looked_us = watching.looked_us["a"]
    watching.note("a", DescribeClusterResponse(leader="a", term=2), 150)
    recorder.close()
    written = [happening_of(line) for line in (tmp_path / "history").read_text().splitlines()]

    assert written[-1] == Role(looked_us, "a", "leader", 2, earliest_us=50)


def test_a_node_that_does_not_answer_is_down_only_when_its_process_is_gone(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "history", 0)
    watching = Observer(cast("Target", Dead()), recorder)
    watching.note("a", DescribeClusterResponse(leader="b", term=4), 1)
    watching.note("a", None, 2)
    recorder.close()
    written = [happening_of(line) for line in (tmp_path / "history").read_text().splitlines()]

    assert [each.role for each in written if isinstance(each, Role)] == ["follower", "down"]
