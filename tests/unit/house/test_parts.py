"""The parts of `./dev test`: which run side by side, what they come to, and how they end.

Most of it runs the true `./dev` in a small tree with folders of tests `a`, `b`. Whoever is to
be found dead afterwards holds a lock while it lives: process ids are used again.
"""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from harness.poll import until

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 60
MAIN = 'if __name__ == "__main__":'
INJECTED = f"""
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, although
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run in the background, under nohup


def project_python():
    return {sys.executable!r}


def cores():
    return """
FINE = "def test_it(): pass\n"
LISTEN = """
import os, signal
def test_it():
    signal.alarm(60)
    assert os.read(0, 1)
"""
HANG = """
import fcntl, pathlib, signal
name = pathlib.Path(__file__).stem
lock = open(f"{name}.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
pathlib.Path(f"{name}.on").touch()
"""
WAIT = """
import pathlib, signal, time
def test_it():
    signal.alarm(60)
    while not pathlib.Path({!r}).exists():
        time.sleep(0.01)
"""


class Tree:
    """A small repository with the true `./dev`, for which this Python is the environment."""

    def __init__(self, folder: Path, *, cores: int = 2, injected: str = "", **tests: str) -> None:
        self.folder = folder
        text = (ROOT / "dev").read_text()
        assert text.count(MAIN) == 1
        (folder / "dev").write_text(text.replace(MAIN, f"{INJECTED}{cores}\n\n\n{injected}{MAIN}"))
        for name, content in tests.items():
            (folder / "tests" / name).mkdir(parents=True)
            (folder / "tests" / name / f"test_{name}.py").write_text(content)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """`./dev test` with these arguments; it is ended if it does not end by itself."""
        with subprocess.Popen(
            [sys.executable, str(self.folder / "dev"), "test", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()

    def run(self, *arguments: str) -> tuple[int, str]:
        """Its exit code, and all that it printed."""
        with self.running(*arguments) as process:
            assert process.stdout is not None
            printed = process.stdout.read()
            return process.wait(), printed

    def wait_for(self, name: str) -> None:
        """Until this file is there."""
        until((self.folder / name).exists, name)

    def wait_for_end(self, name: str) -> None:
        """Until whoever holds this lock has ended."""

        def ended() -> bool:
            with (self.folder / f"{name}.lock").open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

        until(ended, f"{name} has ended")


MEET = """
import pathlib, signal, time
def test_it():
    signal.alarm(60)
    pathlib.Path("{0}.here").touch()
    while not all(pathlib.Path(name + ".here").exists() for name in "{1}"):
        time.sleep(0.01)
"""
"""Passes only while the files that it names run as well."""


def order(printed: str, *signs: str) -> list[str]:
    """The lines that are one of these, as they came."""
    return [line for line in printed.splitlines() if line in signs]


HANGING = f"{HANG}def test_it(): signal.pause()\n"
A_BEGUN, B_BEGUN = "./dev: a has begun", "./dev: b has begun"


@pytest.mark.slow
def test_narrow_parts_run_side_by_side_and_add_up(tmp_path: Path) -> None:
    """The table is in the order asked for, whoever ends first; arguments arrive as typed.

    There is nobody to type to `b`, and pytest keeps for each part what failed in it last.
    """
    tree = Tree(
        tmp_path,
        a=f"{WAIT.format('c.on')}def test_left_out(): assert False\n",
        b=LISTEN,
        c="import pathlib\ndef test_it(): pathlib.Path('c.on').touch()\n",
    )

    code, printed = tree.run("a", "b", "c", "--", "-s", "-k", "it and not out")

    begun = "./dev: c has begun"
    seen = order(printed, A_BEGUN, B_BEGUN, begun, "== b")
    assert seen == [A_BEGUN, B_BEGUN, "== b", begun]
    rows = [line.split()[:4] for line in printed.partition("\npart ")[2].splitlines()[1:4]]
    assert rows == [["a", "ok", "1", "0"], ["b", "FAILED", "0", "1"], ["c", "ok", "1", "0"]]
    assert (code, printed.splitlines()[-1]) == (1, "2 passed, 1 failed")
    failed = (tmp_path / ".pytest_cache").glob("*/v/cache/lastfailed")
    assert [path.parts[-4] for path in failed] == ["b"]


@pytest.mark.slow
def test_on_one_core_a_part_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    code, printed = Tree(tmp_path, cores=1, a=FINE, b=FINE).run("a", "b")

    assert order(printed, A_BEGUN, B_BEGUN, "== a", "== b") == [A_BEGUN, "== a", B_BEGUN, "== b"]
    assert (code, printed.splitlines()[-1]) == (0, "2 passed, 0 failed")


@pytest.mark.slow
def test_a_part_that_is_named_twice_runs_twice_in_turn(tmp_path: Path) -> None:
    """As people do who look for a flaky test; at once, the two would share their report."""
    code, printed = Tree(tmp_path, a=FINE, b=FINE).run("a", "b", "a")

    assert order(printed, A_BEGUN, B_BEGUN, "== a", "== b") == ["== a", "== b", "== a"]
    assert (code, printed.splitlines()[-1]) == (0, "3 passed, 0 failed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "names"),
    [
        *((folder, "abc") for folder in ("cluster", "unit")),
        *((folder, "ab") for folder in ("conformance", "drill", "spark")),
    ],
)
def test_the_files_of_a_shared_folder_run_side_by_side(
    tmp_path: Path, folder: str, names: str
) -> None:
    """One for each core, and half as many again where tests wait long."""
    tests = tmp_path / "tests" / folder
    tests.mkdir(parents=True)
    for name in names:
        (tests / f"test_{name}.py").write_text(MEET.format(name, names.replace(name, "")))

    code, printed = Tree(tmp_path).run(folder)
    assert (code, printed.splitlines()[-1]) == (0, f"{len(names)} passed, 0 failed"), printed


@pytest.mark.slow
def test_a_part_whose_run_dies_fails_and_no_other(tmp_path: Path) -> None:
    kill = "import os, signal\ndef test_it(): os.kill(os.getppid(), signal.SIGKILL)\n"

    code, printed = Tree(tmp_path, a=FINE, b=kill).run("a", "b")

    assert "./dev: b ended with code -9, and told no outcome" in printed
    assert (code, printed.splitlines()[-1]) == (1, "1 passed, 1 failed")


@pytest.mark.parametrize("code", [1, 2, -9])
def test_an_outcome_does_not_hide_how_a_part_ended(
    dev: ModuleType, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], code: int
) -> None:
    """Nor does a byte that is no text hide either: what a part printed is shown as it is."""
    (tmp_path / "log").write_bytes(b"\xff all is well\n")
    (tmp_path / "outcome").write_text("[2, 0, 0]")
    ended = dev.Beside("a", 0.0, SimpleNamespace(returncode=code), tmp_path)

    assert dev.finish_beside(ended).outcome == dev.Outcome(0, 1)
    shown = capsysbinary.readouterr().out.splitlines()
    assert shown[1:3] == [b"== a", b"\xff all is well"]
    assert shown[3].startswith(b"./dev: a ended with code %d, but told Outcome(passed=2" % code)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_all_parts_end_with_the_run_that_is_told_to(tmp_path: Path, number: int) -> None:
    tree = Tree(tmp_path, a=HANGING, b=HANGING)
    with tree.running("a", "b") as process:
        tree.wait_for("test_a.on")
        tree.wait_for("test_b.on")
        process.send_signal(number)
        assert process.wait(WITHIN_S) == 130
        tree.wait_for_end("test_a")
        tree.wait_for_end("test_b")


@pytest.mark.slow
def test_all_parts_end_with_a_run_whose_reader_has_gone(tmp_path: Path) -> None:
    """`./dev test | head`: it learns that with the next line that it prints."""
    tree = Tree(tmp_path, a=HANGING, b=WAIT.format("go"))
    with tree.running("a", "b") as process:
        tree.wait_for("test_a.on")
        assert process.stdout is not None
        process.stdout.close()
        (tmp_path / "go").touch()
        assert process.wait(WITHIN_S) == 128 + signal.SIGPIPE
        tree.wait_for_end("test_a")


@pytest.mark.slow
def test_an_installation_ends_with_the_run_that_is_interrupted(tmp_path: Path) -> None:
    """Else pip would go on in an environment whose lock is free again."""
    pip = tmp_path / "pip.py"
    pip.write_text(f"{HANG}signal.pause()\n")
    step = f"run_shown([sys.executable, {str(pip)!r}], 'pip')"
    hang = f"def project_python():\n    if sys.argv[1] == 'part':\n        {step}\n\n\n"
    tree = Tree(tmp_path, cores=1, injected=hang, a=FINE, b=FINE)
    with tree.running("a", "b") as process:
        tree.wait_for("pip.on")
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 130
        tree.wait_for_end("pip")


def test_parts_that_need_the_machine_have_it_to_themselves(dev: ModuleType) -> None:
    wide = {part.name for part in dev.all_parts() if not part.narrow}
    assert wide == {"cluster", "drill", "spark", "conformance", "install", "unit"}


def test_the_making_of_one_environment_holds_up_no_other(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, bool] = {}

    def is_free(folder: str) -> bool:
        with (tmp_path / f"{folder}-lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def make(place: Path, _python: str) -> None:
        place.mkdir()
        seen.update({folder: is_free(folder) for folder in (".venv", ".venv-proto")})

    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "make_environment", make)
    monkeypatch.setattr(dev, "run_shown", lambda *_arguments: None)

    dev.environment(".venv-proto", ["generator"])
    assert seen == {".venv": True, ".venv-proto": False}
