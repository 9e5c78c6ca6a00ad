"""What the demo's job counts, on files with known content."""

import hashlib
import zlib
from pathlib import Path

from demo import job


def test_a_file_is_counted_whole(tmp_path: Path) -> None:
    text = "class A:\n    def f(self):\n        async def g(): ...\n\n\nclass B: ...\n"
    (tmp_path / "a.py").write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert job.index(tmp_path, "a.py") == job.Row("a.py", len(text), 6, 2, 2, sha256)


def test_a_file_that_is_no_python_has_a_row_as_well(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"def :\n\xff\n")
    row = job.index(tmp_path, "bad.py")
    assert (row.size, row.lines, row.functions, row.classes) == (8, 2, -1, -1)


def test_the_partition_is_the_checksum_of_the_path() -> None:
    assert job.partition_of("json/decoder.py") == zlib.crc32(b"json/decoder.py") % job.PARTITIONS


def test_installed_packages_are_not_the_library(tmp_path: Path) -> None:
    for path in ("z.py", "json/a.py", "site-packages/x/b.py", "dist-packages/c.py", "d.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert job.files(tmp_path) == ["json/a.py", "z.py"]
