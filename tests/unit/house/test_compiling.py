"""Compiling the rules is asked for, and says in a sentence what it lacks (docs/adr/0022)."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
NO_COMPILER = "no-such-compiler"


def test_a_missing_compiler_is_named_and_nothing_is_built(
    dev: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CC", NO_COMPILER)
    monkeypatch.setattr(dev, "project_python", lambda: sys.executable)

    with pytest.raises(dev.Problem, match="No wheel was built"):
        dev.build_wheel(tmp_path, compiled=True)
    (sentence,) = capfd.readouterr().err.splitlines()
    assert sentence.startswith("The rules cannot be compiled: there is no C compiler")
    assert NO_COMPILER in sentence
    assert not list(tmp_path.iterdir())


def test_a_build_without_the_task_says_so_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As pip would run it: the hook itself looks for the compiler."""
    monkeypatch.setenv("CC", NO_COMPILER)
    monkeypatch.setenv("HATCH_BUILD_HOOK_ENABLE_CUSTOM", "true")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert NO_COMPILER in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_compiled_run_needs_compiled_rules(tmp_path: Path) -> None:
    """The source must never be tested in the place of compiled rules, unseen."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "--compiled", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "`./dev test --compiled` compiled ones" in done.stderr


def test_what_else_the_wheel_task_is_given_is_refused(dev: ModuleType) -> None:
    with pytest.raises(dev.Problem, match="--compile"):
        dev.wheel(["--compile"])


def test_a_compiled_run_imports_the_wheel_first_and_runs_what_it_must_pass(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[list[str], list[str]]] = []
    monkeypatch.setenv("PYTHONPATH", "/inherited")
    monkeypatch.setattr(dev, "project_python", lambda: sys.executable)
    monkeypatch.setattr(dev, "compiled_site", lambda: tmp_path)
    monkeypatch.setattr(
        dev, "run_parts", lambda parts, rest: ran.append(([each.name for each in parts], rest))
    )

    dev.test(["--compiled", "--", "-k", "fence"])
    dev.test(["unit", "--compiled"])
    assert ran == [
        (
            ["stories", "unit", "conformance", "simulation", "compiled"],
            ["--compiled", "-k", "fence"],
        ),
        (["unit"], ["--compiled"]),
    ]
    assert os.environ["PYTHONPATH"].startswith(f"{tmp_path}{os.pathsep}")
    assert os.environ["PYTHONPATH"].endswith(f"{os.pathsep}/inherited")


def test_a_bare_run_has_no_compiled_part(dev: ModuleType) -> None:
    assert dev.COMPILED not in [part.name for part in dev.all_parts()]


def test_a_change_of_any_source_is_another_build(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Compiled rules of an older source must never be tested, or measured, as those of this one."""
    places = ["pyproject.toml", "coordinator/compile_rules.py", "a/holdfast/one.py"]
    roots = '[tool.hatch.build]\ndev-mode-dirs = ["a"]\n'
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(roots)
    monkeypatch.setattr(dev, "ROOT", tmp_path)

    seen = [dev.sources_digest()]
    for place in places:
        (tmp_path / place).write_text(f"{roots}# changed\n")
        seen.append(dev.sources_digest())
    (tmp_path / "a/holdfast/one.pyc").write_text("not shipped")
    assert dev.sources_digest() == seen[-1]
    assert len(set(seen)) == 1 + len(places)
