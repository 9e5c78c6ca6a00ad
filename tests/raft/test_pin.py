"""The audited engine, byte for byte, or none."""

from __future__ import annotations

from pathlib import Path

import pysyncobj.syncobj
import pytest

from holdfast.raft.api import EngineStopped
from holdfast.raft.pysyncobj.version_pin import check_pin


def test_the_installed_engine_is_the_audited_one() -> None:
    check_pin()


def test_another_version_is_refused() -> None:
    with pytest.raises(EngineStopped, match=r"version 0\.3\.18"):
        check_pin(version="0.3.18")


def test_one_changed_byte_is_refused(tmp_path: Path) -> None:
    source = Path(pysyncobj.syncobj.__file__).read_bytes()
    changed = tmp_path / "syncobj.py"
    changed.write_bytes(source.replace(b"count = 1", b"count = 2", 1))
    with pytest.raises(EngineStopped, match=r"pip install .*pysyncobj==0\.3\.17"):
        check_pin(changed)
