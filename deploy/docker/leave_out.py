"""Removes from an environment what no node loads: a third of pyarrow.

    python leave_out.py SITE_PACKAGES

A node seals its old events as Parquet, so it needs pyarrow, but not its client of Flight, its
client of S3, its tests, nor what other programs are compiled against. That the rest still seals is
shown by tests/image, with what this leaves.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

UNUSED = (
    "pyarrow/include",
    "pyarrow/src",
    "pyarrow/tests",
    "pyarrow/*.pxi",
    "pyarrow/*.pyx",
    "pyarrow/_flight.*",
    "pyarrow/_s3fs.*",
    "pyarrow/_pyarrow_cpp_tests.*",
    "pyarrow/libarrow_flight.*",
    "pyarrow/libarrow_python_flight.*",
    "pyarrow/libarrow_s3.*",
    "pyarrow/libarrow_python.so",  # twice more what is found by its middle name, .so.2600
    "pyarrow/libarrow_python.so.*.*.*",
)
"""Of shared libraries those that nothing else of pyarrow is linked against (`readelf -d`)."""


def leave_out(site: Path) -> int:
    """Remove what is unused; return how many patterns found something."""
    found = 0
    for pattern in UNUSED:
        paths = sorted(site.glob(pattern))
        found += bool(paths)
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


if __name__ == "__main__":
    if not leave_out(Path(sys.argv[1])):
        sys.exit(f"{sys.argv[1]} has nothing of pyarrow that could be left out: a wrong folder?")
