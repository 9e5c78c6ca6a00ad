"""A tail follows nodes; of a folder of something else it would wait for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.replay.findings import WrongUse
from holdfast.replay.stream.followed import refuse_others_than_nodes
from spark.event_logs import busy_log, write_node


def test_a_folder_of_something_else_is_refused_and_the_right_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "node-1" / "data" / "state").mkdir(parents=True)
    (tmp_path / "README.md").touch()

    with pytest.raises(WrongUse, match=r"has no segments: .*node-1/data is the data directory"):
        refuse_others_than_nodes(tmp_path)


@pytest.mark.parametrize("name", ["raft", "state", "segments", ""])
def test_a_node_that_has_sealed_nothing_yet_is_waited_for(name: str, tmp_path: Path) -> None:
    (tmp_path / "data" / name).mkdir(parents=True)

    refuse_others_than_nodes(tmp_path / "data")


def test_a_folder_of_segments_is_followed(tmp_path: Path) -> None:
    node = write_node(tmp_path / "n1", "n1", busy_log().rows)

    refuse_others_than_nodes(node / "segments")
