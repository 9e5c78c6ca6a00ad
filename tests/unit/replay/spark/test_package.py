"""The zip for workers holds all of Holdfast, and Python imports it from there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.replay.spark.package import package

pytestmark = pytest.mark.slow  # it imports pyspark, and starts a Python

IMPORTED = """
import json, sys
sys.path[:] = [sys.argv[1], *(each for each in sys.path if each not in json.loads(sys.argv[2]))]
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in repr(each)]
from holdfast.replay.verify import fold_job
from holdfast.storage.codec import state_image
import holdfast.coordinator.kernel.evolve
print(fold_job.__file__)
"""


def roots() -> list[str]:
    """Folders from which this process imports us."""
    import holdfast  # noqa: PLC0415 - a package without a file, so it is only asked for its folders

    return [str(Path(each).parent) for each in holdfast.__path__]


def test_a_worker_that_has_only_the_zip_imports_what_tasks_need(tmp_path: Path) -> None:
    packed = package(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, str(packed.packages), json.dumps(roots())],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(packed.packages))


def test_equal_packages_make_equal_zips_and_leave_nothing_else(tmp_path: Path) -> None:
    one, two = package(tmp_path / "one"), package(tmp_path / "two")

    assert one.packages.read_bytes() == two.packages.read_bytes()
    assert {each.name for each in (tmp_path / "one").iterdir()} == {
        "holdfast.zip",
        "holdfast_replay.py",
    }


def test_the_lines_name_what_was_written_by_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    packed = package(Path("with space"))

    for line in (packed.submit, packed.direct):
        assert str(tmp_path / "with space" / "holdfast.zip") in line
    assert packed.submit.index("--py-files") < packed.submit.index("holdfast_replay.py")
