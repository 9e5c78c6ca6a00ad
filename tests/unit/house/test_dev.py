"""`./dev`, without a network: what it trusts, what it counts, and what it says to people."""

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin

import pytest

ROOT = Path(__file__).resolve().parents[3]
WHEEL = "https://index.example/files/pip-25.1-py3-none-any.whl"


@pytest.fixture
def dev() -> ModuleType:
    loader = SourceFileLoader("dev", str(ROOT / "dev"))
    spec = spec_from_loader("dev", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def offer(dev: ModuleType, monkeypatch: pytest.MonkeyPatch, wheel: bytes, sha256: str) -> None:
    monkeypatch.setattr(dev, "find_pip", lambda: (WHEEL, sha256))
    monkeypatch.setattr(dev, "download", lambda _address: wheel)


def test_pip_is_taken_when_its_checksum_is_that_of_the_index(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(dev, monkeypatch, b"a wheel", hashlib.sha256(b"a wheel").hexdigest())

    assert dev.fetch_pip(tmp_path).read_bytes() == b"a wheel"


def test_pip_is_refused_when_its_checksum_differs(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(dev, monkeypatch, b"another wheel", hashlib.sha256(b"a wheel").hexdigest())

    with pytest.raises(dev.Problem, match="nothing was installed"):
        dev.fetch_pip(tmp_path)


def test_an_address_in_the_json_may_be_relative_as_mirrors_have_it(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = {"packagetype": "bdist_wheel", "url": "../../w.whl", "digests": {"sha256": "00"}}
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setattr(dev, "download", lambda _address: json.dumps({"urls": [file]}))

    assert dev.find_pip() == (urljoin(dev.PIP_JSON, "/w.whl"), "00")


def test_the_newest_final_release_of_an_index_page_is_chosen(dev: ModuleType) -> None:
    """By number, not by text: 25.10 is newer than 25.9. Pre-releases and sources do not count."""
    names = [
        "pip-25.9-py3-none-any.whl",
        "pip-25.10-py3-none-any.whl",
        "pip-26.0b1-py3-none-any.whl",
        "pip-27.0.tar.gz",
    ]
    page = "".join(f'<a href="../f/{name}#sha256={i:064x}">x</a>' for i, name in enumerate(names))

    address, sha256 = dev.newest_wheel("https://index.example/simple/pip/", page)

    assert address == "https://index.example/simple/f/pip-25.10-py3-none-any.whl"
    assert sha256 == f"{1:064x}"


def test_an_index_without_checksums_is_refused(dev: ModuleType) -> None:
    with pytest.raises(dev.Problem, match="PIP_INDEX_URL"):
        dev.newest_wheel("https://index.example/pip/", '<a href="pip-25.1-py3-none-any.whl">x</a>')


def test_errors_while_collecting_count_as_failures(dev: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "unit.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'
    )

    assert dev.read_report(report) == dev.Outcome(passed=5, failed=3, skipped=1)


@pytest.mark.parametrize(("code", "failed"), [(0, 0), (2, 1)])
def test_a_part_that_ends_badly_fails_even_if_its_report_is_fine(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, failed: int
) -> None:
    def pretend(command: list[str], **_options: object) -> int:
        text = '<testsuites><testsuite tests="1" failures="0" errors="0" skipped="0"/></testsuites>'
        (tmp_path / "unit.xml").write_text(text)
        assert command[-1] == "tests/unit"
        return code

    monkeypatch.setattr(dev, "run", pretend)
    monkeypatch.setattr(dev, "REPORTS", tmp_path)

    assert dev.run_pytest("unit", "python", "unit", []) == dev.Outcome(1, failed)


def test_a_part_that_leaves_no_report_fails(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev, "run", lambda *_command, **_options: 0)
    monkeypatch.setattr(dev, "REPORTS", tmp_path)

    assert dev.run_pytest("unit", "python", "unit", []) == dev.Outcome(0, 1)


def test_the_closing_line_is_the_sum_over_the_parts(
    dev: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [dev.Row("unit", dev.Outcome(5, 1), 1.0), dev.Row("lint", dev.Outcome(1, 0), 2.0)]

    dev.print_table(rows, 2.5)

    assert capsys.readouterr().out.splitlines()[-1] == "6 passed, 1 failed"


def test_one_failed_part_fails_the_run(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev, "REPORTS", tmp_path)
    parts = [
        dev.Part("a", lambda _arguments: dev.Outcome(0, 1)),
        dev.Part("b", lambda _arguments: dev.Outcome(3, 0)),
    ]

    assert dev.run_parts(parts, []) == 1
    assert dev.run_parts(parts[1:], []) == 0


@pytest.fixture
def beside(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], int]:
    """Run the narrow parts `a` and `b`; both are this code, which finds its name in `name`."""

    def run(code: str) -> int:
        begin = "import json, pathlib, sys, time; name = sys.argv[1]; here = pathlib.Path();"
        command = [sys.executable, "-c", f"{begin}{code}"]
        monkeypatch.setattr(dev, "part_command", lambda name, rest: [*command, name, *rest])
        parts = [dev.Part(name, lambda _arguments: None, narrow=True) for name in "ab"]
        return int(dev.run_parts(parts, ["x y"]))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dev, "REPORTS", tmp_path)
    return run


@pytest.fixture
def started(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Keep the processes of the parts that run beside others, in the order of their start."""
    processes: list[subprocess.Popen[bytes]] = []
    start = dev.start_beside

    def start_and_keep(name: str, arguments: list[str]) -> object:
        part = start(name, arguments)
        processes.append(part.process)
        return part

    monkeypatch.setattr(dev, "start_beside", start_and_keep)
    return processes


TELL = "(here / f'{name}.json').write_text(json.dumps([2, 0, 0]))"


def test_narrow_parts_run_side_by_side_and_add_up(
    monkeypatch: pytest.MonkeyPatch,
    beside: Callable[[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each waits until it sees the other at work: one after another, neither would end well."""
    meet = f"""
print("this is", name, sys.argv[2:])
(here / name).touch()
deadline = time.monotonic() + 60
while not all((here / each).exists() for each in "ab"):
    time.sleep(0.01)
    assert time.monotonic() < deadline
{TELL}"""
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    assert beside(meet) == 0
    shown = capsys.readouterr().out
    assert "== a\nthis is a ['x y']\n" in shown
    assert "== b\nthis is b ['x y']\n" in shown
    assert shown.splitlines()[-1] == "4 passed, 0 failed"


def test_on_one_core_a_part_begins_when_the_one_before_has_ended(
    dev: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    beside: Callable[[str], int],
    started: list[subprocess.Popen[bytes]],
) -> None:
    start = dev.start_beside

    def start_when_all_ended(name: str, arguments: list[str]) -> object:
        assert all(process.poll() is not None for process in started)
        return start(name, arguments)

    monkeypatch.setattr(dev, "start_beside", start_when_all_ended)
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    assert beside(TELL) == 0
    assert len(started) == 2


def test_a_part_beside_others_that_leaves_no_outcome_fails(
    beside: Callable[[str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """An outcome of an earlier run does not count."""
    Path("b.json").write_text("[1, 0, 0]")

    assert beside(f"name == 'b' and sys.exit('no memory'); {TELL}") == 1
    shown = capsys.readouterr().out
    assert "no memory\n./dev: b ended with code 1 and no outcome" in shown
    assert shown.splitlines()[-1] == "2 passed, 1 failed"


def test_parts_end_with_the_run_that_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
    beside: Callable[[str], int],
    started: list[subprocess.Popen[bytes]],
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("time.sleep", interrupt)

    with pytest.raises(KeyboardInterrupt):
        beside("time.sleep(600)")
    assert [process.poll() for process in started] == [-signal.SIGTERM, -signal.SIGTERM]


def test_one_part_leaves_its_outcome_for_the_run_that_started_it(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = dev.Part("unit", lambda arguments: dev.Outcome(len(arguments), 1, 3))
    monkeypatch.setattr(dev, "project_python", lambda: "python")
    monkeypatch.setattr(dev, "REPORTS", tmp_path)
    monkeypatch.setattr(dev, "all_parts", lambda: [part])

    assert dev.one_part(["unit", "-k", "a or b"]) == 1
    assert json.loads((tmp_path / "unit.json").read_text()) == [2, 1, 3]
    with pytest.raises(dev.Problem, match="Did you mean unit"):
        dev.one_part(["unti"])


def test_what_follows_the_dashes_reaches_pytest_as_it_was_typed(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The shell took the quotes off already: an argument with spaces is one argument."""
    seen: dict[str, list[str]] = {}

    def part(name: str) -> object:
        def run(arguments: list[str]) -> object:
            seen[name] = list(arguments)
            return dev.Outcome(1, 0)

        return dev.Part(name, run)

    monkeypatch.setattr(dev, "project_python", lambda: "python")
    monkeypatch.setattr(dev, "REPORTS", tmp_path)
    monkeypatch.setattr(dev, "all_parts", lambda: [part("unit"), part("raft")])

    assert dev.test(["unit", "--", "-k", "a or b", "--lf"]) == 0
    assert seen == {"unit": ["-k", "a or b", "--lf"]}
    assert dev.test([]) == 0
    assert seen == {"unit": [], "raft": []}


def test_a_misspelt_task_is_answered_with_the_near_one(dev: ModuleType) -> None:
    assert "Did you mean test?" in dev.unknown("task", "tset", ["check", "test"])


def test_a_test_folder_that_no_list_names_still_runs(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("spark", "unit", "novel"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_x.py").touch()
    (tmp_path / "tests" / "harness").mkdir()
    monkeypatch.setattr(dev, "ROOT", tmp_path)

    assert dev.test_folders() == ["unit", "novel", "spark"]
