"""`./dev`, without a network: what it trusts, what it counts, and what it says to people."""

import hashlib
import json
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin

import pytest

WHEEL = "https://index.example/files/pip-25.1-py3-none-any.whl"


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


def test_what_runs_may_keep_bytecode_where_the_machine_forbids_it(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else each process that a test starts would compile all modules again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    out = tmp_path / "said"
    code = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(str(sys.flags))"

    assert dev.run([sys.executable, "-c", code], PYTHONOPTIMIZE="1") == 0
    assert "dont_write_bytecode=0" in out.read_text()
    assert "optimize=1" in out.read_text(), "what the command is given beside it"


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
