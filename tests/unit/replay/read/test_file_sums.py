"""Files are told apart by their bytes, also those that workers fetch (S22)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from holdfast.replay.read.file_sums import FileSum, of_row, sum_of, sum_rows
from holdfast.replay.read.urls import NotReached


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_is_its_sum_and_its_size(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    address = f"{scheme}{tmp_path}/file"

    assert sum_of(address) == FileSum(hashlib.sha256(b"content").hexdigest(), 7)
    assert [of_row(row) for row in sum_rows([address])] == [(address, sum_of(address))]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_that_is_gone_is_like_no_other(scheme: str, tmp_path: Path) -> None:
    address = f"{scheme}{tmp_path}/gone"

    assert sum_of(address) == FileSum(address, 0)


def test_of_a_store_that_does_not_answer_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> None:
        raise NotReached("s3://b/n1 cannot be read: no answer")

    monkeypatch.setattr("holdfast.replay.read.urls.fetch", silent)

    with pytest.raises(NotReached):
        sum_of("s3://b/n1/file")
