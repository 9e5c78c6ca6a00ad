"""What a file's form says if the file cannot be read at all: nothing about the file."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pyarrow.parquet as pq
import pytest

from holdfast.replay.read.file_form import DataFile, forms
from holdfast.replay.read.urls import NotReached


def test_a_file_that_this_user_may_not_read_is_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To fetch the segment from a peer would be the wrong advice, and would cost the sound one."""

    def refused(*_: object, **__: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refused)
    file = DataFile(0, str(tmp_path / "bucket-00.parquet"), "bucket-00.parquet", 1)

    with pytest.raises(NotReached, match=r"bucket-00\.parquet may not be read: Permission denied"):
        list(forms([file]))
