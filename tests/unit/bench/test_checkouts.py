"""Finding another checkout: a wrong path is one sentence that says what to do."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import holdfast.server
from bench import against, run
from bench.checkouts import Checkout, NotUsable, environment_of, find
from bench.comparison import A, Seen, Turn
from bench.figures import REST
from bench.rig import Say
from bench.sizes import QUICK

FINE = "print('making .venv'); print('usage: ./dev bench')\n"
"""A ./dev whose environment is ready."""
NO_ROW = "its ./dev bench has no such row"
ABOUT = {"commit": "abc", "packages": {}}


def plant(root: Path, dev: str, *, environment: bool = False) -> Path:
    """A checkout with this ./dev, and our own environment's Python."""
    (root / "dev").write_text(dev)
    if environment:
        place = root / ".venv" / "bin"
        place.mkdir(parents=True)
        (place / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (place / "python").chmod(0o755)
        (place / "holdfast").touch()
    return root


def said_of(path: Path) -> str:
    with pytest.raises(NotUsable) as raised:
        find(path)
    return str(raised.value)


def test_no_directory(tmp_path: Path) -> None:
    assert "there is no directory" in said_of(tmp_path / "nowhere")


def test_no_checkout(tmp_path: Path) -> None:
    assert "no checkout of Holdfast: there is no ./dev" in said_of(tmp_path)


def test_an_environment_that_cannot_be_made_says_how_to_see_why(tmp_path: Path) -> None:
    broken = "import sys; print('There is no task bench'); sys.exit(2)"
    said = said_of(plant(tmp_path, broken))
    assert f"`cd {tmp_path} && ./dev bench --help`" in said
    assert "code 2: There is no task bench" in said


def test_another_layout(tmp_path: Path) -> None:
    assert "another layout" in said_of(plant(tmp_path, FINE))


@pytest.mark.slow
@pytest.mark.source("it asks where this checkout's own code lies")
def test_an_environment_with_the_code_of_another_checkout(tmp_path: Path) -> None:
    """As a copied .venv has it: its nodes would be this checkout's, and every ratio near 1."""
    said = said_of(plant(tmp_path, FINE, environment=True))
    assert f"the environment {tmp_path / '.venv'} runs the code of another checkout" in said
    assert holdfast.server.__file__ in said


def test_progress_is_shown_and_the_help_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said_of(plant(tmp_path, FINE))
    assert capsys.readouterr().out == "  making .venv\n"


def test_a_wrong_path_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run.main(["--against", str(tmp_path / "nowhere"), "--out", str(tmp_path)])
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"./dev bench --against {tmp_path / 'nowhere'}: there is no directory")


@pytest.mark.parametrize(
    "words", [["--pairs", "2"], ["--against", ".", "--pairs", "0"], ["--against", ".", "etcd"]]
)
def test_what_makes_no_sense_is_refused_before_anything_runs(words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        run.main(words)
    assert raised.value.code == 2


def test_a_checkouts_programs_do_not_see_this_ones_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH is how ./dev lets our load find its helpers; nodes of another have no such."""
    monkeypatch.setenv("PYTHONPATH", "here")
    monkeypatch.setenv("VIRTUAL_ENV", "here")
    environment = environment_of(tmp_path)
    assert not {"PYTHONPATH", "VIRTUAL_ENV"} & set(environment)
    assert environment["PATH"].startswith(f"{tmp_path}/.venv/bin:")


# --- rows that a checkout measures by itself ------------------------------------------------------

OWN_RUN = """
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]); out.mkdir(parents=True)
print("[   0.1 s, load  2.0] assign: sticky: 0.4 s")
assert sys.argv[1] == "bench" and "--quick" in sys.argv
figure = {"row": sys.argv[2], "what": "sticky", "value": 0.4, "unit": "s"}
disk = {"row": "disk", "what": "sync", "value": 0.2, "unit": "ms"}
content = {"conditions": {"failed": FAILED}, "figures": [disk, figure]}
(out / "bench.json").write_text(json.dumps(content))
sys.exit(len(FAILED))
"""


def own_run(root: Path, dev: str, row: str, compiled: Path | None = None) -> Turn:
    """One turn of a checkout whose ./dev is this program."""
    checkout = Checkout(plant(root, dev, environment=True), ABOUT, compiled)
    measuring = against.Against({A: checkout}, QUICK, quick=True, folder=root, say=Say())
    turns: list[Turn] = []
    asyncio.run(measuring.run([row], 1, turns), debug=False)
    return turns[0]


@pytest.fixture(autouse=True)
def _one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A's turn alone."""
    monkeypatch.setattr(against, "plan", lambda rows, _pairs: [(0, rows[0], A)])


def test_a_row_without_load_is_measured_by_the_checkouts_own_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = own_run(tmp_path, OWN_RUN.replace("FAILED", "{}"), "assign")
    assert turn == Turn("assign", 0, A, {"sticky": Seen("sticky", "s", 0.4)})
    assert "pair 1 of 1, A: assign: sticky: 0.4 s" in capsys.readouterr().out
    assert not (tmp_path / "run" / "own-A").exists()


def test_a_checkout_with_compiled_rules_imports_them_first(tmp_path: Path) -> None:
    """Both its nodes, and its own run of a row; it is named as such."""
    checkout = Checkout(tmp_path, ABOUT, tmp_path / "site")
    assert checkout.program.environment is not None
    assert checkout.program.environment["PYTHONPATH"] == str(tmp_path / "site")
    assert str(checkout).endswith("at abc, its rules compiled")
    assert "PYTHONPATH" not in (Checkout(tmp_path, ABOUT).program.environment or {})

    dev = OWN_RUN.replace("FAILED", "{}") + '\nassert "--compiled" in sys.argv'
    dev = dev.replace("sys.exit(len({}))", "")
    assert own_run(tmp_path, dev, "assign", tmp_path / "site").failed == ""


def test_a_row_that_failed_there_says_why(tmp_path: Path) -> None:
    turn = own_run(tmp_path, OWN_RUN.replace("FAILED", '{"assign": "it broke"}'), "assign")
    assert turn.failed == "it broke"


@pytest.mark.parametrize(
    ("said", "code", "failed", "lacking"),
    [
        ("error: there is no row 'assign'; there are: commit", 2, "", {REST: NO_ROW}),
        ("no space left", 1, "its ./dev bench ended with code 1: no space left", {}),
    ],
)
def test_a_run_without_results_is_named(
    said: str, code: int, failed: str, lacking: Mapping[str, str]
) -> None:
    """A row that came later than the other checkout is nobody's failure."""
    turn = against.outcome(Turn("assign", 0, A), ["usage", said, ""], code, {})
    assert (turn.failed, turn.lacking, turn.figures) == (failed, lacking, {})


def test_results_of_another_layout_are_a_failure_not_a_crash() -> None:
    written = json.loads('{"figures": [{"row": "assign", "name": "sticky"}]}')
    turn = against.outcome(Turn("assign", 0, A), [], 0, written)
    assert "bench.json" in turn.failed
