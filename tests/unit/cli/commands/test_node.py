"""`holdfast node` as a supervisor sees it: which exit code an unusable configuration has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.commands import node, node_process
from holdfast.server.config.node_config import CannotStart, ConfigError, ExtraMissing
from holdfast.server.process import gc_tuning

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("error", "code"), [(ConfigError, 1), (CannotStart, 1), (ExtraMissing, 2)])
def test_a_missing_extra_ends_it_as_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[Exception], code: int
) -> None:
    """As the table of exit codes in docs/operations/config.md says."""

    def refused(*_arguments: object) -> None:
        raise error("pip install it")

    monkeypatch.setattr(node_process, "load", refused)
    monkeypatch.setattr(gc_tuning, "begin_start", lambda: None)
    ended = CliRunner().invoke(node.node, ["--config", str(tmp_path / "node.toml")])

    assert ended.exit_code == code
    assert "pip install it" in ended.output
