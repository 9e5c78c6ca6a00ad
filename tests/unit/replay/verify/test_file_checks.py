"""What the check of files does where a worker does not see what the driver sees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.replay.findings import CannotCheck
from holdfast.replay.read.log_rows import ResultRow
from holdfast.replay.read.node_logs import node_logs
from holdfast.replay.spark.tasks import Task
from holdfast.replay.verify.file_checks import check_forms
from spark.archive_damage import data, sound_nodes
from unit.replay.verify.plain_reader import PlainReader


class Elsewhere:
    """A worker on a machine that has not the file, though the driver's has."""

    def __init__(self, file: Path) -> None:
        self._file, self._aside = file, file.with_name("aside")

    def run(self, tasks: Sequence[Task]) -> list[ResultRow]:
        self._file.rename(self._aside)
        try:
            return PlainReader().run(tasks)
        finally:
            self._aside.rename(self._file)


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    sound_nodes(tmp_path)
    return [tmp_path / name for name in ("n1", "n2", "n3")]


def test_a_worker_that_does_not_see_a_file_accuses_nobody(nodes: list[Path]) -> None:
    """The log may be sound: it could not be checked, and the sentence says what to do."""
    file = data(nodes[0])

    with pytest.raises(CannotCheck, match=r"does not find .* which is here"):
        check_forms(Elsewhere(file).run, node_logs(nodes))


def test_a_file_that_is_gone_for_the_driver_too_is_a_finding(nodes: list[Path]) -> None:
    """It went between the look at the folder and the look into the file."""
    logs = node_logs(nodes)
    data(nodes[2]).unlink()

    found = check_forms(PlainReader().run, logs).findings

    assert [(each.node, each.kind) for each in found] == [("n3", "unreadable")]
