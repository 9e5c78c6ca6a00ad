"""docs/testing-a-service.md: the fixture and the test that it shows run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from harness.children import environment

PAGE = Path(__file__).parents[2] / "docs" / "testing-a-service.md"
WITHIN_S = 180


def test_the_pages_files_are_a_test_suite_that_passes(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n# (\S+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in blocks] == ["conftest.py", "test_worker.py"]
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
