"""`holdfast replay views` prints SQL that DuckDB runs as it is, or says why there is none."""

from __future__ import annotations

from pathlib import Path

import duckdb
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import write_history


def test_what_it_prints_makes_the_state(tmp_path: Path) -> None:
    write_history(Plan(200, groups=3, seed=2, nodes=2), tmp_path / "made", lambda *_: None)
    folders = [word for n in (1, 2) for word in ("--node-dir", str(tmp_path / f"made/node-{n}"))]

    printed = CliRunner().invoke(main, ["replay", "views", *folders])

    assert printed.exit_code == 0, printed.output
    with duckdb.connect() as base:
        base.execute(printed.output)
        found = base.execute("select count(*) from holdfast.state where kind = 'member'").fetchone()
    assert found is not None
    assert found[0] > 0


def test_a_directory_without_a_segment_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()

    printed = CliRunner().invoke(main, ["replay", "views", "--node-dir", str(tmp_path)])

    assert printed.exit_code == 2
    assert "has no segment" in printed.output
    assert "Traceback" not in printed.output
