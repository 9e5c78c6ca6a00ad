"""The tables and the JSON of a run, from figures with known values."""

import json
from pathlib import Path

import pytest

from bench import table
from bench.figures import Cost, Effort, Figure, least
from bench.shapes import BARE_ROW, Shape

FLOOR = Figure(
    BARE_ROW, Shape.COMMITS, 2_000, "changes/s",
    cost=Cost(250, (), 150, 10, ()), shape=Shape.COMMITS,
)  # fmt: skip
COMMITS = Figure(
    "commit", "unary, 64 callers", 1_500, "changes/s", least(3_000), 40.2, 83.0,
    Cost(600, (90, 110), 200, 14, (3.5, 0.25)), Effort(5, 0.9, 0.3, 0.3, 0.1, 2.5),
    shape=Shape.COMMITS,
)  # fmt: skip
PURE = Figure("start", "fold, one core", 28_000, "events/s")
PUTS = Figure("commit", "put of 256 bytes", 5_000, "changes/s", system="etcd")


def cells(text: str, line: int) -> list[str]:
    return [cell for cell in text.splitlines()[line].split("  ") if cell]


def test_a_figure_stands_beside_its_goal_its_sum_and_its_conditions() -> None:
    line = [cell.strip() for cell in cells(table.render([COMMITS]), 1)]
    assert line == [
        "commit", "unary, 64 callers", "1,500", "changes/s", "≥ 3,000", "short", "40.2", "83",
        "1,000", "0.90", "0.30", "0.30", "0.10", "2.5",
    ]  # fmt: skip


def test_columns_line_up() -> None:
    """Every line ends a right-aligned column where its head does."""
    head, one, two = table.render_costs([FLOOR, COMMITS]).splitlines()
    for name in ("us/op", "client", "x bare"):
        end = head.index(name) + len(name)
        assert one[end - 1].isdigit()
        assert two[end - 1].isdigit()


def test_an_operation_is_taken_apart_by_process_and_set_against_bare() -> None:
    line = [cell.strip() for cell in cells(table.render_costs([FLOOR, COMMITS]), 2)]
    assert line == [
        "commit", "unary, 64 callers", "1,000", "600", "90 + 110", "200", "2.50",
        "17.8", "14", "3.5 + 0.25",
    ]  # fmt: skip


def test_without_bare_in_the_run_there_is_no_ratio() -> None:
    assert "2.50" not in table.render_costs([COMMITS])


def test_what_counts_no_operations_is_only_in_the_first_table() -> None:
    assert len(table.render([PURE]).splitlines()) == 2
    assert len(table.render_costs([PURE]).splitlines()) == 1


def test_a_peer_is_named() -> None:
    assert "commit (etcd)" in table.render([PUTS])


def test_json_has_every_number_of_both_tables(tmp_path: Path) -> None:
    table.write(tmp_path / "bench.json", {"cores": 2}, [FLOOR, COMMITS, PURE])
    found = json.loads((tmp_path / "bench.json").read_text())
    assert found["conditions"] == {"cores": 2}
    _, commits, pure = found["figures"]
    assert commits["cost"] == {
        "leader_us": 600, "followers_us": [90, 110], "client_us": 200, "sum_us": 1_000,
        "leader_switches": 14, "followers_switches": [3.5, 0.25],
    }  # fmt: skip
    assert commits["to_bare"] == pytest.approx(2.5)
    assert (commits["goal"], commits["verdict"]) == ("≥ 3,000", "short")
    assert commits["effort"]["leader"] == 0.9
    assert (pure["cost"], pure["to_bare"], pure["effort"]) == (None, None, None)
