"""The door of the `holdfast` command: a missing extra is named, any other fault is shown whole."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.children import environment
from holdfast.cli import entry
from holdfast.cli import main as cli


def test_the_command_itself_needs_the_smallest_extra() -> None:
    assert (entry.missing_extra("click") or "").endswith("pip install 'holdfast[cli]'")


def test_a_package_of_the_server_extra_is_named_with_the_command() -> None:
    sentence = entry.missing_extra("lmdb") or ""

    assert "lmdb" in sentence
    assert sentence.endswith("pip install 'holdfast[server]'")


def test_a_module_inside_a_package_of_the_spark_extra_counts_as_the_package() -> None:
    sentence = entry.missing_extra("pyspark.sql") or ""

    assert sentence.endswith("pip install 'holdfast[spark]'")


def test_a_module_that_no_extra_brings_is_a_fault_and_stays_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(name: str) -> None:
        raise ModuleNotFoundError(name, name="holdfast.cli")

    monkeypatch.setattr(entry, "import_module", lost)

    with pytest.raises(ModuleNotFoundError):
        entry.main()


def test_an_interrupt_while_modules_are_imported_ends_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C in the first second is no fault: no traceback, the shells' exit code for SIGINT."""

    def interrupted(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(entry, "import_module", interrupted)

    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130


def test_an_interrupt_while_a_command_is_imported_ends_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(cli, "import_module", interrupted)
    ended = CliRunner().invoke(cli.main, ["topic", "list"])

    assert (ended.exit_code, ended.output) == (130, "")


@pytest.mark.parametrize("option", [[], ["-P"]])
def test_the_module_imports_nothing_from_the_working_directory(
    option: list[str], tmp_path: Path
) -> None:
    """`python -m` puts that directory first; `-P` is what children of ours are started with."""
    (tmp_path / "click.py").write_text("import pathlib; pathlib.Path('ran').touch()\n")
    command = [sys.executable, *option, "-m", "holdfast.cli", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )

    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr
